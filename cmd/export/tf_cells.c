/* tf_cells.c - turns cells into the inputs of a program, with TensorFlow's ops. Values of a cell
 * are a matrix [batch, values], where an empty text, NaN or a negative integer is a missing value.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "cmd/export/saved_model.h"
#include "core/data/columns/date.h"
#include "core/data/columns/numeric.h"

static const int64_t CROSS_KEY = INT64_C(0xDECAFCAFFE); /* TensorFlow's default, and dtrain's */

static const struct column_source *source_of(const struct column_spec *spec)
{
    return spec->column.attributes;
}

static const char *separator_of(const struct cells *c, const struct column_spec *spec)
{
    return given_separator(spec, c->has_texts);
}

/* ---- tables of words ---- */

static err open_words(struct tf_cells *t, struct tf_graph *g, int column)
{
    const struct column_spec *spec = cells_column(t->cells, column);
    struct strings words;
    TRY(cells_words(t->cells, spec, &words));
    int64_t *ids = arena_array(t->cells->arena, (size_t)words.count, sizeof *ids);
    for (int i = 0; i < words.count; i++) ids[i] = i;
    if (g->init_count == TF_INITS_MAX) return fail(ERR_INPUT, "too many vocabularies");
    const struct tf_tensor keys = tf_texts(g, words.at, words.count, true);
    const struct tf_tensor values =
        tf_constant(g, TF_INT64, &(struct shape){1, {words.count}}, ids);
    t->word_counts[column] = tf_int64(g, words.count);
    t->words[column] = tf_node(g, "HashTableV2", NULL, 0);
    tf_attr_text(g, "shared_name", arena_format(t->cells->arena, "words/%s", spec->name));
    tf_attr_type(g, "key_dtype", TF_STRING);
    tf_attr_type(g, "value_dtype", TF_INT64);
    const struct tf_tensor inputs[] = {t->words[column], keys, values};
    g->inits[g->init_count++] = tf_node(g, "InitializeTableV2", inputs, 3).node;
    tf_attr_type(g, "Tkey", TF_STRING);
    tf_attr_type(g, "Tval", TF_INT64);
    return OK;
}

static err check_column(const struct column_spec *spec)
{
    const struct numeric_attributes *a = spec->column.attributes;
    if (cells_is(spec, "numeric") && a->source.max > 1 && a->source.truncate == TRUNCATE_LAST)
        return fail(ERR_INPUT, "the last of more numbers are kept");
    return OK;
}

err tf_cells_open(struct tf_cells *t, struct tf_graph *g, const struct cells *c)
{
    static const enum tf_type types[GIVEN_COUNT] = {[GIVEN_WHOLE] = TF_INT64,
                                                    [GIVEN_NUMBER] = TF_DOUBLE,
                                                    [GIVEN_TEXT] = TF_STRING,
                                                    [GIVEN_PIXELS] = TF_UINT8};
    t->cells = c;
    given_find(c, c->has_texts, &t->given);
    for (int i = 0; i < c->count; i++) t->types[i] = types[t->given.types[i]];
    for (int i = 0; i < c->columns->count; i++) {
        const struct column_spec *spec = cells_column(c, i);
        if (!c->is_read[i]) continue;
        err e = check_column(spec);
        if (!e && cells_is(spec, "vocabulary")) e = open_words(t, g, i);
        if (e)
            return fail_prefix(e, "column \"%s\" (%s) cannot be exported", spec->name,
                               cells_kind(spec));
    }
    return OK;
}

static struct tf_tensor time_of(struct tf_graph *g, struct tf_tensor x)
{
    const struct tf_tensor is_none = tf_two(g, "Equal", TF_INT64, x, tf_int64(g, INT64_MIN));
    return tf_select(g, TF_DOUBLE, is_none, tf_double(g, NAN), tf_cast(g, TF_INT64, TF_DOUBLE, x));
}

/* The type of the cell in Examples */
static enum tf_type example_type(const struct tf_cells *t, int cell)
{
    if (t->types[cell] == TF_UINT8) return TF_STRING;
    if (t->types[cell] != TF_DOUBLE) return t->types[cell];
    return t->given.is_time[cell] ? TF_INT64 : TF_FLOAT;
}

/* One image per Example; TensorFlow fails if the number of bytes is another. */
static struct tf_tensor pixels_of(struct tf_graph *g, struct tf_tensor bytes,
                                  const struct shape *pixels)
{
    const struct tf_tensor batch = tf_one(g, "Shape", TF_STRING, bytes);
    const struct tf_tensor dims[] = {batch, tf_int32s(g, pixels->dim, pixels->rank),
                                     tf_int32(g, 0)};
    const struct tf_tensor shape = tf_node(g, "ConcatV2", dims, 3);
    tf_attr_int(g, "N", 2);
    tf_attr_type(g, "T", TF_INT32);
    const struct tf_tensor x = tf_node(g, "DecodeRaw", &bytes, 1);
    tf_attr_type(g, "out_type", TF_UINT8);
    return tf_two(g, "Reshape", TF_UINT8, x, shape);
}

void tf_parse_examples(const struct tf_cells *t, struct tf_graph *g, struct tf_tensor serialized,
                       struct tf_tensor *ret)
{
    const int count = t->cells->count;
    struct tf_tensor inputs[CELLS_MAX + 5];
    enum tf_type types[CELLS_MAX];
    struct shape shapes[CELLS_MAX];
    int at = 0;
    inputs[at++] = serialized;
    for (int i = 0; i < 2; i++) inputs[at++] = tf_texts(g, NULL, 0, true); /* names, sparse keys */
    inputs[at++] = tf_texts(g, t->cells->names, count, true);
    inputs[at++] = tf_texts(g, NULL, 0, true); /* ragged keys */
    for (int i = 0; i < count; i++) {
        types[i] = example_type(t, i);
        shapes[i] = (struct shape){t->given.is_list[i], {-1}};
        inputs[at++] = types[i] == TF_FLOAT   ? tf_float(g, NAN)
                       : types[i] == TF_INT64 ? tf_int64(g, t->given.is_time[i] ? INT64_MIN : -1)
                                              : tf_texts(g, &(const char *){""}, 1, false);
    }
    const struct tf_tensor parsed = tf_node(g, "ParseExampleV2", inputs, at);
    tf_attr_types(g, "Tdense", types, count);
    tf_attr_int(g, "num_sparse", 0);
    tf_attr_types(g, "sparse_types", NULL, 0);
    tf_attr_types(g, "ragged_value_types", NULL, 0);
    tf_attr_types(g, "ragged_split_types", NULL, 0);
    tf_attr_shapes(g, "dense_shapes", shapes, count);
    for (int i = 0; i < count; i++) ret[i] = (struct tf_tensor){parsed.node, i};
    for (int i = 0; i < count; i++)
        ret[i] = t->types[i] == TF_UINT8 ? pixels_of(g, ret[i], &t->cells->pixels[i])
                 : t->given.is_time[i] && types[i] == TF_INT64
                     ? time_of(g, ret[i])
                     : tf_cast(g, types[i], t->types[i], ret[i]);
}

/* ---- values of a cell ---- */

/* at: [batch, values]; is_there: bool, false for a missing value */
struct values {
    enum tf_type type;
    struct tf_tensor at, is_there;
    bool is_one; /* one value per row */
};

static struct tf_tensor expand(struct tf_graph *g, enum tf_type type, struct tf_tensor x, int axis)
{
    const struct tf_tensor y =
        tf_node(g, "ExpandDims", (const struct tf_tensor[]){x, tf_int32(g, axis)}, 2);
    tf_attr_type(g, "T", type);
    tf_attr_type(g, "Tdim", TF_INT32);
    return y;
}

static struct tf_tensor text(struct tf_graph *g, const char *word)
{
    return tf_texts(g, &word, 1, false);
}

static struct tf_tensor dense_of(struct tf_graph *g, enum tf_type type, struct tf_tensor indices,
                                 struct tf_tensor values, struct tf_tensor shape,
                                 struct tf_tensor none)
{
    const struct tf_tensor inputs[] = {indices, shape, values, none};
    const struct tf_tensor y = tf_node(g, "SparseToDense", inputs, 4);
    tf_attr_type(g, "T", type);
    tf_attr_type(g, "Tindices", TF_INT64);
    return y;
}

static struct tf_tensor stripped(struct tf_graph *g, struct tf_tensor x)
{
    return tf_node(g, "StringStrip", &x, 1);
}

static struct tf_tensor split(struct tf_graph *g, struct tf_tensor cell, const char *separator)
{
    const struct tf_tensor parts =
        tf_node(g, "StringSplitV2", (const struct tf_tensor[]){cell, text(g, separator)}, 2);
    tf_attr_int(g, "maxsplit", -1);
    return dense_of(g, TF_STRING, parts, stripped(g, (struct tf_tensor){parts.node, 1}),
                    (struct tf_tensor){parts.node, 2}, text(g, ""));
}

static struct tf_tensor is_there(struct tf_graph *g, enum tf_type type, struct tf_tensor x)
{
    if (type == TF_INT64) return tf_two(g, "GreaterEqual", TF_INT64, x, tf_int64(g, 0));
    if (type == TF_STRING) return tf_two(g, "NotEqual", TF_STRING, x, text(g, ""));
    return tf_two(g, "Equal", TF_DOUBLE, x, x);
}

/* Replaces words that stand for a missing value by empty ones. */
static struct tf_tensor without_missing(const struct tf_cells *t, struct tf_graph *g,
                                        struct tf_tensor words)
{
    const struct strings *missing = &t->cells->missing;
    for (int i = 0; i < missing->count; i++) {
        const struct tf_tensor is_it =
            tf_two(g, "Equal", TF_STRING, words, text(g, missing->at[i]));
        words = tf_select(g, TF_STRING, is_it, text(g, ""), words);
    }
    return words;
}

static struct values values_of(const struct tf_cells *t, struct tf_graph *g, int cell,
                               const char *separator, struct tf_tensor given)
{
    struct values v = {.type = t->types[cell], .is_one = !separator && !t->given.is_list[cell]};
    v.at = given;
    const bool is_text = v.type == TF_STRING, of_cells = t->cells->has_texts;
    const bool are_missing = t->cells->missing.count && of_cells;
    if (is_text && (!separator || are_missing)) v.at = stripped(g, given);
    if (is_text && of_cells) v.at = without_missing(t, g, v.at);
    if (separator) v.at = split(g, v.at, separator);
    if (is_text && !of_cells) v.at = without_missing(t, g, v.at);
    if (v.is_one) v.at = expand(g, v.type, v.at, 1);
    v.is_there = is_there(g, v.type, v.at);
    return v;
}

static struct tf_tensor parsed(struct tf_graph *g, const struct values *v, enum tf_type type)
{
    const struct tf_tensor none = text(g, type == TF_DOUBLE ? "nan" : "-1");
    const struct tf_tensor x = tf_select(g, TF_STRING, v->is_there, v->at, none);
    const struct tf_tensor y = tf_node(g, "StringToNumber", &x, 1);
    tf_attr_type(g, "out_type", type);
    return y;
}

static struct tf_tensor numbers_of(struct tf_graph *g, const struct values *v)
{
    return v->type == TF_STRING ? parsed(g, v, TF_DOUBLE) : tf_cast(g, v->type, TF_DOUBLE, v->at);
}

/* The number after the colon, or 1 without one */
static struct tf_tensor weights_of(struct tf_graph *g, const struct values *v)
{
    struct values behind = *v;
    const struct tf_tensor inputs[] = {v->at, text(g, "^[^:]*:?"), text(g, "")};
    const struct tf_tensor weight = tf_node(g, "RegexReplace", inputs, 3);
    const struct tf_tensor is_given = is_there(g, TF_STRING, weight);
    behind.at = tf_select(g, TF_STRING, is_given, weight, text(g, "1"));
    return tf_cast(g, TF_DOUBLE, TF_FLOAT, parsed(g, &behind, TF_DOUBLE));
}

/* The integers, without a weight after a colon */
static struct tf_tensor wholes_of(struct tf_graph *g, const struct values *v)
{
    struct values plain = *v;
    const struct tf_tensor none = tf_int64(g, -1);
    if (v->type == TF_INT64) return v->at;
    if (v->type == TF_DOUBLE)
        return tf_select(g, TF_INT64, v->is_there, tf_cast(g, TF_DOUBLE, TF_INT64, v->at), none);
    const struct tf_tensor inputs[] = {v->at, text(g, ":.*$"), text(g, "")};
    plain.at = tf_node(g, "RegexReplace", inputs, 3);
    return parsed(g, &plain, TF_INT64);
}

/* ---- ids ---- */

/* Marks ids of -1 as missing, however they are written: "-1", "-01", "-1:2". */
static void drop_no_ids(struct tf_graph *g, const struct column_spec *spec, struct values *v)
{
    if (v->type == TF_INT64 || !(cells_is(spec, "identity") || cells_is(spec, "ids"))) return;
    v->is_there = tf_two(g, "NotEqual", TF_INT64, wholes_of(g, v), tf_int64(g, -1));
}

static struct tf_tensor within(struct tf_graph *g, struct tf_tensor ids, int64_t count,
                               int64_t stand_in)
{
    const struct tf_tensor low = tf_two(g, "GreaterEqual", TF_INT64, ids, tf_int64(g, 0));
    const struct tf_tensor high = tf_two(g, "Less", TF_INT64, ids, tf_int64(g, count));
    const struct tf_tensor both =
        tf_node(g, "LogicalAnd", (const struct tf_tensor[]){low, high}, 2);
    return tf_select(g, TF_INT64, both, ids, tf_int64(g, stand_in));
}

static struct tf_tensor hashed(struct tf_graph *g, struct tf_tensor words, int64_t buckets)
{
    const struct tf_tensor y = tf_node(g, "StringToHashBucketFast", &words, 1);
    tf_attr_int(g, "num_buckets", buckets);
    return y;
}

static struct tf_tensor found(const struct tf_cells *t, struct tf_graph *g, int column,
                              struct tf_tensor words)
{
    const int64_t more =
        *(const int64_t *)cells_attribute(cells_column(t->cells, column), "oov_buckets");
    const struct tf_tensor inputs[] = {t->words[column], words, tf_int64(g, -1)};
    const struct tf_tensor ids = tf_node(g, "LookupTableFindV2", inputs, 3);
    tf_attr_type(g, "Tin", TF_STRING);
    tf_attr_type(g, "Tout", TF_INT64);
    if (!more) return ids;
    const struct tf_tensor other =
        tf_two(g, "AddV2", TF_INT64, hashed(g, words, more), t->word_counts[column]);
    return tf_select(g, TF_INT64, is_there(g, TF_INT64, ids), ids, other);
}

/* Counts the boundaries that are not above the number. */
static struct tf_tensor bucketized(const struct tf_cells *t, struct tf_graph *g,
                                   const struct column_spec *spec, struct tf_tensor numbers)
{
    struct floats boundaries = {0};
    if (cells_boundaries(t->cells, spec, &boundaries))
        boundaries.count = 0; /* read before without error */
    const struct tf_tensor sorted =
        tf_constant(g, TF_DOUBLE, &(struct shape){2, {1, boundaries.count}}, boundaries.at);
    const struct tf_tensor row = tf_reshape(g, TF_DOUBLE, numbers, (const int64_t[]){1, -1}, 2);
    const struct tf_tensor ids = tf_two(g, "UpperBound", TF_DOUBLE, sorted, row);
    tf_attr_type(g, "out_type", TF_INT64);
    const struct tf_tensor like = tf_node(g, "Shape", &numbers, 1);
    tf_attr_type(g, "T", TF_DOUBLE);
    return tf_two(g, "Reshape", TF_INT64, ids, like);
}

/* ---- times ---- */

/* The client converts dates from text to seconds since 1970: TensorFlow has no op for it. */
static struct tf_tensor seconds_of(struct tf_graph *g, const struct column_spec *spec,
                                   const struct values *v)
{
    const struct tf_tensor x = numbers_of(g, v);
    return date_is_in_milliseconds(spec->column.attributes) ? tf_with_double(g, "RealDiv", x, 1000)
                                                            : x;
}

static struct tf_tensor part_of_time(struct tf_graph *g, const struct column_spec *spec,
                                     const struct values *v)
{
    const struct date_attributes *a = spec->column.attributes;
    const struct tf_tensor x = seconds_of(g, spec, v);
    return tf_part_of_time(g, a->part,
                           tf_select(g, TF_DOUBLE, is_there(g, TF_DOUBLE, x), x, tf_double(g, 0)));
}

/* [batch, values]; -1: missing */
static struct tf_tensor ids_of(const struct tf_cells *t, struct tf_graph *g, int column,
                               const struct values *v)
{
    const struct column_spec *spec = cells_column(t->cells, column);
    struct tf_tensor ids;
    if (cells_is(spec, "identity"))
        return tf_select(
            g, TF_INT64, v->is_there,
            within(g, wholes_of(g, v), cells_limit(spec, "buckets"), cells_stand_in(spec)),
            tf_int64(g, -1));
    if (cells_is(spec, "ids")) return within(g, wholes_of(g, v), cells_limit(spec, "rows"), -1);
    if (cells_is(spec, "hash"))
        ids = hashed(g, v->at, cells_limit(spec, "buckets"));
    else if (cells_is(spec, "vocabulary"))
        ids = found(t, g, column, v->at);
    else if (cells_is(spec, "date"))
        ids = part_of_time(g, spec, v);
    else
        ids = bucketized(t, g, spec, numbers_of(g, v));
    return tf_select(g, TF_INT64, v->is_there, ids, tf_int64(g, -1));
}

static struct tf_tensor count_row(struct tf_graph *g, struct tf_tensor is_there)
{
    const struct tf_tensor ones = tf_cast(g, TF_BOOL, TF_INT64, is_there);
    return tf_reduce(g, "Sum", TF_INT64, ones, (const int64_t[]){1}, 1, true);
}

/* The index of each id in the row without missing ones; if there are more than max, the first or
 * the last max are within 0 to max - 1. */
static struct tf_tensor places(struct tf_graph *g, struct tf_tensor is_id, int64_t max,
                               bool keeps_last)
{
    const struct tf_tensor ones = tf_cast(g, TF_BOOL, TF_INT64, is_id);
    const struct tf_tensor y =
        tf_node(g, "Cumsum", (const struct tf_tensor[]){ones, tf_int32(g, 1)}, 2);
    tf_attr_bool(g, "exclusive", true);
    tf_attr_type(g, "T", TF_INT64);
    if (!keeps_last) return y;
    const struct tf_tensor over = tf_two(g, "Sub", TF_INT64, count_row(g, is_id), tf_int64(g, max));
    return tf_two(g, "Sub", TF_INT64, y, tf_two(g, "Maximum", TF_INT64, over, tf_int64(g, 0)));
}

/* Which value goes to which index: bool [batch, values, max] */
static struct tf_tensor takes(struct tf_graph *g, struct tf_tensor ids, int64_t max,
                              bool keeps_last)
{
    int64_t numbers[IDS_OF_ROW_MAX];
    for (int64_t i = 0; i < max; i++) numbers[i] = i;
    const struct tf_tensor is_id = is_there(g, TF_INT64, ids);
    const struct tf_tensor to = expand(g, TF_INT64, places(g, is_id, max, keeps_last), 2);
    const struct tf_tensor range =
        tf_constant(g, TF_INT64, &(struct shape){3, {1, 1, max}}, numbers);
    const struct tf_tensor goes = tf_two(g, "Equal", TF_INT64, to, range);
    return tf_node(g, "LogicalAnd", (const struct tf_tensor[]){goes, expand(g, TF_BOOL, is_id, 2)},
                   2);
}

static struct tf_tensor side_by_side(struct tf_graph *g, struct tf_tensor ids, int64_t max,
                                     bool keeps_last)
{
    const struct tf_tensor taken = takes(g, ids, max, keeps_last);
    const struct tf_tensor more = tf_two(g, "AddV2", TF_INT64, ids, tf_int64(g, 1));
    const struct tf_tensor each =
        tf_select(g, TF_INT64, taken, expand(g, TF_INT64, more, 2), tf_int64(g, 0));
    const struct tf_tensor sum =
        tf_reduce(g, "Sum", TF_INT64, each, (const int64_t[]){1}, 1, false);
    return tf_two(g, "Sub", TF_INT64, sum, tf_int64(g, 1));
}

/* Puts the default id first in rows without a value. */
static struct tf_tensor with_stand_in(struct tf_graph *g, struct tf_tensor ids,
                                      struct tf_tensor is_value, int64_t max, int64_t stand_in)
{
    int64_t numbers[IDS_OF_ROW_MAX];
    if (stand_in < 0) return ids;
    for (int64_t i = 0; i < max; i++) numbers[i] = i ? -1 : stand_in;
    const struct tf_tensor row = tf_constant(g, TF_INT64, &(struct shape){2, {1, max}}, numbers);
    const struct tf_tensor is_empty =
        tf_two(g, "Equal", TF_INT64, count_row(g, is_value), tf_int64(g, 0));
    return tf_select(g, TF_INT64, is_empty, row, ids);
}

/* ---- crosses ---- */

static struct tf_tensor joined(struct tf_graph *g, enum tf_type type, struct tf_tensor a,
                               struct tf_tensor b)
{
    const struct tf_tensor y =
        tf_node(g, "ConcatV2", (const struct tf_tensor[]){a, b, tf_int32(g, 1)}, 3);
    tf_attr_int(g, "N", 2);
    tf_attr_type(g, "T", type);
    return y;
}

/* Words of a cell, or ids of a column, including its default id for a row without any */
static struct values key_of(const struct tf_cells *t, struct tf_graph *g, const char *key,
                            const struct tf_tensor *given)
{
    const struct cells *c = t->cells;
    const int of = cells_column_named(c, key);
    const struct column_spec *spec = of < 0 ? NULL : cells_column(c, of);
    const int cell = spec ? cells_of_column(c, spec) : cells_named(c, key);
    struct values v = values_of(t, g, cell, spec ? separator_of(c, spec) : NULL, given[cell]);
    if (cells_crosses_words(c, key)) return v;
    drop_no_ids(g, spec, &v);
    v.at = ids_of(t, g, of, &v);
    v.type = TF_INT64;
    const int64_t stand_in = cells_stand_in(spec);
    if (stand_in < 0) return v;
    const struct tf_tensor count = count_row(g, v.is_there);
    const struct tf_tensor is_empty = tf_two(g, "Equal", TF_INT64, count, tf_int64(g, 0));
    const struct tf_tensor zero = tf_two(g, "Mul", TF_INT64, count, tf_int64(g, 0));
    const struct tf_tensor extra = tf_two(g, "AddV2", TF_INT64, zero, tf_int64(g, stand_in));
    v.at = joined(g, TF_INT64, v.at, extra);
    v.is_there = joined(g, TF_BOOL, v.is_there, is_empty);
    return v;
}

static struct tf_tensor write_cross(const struct tf_cells *t, struct tf_graph *g,
                                    const struct column_spec *spec, const struct tf_tensor *given)
{
    enum { KEYS_MAX = 8 };
    const struct strings *keys = cells_attribute(spec, "keys");
    const int count = keys->count;
    struct tf_tensor inputs[3 * KEYS_MAX];
    enum tf_type types[KEYS_MAX];
    for (int i = 0; i < count; i++) {
        const struct values v = key_of(t, g, keys->at[i], given);
        types[i] = v.type;
        inputs[i] = tf_one(g, "Where", TF_BOOL, v.is_there);
        inputs[count + i] = tf_node(g, "GatherNd", (const struct tf_tensor[]){v.at, inputs[i]}, 2);
        tf_attr_type(g, "Tparams", v.type);
        tf_attr_type(g, "Tindices", TF_INT64);
        inputs[2 * count + i] = tf_one(g, "Shape", v.type, v.at);
        tf_attr_type(g, "out_type", TF_INT64);
    }
    const struct tf_tensor y = tf_node(g, "SparseCross", inputs, 3 * count);
    tf_attr_int(g, "N", count);
    tf_attr_bool(g, "hashed_output", true);
    tf_attr_int(g, "num_buckets", cells_limit(spec, "buckets"));
    tf_attr_int(g, "hash_key", CROSS_KEY);
    tf_attr_types(g, "sparse_types", types, count);
    tf_attr_types(g, "dense_types", NULL, 0);
    tf_attr_type(g, "out_type", TF_INT64);
    tf_attr_type(g, "internal_type", TF_INT64);
    return dense_of(g, TF_INT64, y, (struct tf_tensor){y.node, 1}, (struct tf_tensor){y.node, 2},
                    tf_int64(g, -1));
}

/* ---- numbers ---- */

/* Pads or cuts each row to max values; padding is NaN. */
static struct tf_tensor cut(struct tf_graph *g, struct tf_tensor x, int64_t max)
{
    const int32_t around[2][2] = {{0, 0}, {0, (int32_t)max}};
    const struct tf_tensor paddings = tf_constant(g, TF_INT32, &(struct shape){2, {2, 2}}, around);
    const struct tf_tensor padded =
        tf_node(g, "PadV2", (const struct tf_tensor[]){x, paddings, tf_double(g, NAN)}, 3);
    tf_attr_type(g, "T", TF_DOUBLE);
    const struct tf_tensor inputs[] = {padded, tf_int32s(g, (const int64_t[]){0, 0}, 2),
                                       tf_int32s(g, (const int64_t[]){-1, max}, 2)};
    const struct tf_tensor y = tf_node(g, "Slice", inputs, 3);
    tf_attr_type(g, "T", TF_DOUBLE);
    tf_attr_type(g, "Index", TF_INT32);
    return y;
}

static struct tf_tensor standardized(struct tf_graph *g, const struct numeric_attributes *a,
                                     struct tf_tensor x)
{
    const struct shape shape = {2, {1, a->source.max}};
    if (!a->standardize) return x;
    x = tf_two(g, "Sub", TF_DOUBLE, x, tf_constant(g, TF_DOUBLE, &shape, a->mean.at));
    return tf_two(g, "RealDiv", TF_DOUBLE, x, tf_constant(g, TF_DOUBLE, &shape, a->deviation.at));
}

/* Applies data.scale and data.offset. */
static struct tf_tensor scaled(const struct tf_cells *t, struct tf_graph *g, struct tf_tensor x)
{
    const struct data_spec *data = t->cells->data;
    x = tf_cast(g, TF_FLOAT, TF_DOUBLE, tf_cast(g, TF_DOUBLE, TF_FLOAT, x));
    x = tf_with_double(g, "AddV2", tf_with_double(g, "Mul", x, data->scale), data->offset);
    return tf_cast(g, TF_DOUBLE, TF_FLOAT, x);
}

static struct tf_tensor write_numeric(const struct tf_cells *t, struct tf_graph *g,
                                      const struct numeric_attributes *a, const struct values *v)
{
    struct tf_tensor x = numbers_of(g, v);
    if (!v->is_one || a->source.max > 1) x = cut(g, x, a->source.max);
    const struct tf_tensor is_number = tf_two(g, "Equal", TF_DOUBLE, x, x);
    double fallback;
    if (numeric_default(a, &fallback) && !json_is_number(a->padding)) {
        const struct tf_tensor is_empty =
            tf_two(g, "Equal", TF_INT64, count_row(g, is_number), tf_int64(g, 0));
        x = tf_select(g, TF_DOUBLE, is_empty, tf_double(g, fallback), x);
    }
    const struct tf_tensor given = tf_two(g, "Equal", TF_DOUBLE, x, x);
    if (json_is_number(a->min)) x = tf_with_double(g, "Maximum", x, json_number_value(a->min));
    if (a->log1p) x = tf_one(g, "Log1p", TF_DOUBLE, x);
    x = standardized(g, a, x);
    x = tf_with_double(g, "AddV2", tf_with_double(g, "Mul", x, a->scale), a->offset);
    if (json_is_number(a->padding))
        x = tf_select(g, TF_DOUBLE, given, x, tf_double(g, json_number_value(a->padding)));
    return scaled(t, g, x);
}

static struct tf_tensor write_seconds(const struct tf_cells *t, struct tf_graph *g,
                                      const struct column_spec *spec, const struct values *v)
{
    const struct date_attributes *a = spec->column.attributes;
    struct tf_tensor x = seconds_of(g, spec, v);
    if (json_is_number(a->fallback))
        x = tf_select(g, TF_DOUBLE, v->is_there, x, tf_double(g, json_number_value(a->fallback)));
    return scaled(t, g,
                  tf_with_double(g, "AddV2", tf_with_double(g, "Mul", x, a->scale), a->offset));
}

struct tf_tensor tf_write_weights(const struct tf_cells *t, struct tf_graph *g, int column,
                                  const struct tf_tensor *given, int64_t max)
{
    const struct column_spec *spec = cells_column(t->cells, column);
    const int cell = cells_of_column(t->cells, spec);
    const struct values v = values_of(t, g, cell, separator_of(t->cells, spec), given[cell]);
    const struct tf_tensor ids = ids_of(t, g, column, &v);
    const bool keeps_last = source_of(spec)->truncate == TRUNCATE_LAST;
    const struct tf_tensor each =
        tf_select(g, TF_FLOAT, takes(g, ids, max, keeps_last),
                  expand(g, TF_FLOAT, weights_of(g, &v), 2), tf_float(g, 0));
    return tf_reduce(g, "Sum", TF_FLOAT, each, (const int64_t[]){1}, 1, false);
}

struct tf_tensor tf_write_column(const struct tf_cells *t, struct tf_graph *g, int column,
                                 const struct tf_tensor *given, int64_t max)
{
    const struct column_spec *spec = cells_column(t->cells, column);
    if (cells_is(spec, "crossed"))
        return side_by_side(g, write_cross(t, g, spec, given), max, false);
    const int cell = cells_of_column(t->cells, spec);
    if (t->types[cell] == TF_UINT8)
        return scaled(t, g, tf_cast(g, TF_UINT8, TF_DOUBLE, given[cell]));
    struct values v = values_of(t, g, cell, separator_of(t->cells, spec), given[cell]);
    drop_no_ids(g, spec, &v);
    if (cells_is(spec, "numeric")) return write_numeric(t, g, spec->column.attributes, &v);
    if (cells_is_seconds(spec)) return write_seconds(t, g, spec, &v);
    struct tf_tensor ids = ids_of(t, g, column, &v);
    if (!v.is_one || max > 1)
        ids = side_by_side(g, ids, max, source_of(spec)->truncate == TRUNCATE_LAST);
    return with_stand_in(g, ids, v.is_there, max, cells_stand_in(spec));
}
