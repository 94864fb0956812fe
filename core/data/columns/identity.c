/* identity: whole numbers that are ids already. */
#include "core/data/columns/column.h"

#include <inttypes.h>
#include <stdio.h>

struct attributes {
    struct column_source source;
    int64_t buckets, fallback;
};

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    IDS_FIELD("buckets", offsetof(struct attributes, buckets), "ids are from 0 to one less"),
    FIELD_OF("default", INT, struct attributes, fallback, .fallback = "-1", .min = -1,
             .max = 0x1p53,
             .help = "id used where there is none, and for numbers outside the range of ids; -1: "
                     "nothing stands in, and a number outside the range is an error"),
    {0},
};

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    column_makes_ids(m, a->source.max, a->buckets);
    if (a->fallback >= m->made.buckets)
        return fail(ERR_INPUT, "default: expected an id below %" PRId64, m->made.buckets);
    m->stand_in = a->fallback;
    return OK;
}

static err id(const struct column_maker *m, struct item *item, int64_t *ret)
{
    const struct attributes *a = m->attributes;
    const bool is_any = m->made.buckets == ANY_ID;
    const bool is_integer = is_any ? item_any_id(item, ret) : item_integer(item, ret);
    if (is_integer && *ret >= NO_ID && *ret < m->made.buckets) return OK;
    if (is_integer && a->fallback >= 0) {
        *ret = a->fallback;
        item->is_replaced = true;
        return OK;
    }
    return column_refuse_id(m, item);
}

const struct column_kind column_identity = {
    .object = {"identity", "integers that are ids", fields, sizeof(struct attributes)},
    .open = open,
    .id = id,
    .limit_name = "buckets",
};
