/* hash: the fingerprint of a word modulo the number of buckets, as in TensorFlow. */
#include "core/data/columns/column.h"

struct attributes {
    struct column_source source;
    int64_t buckets;
};

static const struct field fields[] = {
    SOURCE_FIELDS("null", "1"),
    IDS_FIELD("buckets", offsetof(struct attributes, buckets),
              "how many ids there are; words that fall into the same share it"),
    {0},
};

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    column_makes_ids(m, a->source.max, a->buckets);
    return OK;
}

static err id(const struct column_maker *m, struct item *item, int64_t *ret)
{
    *ret = column_bucket(m, item_fingerprint(item));
    return OK;
}

const struct column_kind column_hash = {
    .object = {"hash", "ids of words by their hash (TensorFlow's Fingerprint64)", fields,
               sizeof(struct attributes)},
    .open = open,
    .id = id,
    .is_of_print = true,
    .crosses = CROSSES_WORDS,
};
