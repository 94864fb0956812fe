/* numeric: one number, or a list of so many: at least min, log1p, then times scale, then plus
 * offset. */
#include "core/data/columns/column.h"

#include <float.h>
#include <math.h>

struct attributes {
    struct column_source source; /* max: how many, all of them */
    bool log1p;
    double scale, offset;
    json_t *fallback, *min; /* borrowed from the spec */
};

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    {.name = "min",
     .type = FIELD_JSON,
     .offset = offsetof(struct attributes, min),
     .fallback = "null",
     .help = "what is less counts as this, before all else; null: no limit"},
    {.name = "log1p",
     .type = FIELD_BOOL,
     .offset = offsetof(struct attributes, log1p),
     .fallback = "false",
     .help = "the logarithm of 1 + x, before scale and offset"},
    {.name = "scale",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct attributes, scale),
     .fallback = "1",
     .min = -1e30,
     .max = 1e30,
     .help = "x = scale * x + offset"},
    {.name = "offset",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct attributes, offset),
     .fallback = "0",
     .min = -1e30,
     .max = 1e30,
     .help = "x = scale * x + offset"},
    {.name = "default",
     .type = FIELD_JSON,
     .offset = offsetof(struct attributes, fallback),
     .fallback = "null",
     .help = "what stands for each number of an empty cell, before all this; null: such a cell is "
             "an error"},
    {0},
};

static bool is_number_or_null(const json_t *json)
{
    if (!json || json_is_null(json)) return true;
    return json_is_number(json) && fabs(json_number_value(json)) <= FLT_MAX;
}

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    if (!is_number_or_null(a->fallback))
        return fail(ERR_INPUT, "default: expected a number or null");
    if (!is_number_or_null(a->min)) return fail(ERR_INPUT, "min: expected a number or null");
    m->made.dtype = FLOAT32;
    m->made.shape = (struct shape){1, {a->source.max}};
    return OK;
}

static err change(const struct attributes *a, double x, float *ret)
{
    if (json_is_number(a->min) && x < json_number_value(a->min)) x = json_number_value(a->min);
    if (a->log1p && !(x > -1))
        return fail(ERR_INPUT, "expected a number above -1 for log1p, got %.9g", x);
    if (a->log1p) x = log1p(x);
    *ret = (float)(a->scale * x + a->offset);
    return isfinite(*ret) ? OK : fail(ERR_INPUT, "%.9g is too large", x);
}

static err stand_in(struct column_maker *m, float *to)
{
    const struct attributes *a = m->attributes;
    if (!json_is_number(a->fallback))
        return fail(ERR_INPUT,
                    "expected a number (\"default\" says what stands for none), got \"\"");
    m->missing++;
    for (int64_t i = 0; i < a->source.max; i++)
        TRY(change(a, json_number_value(a->fallback), &to[i]));
    return OK;
}

static err make(struct column_maker *m, const struct cell *cells, void *ret)
{
    const struct attributes *a = m->attributes;
    struct items items = column_items(m, cells);
    struct item item;
    float *to = ret, number;
    int64_t count = 0;
    for (; items_next(&items, &item); count++) {
        if (!item_number(&item, &number)) return item_refuse(&item, "a number");
        if (count < a->source.max) TRY(change(a, (double)number, &to[count]));
    }
    if (count == 0) return stand_in(m, to);
    if (count == a->source.max) return OK;
    return fail(ERR_INPUT, "expected %lld numbers (\"max\"), got %lld", (long long)a->source.max,
                (long long)count);
}

const struct column_kind column_numeric = {
    .object = {"numeric", "numbers, scaled", fields, sizeof(struct attributes)},
    .open = open,
    .make = make,
};
