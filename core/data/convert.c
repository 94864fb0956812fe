/* convert.c - see convert.h. */
#include "core/data/convert.h"
#include "core/data/loops.h"

#include <string.h>

static struct conversion conversion_of(const struct transform *t, const struct column *stored)
{
    struct conversion c = {.made = *stored, .scale = 1};
    c.made.at = NULL;
    if (stored->dtype == INT64) return c;
    c.made.dtype = FLOAT32;
    c.scale = t->scale;
    c.offset = t->offset;
    return c;
}

void conversions_of(const struct transform *t, const struct dataset *d, struct conversion *ret)
{
    for (int i = 0; i < d->column_count; i++) ret[i] = conversion_of(t, &d->columns[i]);
    ret[LABELS] = (struct conversion){
        .made = {.name = d->columns[LABELS].name, .dtype = t->label_dtype, .shape = t->label_shape},
        .scale = 1,
    };
}

bool conversion_is_identity(const struct conversion *c, const struct column *stored)
{
    return c->made.dtype == stored->dtype && c->scale == 1 && c->offset == 0;
}

/* Whole and within 32 bits: transform_check has seen to it. */
static void floats_to_ints(int32_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (int32_t)x[i];
}

static void ints_to_floats(float *y, const int32_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)x[i];
}

/* Most often bytes of images; what is stored as it is wanted needs no arithmetic. */
void convert(const struct conversion *c, const struct column *stored, int64_t first, int64_t rows,
             void *ret)
{
    const size_t row_bytes = column_row_bytes(stored);
    const void *from = (const char *)stored->at + row_bytes * (size_t)first;
    const int64_t n = rows * column_width(stored);
    if (conversion_is_identity(c, stored))
        memcpy(ret, from, row_bytes * (size_t)rows);
    else if (stored->dtype == UINT8)
        loops_best()->scale_bytes(ret, from, c->scale, c->offset, n);
    else if (stored->dtype == INT32)
        ints_to_floats(ret, from, n);
    else if (c->made.dtype == INT32)
        floats_to_ints(ret, from, n);
    else
        loops_best()->scale_floats(ret, from, c->scale, c->offset, n);
}
