/* open.c - checks an index as a whole: the slices of each tensor must be possible, and the data
 * files long enough. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/train/checkpoint/bundle/bundle_inside.h"

/* Pairs of slices checked for overlap, over all tensors: well under a second. */
enum { OVERLAP_CHECKS_MAX = 1 << 26 };

static err no_memory(const char *prefix)
{
    return fail(ERR_MEMORY, "%s: no memory for the index of a checkpoint", prefix);
}

/* ---- slices of one tensor ---- */

/* Replaces omitted lengths by the whole axis. */
static struct bundle_box resolve(const struct bundle_box *box, const struct bundle_shape *shape)
{
    struct bundle_box whole = *box;
    for (int i = 0; i < shape->rank; i++) {
        if (box->length[i] == LENGTH_WHOLE) whole.length[i] = shape->dim[i];
    }
    return whole;
}

static err find_slice(const struct bundle *b, const struct index_record *whole,
                      const struct bundle_box *box, const struct index_record **ret)
{
    struct buffer key = {0};
    const char *name = index_key(&b->index, whole);
    index_slice_key(&key, name, whole->shape.rank, box);
    const struct index_record *found =
        key.is_short ? NULL : index_find(&b->index, buffer_view(&key));
    const bool is_short = key.is_short;
    buffer_drop(&key);
    if (is_short) return no_memory(b->prefix);
    if (!found) return fail(ERR_INPUT, "%s: the entry of a slice is absent", name);
    *ret = found;
    return OK;
}

/* Compares the slice in its tensor's list with the entry that has its data: they were written
 * separately, by different tasks, and must agree. */
static err add_slice(const struct bundle *b, const struct index_record *whole,
                     const struct bundle_box *box, struct stored *ret)
{
    const struct index_record *r = NULL;
    const char *name = index_key(&b->index, whole);
    const int rank = whole->shape.rank;
    struct stored stored = {.box = resolve(box, &whole->shape)};
    TRY(find_slice(b, whole, box, &r));
    const struct bundle_box own = bundle_whole(&r->shape);
    const struct bundle_shape wanted = box_shape(&stored.box, rank);
    const struct bundle_box wanted_box = bundle_whole(&wanted);
    if (!box_is_inside(&stored.box, &whole->shape))
        return fail(ERR_INPUT, "%s: a slice that is not inside of the tensor", name);
    if (r->dtype != whole->dtype || r->shape.rank != rank ||
        !box_is_equal(&own, &wanted_box, rank) || r->slice_count > 0)
        return fail(ERR_INPUT, "%s: a slice whose entry has another type or shape", name);
    stored.record = r;
    *ret = stored;
    return OK;
}

static int compare_starts(const void *a, const void *b)
{
    const struct stored *x = a, *y = b;
    for (int i = 0; i < BUNDLE_RANK_MAX; i++) { /* unused axes are 0 */
        if (x->box.start[i] != y->box.start[i]) return x->box.start[i] < y->box.start[i] ? -1 : 1;
    }
    return 0;
}

/* The first axis along which the sorted slices have different starts. */
static int axis_of(const struct stored *s, int count, int rank)
{
    for (int axis = 0; axis < rank; axis++) {
        for (int i = 1; i < count; i++) {
            if (s[i].box.start[axis] != s[0].box.start[axis]) return axis;
        }
    }
    return 0;
}

/* Once no slices overlap, they cover a box exactly if the numbers of elements are equal. */
static err check_overlap(struct bundle *b, const char *name, struct stored *s, int count, int rank)
{
    struct bundle_box common;
    qsort(s, (size_t)count, sizeof *s, compare_starts);
    const int axis = axis_of(s, count, rank);
    for (int i = 0; i < count; i++) {
        const int64_t end = s[i].box.start[axis] + s[i].box.length[axis];
        for (int j = i + 1; j < count && s[j].box.start[axis] < end; j++) {
            if (box_common(&s[i].box, &s[j].box, rank, &common) > 0)
                return fail(ERR_INPUT, "%s: two slices overlap", name);
            if (++b->overlap_checks == OVERLAP_CHECKS_MAX)
                return fail(ERR_INPUT, "%s: too many slices", name);
        }
    }
    return OK;
}

static err add_entry(struct bundle *b, const struct index_record *r, struct bundle_entry *ret,
                     struct stored *stored)
{
    const char *name = index_key(&b->index, r);
    *ret = (struct bundle_entry){name, r->dtype, r->shape, r->slice_count};
    if (r->slice_count == 0) {
        *stored = (struct stored){bundle_whole(&r->shape), r};
        return OK;
    }
    for (int i = 0; i < r->slice_count; i++)
        TRY(add_slice(b, r, &b->index.slices[r->first_slice + (size_t)i], &stored[i]));
    return check_overlap(b, name, stored, r->slice_count, r->shape.rank);
}

/* ---- all of them ---- */

/* Entries of slices sort before all names, so their number is known first; the tensors must list as
 * many. */
static err count_entries(struct bundle *b, int *ret_stored)
{
    int64_t slices = 0, listed = 0, whole = 0;
    for (int i = 0; i < b->index.count; i++) {
        const struct index_record *r = &b->index.records[i];
        if (index_is_slice(&b->index, r))
            slices++;
        else if (r->slice_count == 0)
            whole++;
        listed += r->slice_count;
    }
    if (slices != listed)
        return fail(ERR_INPUT, "%lld slices are listed, %lld are there", (long long)listed,
                    (long long)slices);
    b->count = b->index.count - (int)slices;
    *ret_stored = (int)(whole + slices);
    return OK;
}

/* Names point into the index' keys, which are final now. */
static err add_entries(struct bundle *b)
{
    int stored = 0, at = 0, entry = 0;
    TRY(count_entries(b, &stored));
    b->entries = calloc((size_t)b->count + 1, sizeof *b->entries);
    b->first = calloc((size_t)b->count + 1, sizeof *b->first);
    b->stored = calloc((size_t)stored + 1, sizeof *b->stored);
    if (!b->entries || !b->first || !b->stored) return no_memory(b->prefix);
    for (int i = 0; i < b->index.count; i++) {
        const struct index_record *r = &b->index.records[i];
        if (index_is_slice(&b->index, r)) continue;
        b->first[entry] = at;
        TRY(add_entry(b, r, &b->entries[entry++], &b->stored[at]));
        at += r->slice_count ? r->slice_count : 1;
    }
    b->first[entry] = at;
    return OK;
}

static err check_record(const struct bundle *b, const struct index_record *r, const char *text)
{
    int64_t bytes = r->bytes;
    const int64_t size = (int64_t)bundle_dtype_size(r->dtype);
    if (r->shard >= b->index.shards)
        return fail(ERR_INPUT, "%s.index: %s: data file %d of %d", b->prefix, text, r->shard,
                    b->index.shards);
    if (r->slice_count > 0) return OK; /* no data of its own */
    if (size && __builtin_mul_overflow(bundle_count(&r->shape), size, &bytes)) bytes = -1;
    if (bytes == r->bytes) return OK;
    return fail(ERR_INPUT, "%s.index: %s: %lld bytes are not what its shape holds", b->prefix, text,
                (long long)r->bytes);
}

/* Compares with the sizes of the real files, so that no read allocates more memory than is on the
 * disk. */
static err check_end(const struct bundle *b, const struct index_record *r, int64_t file_bytes)
{
    char text[KEY_TEXT_MAX];
    if (r->slice_count > 0 || (r->bytes <= file_bytes && r->offset <= file_bytes - r->bytes))
        return OK;
    return fail(ERR_INPUT, "%s.data-%05d-of-%05d: truncated: %lld bytes, %s ends beyond them",
                b->prefix, r->shard, b->index.shards, (long long)file_bytes,
                index_key_text(&b->index, r, text));
}

/* Opens each file: one that may not be read must fail now. */
static err measure_files(const struct bundle *b, int64_t *ret_bytes)
{
    for (int i = 0; i < b->index.shards; i++) {
        char *path = NULL;
        struct file_reader source;
        TRY(bundle_data_path(b->prefix, i, b->index.shards, &path));
        const err e = file_reader_open(path, &source);
        free(path);
        if (e) return e;
        ret_bytes[i] = source.bytes;
        file_reader_close(&source);
    }
    return OK;
}

/* Checks that all tensors together need no more bytes than the files have, as no two share bytes.
 * left: bytes of each file */
static err check_sum(const struct bundle *b, const struct index_record *r, int64_t *left)
{
    if (r->slice_count > 0) return OK;
    left[r->shard] -= r->bytes; /* cannot overflow, see check_end */
    if (left[r->shard] >= 0) return OK;
    return fail(ERR_INPUT, "%s.data-%05d-of-%05d: has fewer bytes than its tensors together",
                b->prefix, r->shard, b->index.shards);
}

static err check_files(const struct bundle *b)
{
    char text[KEY_TEXT_MAX];
    const size_t shards = (size_t)b->index.shards;
    int64_t *bytes = calloc(2 * shards, sizeof *bytes);
    if (!bytes) return no_memory(b->prefix);
    int64_t *left = bytes + shards;
    err e = measure_files(b, bytes);
    memcpy(left, bytes, shards * sizeof *bytes);
    for (int i = 0; i < b->index.count && !e; i++) {
        const struct index_record *r = &b->index.records[i];
        e = check_record(b, r, index_key_text(&b->index, r, text));
        if (!e) e = check_end(b, r, bytes[r->shard]);
        if (!e) e = check_sum(b, r, left);
    }
    free(bytes);
    return e;
}

/* A checkpoint in TensorFlow's V1 format is a single file whose name is the prefix. */
static err read_index(const char *prefix, const char *path, struct index *ret)
{
    struct stat status;
    const bool is_old = !path_is_url(path) && stat(path, &status) && errno == ENOENT &&
                        stat(prefix, &status) == 0 && S_ISREG(status.st_mode);
    if (is_old)
        return fail(ERR_INPUT,
                    "%s: there is no %s.index: a checkpoint of TensorFlow's old format V1 is not "
                    "read here",
                    prefix, prefix);
    return index_read(path, ret);
}

static err open_bundle(struct bundle *b, const char *index_path)
{
    TRY(read_index(b->prefix, index_path, &b->index));
    const err e = add_entries(b);
    if (e == ERR_INPUT) return fail_prefix(e, "%s", index_path);
    if (e) return e;
    return check_files(b);
}

err bundle_open(const char *prefix, struct bundle **ret)
{
    char *index_path = NULL;
    struct bundle *b = calloc(1, sizeof *b);
    if (!b) return no_memory(prefix);
    b->prefix = strdup(prefix);
    err e = b->prefix ? bundle_index_path(prefix, &index_path) : no_memory(prefix);
    if (!e) e = open_bundle(b, index_path);
    free(index_path);
    if (e) bundle_close(b);
    if (!e) *ret = b;
    return e;
}

void bundle_close(struct bundle *b)
{
    if (!b) return;
    bundle_close_picked(b);
    index_drop(&b->index);
    free(b->entries);
    free(b->first);
    free(b->stored);
    free(b->prefix);
    free(b);
}

/* ---- looking at it ---- */

const char *bundle_prefix(const struct bundle *b)
{
    return b->prefix;
}

int bundle_shards(const struct bundle *b)
{
    return b->index.shards;
}

int bundle_entries(const struct bundle *b)
{
    return b->count;
}

const struct bundle_entry *bundle_at(const struct bundle *b, int index)
{
    return &b->entries[index];
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct bundle_entry *)entry)->name);
}

struct suggestion bundle_nearest(const struct bundle *b, const char *name,
                                 bool (*is_wanted)(const struct bundle_entry *))
{
    const char **names = malloc(((size_t)bundle_entries(b) + 1) * sizeof *names);
    int count = 0;
    if (!names) return (struct suggestion){""};
    for (int i = 0; i < bundle_entries(b); i++) {
        const struct bundle_entry *entry = bundle_at(b, i);
        if (!is_wanted || is_wanted(entry)) names[count++] = entry->name;
    }
    const struct suggestion near = suggest(name, names, count);
    free(names);
    return near;
}

const struct bundle_entry *bundle_find(const struct bundle *b, const char *name)
{
    return bsearch(name, b->entries, (size_t)b->count, sizeof *b->entries, compare_name);
}

struct stored_list bundle_stored(const struct bundle *b, const struct bundle_entry *entry)
{
    const ptrdiff_t i = entry - b->entries;
    return (struct stored_list){b->stored + b->first[i], b->first[i + 1] - b->first[i]};
}

struct bundle_place bundle_place(const struct bundle *b, const struct bundle_entry *entry,
                                 int index)
{
    const struct stored *s = &bundle_stored(b, entry).at[index];
    return (struct bundle_place){s->box, s->record->shard, s->record->offset, s->record->bytes};
}

/* ---- for those who read data ---- */

err bundle_open_data(const struct bundle *b, const struct index_record *r, struct file_reader *ret,
                     char **ret_path)
{
    char *path = NULL;
    TRY(bundle_data_path(b->prefix, r->shard, b->index.shards, &path));
    const err e = file_reader_open(path, ret);
    if (e) {
        free(path);
        return e;
    }
    ret->until = r->offset + r->bytes;
    *ret_path = path;
    return OK;
}

err bundle_crc_differs(const char *path)
{
    return fail(ERR_INPUT, "%s: the data are damaged: their checksum differs", path);
}
