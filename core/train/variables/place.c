/* place.c - TensorFlow's placement strategies and partitioners.
 *
 * Both match TensorFlow exactly, so that a job moved from there finds every variable, and every
 * part in its checkpoints, in the same place.
 */
#include "core/train/variables/place.h"

enum { AXIS_MAX = RANK_MAX - 1, BALANCED_PART_BYTES = 262144 };

/* Attributes of all partitioners begin with the axis. */
struct fixed_size {
    int64_t axis;
    int64_t num_shards;
};

struct variable_axis_size {
    int64_t axis;
    int64_t max_shard_bytes, max_shards;
};

struct min_max_variable {
    int64_t axis;
    int64_t max_partitions, min_slice_size;
};

static const struct field fixed_size_fields[] = {
    FIELD_OF("num_shards", INT, struct fixed_size, num_shards, .min = 1, .max = SLICES_MAX,
             .help = "number of parts per variable, or one per row if it has fewer rows"),
    FIELD_OF("axis", INT, struct fixed_size, axis, .fallback = "0", .min = 0, .max = AXIS_MAX,
             .help = "dimension to split along; variables without it stay whole"),
    {0},
};

static const struct field variable_axis_size_fields[] = {
    FIELD_OF("max_shard_bytes", INT, struct variable_axis_size, max_shard_bytes, .min = 1,
             .max = 1e15, .help = "maximum bytes of a part; a part has at least one row"),
    FIELD_OF("axis", INT, struct variable_axis_size, axis, .fallback = "0", .min = 0,
             .max = AXIS_MAX, .help = "dimension to split along; variables without it stay whole"),
    FIELD_OF("max_shards", INT, struct variable_axis_size, max_shards, .fallback = "0", .min = 0,
             .max = SLICES_MAX,
             .help = "maximum number of parts, even if they become larger; 0: no limit"),
    {0},
};

static const struct field min_max_variable_fields[] = {
    FIELD_OF("max_partitions", INT, struct min_max_variable, max_partitions, .fallback = "1",
             .min = 1, .max = SLICES_MAX,
             .help = "maximum number of parts, usually the number of ps tasks"),
    FIELD_OF("axis", INT, struct min_max_variable, axis, .fallback = "0", .min = 0, .max = AXIS_MAX,
             .help = "dimension to split along; variables without it stay whole"),
    FIELD_OF("min_slice_size", INT, struct min_max_variable, min_slice_size, .fallback = "262144",
             .min = 1, .max = 1e15, .help = "minimum bytes per part"),
    {0},
};

/* The descriptor of a kind of partitioner. parts() is called only if the shape has the axis; NULL:
 * depends on more than the shape. */
struct partitioner {
    struct object object;
    bool balances;
    int64_t (*parts)(const void *attributes, const struct shape *);
};

static int64_t ceil_divide(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t bytes_of(const struct shape *shape)
{
    return shape_count(shape) * (int64_t)sizeof(float);
}

/* No part is empty. */
static int64_t fixed_size_parts(const void *attributes, const struct shape *shape)
{
    const struct fixed_size *a = attributes;
    return smaller(a->num_shards, shape->dim[a->axis]);
}

/* As many whole rows in a part as fit the bytes, at least one; then as few parts as possible. */
static int64_t variable_axis_size_parts(const void *attributes, const struct shape *shape)
{
    const struct variable_axis_size *a = attributes;
    const int64_t rows = shape->dim[a->axis];
    const int64_t row_bytes = bytes_of(shape) / rows;
    const int64_t rows_per_part = larger(a->max_shard_bytes / row_bytes, 1);
    const int64_t parts = ceil_divide(rows, rows_per_part);
    return a->max_shards > 0 ? smaller(parts, a->max_shards) : parts;
}

/* No part is smaller than min_slice_size, unless there is only one. */
static int64_t min_max_variable_parts(const void *attributes, const struct shape *shape)
{
    const struct min_max_variable *a = attributes;
    const int64_t worth = ceil_divide(bytes_of(shape), a->min_slice_size);
    return larger(smaller(smaller(shape->dim[a->axis], a->max_partitions), worth), 1);
}

struct partition partition_of(const struct variant *variant, const struct shape *shape)
{
    const struct partitioner *partitioner = variant->kind ? variant->kind->descriptor : NULL;
    if (!partitioner || !partitioner->parts) return (struct partition){.parts = 1};
    const int64_t axis = *(const int64_t *)variant->attributes;
    if (axis >= shape->rank) return (struct partition){.parts = 1};
    const int64_t parts = partitioner->parts(variant->attributes, shape);
    return (struct partition){.axis = parts > 1 ? (int)axis : 0, .parts = parts};
}

bool partitioner_balances(const struct variant *variant)
{
    return variant->kind && ((const struct partitioner *)variant->kind->descriptor)->balances;
}

/* As min_max_variable, along the first axis, so that each part is contiguous in the variable. */
struct partition partition_over(int ps_count, const struct shape *shape)
{
    const struct min_max_variable all = {.max_partitions = ps_count,
                                         .min_slice_size = BALANCED_PART_BYTES};
    if (shape->rank == 0) return (struct partition){.parts = 1};
    return (struct partition){.parts = min_max_variable_parts(&all, shape)};
}

int64_t partition_start(int64_t rows, int64_t parts, int64_t part)
{
    return rows / parts * part + smaller(part, rows % parts);
}

struct placer placer_make(enum placement_strategy strategy, int ps_count, struct arena *arena)
{
    return (struct placer){
        .strategy = strategy,
        .ps_count = ps_count,
        .bytes = arena_array(arena, (size_t)ps_count, sizeof(int64_t)),
    };
}

/* Of equal ones, the one with the lowest index, as numpy's argmin. */
static int lightest(const struct placer *placer)
{
    int best = 0;
    for (int ps = 1; ps < placer->ps_count; ps++) {
        if (placer->bytes[ps] < placer->bytes[best]) best = ps;
    }
    return best;
}

int placer_take(struct placer *placer, int64_t bytes)
{
    int ps;
    if (placer->strategy == PLACE_GREEDY) {
        ps = lightest(placer);
    } else {
        ps = placer->next;
        placer->next = (placer->next + 1) % placer->ps_count;
    }
    placer->bytes[ps] += bytes;
    return ps;
}

void placer_pin(struct placer *placer, int ps, int64_t bytes)
{
    placer->bytes[ps] += bytes;
}

static const struct partitioner fixed_size = {
    .object = {.name = "fixed_size",
               .summary = "splits variables into a fixed number of parts",
               .fields = fixed_size_fields,
               .size = sizeof(struct fixed_size)},
    .parts = fixed_size_parts,
};

static const struct partitioner variable_axis_size = {
    .object = {.name = "variable_axis_size",
               .summary = "splits variables into parts of a maximum size",
               .fields = variable_axis_size_fields,
               .size = sizeof(struct variable_axis_size)},
    .parts = variable_axis_size_parts,
};

static const struct partitioner min_max_variable = {
    .object = {.name = "min_max_variable",
               .summary = "splits variables into parts of a minimum size, up to a maximum number",
               .fields = min_max_variable_fields,
               .size = sizeof(struct min_max_variable)},
    .parts = min_max_variable_parts,
};

static const struct partitioner none = {
    .object = {.name = "none", .summary = "variables stay whole"},
};

static const struct partitioner balanced = {
    .object = {.name = "balanced",
               .summary = "splits variables of a megabyte or more over all ps if a ps would "
                          "otherwise hold more than 1.5 times its share"},
    .balances = true,
};

static const struct kind table[] = {
    {&none.object, &none},
    {&balanced.object, &balanced},
    {&fixed_size.object, &fixed_size},
    {&variable_axis_size.object, &variable_axis_size},
    {&min_max_variable.object, &min_max_variable},
};

static const struct kind *at(int index)
{
    return index < (int)(sizeof table / sizeof table[0]) ? &table[index] : NULL;
}

const struct kinds partitioner_kinds = {.key = "type", .noun = "partitioner", .at = at};
