/* read.c - reads a box of a tensor, whole or by rows, from the slices that hold it. Each of those
 * is read completely, because the checksum is that of the whole slice; the wanted part is copied on
 * the way, or read directly into place if it is contiguous. */
#include <stdlib.h>
#include <string.h>

#include "core/base/crc32c.h"
#include "core/train/checkpoint/bundle/chunks.h"
#include "core/train/checkpoint/bundle/bundle_inside.h"

/* The checksum is computed over this much at a time, while it is in the cache. */
enum { READ_BYTES = 256 << 10 };
_Static_assert((int)READ_BYTES <= (int)BUNDLE_STRETCH_BYTES, "a chunk is given as one stretch");

/* Where a box is in two others that contain it: ranges that are contiguous in both, one for each
 * position along the outer axes. All in bytes. */
struct stretches {
    int axes; /* outer ones; 0: a single range */
    int64_t count[BUNDLE_RANK_MAX], position[BUNDLE_RANK_MAX];
    int64_t from_step[BUNDLE_RANK_MAX], to_step[BUNDLE_RANK_MAX];
    int64_t from, to, bytes; /* the current range */
    bool is_done;
};

/* Inner axes that are whole in both, and the one before them, form one range. */
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

/* Moves to the next range, the last outer axis first. */
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

/* Copies the part of the box within bytes begin .. begin + bytes - 1 of a slice. */
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

/* Reads rows for a taker. The buffer holds those of the window. */
struct rows_taking {
    struct bundle *bundle;
    const struct bundle_entry *entry;
    const struct bundle_taker *taker;
    struct bundle_box box;
    int64_t row_bytes, rows_max; /* of a window */
    struct bundle_box window;    /* of the box; no rows: all were passed on */
    int64_t end;                 /* row after the last one of this round */
    uint8_t *buffer;
};

struct record_reading {
    const struct file_reader *source;
    const struct index_record *record;
    struct stretches stretches;
    struct rows_taking *rows;        /* NULL: all is one range */
    const struct bundle_box *stored; /* with rows */
    bool has_whole_rows;             /* it has whole rows of the box, ready to pass on */
};

/* ---- windows of rows ---- */

/* The next window over rows first .. end - 1. */
static void next_window(struct rows_taking *w)
{
    w->window.start[0] += w->window.length[0];
    const int64_t left = w->end - w->window.start[0];
    w->window.length[0] = left < w->rows_max ? left : w->rows_max;
}

static void first_window(struct rows_taking *w, int64_t first, int64_t count)
{
    w->window = w->box;
    w->window.start[0] = first;
    w->window.length[0] = 0;
    w->end = first + count;
    next_window(w);
}

static err give(const struct rows_taking *w)
{
    return w->taker->take(w->taker->context, w->window.start[0], w->window.length[0], w->buffer);
}

static struct stretches stretches_of_window(const struct rows_taking *w,
                                            const struct bundle_box *stored)
{
    return stretches_of(&w->window, stored, &w->window, w->entry->shape.rank,
                        (int64_t)bundle_dtype_size(w->entry->dtype));
}

/* Passes on the windows that this chunk completes; the last one may need the next chunk. */
static err take_rows(struct record_reading *r, const uint8_t *chunk, int64_t begin, int64_t bytes)
{
    while (r->rows->window.length[0] > 0) {
        take(&r->stretches, chunk, begin, bytes, r->rows->buffer);
        if (!r->stretches.is_done) return OK;
        TRY(give(r->rows));
        next_window(r->rows);
        r->stretches = stretches_of_window(r->rows, r->stored);
    }
    return OK;
}

/* ---- one stored slice ---- */

/* Reads the whole slice into contiguous memory. */
static err read_straight(const struct record_reading *r, uint8_t *to, uint32_t *ret_crc)
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

/* Passes on those rows of a chunk of whole rows that are in the box, without copying. */
static err give_chunk(const struct record_reading *r, const uint8_t *chunk, int64_t begin,
                      int64_t bytes)
{
    const struct rows_taking *w = r->rows;
    const int64_t first = r->stored->start[0] + begin / w->row_bytes;
    const int64_t end = first + bytes / w->row_bytes, box_end = w->box.start[0] + w->box.length[0];
    const int64_t low = first > w->box.start[0] ? first : w->box.start[0];
    const int64_t high = end < box_end ? end : box_end;
    if (low >= high) return OK;
    return w->taker->take(w->taker->context, low, high - low, chunk + (low - first) * w->row_bytes);
}

static err take_chunk(struct record_reading *r, const uint8_t *chunk, int64_t begin, int64_t bytes,
                      uint8_t *ret)
{
    if (r->has_whole_rows) return give_chunk(r, chunk, begin, bytes);
    if (r->rows) return take_rows(r, chunk, begin, bytes);
    take(&r->stretches, chunk, begin, bytes, ret);
    return OK;
}

static err take_chunks(struct record_reading *r, struct chunks *chunks, uint8_t *ret, uint32_t *crc)
{
    const uint8_t *chunk = NULL;
    int64_t at = 0, bytes;
    for (;; at += bytes) {
        TRY(chunks_next(chunks, &chunk, &bytes));
        if (bytes == 0) return OK;
        *crc = crc32c_extend(*crc, chunk, (size_t)bytes);
        TRY(take_chunk(r, chunk, at, bytes, ret));
    }
}

/* Takes the memory of some chunks, however large the slice. */
static err read_parts(struct record_reading *r, uint8_t *ret, uint32_t *crc)
{
    struct chunks *chunks;
    const int64_t row = r->has_whole_rows ? r->rows->row_bytes : 1;
    TRY(chunks_open(r->source, r->record->offset, r->record->bytes, READ_BYTES / row * row,
                    &chunks));
    const err e = take_chunks(r, chunks, ret, crc);
    chunks_close(chunks);
    return e;
}

static err read_record(struct record_reading *r, uint8_t *ret)
{
    uint32_t crc = 0;
    if (!r->rows && r->stretches.axes == 0 && r->stretches.bytes == r->record->bytes)
        TRY(read_straight(r, ret + r->stretches.to, &crc));
    else
        TRY(read_parts(r, ret, &crc));
    return crc32c_mask(crc) == r->record->crc ? OK : bundle_crc_differs(r->source->path);
}

static err read_stored(const struct bundle *b, struct record_reading *reading, uint8_t *ret)
{
    struct file_reader source;
    char *path = NULL;
    TRY(bundle_open_data(b, reading->record, &source, &path));
    reading->source = &source;
    const err e = read_record(reading, ret);
    file_reader_close(&source);
    free(path);
    return e;
}

/* Copies the part of the slice that is in the box to its place in ret. */
static err read_part(const struct bundle *b, const struct bundle_entry *entry,
                     const struct stored *stored, const struct bundle_box *box, uint8_t *ret)
{
    struct bundle_box common;
    const int rank = entry->shape.rank;
    const int64_t size = (int64_t)bundle_dtype_size(entry->dtype);
    if (box_common(&stored->box, box, rank, &common) == 0) return OK;
    struct record_reading reading = {
        .record = stored->record,
        .stretches = stretches_of(&common, &stored->box, box, rank, size),
    };
    return read_stored(b, &reading, ret);
}

/* Whether chunks of the slice consist of whole rows of the box */
static bool has_whole_rows(const struct rows_taking *w, const struct bundle_box *stored)
{
    if (w->entry->shape.rank == 0 || w->row_bytes > READ_BYTES) return false;
    for (int i = 1; i < w->entry->shape.rank; i++)
        if (stored->length[i] != w->box.length[i]) return false;
    return true;
}

/* Passes on the part of the slice that is in the box, as rows. */
static err read_part_rows(struct rows_taking *w, const struct stored *stored)
{
    struct bundle_box common;
    const int rank = w->entry->shape.rank;
    if (box_common(&stored->box, &w->box, rank, &common) == 0) return OK;
    first_window(w, common.start[0], rank ? common.length[0] : 1);
    struct record_reading reading = {
        .record = stored->record,
        .stretches = stretches_of_window(w, &stored->box),
        .rows = w,
        .stored = &stored->box,
        .has_whole_rows = has_whole_rows(w, &stored->box),
    };
    return read_stored(w->bundle, &reading, NULL);
}

/* ---- a box ---- */

static err check_wanted(const struct bundle *b, const struct bundle_entry *entry,
                        const struct bundle_box *box)
{
    if (!bundle_dtype_size(entry->dtype))
        return fail(ERR_INPUT, "%s: %s: values of type %s cannot be read", b->prefix, entry->name,
                    bundle_dtype_name(entry->dtype));
    if (!box_is_inside(box, &entry->shape))
        return fail(ERR_INPUT, "%s: %s: the part that is wanted is not inside of it", b->prefix,
                    entry->name);
    return OK;
}

static err check_bytes(const struct bundle *b, const struct bundle_entry *entry,
                       const struct bundle_box *box, size_t ret_bytes)
{
    const size_t size = bundle_dtype_size(entry->dtype);
    const struct bundle_shape shape = box_shape(box, entry->shape.rank);
    const uint64_t count = (uint64_t)bundle_count(&shape);
    if (count == ret_bytes / size && ret_bytes % size == 0) return OK;
    return fail(ERR_INPUT, "%s: %s: %llu elements of %zu bytes are there, %zu bytes are wanted",
                b->prefix, entry->name, (unsigned long long)count, size, ret_bytes);
}

/* Stored slices do not overlap (bundle_open checks), so counting is enough. */
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
    TRY(check_wanted(b, entry, box));
    TRY(check_bytes(b, entry, box, ret_bytes));
    TRY(check_cover(b, entry, box));
    for (int i = 0; i < list.count; i++) {
        const err e = read_part(b, entry, &list.at[i], box, ret);
        if (e) return fail_prefix(e, "%s", entry->name);
    }
    return OK;
}

/* ---- a box by rows ---- */

static bool holds_whole_rows(const struct rows_taking *w, const struct stored *stored)
{
    struct bundle_box common;
    const int rank = w->entry->shape.rank;
    if (box_common(&stored->box, &w->box, rank, &common) == 0) return true;
    for (int i = 1; i < rank; i++)
        if (common.length[i] < w->box.length[i]) return false;
    return true;
}

/* Every window needs all slices with a part in its rows, and reads each completely. */
static err read_windows(struct rows_taking *w, int64_t rows)
{
    for (first_window(w, w->box.start[0], rows); w->window.length[0] > 0; next_window(w)) {
        TRY(bundle_read(w->bundle, w->entry, &w->window, w->buffer,
                        (size_t)(w->window.length[0] * w->row_bytes)));
        TRY(give(w));
    }
    return OK;
}

static err read_rows(struct rows_taking *w, int64_t rows)
{
    const struct stored_list list = bundle_stored(w->bundle, w->entry);
    for (int i = 0; i < list.count; i++)
        if (!holds_whole_rows(w, &list.at[i])) return read_windows(w, rows);
    for (int i = 0; i < list.count; i++) {
        const err e = read_part_rows(w, &list.at[i]);
        if (e) return fail_prefix(e, "%s", w->entry->name);
    }
    return OK;
}

err bundle_read_rows(struct bundle *b, const struct bundle_entry *entry,
                     const struct bundle_box *box, const struct bundle_taker *taker)
{
    struct rows_taking w = {b, entry, taker, box ? *box : bundle_whole(&entry->shape)};
    TRY(check_wanted(b, entry, &w.box));
    TRY(check_cover(b, entry, &w.box));
    const struct bundle_shape shape = box_shape(&w.box, entry->shape.rank);
    const int64_t count = bundle_count(&shape), rows = shape.rank ? shape.dim[0] : 1;
    if (count == 0) return OK;
    w.row_bytes = count / rows * (int64_t)bundle_dtype_size(entry->dtype);
    w.rows_max = w.row_bytes < BUNDLE_STRETCH_BYTES ? BUNDLE_STRETCH_BYTES / w.row_bytes : 1;
    if (w.rows_max > rows) w.rows_max = rows;
    w.buffer = malloc((size_t)(w.rows_max * w.row_bytes));
    if (!w.buffer) return fail(ERR_MEMORY, "%s: %s: no memory to read it", b->prefix, entry->name);
    const err e = read_rows(&w, rows);
    free(w.buffer);
    return e;
}
