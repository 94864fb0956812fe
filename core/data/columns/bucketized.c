/* bucketized: which stretch between boundaries a number falls into; a boundary begins one. */
#include "core/data/columns/column.h"

struct attributes {
    struct column_source source;
    struct floats boundaries;
};

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    {.name = "boundaries",
     .type = FIELD_FLOATS,
     .offset = offsetof(struct attributes, boundaries),
     .min = -1e30,
     .max = 1e30,
     .count_min = 1,
     .count_max = FIELD_LIST_MAX,
     .help = "rising numbers; n of them make n + 1 buckets, and x at a boundary is in the upper "
             "one"},
    {0},
};

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    for (int i = 1; i < a->boundaries.count; i++)
        if (!(a->boundaries.at[i - 1] < a->boundaries.at[i]))
            return fail(ERR_INPUT, "boundaries: expected rising numbers, got %g before %g",
                        a->boundaries.at[i - 1], a->boundaries.at[i]);
    column_makes_ids(m, a->source.max, a->boundaries.count + 1);
    return OK;
}

static err id(const struct column_maker *m, struct item *item, int64_t *ret)
{
    const struct floats *boundaries = &((const struct attributes *)m->attributes)->boundaries;
    float number;
    if (!item_number(item, &number)) return item_refuse(item, "a number");
    int low = 0, high = boundaries->count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if ((float)boundaries->at[middle] <= number)
            low = middle + 1;
        else
            high = middle;
    }
    *ret = low;
    return OK;
}

const struct column_kind column_bucketized = {
    .object = {"bucketized", "ids of the stretches that numbers fall into", fields,
               sizeof(struct attributes)},
    .open = open,
    .id = id,
};
