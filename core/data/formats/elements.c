/* elements.c - see elements.h. */
#include "core/data/formats/elements.h"

#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 256 << 10 };

void elements_close(struct stored_rows *e)
{
    input_close(e->features.input);
    input_close(e->labels.input);
    *e = (struct stored_rows){0};
}

/* Converts from big-endian; memory is little-endian. */
static void swap_words(void *words, size_t bytes)
{
    uint32_t *word = words;
    for (size_t i = 0; i < bytes / sizeof *word; i++) word[i] = __builtin_bswap32(word[i]);
}

static bool is_swapped(const struct stored_file *file)
{
    return file->is_big_endian && file->dtype != UINT8;
}

err elements_bytes(const struct stored_file *file, int64_t rows, uint64_t *ret)
{
    const char *name = input_path(file->input);
    uint64_t heads;
    TRY(storage_bytes(name, rows, &file->shape, file->dtype, ret));
    if (__builtin_mul_overflow((uint64_t)rows, file->head, &heads) ||
        __builtin_add_overflow(*ret, heads, ret))
        return fail(ERR_INPUT, "%s: %lld rows are more than memory can be", name, (long long)rows);
    return OK;
}

/* Transposes [channel][pixel] to [pixel][channel]. */
static void turn(const struct stored_file *file, const char *from, char *to)
{
    const int64_t channels = file->shape.dim[2], pixels = shape_count(&file->shape) / channels;
    const size_t size = dtype_size(file->dtype);
    for (int64_t pixel = 0; pixel < pixels; pixel++)
        for (int64_t channel = 0; channel < channels; channel++, to += size)
            memcpy(to, from + (size_t)(channel * pixels + pixel) * size, size);
}

/* Copies the numbers of a row; from: begin of its head */
static void take(const struct stored_file *file, const char *from, void *to)
{
    const size_t bytes = (size_t)shape_count(&file->shape) * dtype_size(file->dtype);
    if (file->is_channels_first)
        turn(file, from + file->head, to);
    else
        memcpy(to, from + file->head, bytes);
    if (is_swapped(file)) swap_words(to, bytes);
}

static struct column column_of(const struct stored_file *file, const char *name, bool widens)
{
    const enum dtype dtype = widens && file->dtype == UINT8 ? INT32 : file->dtype;
    return (struct column){.name = name, .dtype = dtype, .shape = file->shape};
}

static void describe(const struct stored_rows *e, struct column columns[STORED_COLUMNS])
{
    columns[LABELS] = column_of(&e->labels, LABELS_NAME, true);
    columns[FEATURES] = column_of(&e->features, FEATURES_NAME, false);
}

/* ---- all of them ---- */

static err load(const struct stored_file *file, int64_t rows, struct block *ret)
{
    uint64_t bytes;
    TRY(storage_bytes(input_path(file->input), rows, &file->shape, file->dtype, &bytes));
    TRY(input_block(file->input, bytes, file->what, ret));
    if (is_swapped(file)) swap_words(ret->at, ret->bytes);
    return OK;
}

/* Splits rows with heads: numbers, and labels in the heads */
static err part(const struct stored_rows *e, const struct block *whole, struct storage *ret)
{
    const struct stored_file *file = &e->features;
    uint64_t bytes, row_bytes;
    TRY(storage_bytes(input_path(file->input), e->rows, &file->shape, file->dtype, &bytes));
    TRY(storage_bytes(input_path(file->input), 1, &file->shape, file->dtype, &row_bytes));
    TRY(block_new(bytes, &ret->features));
    if (e->has_labels_inside) TRY(block_new((uint64_t)e->rows * sizeof(int32_t), &ret->labels));
    for (int64_t row = 0; row < e->rows; row++) {
        const char *from = (const char *)whole->at + (size_t)row * (file->head + row_bytes);
        take(file, from, (char *)ret->features.at + (size_t)row * row_bytes);
        if (e->has_labels_inside)
            ((int32_t *)ret->labels.at)[row] = ((const uint8_t *)from)[e->label_at];
    }
    return OK;
}

static err load_parted(const struct stored_rows *e, struct storage *ret)
{
    struct block whole = {0};
    uint64_t bytes;
    TRY(elements_bytes(&e->features, e->rows, &bytes));
    TRY(input_block(e->features.input, bytes, e->features.what, &whole));
    const err failed = part(e, &whole, ret);
    block_drop(&whole);
    return failed;
}

static err load_labels(const struct stored_rows *e, struct block *ret)
{
    struct block stored = {0};
    if (!e->labels.input) return OK;
    TRY(load(&e->labels, e->rows, &stored));
    if (e->labels.dtype == UINT8) return storage_widen_labels(&stored, ret);
    *ret = stored;
    return OK;
}

err elements_load(const struct stored_rows *elements, struct dataset *ret)
{
    struct storage s = {.name = input_path(elements->features.input)};
    struct column columns[STORED_COLUMNS] = {0};
    struct dataset d = {.rows = elements->rows, .columns = columns};
    describe(elements, columns);
    if (elements->labels.input) s.label_name = input_path(elements->labels.input);
    const bool has_heads = elements->features.head > 0 || elements->features.is_channels_first;
    err e = has_heads ? load_parted(elements, &s)
                      : load(&elements->features, elements->rows, &s.features);
    if (!e) e = load_labels(elements, &s.labels);
    if (!e) e = storage_give(&s, &d);
    if (!e) *ret = d;
    storage_drop(&s);
    return e;
}

/* ---- row by row ---- */

struct stored_side {
    struct stored_file file;
    uint64_t begin; /* byte of the first row */
    size_t row_bytes, capacity, have, used;
    char *buffer;     /* [capacity]: from `used` to `have` are bytes of rows, */
    int64_t row;      /* this one and those after it */
    const char *last; /* the row read last */
};

struct stored_reader {
    struct row_reader reader; /* first: the public part */
    struct column stored[STORED_COLUMNS];
    struct stored_side sides[STORED_COLUMNS]; /* LABELS, FEATURES */
    int64_t row, rows;
    bool has_labels_inside;
    size_t label_at;
};

static err fill(struct stored_side *s)
{
    size_t got;
    memmove(s->buffer, s->buffer + s->used, s->have - s->used);
    s->have -= s->used;
    s->used = 0;
    while (s->have < s->row_bytes) {
        TRY(input_some(s->file.input, s->buffer + s->have, s->capacity - s->have, &got));
        if (got == 0)
            return fail(ERR_INPUT, "%s: offset %llu: expected %s, the file ends",
                        input_path(s->file.input), (unsigned long long)input_offset(s->file.input),
                        s->file.what);
        s->have += got;
    }
    return OK;
}

static err go_to(struct stored_side *s, int64_t row)
{
    const int64_t ready = (int64_t)((s->have - s->used) / s->row_bytes);
    if (row >= s->row && row <= s->row + ready) {
        s->used += (size_t)(row - s->row) * s->row_bytes;
    } else {
        TRY(input_seek(s->file.input, s->begin + (uint64_t)row * s->row_bytes));
        s->have = s->used = 0;
    }
    s->row = row;
    return OK;
}

/* After the last row the file must end; for a packed one this verifies its checksum. */
static err read_side(struct stored_reader *r, struct stored_side *s)
{
    if (!s->file.input) return OK;
    TRY(go_to(s, r->row));
    if (s->have - s->used < s->row_bytes) TRY(fill(s));
    s->last = s->buffer + s->used;
    s->used += s->row_bytes;
    s->row++;
    return s->row == r->rows && s->used == s->have ? input_end(s->file.input) : OK;
}

static err next_row(struct row_reader *reader, struct row *ret, bool *ret_found)
{
    struct stored_reader *r = (struct stored_reader *)reader;
    *ret_found = r->row < r->rows;
    if (!*ret_found) return OK;
    for (int i = 0; i < STORED_COLUMNS; i++) TRY(read_side(r, &r->sides[i]));
    *ret = (struct row){.number = ++r->row};
    return OK;
}

static err skip_row(struct row_reader *reader, struct row_place *ret, bool *ret_found)
{
    struct stored_reader *r = (struct stored_reader *)reader;
    const struct stored_side *features = &r->sides[FEATURES];
    *ret_found = r->row < r->rows;
    if (!*ret_found) return OK;
    *ret = (struct row_place){features->begin + (uint64_t)r->row * features->row_bytes, r->row};
    r->row++;
    return OK;
}

/* Seeks inputs right away, so that a later input_pause_at() remains valid. */
static err seek_row(struct row_reader *reader, const struct row_place *place)
{
    struct stored_reader *r = (struct stored_reader *)reader;
    r->row = place->number;
    for (int i = 0; i < STORED_COLUMNS; i++)
        if (r->sides[i].file.input) TRY(go_to(&r->sides[i], r->row));
    return OK;
}

static void copy(const struct stored_side *s, bool widens, void *to)
{
    const uint8_t *bytes = (const uint8_t *)s->last;
    int32_t *wide = to;
    if (widens && s->file.dtype == UINT8) {
        for (size_t i = 0; i < s->row_bytes; i++) wide[i] = bytes[i];
        return;
    }
    take(&s->file, s->last, to);
}

static err make_row(const struct row_reader *reader, const struct row *row, void *labels,
                    void *features)
{
    const struct stored_reader *r = (const struct stored_reader *)reader;
    if (r->sides[LABELS].file.input)
        copy(&r->sides[LABELS], true, labels);
    else if (r->has_labels_inside)
        *(int32_t *)labels = ((const uint8_t *)r->sides[FEATURES].last)[r->label_at];
    else
        memset(labels, 0, column_row_bytes(&r->stored[LABELS]));
    copy(&r->sides[FEATURES], false, features);
    (void)row;
    return OK;
}

static void close_reader(struct row_reader *reader)
{
    struct stored_reader *r = (struct stored_reader *)reader;
    for (int i = 0; i < STORED_COLUMNS; i++) {
        input_close(r->sides[i].file.input);
        free(r->sides[i].buffer);
    }
    free(r);
}

/* A plain file must have exactly these rows; for a packed one this is found at its end. */
static err check_size(const struct stored_side *s, int64_t rows)
{
    struct input *in = s->file.input;
    uint64_t bytes;
    TRY(elements_bytes(&s->file, rows, &bytes));
    TRY(input_announce(in, bytes, s->file.what));
    if (input_is_packed(in) || input_file_bytes(in) == s->begin + bytes) return OK;
    return fail(ERR_INPUT, "%s: offset %llu: expected the end of the file, there is more",
                input_path(in), (unsigned long long)(s->begin + bytes));
}

static err open_side(struct stored_side *s, int64_t rows)
{
    uint64_t row_bytes;
    if (!s->file.input) return OK;
    s->begin = input_offset(s->file.input);
    TRY(check_size(s, rows));
    TRY(elements_bytes(&s->file, 1, &row_bytes));
    s->row_bytes = row_bytes;
    s->capacity = row_bytes > BUFFER_BYTES ? row_bytes : BUFFER_BYTES;
    s->buffer = malloc(s->capacity);
    return s->buffer ? OK : fail(ERR_MEMORY, "%s: no memory for rows", input_path(s->file.input));
}

err elements_read(struct stored_rows *elements, struct row_reader **ret)
{
    static const struct row_calls calls = {next_row, skip_row, seek_row, close_reader,
                                           .make = make_row};
    struct stored_reader *r = calloc(1, sizeof *r);
    if (!r) {
        elements_close(elements);
        return fail(ERR_MEMORY, "no memory to read rows");
    }
    *r = (struct stored_reader){
        .reader = {.calls = &calls,
                   .name = input_path(elements->features.input),
                   .numbered = "row",
                   .label_cell = -1,
                   .input = elements->features.input,
                   .stored = r->stored},
        .sides = {[LABELS] = {.file = elements->labels}, [FEATURES] = {.file = elements->features}},
        .rows = elements->rows,
        .has_labels_inside = elements->has_labels_inside,
        .label_at = elements->label_at,
    };
    describe(elements, r->stored);
    r->reader.label_dtype = r->stored[LABELS].dtype;
    *elements = (struct stored_rows){0};
    err e = open_side(&r->sides[FEATURES], r->rows);
    if (!e) e = open_side(&r->sides[LABELS], r->rows);
    if (e)
        close_reader(&r->reader);
    else
        *ret = &r->reader;
    return e;
}
