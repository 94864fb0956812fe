/* write.c - writes one shard: data are written as they come, the index stays in memory until the
 * end. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/crc32c.h"
#include "core/base/files/replace.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/bundle/bundle_inside.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "numbers are stored as they stand here");

/* The checksum is computed over this many bytes, which are then written while in the cache. */
enum { WRITE_BYTES = 256 << 10 };

/* A piece that is being written */
struct begun {
    const struct bundle_piece *piece;
    struct index_record record; /* its data; the checksum is not masked yet */
    int64_t bytes;              /* written so far */
};

/* The data file is open from the beginning; the index is sorted and written at the end. */
struct bundle_writer {
    char *prefix;
    struct output data;
    struct index index;
    struct begun begun[BUNDLE_BESIDE_MAX];
    int begun_count;
    bool is_spoiled;
};

static err open_data(const char *prefix, struct bundle_writer *w)
{
    char *path = NULL;
    w->prefix = strdup(prefix);
    if (!w->prefix) return fail(ERR_MEMORY, "no memory to write %s", prefix);
    TRY(bundle_data_path(prefix, 0, 1, &path));
    const err e = output_open(path, path, &w->data);
    free(path);
    return e;
}

err bundle_create(const char *prefix, struct bundle_writer **ret)
{
    struct bundle_writer *w = calloc(1, sizeof *w);
    if (!w) return fail(ERR_MEMORY, "no memory to write %s", prefix);
    w->index.shards = 1;
    const err e = open_data(prefix, w);
    if (e) bundle_abandon(w);
    if (!e) *ret = w;
    return e;
}

void bundle_abandon(struct bundle_writer *w)
{
    if (!w) return;
    output_drop(&w->data);
    index_drop(&w->index);
    free(w->prefix);
    free(w);
}

static err check_piece(const struct bundle_piece *piece)
{
    const size_t bytes = strlen(piece->name), size = bundle_dtype_size(piece->dtype);
    int64_t count;
    if (bytes < 1 || bytes > BUNDLE_NAME_MAX)
        return fail(ERR_INPUT, "a tensor's name of %zu bytes, from 1 to %d are possible", bytes,
                    (int)BUNDLE_NAME_MAX);
    if (!size)
        return fail(ERR_INPUT, "%s: %s cannot be written", piece->name,
                    bundle_dtype_name(piece->dtype));
    if (piece->shape.rank < 0 || piece->shape.rank > BUNDLE_RANK_MAX)
        return fail(ERR_INPUT, "%s: %d dimensions, at most %d are possible", piece->name,
                    piece->shape.rank, (int)BUNDLE_RANK_MAX);
    count = bundle_count(&piece->shape);
    if (count < 0 || __builtin_mul_overflow(count, (int64_t)size, &count))
        return fail(ERR_INPUT, "%s: too many elements", piece->name);
    if (piece->box && !box_is_inside(piece->box, &piece->shape))
        return fail(ERR_INPUT, "%s: a slice that is not inside of the tensor", piece->name);
    return OK;
}

static struct view view_of_name(const char *name)
{
    const uint8_t *at = (const uint8_t *)name;
    return (struct view){at, at + strlen(name)};
}

/* A slice is two records: the tensor's, which lists it, and its own under a key made of the box. */
static err add_slice(struct index *index, const struct bundle_piece *piece,
                     const struct index_record *data)
{
    struct index_record whole = {.dtype = piece->dtype, .shape = piece->shape, .slice_count = 1};
    struct buffer key = {0};
    TRY(index_add(index, view_of_name(piece->name), &whole, piece->box));
    index_slice_key(&key, piece->name, piece->shape.rank, piece->box);
    const err e = key.is_short ? fail(ERR_MEMORY, "no memory for the index of a checkpoint")
                               : index_add(index, buffer_view(&key), data, NULL);
    buffer_drop(&key);
    return e;
}

static struct bundle_box box_of(const struct bundle_piece *piece)
{
    return piece->box ? *piece->box : bundle_whole(&piece->shape);
}

/* Marks the writer as unusable: the file no longer matches the index. */
static err spoil(struct bundle_writer *w, err e)
{
    w->is_spoiled = true;
    w->begun_count = 0;
    return e;
}

static err check_writer(const struct bundle_writer *w)
{
    return w->is_spoiled ? fail(ERR_INPUT, "%s: a tensor could not be written to it", w->prefix)
                         : OK;
}

static int64_t bytes_of(const struct index_record *record)
{
    return bundle_count(&record->shape) * (int64_t)bundle_dtype_size(record->dtype);
}

static void begin_piece(const struct bundle_piece *piece, int64_t offset, struct begun *ret)
{
    const struct bundle_box box = box_of(piece);
    *ret = (struct begun){.piece = piece,
                          .record = {.dtype = piece->dtype,
                                     .shape = box_shape(&box, piece->shape.rank),
                                     .offset = offset}};
    ret->record.bytes = bytes_of(&ret->record);
}

err bundle_begin(struct bundle_writer *w, const struct bundle_piece *pieces, int count)
{
    int64_t offset = w->data.bytes;
    TRY(check_writer(w));
    assert(!w->begun_count && count <= BUNDLE_BESIDE_MAX);
    for (int i = 0; i < count; i++) TRY(check_piece(&pieces[i]));
    for (int i = 0; i < count; i++) {
        begin_piece(&pieces[i], offset, &w->begun[i]);
        offset += w->begun[i].record.bytes;
    }
    w->begun_count = count;
    return OK;
}

static err append(struct bundle_writer *w, struct begun *to, const uint8_t *at, size_t bytes)
{
    to->record.crc = crc32c_extend(to->record.crc, at, bytes);
    TRY(output_write_at(&w->data, to->record.offset + to->bytes, at, bytes));
    to->bytes += (int64_t)bytes;
    return OK;
}

/* One pass over the memory for the checksum and the disk. */
err bundle_append(struct bundle_writer *w, int piece, const void *elements, size_t bytes)
{
    const uint8_t *at = elements;
    struct begun *to = &w->begun[piece];
    TRY(check_writer(w));
    assert(piece < w->begun_count);
    if (bytes > (uint64_t)(to->record.bytes - to->bytes))
        return spoil(w, fail(ERR_INPUT, "%s: more than its %lld bytes", to->piece->name,
                             (long long)to->record.bytes));
    for (size_t done = 0; done < bytes; done += WRITE_BYTES) {
        const size_t now = bytes - done < WRITE_BYTES ? bytes - done : WRITE_BYTES;
        const err e = append(w, to, at + done, now);
        if (e) return spoil(w, e);
    }
    return OK;
}

static err add_record(struct index *index, const struct bundle_piece *piece,
                      const struct index_record *data)
{
    const struct bundle_box whole = bundle_whole(&piece->shape), box = box_of(piece);
    if (box_is_equal(&box, &whole, piece->shape.rank))
        return index_add(index, view_of_name(piece->name), data, NULL);
    return add_slice(index, piece, data);
}

static err end_piece(struct bundle_writer *w, struct begun *begun)
{
    struct index_record *record = &begun->record;
    if (begun->bytes < record->bytes)
        return fail(ERR_INPUT, "%s: %lld of its %lld bytes are missing", begun->piece->name,
                    (long long)(record->bytes - begun->bytes), (long long)record->bytes);
    TRY(output_join(&w->data, record->offset + record->bytes));
    record->crc = crc32c_mask(record->crc);
    return add_record(&w->index, begun->piece, record);
}

err bundle_end(struct bundle_writer *w)
{
    TRY(check_writer(w));
    assert(w->begun_count);
    for (int i = 0; i < w->begun_count; i++) {
        const err e = end_piece(w, &w->begun[i]);
        if (e) return spoil(w, e);
    }
    w->begun_count = 0;
    return OK;
}

err bundle_add(struct bundle_writer *w, const struct bundle_piece *piece, const void *elements)
{
    TRY(bundle_begin(w, piece, 1));
    TRY(bundle_append(w, 0, elements, (size_t)w->begun[0].record.bytes));
    return bundle_end(w);
}

/* Removes the older index before its data; the new index comes last. */
static err publish(struct bundle_writer *w, const char *index_path, struct output *index)
{
    TRY(bundle_unlink(index_path));
    TRY(output_publish(&w->data));
    err e = output_publish(index);
    if (!e) e = file_sync_folder(index_path);
    if (!e) return OK;
    (void)bundle_unlink(index_path);
    (void)bundle_unlink(w->data.path);
    return e;
}

/* Both files are synced before either is renamed. */
static err finish(struct bundle_writer *w, const char *index_path)
{
    struct output index = {0};
    TRY(check_writer(w));
    assert(!w->begun_count);
    TRY(output_sync(&w->data));
    TRY(index_join(&w->index, w->prefix));
    err e = index_save(&w->index, index_path, index_path, &index);
    if (!e) e = publish(w, index_path, &index);
    output_drop(&index);
    return e;
}

err bundle_finish(struct bundle_writer *w)
{
    char *index_path = NULL;
    err e = bundle_index_path(w->prefix, &index_path);
    if (!e) e = finish(w, index_path);
    free(index_path);
    bundle_abandon(w);
    return e;
}
