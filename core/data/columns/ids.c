/* ids: a list of ids, with or without weights: libsvm's features, or "3:0.5 7:2". */
#include "core/data/columns/column.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

struct attributes {
    struct column_source source;
    int64_t rows;
    bool weights;
};

static const struct field fields[] = {
    SOURCE_FIELDS("\" \"", "64"),
    IDS_FIELD("rows", offsetof(struct attributes, rows),
              "ids are from 0 to one less: the rows of the table that they lead to"),
    FIELD_OF("weights", BOOL, struct attributes, weights, .fallback = "false",
             .help = "the number after an id's colon is its weight; false: each id counts once"),
    {0},
};

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    column_makes_ids(m, a->source.max, a->rows);
    m->made.is_weighted = a->weights;
    return OK;
}

static bool read_id(const struct column_maker *m, const struct item *item, int64_t *ret)
{
    return m->made.buckets == ANY_ID ? item_any_id(item, ret) : item_integer(item, ret);
}

/* Splits "7:0.5" at the colon. */
static bool read_item(const struct column_maker *m, struct item *item, int64_t *ret)
{
    const char *colon = item->text ? memchr(item->text, ':', item->length) : NULL;
    if (!colon) return read_id(m, item, ret);
    struct item left = *item, right = *item;
    double weight;
    left.length = (size_t)(colon - item->text);
    right.text = colon + 1;
    right.length = item->length - left.length - 1;
    if (!read_id(m, &left, ret) || !item_number(&right, &weight)) return false;
    item->weight = (float)weight;
    item->has_weight = true;
    return isfinite(item->weight);
}

static err id(const struct column_maker *m, struct item *item, int64_t *ret)
{
    if (read_item(m, item, ret) && *ret >= NO_ID && *ret < m->made.buckets) return OK;
    return column_refuse_id(m, item);
}

const struct column_kind column_ids = {
    .object = {"ids", "lists of ids, with optional weights", fields, sizeof(struct attributes)},
    .open = open,
    .id = id,
    .limit_name = "rows",
    .is_of_id = true,
};
