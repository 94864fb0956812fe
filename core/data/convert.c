/* convert.c - see convert.h. */
#include "core/data/convert.h"
#include "core/data/loops.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROWS_AHEAD = 4,         /* rows to prefetch before they are converted */
    AHEAD_BYTES_MAX = 4096, /* of one row: after that the hardware prefetches by itself */
};

static struct conversion as_stored(const struct column *stored)
{
    struct conversion c = {.made = *stored, .scale = 1};
    c.made.at = NULL;
    return c;
}

void conversions_as_stored(const struct dataset *d, struct conversion *ret)
{
    for (int i = 0; i < d->column_count; i++) ret[i] = as_stored(&d->columns[i]);
}

static struct conversion conversion_of(const struct transform *t, const struct column *stored)
{
    struct conversion c = as_stored(stored);
    if (stored->dtype == INT64) return c;
    c.made.dtype = FLOAT32;
    c.scale = t->scale;
    c.offset = t->offset;
    return c;
}

void conversions_of(const struct transform *t, const struct dataset *d, struct conversion *ret)
{
    for (int i = 0; i < d->column_count; i++) ret[i] = conversion_of(t, &d->columns[i]);
    for (int i = t->label_count - 1; i >= 0; i--) {
        const struct wanted_label *label = &t->labels[i];
        const struct column *stored = &d->columns[label->column];
        ret[label->column] = (struct conversion){
            .made = {.name = stored->name, .dtype = label->dtype, .shape = label->shape},
            .scale = 1,
        };
    }
}

bool conversion_is_identity(const struct conversion *c, const struct column *stored)
{
    return c->made.dtype == stored->dtype && c->scale == 1 && c->offset == 0;
}

/* transform_check has checked that they are whole and fit into 32 bits. */
static void floats_to_ints(int32_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (int32_t)x[i];
}

static void ints_to_floats(float *y, const int32_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)x[i];
}

/* Mostly bytes of images; identical types are only copied. */
void convert(const struct conversion *c, const struct column *stored, int64_t first, int64_t rows,
             void *ret)
{
    const size_t row_bytes = column_row_bytes(stored);
    const void *from = (const char *)stored->at + row_bytes * (size_t)first;
    const int64_t n = rows * column_width(stored);
    if (conversion_is_identity(c, stored))
        memcpy(ret, from, row_bytes * (size_t)rows);
    else if (stored->dtype == UINT8)
        loops_best()->scale_bytes(ret, from, (float)c->scale, (float)c->offset, n);
    else if (stored->dtype == INT32)
        ints_to_floats(ret, from, n);
    else if (c->made.dtype == INT32)
        floats_to_ints(ret, from, n);
    else
        loops_best()->scale_floats(ret, from, c->scale, c->offset, n);
}

/* ---- rows in any order ---- */

/* Without prefetching each row waits for main memory. */
static void ask_ahead(const char *at, size_t row_bytes)
{
    const size_t bytes = row_bytes < AHEAD_BYTES_MAX ? row_bytes : AHEAD_BYTES_MAX;
    for (size_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(at + i);
}

static void copy_4(char *to, const char *from, const int64_t *rows, int64_t count)
{
    for (int64_t i = 0; i < count; i++) memcpy(to + 4 * i, from + 4 * rows[i], 4);
}

static void copy_8(char *to, const char *from, const int64_t *rows, int64_t count)
{
    for (int64_t i = 0; i < count; i++) memcpy(to + 8 * i, from + 8 * rows[i], 8);
}

/* If there are many columns, most have one number or id per row: the processor overlaps these loads
 * by itself. */
void convert_rows(const struct conversion *c, const struct column *stored, const int64_t *rows,
                  int64_t count, void *ret)
{
    const size_t row_bytes = column_row_bytes(stored), made_bytes = column_row_bytes(&c->made);
    const char *const from = stored->at;
    char *const to = ret;
    if (conversion_is_identity(c, stored) && row_bytes == 4) return copy_4(to, from, rows, count);
    if (conversion_is_identity(c, stored) && row_bytes == 8) return copy_8(to, from, rows, count);
    for (int64_t i = 0; i < count; i++) {
        if (i + ROWS_AHEAD < count)
            ask_ahead(from + row_bytes * (size_t)rows[i + ROWS_AHEAD], row_bytes);
        convert(c, stored, rows[i], 1, to + made_bytes * (size_t)i);
    }
}

/* ---- batches ---- */

static void place_slot(const struct made_columns *m, char *at, struct column *slot)
{
    for (int i = 0; i < m->column_count; i++) {
        slot[i] = m->conversions[i].made;
        slot[i].at = NULL;
    }
    for (int r = 0; r < m->read_count; r++) {
        struct column *c = &slot[m->read[r]];
        c->at = at;
        at += whole_lines(column_row_bytes(c) * (uint64_t)m->batch);
    }
}

/* All slots in one block */
err conversion_slots(const struct made_columns *m, int count, struct column ***ret_slots,
                     struct block *ret_memory)
{
    uint64_t slot_bytes = 0, all;
    for (int r = 0; r < m->read_count; r++) {
        const struct column *c = &m->conversions[m->read[r]].made;
        uint64_t bytes;
        TRY(storage_bytes(m->name, m->batch, &c->shape, c->dtype, &bytes));
        slot_bytes += whole_lines(bytes);
    }
    if (__builtin_mul_overflow(slot_bytes, (uint64_t)count, &all))
        return fail(ERR_MEMORY, "%s: %d batches of %lld rows are more than memory can hold",
                    m->name, count, (long long)m->batch);
    const size_t slot = (size_t)m->column_count * sizeof ***ret_slots;
    *ret_slots = calloc((size_t)count, sizeof **ret_slots + slot);
    if (!*ret_slots) return fail(ERR_MEMORY, "%s: no memory for batches", m->name);
    TRY(block_new(all, ret_memory));
    for (int i = 0; i < count; i++) {
        (*ret_slots)[i] = (struct column *)((char *)(*ret_slots + count) + slot * (size_t)i);
        place_slot(m, (char *)ret_memory->at + slot_bytes * (uint64_t)i, (*ret_slots)[i]);
    }
    return OK;
}
