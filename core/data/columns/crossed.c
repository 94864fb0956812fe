/* crossed: hashes every combination of values of several cells or columns to an id, exactly as
 * TensorFlow's crossed_column. */
#include "core/data/columns/column.h"

#include <string.h>

enum { KEYS_MAX = 8 };
static const uint64_t FIRST_KEY = UINT64_C(0xDECAFCAFFE); /* TensorFlow's default */

struct attributes {
    struct strings keys;
    int64_t buckets;
};

/* One of the things crossed: a cell's text, or the items of a column, as words or as ids */
struct key {
    const struct column_maker *column; /* NULL: a cell */
    bool is_words;                     /* false: ids of the column */
    int cell;
    const char *separator; /* of the column; NULL: the cell is one value */
    int64_t max;
    uint64_t *values; /* [max] of this row */
    int64_t count;
};

struct keys {
    struct key at[KEYS_MAX];
    int count;
};

static const struct field fields[] = {
    FIELD_OF("keys", STRINGS, struct attributes, keys, .count_min = 2, .count_max = KEYS_MAX,
             .help = "what to cross: cells (their raw words), or earlier columns (their ids; for "
                     "hash columns, and for vocabulary columns named like a cell, the words)"),
    IDS_FIELD("buckets", offsetof(struct attributes, buckets),
              "how many ids there are; combinations that fall into the same share it"),
    {0},
};

static const struct column_maker *find_column(const struct column_context *c, const char *name)
{
    for (int i = 0; i < c->count; i++)
        if (strcmp(c->makers[i].name, name) == 0) return &c->makers[i];
    return NULL;
}

/* As in TensorFlow, the name of a cell means its text, a column its ids. (TensorFlow rejects hash
 * columns, as hashing twice loses words; here their words are used.) */
static bool is_of_words(const struct column_context *context, const struct column_maker *column,
                        const char *name)
{
    if (!column) return true;
    const bool is_cell = row_reader_cell(context->reader, name) >= 0;
    const enum crossing crosses = column->kind->crosses;
    return crosses == CROSSES_WORDS || (crosses == CROSSES_NAME && is_cell);
}

static err open_key(const struct column_context *context, const char *name, struct key *ret)
{
    const struct column_maker *column = find_column(context, name);
    const bool is_number = column && column->made.dtype != INT64;
    if (is_number || (column && !column->kind->id && !column->kind->key))
        return fail(ERR_INPUT, "keys: \"%s\" is %s, which cannot be crossed", name,
                    column->kind->object.name);
    *ret = (struct key){.column = column, .max = 1};
    ret->cell = column ? column->cell : row_reader_cell(context->reader, name);
    if (column) ret->max = column->made.shape.dim[0];
    if (column) ret->separator = ((const struct column_source *)column->attributes)->separator;
    ret->is_words = is_of_words(context, column, name);
    if (ret->cell < 0)
        return fail(ERR_INPUT, "keys: no column before this one and no cell is called \"%s\"",
                    name);
    const err e = column ? OK : column_check_cell(context->reader, name, ret->cell);
    if (e) return fail_prefix(e, "keys");
    ret->values = arena_array(context->arena, (size_t)ret->max, sizeof *ret->values);
    return OK;
}

static err open(struct column_maker *m, const struct column_context *context)
{
    const struct attributes *a = m->attributes;
    struct keys *keys = arena_new(context->arena, sizeof *keys);
    int64_t combinations = 1;
    for (; keys->count < a->keys.count; keys->count++) {
        TRY(open_key(context, a->keys.at[keys->count], &keys->at[keys->count]));
        combinations *= keys->at[keys->count].max;
        if (combinations > IDS_OF_ROW_MAX)
            return fail(ERR_INPUT, "keys: more than %d combinations in a row", (int)IDS_OF_ROW_MAX);
    }
    m->state = keys;
    column_makes_ids(m, combinations, a->buckets);
    return OK;
}

/* For a vocabulary, NO_ID of an unknown word is a value, too; for columns whose ids are the numbers
 * in the cell, NO_ID means no value. */
static err value_of(const struct key *key, struct item *item, uint64_t *ret, bool *ret_is_none)
{
    int64_t id;
    *ret_is_none = false;
    if (key->is_words) {
        *ret = item_fingerprint(item);
        return OK;
    }
    const struct column_kind *kind = key->column->kind;
    TRY((kind->id ? kind->id : kind->key)(key->column, item, &id));
    *ret = (uint64_t)id;
    *ret_is_none = id == NO_ID && kind->limit_name;
    return OK;
}

static bool is_one_word(const struct key *key, const struct cell *cells)
{
    return key->is_words && cell_is_word(&cells[key->cell], key->separator);
}

static err read_key(struct key *key, struct prints *prints, const struct cell *cells)
{
    if (is_one_word(key, cells)) {
        key->values[0] = column_print(prints, cells, key->cell);
        key->count = 1;
        return OK;
    }
    struct items items = {.cell = &cells[key->cell], .separator = key->separator};
    struct item item;
    uint64_t value;
    bool is_none;
    key->count = 0;
    while (items_next(&items, &item)) {
        TRY(value_of(key, &item, &value, &is_none));
        if (is_none) continue;
        if (key->count == key->max)
            return fail(ERR_INPUT, "a key has more than %lld values", (long long)key->max);
        key->values[key->count++] = value;
    }
    if (key->count == 0 && key->column && key->column->stand_in != NO_ID)
        key->values[key->count++] = (uint64_t)key->column->stand_in;
    return OK;
}

/* digits: index of a value of each key */
static uint64_t combine(const struct keys *keys, const int64_t digits[KEYS_MAX])
{
    uint64_t hash = FIRST_KEY;
    for (int k = 0; k < keys->count; k++)
        hash = fingerprint_join(hash, keys->at[k].values[digits[k]]);
    return hash;
}

/* Next combination: like counting, with the last key as the lowest digit. */
static void count_up(const struct keys *keys, int64_t digits[KEYS_MAX])
{
    int k = keys->count - 1;
    for (; k >= 0 && ++digits[k] == keys->at[k].count; k--) digits[k] = 0;
}

/* The common case that every key is one word. False: one is not. */
static bool combine_words(const struct keys *keys, struct prints *prints, const struct cell *cells,
                          uint64_t *ret)
{
    *ret = FIRST_KEY;
    for (int k = 0; k < keys->count; k++) {
        const struct key *key = &keys->at[k];
        if (!is_one_word(key, cells)) return false;
        *ret = fingerprint_join(*ret, column_print(prints, cells, key->cell));
    }
    return true;
}

/* If any key has no value, there are no ids. */
static err make_combinations(struct column_maker *m, const struct cell *cells, int64_t *ids)
{
    struct keys *keys = m->state;
    int64_t digits[KEYS_MAX] = {0}, count = 1;
    for (int k = 0; k < keys->count; k++) {
        TRY(read_key(&keys->at[k], m->prints, cells));
        count *= keys->at[k].count;
    }
    for (int64_t i = 0; i < count; i++, count_up(keys, digits))
        ids[i] = column_bucket(m, combine(keys, digits));
    for (int64_t i = count; i < m->made.shape.dim[0]; i++) ids[i] = NO_ID;
    m->missing += count == 0;
    return OK;
}

static err make(struct column_maker *m, const struct cell *cells, void *to)
{
    int64_t *ids = to;
    uint64_t hash;
    if (!combine_words(m->state, m->prints, cells, &hash)) return make_combinations(m, cells, ids);
    ids[0] = column_bucket(m, hash);
    for (int64_t i = 1; i < m->made.shape.dim[0]; i++) ids[i] = NO_ID;
    return OK;
}

const struct column_kind column_crossed = {
    .object = {"crossed", "ids of combinations of words or ids, by their hash", fields,
               sizeof(struct attributes)},
    .open = open,
    .make = make,
};
