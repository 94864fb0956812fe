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

/* The format may be big-endian, memory is not. */
static void swap_words(void *words, size_t bytes)
{
    uint32_t *word = words;
    for (size_t i = 0; i < bytes / sizeof *word; i++) word[i] = __builtin_bswap32(word[i]);
}

static bool is_swapped(const struct stored_file *file)
{
    return file->is_big_endian && file->dtype != UINT8;
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
    struct dataset d = {.rows = elements->rows};
    describe(elements, d.columns);
    if (elements->labels.input) s.label_name = input_path(elements->labels.input);
    err e = load(&elements->features, elements->rows, &s.features);
    if (!e) e = load_labels(elements, &s.labels);
    if (!e) e = storage_give(&s, &d);
    if (!e) *ret = d;
    storage_drop(&s);
    return e;
}

/* ---- row by row ---- */

struct side {
    struct stored_file file;
    uint64_t begin; /* byte of the first row */
    size_t row_bytes, capacity, have, used;
    char *buffer;     /* [capacity]: from `used` to `have` are bytes of rows, */
    int64_t row;      /* this one and those behind it */
    const char *last; /* the row that was read last */
};

struct stored_reader {
    struct row_reader reader; /* first: what others see */
    struct column stored[STORED_COLUMNS];
    struct side sides[STORED_COLUMNS]; /* LABELS, FEATURES */
    int64_t row, rows;
};

static err fill(struct side *s)
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

static err go_to(struct side *s, int64_t row)
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

/* Behind the last row a file ends; of a packed one this checks the sum over all. */
static err read_side(struct stored_reader *r, struct side *s)
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
    const struct side *features = &r->sides[FEATURES];
    *ret_found = r->row < r->rows;
    if (!*ret_found) return OK;
    *ret = (struct row_place){features->begin + (uint64_t)r->row * features->row_bytes, r->row};
    r->row++;
    return OK;
}

/* At once: what is said afterwards of where to pause holds. */
static err seek_row(struct row_reader *reader, const struct row_place *place)
{
    struct stored_reader *r = (struct stored_reader *)reader;
    r->row = place->number;
    for (int i = 0; i < STORED_COLUMNS; i++)
        if (r->sides[i].file.input) TRY(go_to(&r->sides[i], r->row));
    return OK;
}

static void copy(const struct side *s, bool widens, void *to)
{
    const uint8_t *bytes = (const uint8_t *)s->last;
    int32_t *wide = to;
    if (widens && s->file.dtype == UINT8) {
        for (size_t i = 0; i < s->row_bytes; i++) wide[i] = bytes[i];
        return;
    }
    memcpy(to, s->last, s->row_bytes);
    if (is_swapped(&s->file)) swap_words(to, s->row_bytes);
}

static err make_row(const struct row_reader *reader, const struct row *row, void *labels,
                    void *features)
{
    const struct stored_reader *r = (const struct stored_reader *)reader;
    if (r->sides[LABELS].file.input)
        copy(&r->sides[LABELS], true, labels);
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

/* A plain file has exactly its rows; of a packed one this is known at its end. */
static err check_size(const struct side *s, int64_t rows)
{
    struct input *in = s->file.input;
    uint64_t bytes;
    TRY(storage_bytes(input_path(in), rows, &s->file.shape, s->file.dtype, &bytes));
    TRY(input_announce(in, bytes, s->file.what));
    if (input_is_packed(in) || input_file_bytes(in) == s->begin + bytes) return OK;
    return fail(ERR_INPUT, "%s: offset %llu: expected the end of the file, there is more",
                input_path(in), (unsigned long long)(s->begin + bytes));
}

static err open_side(struct side *s, int64_t rows)
{
    uint64_t row_bytes;
    if (!s->file.input) return OK;
    s->begin = input_offset(s->file.input);
    TRY(check_size(s, rows));
    TRY(storage_bytes(input_path(s->file.input), 1, &s->file.shape, s->file.dtype, &row_bytes));
    s->row_bytes = row_bytes;
    s->capacity = row_bytes > BUFFER_BYTES ? row_bytes : BUFFER_BYTES;
    s->buffer = malloc(s->capacity);
    return s->buffer ? OK : fail(ERR_MEMORY, "%s: no memory for rows", input_path(s->file.input));
}

err elements_read(struct stored_rows *elements, struct row_reader **ret)
{
    static const struct row_calls calls = {next_row, skip_row, seek_row, close_reader, make_row};
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
