/* read.c - a box of a tensor, from the slices that hold it. Every slice that has a part in
 * it is read from its beginning to its end, for the checksum is that of the whole slice; what is
 * wanted of it is copied on the way, or lands where it belongs at once if that is one stretch.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/crc32c.h"
#include "core/train/checkpoint/bundle/bundle_inside.h"

/* The checksum is taken of so much while it is in the cache. */
enum { READ_BYTES = 256 << 10 };

/* Where a box lies in two others that hold it: in stretches that are contiguous in both, one for
 * each position along the outer axes. All in bytes. */
struct stretches {
    int axes; /* outer ones; 0: a single stretch */
    int64_t count[BUNDLE_RANK_MAX], position[BUNDLE_RANK_MAX];
    int64_t from_step[BUNDLE_RANK_MAX], to_step[BUNDLE_RANK_MAX];
    int64_t from, to, bytes; /* the present one */
    bool is_done;
};

/* Inner axes that are whole in both, and the one before them, make one stretch. */
static struct stretches stretches_of(const struct bundle_box *common, const struct bundle_box *from,
                                     const struct bundle_box *to, int rank, int64_t size)
{
    struct stretches s = {.bytes = size};
    int64_t from_step = size, to_step = size;
    bool is_whole = true;
    s.axes = 0;
    for (int i = rank - 1; i >= 0; i--) {
        s.from += (common->start[i] - from->start[i]) * from_step;
        s.to += (common->start[i] - to->start[i]) * to_step;
        s.from_step[i] = from_step;
        s.to_step[i] = to_step;
        s.count[i] = common->length[i];
        if (is_whole)
            s.bytes *= common->length[i];
        else if (s.axes == 0)
            s.axes = i + 1;
        is_whole =
            is_whole && common->length[i] == from->length[i] && common->length[i] == to->length[i];
        from_step *= from->length[i];
        to_step *= to->length[i];
    }
    return s;
}

/* To the next stretch, the last outer axis first. */
static void advance(struct stretches *s)
{
    for (int i = s->axes - 1; i >= 0; i--) {
        s->from += s->from_step[i];
        s->to += s->to_step[i];
        if (++s->position[i] < s->count[i]) return;
        s->from -= s->count[i] * s->from_step[i];
        s->to -= s->count[i] * s->to_step[i];
        s->position[i] = 0;
    }
    s->is_done = true;
}

/* Copies what the bytes begin .. begin + bytes - 1 of a slice have of the box. */
static void take(struct stretches *s, const uint8_t *chunk, int64_t begin, int64_t bytes,
                 uint8_t *ret)
{
    const int64_t end = begin + bytes;
    for (; !s->is_done && s->from < end; advance(s)) {
        const int64_t low = s->from > begin ? s->from : begin;
        const int64_t stretch_end = s->from + s->bytes;
        const int64_t high = stretch_end < end ? stretch_end : end;
        memcpy(ret + s->to + (low - s->from), chunk + (low - begin), (size_t)(high - low));
        if (stretch_end > end) return; /* the rest is in the next chunk */
    }
}

struct reading {
    const struct file_reader *source;
    const struct record *record;
    struct stretches stretches;
};

/* The whole slice goes to one place. */
static err read_straight(const struct reading *r, uint8_t *to, uint32_t *ret_crc)
{
    uint32_t crc = 0;
    for (int64_t at = 0; at < r->record->bytes; at += READ_BYTES) {
        const int64_t left = r->record->bytes - at;
        const size_t bytes = (size_t)(left < READ_BYTES ? left : READ_BYTES);
        TRY(file_reader_read(r->source, r->record->offset + at, to + at, bytes));
        crc = crc32c_extend(crc, to + at, bytes);
    }
    *ret_crc = crc;
    return OK;
}

/* As much memory as one chunk, however large the slice. */
static err read_parts(struct reading *r, uint8_t *chunk, uint8_t *ret, uint32_t *ret_crc)
{
    uint32_t crc = 0;
    for (int64_t at = 0; at < r->record->bytes; at += READ_BYTES) {
        const int64_t left = r->record->bytes - at;
        const size_t bytes = (size_t)(left < READ_BYTES ? left : READ_BYTES);
        TRY(file_reader_read(r->source, r->record->offset + at, chunk, bytes));
        crc = crc32c_extend(crc, chunk, bytes);
        take(&r->stretches, chunk, at, (int64_t)bytes, ret);
    }
    *ret_crc = crc;
    return OK;
}

static err read_record(struct reading *r, uint8_t *ret)
{
    uint32_t crc = 0;
    if (r->stretches.axes == 0 && r->stretches.bytes == r->record->bytes) {
        TRY(read_straight(r, ret + r->stretches.to, &crc));
    } else {
        uint8_t *chunk = malloc(READ_BYTES);
        if (!chunk) return fail(ERR_MEMORY, "%s: no memory to read it", r->source->path);
        const err e = read_parts(r, chunk, ret, &crc);
        free(chunk);
        if (e) return e;
    }
    return crc32c_mask(crc) == r->record->crc ? OK : bundle_crc_differs(r->source->path);
}

/* Of one stored slice, what the box has of it. */
static err read_stored(const struct bundle *b, const struct bundle_entry *entry,
                       const struct stored *stored, const struct bundle_box *box, uint8_t *ret)
{
    struct bundle_box common;
    struct file_reader source;
    char *path = NULL;
    const int rank = entry->shape.rank;
    if (box_common(&stored->box, box, rank, &common) == 0) return OK;
    TRY(bundle_open_data(b, stored->record, &source, &path));
    const int64_t size = (int64_t)bundle_dtype_size(entry->dtype);
    struct reading reading = {&source, stored->record,
                              stretches_of(&common, &stored->box, box, rank, size)};
    const err e = read_record(&reading, ret);
    file_reader_close(&source);
    free(path);
    return e;
}

static err check_wanted(const struct bundle *b, const struct bundle_entry *entry,
                        const struct bundle_box *box, size_t ret_bytes)
{
    const size_t size = bundle_dtype_size(entry->dtype);
    if (!size)
        return fail(ERR_INPUT, "%s: %s: values of type %s cannot be read", b->prefix, entry->name,
                    bundle_dtype_name(entry->dtype));
    if (!box_is_inside(box, &entry->shape))
        return fail(ERR_INPUT, "%s: %s: the part that is wanted is not inside of it", b->prefix,
                    entry->name);
    const struct bundle_shape shape = box_shape(box, entry->shape.rank);
    const uint64_t count = (uint64_t)bundle_count(&shape);
    if (count != ret_bytes / size || ret_bytes % size)
        return fail(ERR_INPUT, "%s: %s: %llu elements of %zu bytes are there, %zu bytes are wanted",
                    b->prefix, entry->name, (unsigned long long)count, size, ret_bytes);
    return OK;
}

/* Stored slices do not overlap (bundle_open saw to it), so counting is enough. */
static err check_cover(const struct bundle *b, const struct bundle_entry *entry,
                       const struct bundle_box *box)
{
    const struct stored_list list = bundle_stored(b, entry);
    const struct bundle_shape shape = box_shape(box, entry->shape.rank);
    struct bundle_box common;
    int64_t held = 0;
    for (int i = 0; i < list.count; i++)
        held += box_common(&list.at[i].box, box, shape.rank, &common);
    if (held == bundle_count(&shape)) return OK;
    return fail(ERR_INPUT, "%s: %s: its slices hold %lld of %lld elements", b->prefix, entry->name,
                (long long)held, (long long)bundle_count(&shape));
}

err bundle_read(struct bundle *b, const struct bundle_entry *entry, const struct bundle_box *box,
                void *ret, size_t ret_bytes)
{
    const struct bundle_box whole = bundle_whole(&entry->shape);
    const struct stored_list list = bundle_stored(b, entry);
    if (!box) box = &whole;
    TRY(check_wanted(b, entry, box, ret_bytes));
    TRY(check_cover(b, entry, box));
    for (int i = 0; i < list.count; i++) {
        const err e = read_stored(b, entry, &list.at[i], box, ret);
        if (e) return fail_prefix(e, "%s", entry->name);
    }
    return OK;
}
