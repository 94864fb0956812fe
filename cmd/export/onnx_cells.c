/* onnx_cells.c - turns cells, which are numbers or ids, into columns in an ONNX graph. NaN and -1
 * are missing values. ONNX cannot hash words.
 */
#include <math.h>

#include "cmd/export/onnx.h"
#include "core/data/columns/date.h"
#include "core/data/columns/numeric.h"

bool onnx_leaves(const struct column_spec *spec)
{
    return (cells_is(spec, "date") && !cells_is_seconds(spec)) || cells_is(spec, "hash") ||
           cells_is(spec, "vocabulary") || cells_is(spec, "crossed");
}

/* An input [batch, max], or [batch] if max is 1 */
static int write_given(struct onnx_graph *g, const char *name, enum onnx_type type, int64_t max)
{
    const struct shape shape = {max > 1 ? 2 : 1, {1, max}};
    return onnx_reshape(g, onnx_input(g, name, type, &shape), (const int64_t[]){-1, max}, 2);
}

/* True in rows that have no value for which the condition holds */
static int in_no_place(struct onnx_graph *g, int condition)
{
    const int ones = onnx_cast(g, ONNX_INT64, condition);
    const int count = onnx_reduce(g, "ReduceSum", ones, (const int64_t[]){1}, 1, true);
    return onnx_two(g, "Equal", count, onnx_int64(g, 0));
}

/* ---- ids ---- */

static int write_bucketized(struct onnx_graph *g, const struct cells *c,
                            const struct column_spec *spec, int64_t max)
{
    struct floats boundaries = {0};
    if (cells_boundaries(c, spec, &boundaries)) boundaries.count = 0; /* it was read before */
    const int x = write_given(g, spec->name, ONNX_DOUBLE, max);
    const int each = onnx_reshape(g, x, (const int64_t[]){-1, max, 1}, 3);
    const struct shape shape = {3, {1, 1, boundaries.count}};
    const int limits = onnx_constant(g, ONNX_DOUBLE, &shape, boundaries.at);
    const int above = onnx_cast(g, ONNX_INT64, onnx_two(g, "GreaterOrEqual", each, limits));
    const int ids = onnx_reduce(g, "ReduceSum", above, (const int64_t[]){2}, 1, false);
    return onnx_where(g, onnx_one(g, "IsNaN", x), onnx_int64(g, -1), ids);
}

static int is_id(struct onnx_graph *g, int ids)
{
    return onnx_two(g, "GreaterOrEqual", ids, onnx_int64(g, 0));
}

/* Ids from 0 to below a limit; others become the default, or -1. */
static int write_whole(struct onnx_graph *g, const struct column_spec *spec, const char *limit,
                       int64_t stand_in, int64_t max)
{
    int64_t row[IDS_OF_ROW_MAX];
    const int x = write_given(g, spec->name, ONNX_INT64, max), is_there = is_id(g, x);
    const int high = onnx_two(g, "Less", x, onnx_int64(g, cells_limit(spec, limit)));
    const int limited = onnx_where(g, high, x, onnx_int64(g, stand_in));
    const int ids = onnx_where(g, is_there, limited, onnx_int64(g, -1));
    if (stand_in < 0) return ids;
    for (int64_t i = 0; i < max; i++) row[i] = i ? -1 : stand_in;
    const int alone = onnx_constant(g, ONNX_INT64, &(struct shape){2, {1, max}}, row);
    return onnx_where(g, in_no_place(g, is_there), alone, ids);
}

/* ---- numbers ---- */

static int with_double(struct onnx_graph *g, const char *op, int x, double number)
{
    return onnx_two(g, op, x, onnx_double(g, number));
}

static int standardized(struct onnx_graph *g, const struct numeric_attributes *a, int x)
{
    const struct shape shape = {2, {1, a->source.max}};
    if (!a->standardize) return x;
    x = onnx_two(g, "Sub", x, onnx_constant(g, ONNX_DOUBLE, &shape, a->mean.at));
    return onnx_two(g, "Div", x, onnx_constant(g, ONNX_DOUBLE, &shape, a->deviation.at));
}

/* Applies data.scale and data.offset. */
static int scaled(struct onnx_graph *g, const struct cells *c, int x)
{
    x = onnx_cast(g, ONNX_DOUBLE, onnx_cast(g, ONNX_FLOAT, x));
    x = with_double(g, "Add", with_double(g, "Mul", x, c->data->scale), c->data->offset);
    return onnx_cast(g, ONNX_FLOAT, x);
}

static int write_numeric(struct onnx_graph *g, const struct cells *c,
                         const struct column_spec *spec)
{
    const struct numeric_attributes *a = spec->column.attributes;
    int x = write_given(g, spec->name, ONNX_DOUBLE, a->source.max);
    const int lacks = onnx_one(g, "IsNaN", x);
    double fallback;
    if (numeric_default(a, &fallback) && !json_is_number(a->padding)) {
        const int is_empty = in_no_place(g, onnx_one(g, "Not", lacks));
        x = onnx_where(g, is_empty, onnx_double(g, fallback), x);
    }
    if (json_is_number(a->min)) x = with_double(g, "Max", x, json_number_value(a->min));
    if (a->log1p) x = onnx_one(g, "Log", with_double(g, "Add", x, 1));
    x = standardized(g, a, x);
    x = with_double(g, "Add", with_double(g, "Mul", x, a->scale), a->offset);
    if (json_is_number(a->padding))
        x = onnx_where(g, lacks, onnx_double(g, json_number_value(a->padding)), x);
    return scaled(g, c, x);
}

/* A date in seconds since 1970, also if its cells are milliseconds */
static int write_seconds(struct onnx_graph *g, const struct cells *c,
                         const struct column_spec *spec)
{
    const struct date_attributes *a = spec->column.attributes;
    int x = write_given(g, spec->name, ONNX_DOUBLE, 1);
    const int lacks = onnx_one(g, "IsNaN", x);
    if (json_is_number(a->fallback))
        x = onnx_where(g, lacks, onnx_double(g, json_number_value(a->fallback)), x);
    return scaled(g, c, with_double(g, "Add", with_double(g, "Mul", x, a->scale), a->offset));
}

static int write_pixels(struct onnx_graph *g, const struct cells *c, const struct column_spec *spec)
{
    const struct shape *pixels = &c->pixels[cells_of_column(c, spec)];
    const struct shape shape = {4, {1, pixels->dim[0], pixels->dim[1], pixels->dim[2]}};
    return scaled(g, c, onnx_cast(g, ONNX_DOUBLE, onnx_input(g, spec->name, ONNX_UINT8, &shape)));
}

int onnx_write_column(struct onnx_graph *g, const struct cells *c, int column, int64_t max)
{
    const struct column_spec *spec = cells_column(c, column);
    if (cells_is(spec, "image")) return write_pixels(g, c, spec);
    if (cells_is(spec, "numeric")) return write_numeric(g, c, spec);
    if (cells_is_seconds(spec)) return write_seconds(g, c, spec);
    if (cells_is(spec, "bucketized")) return write_bucketized(g, c, spec, max);
    if (cells_is(spec, "ids")) return write_whole(g, spec, "rows", -1, max);
    const int64_t stand_in = cells_stand_in(spec);
    if (cells_is(spec, "identity")) return write_whole(g, spec, "buckets", stand_in, max);
    const int ids = write_given(g, spec->name, ONNX_INT64, max);
    return stand_in < 0 ? ids : onnx_where(g, is_id(g, ids), ids, onnx_int64(g, stand_in));
}
