/* text: rows of ids of a text's characters or words; the label of each is the one that follows it.
 *
 * Rows are windows over the text; or the text is cut into lanes, and each batch has the next window
 * of every lane; or a row is one word, and its label a neighbour.
 */
#include <inttypes.h>
#include <stdio.h>

#include "core/base/random.h"
#include "core/data/formats/text_pairs.h"

enum { ORDER_WINDOWS, ORDER_LANES, ORDER_SKIP_GRAM };
static const char *const orders[] = {
    [ORDER_WINDOWS] = "windows", [ORDER_LANES] = "lanes", [ORDER_SKIP_GRAM] = "skip_gram", NULL};

struct text_attributes {
    struct text_source source;
    int64_t time, stride, lanes;
    struct floats part;
    int order;
    struct text_pairs pairs;
};

static const struct field fields[] = {
    TEXT_FIELDS,
    FIELD_OF("time", INT, struct text_attributes, time, .fallback = "0", .max = 1 << 16,
             .help = "characters or words per row, at least 1; not with skip_gram, whose rows are "
                     "single words"),
    FIELD_OF("part", FLOATS, struct text_attributes, part, .fallback = "[0, 1]", .max = 1,
             .count_max = 2,
             .help = "part of the text to use, as fractions: [0.9, 1] is the last tenth; ids are "
                     "those of the whole text"),
    FIELD_OF(
        "order", ENUM, struct text_attributes, order, .fallback = "\"windows\"", .choices = orders,
        .help = "windows: consecutive rows from the beginning of the text to its end; lanes: the "
                "text is cut into \"lanes\" equal parts, and row r continues where row r - lanes "
                "ended; skip_gram: each row is a word, and its label one of the words around it"),
    FIELD_OF("stride", INT, struct text_attributes, stride, .fallback = "0", .max = 1 << 30,
             .help = "distance between the starts of consecutive windows; 0: the same as time"),
    FIELD_OF("lanes", INT, struct text_attributes, lanes, .fallback = "0", .max = 1 << 20,
             .help = "lanes: number of parts, which is the number of rows of all workers' batches "
                     "in a step; needs shuffle false"),
    FIELD_OF("window", INT, struct text_attributes, pairs.window, .fallback = "0", .max = 1 << 10,
             .help = "skip_gram: number of words on each side that are labels of a word, one row "
                     "each, at least 1"),
    FIELD_OF("random_window", BOOL, struct text_attributes, pairs.random, .fallback = "false",
             .help = "skip_gram: draw each word's window from 1 to \"window\", as word2vec, so "
                     "that near words count more"),
    FIELD_OF("subsample", FLOAT, struct text_attributes, pairs.subsample, .fallback = "0", .max = 1,
             .help = "skip_gram: subsampling s of frequent words: a word with frequency f is kept "
                     "with probability (sqrt(f / s) + 1) s / f, by the seed, before windows are "
                     "formed; 0: keep all. 1e-3 to 1e-5 suit large texts"),
    {0},
};

/* Cuts the text to `part`; the vocabulary is still that of the whole text */
static err cut(struct text_ids *text, const struct text_attributes *a)
{
    const double from = a->part.count == 2 ? a->part.at[0] : 1;
    const double to = a->part.count == 2 ? a->part.at[1] : 0;
    const int64_t first = (int64_t)(from * (double)text->count);
    if (from >= to)
        return fail(ERR_INPUT, "part: expected two numbers of 0 to 1, the first the smaller one");
    text->ids += first;
    text->count = (int64_t)(to * (double)text->count) - first;
    return OK;
}

/* Where rows are; the last unit of the text is only a label. */
struct text_windows {
    int64_t rows, time, stride, lanes, lane; /* lane: units in each lane */
};

static err find_windows(const struct text_ids *text, const struct text_attributes *a,
                        struct text_windows *ret)
{
    const int64_t inputs = text->count - 1;
    struct text_windows w = {
        .time = a->time, .stride = a->stride ? a->stride : a->time, .lanes = a->lanes};
    if (a->time < 1)
        return fail(ERR_INPUT, "time: expected how many %s are a row", text_units[a->source.unit]);
    if ((a->order == ORDER_LANES) != (a->lanes > 0))
        return fail(ERR_INPUT, "lanes: expected how many, and \"order\": \"lanes\"");
    if (a->lanes && a->stride)
        return fail(ERR_INPUT, "stride: rows of lanes follow one another: one of the two");
    if (a->lanes) {
        w.lane = text->count / a->lanes;
        const int64_t last = inputs - (a->lanes - 1) * w.lane; /* length of the last lane */
        w.rows = (w.lane < last ? w.lane : last) / a->time * a->lanes;
    } else if (inputs >= a->time) {
        w.rows = (inputs - a->time) / w.stride + 1;
    }
    *ret = w;
    if (w.rows > 0) return OK;
    return fail(ERR_INPUT, "%s: %" PRId64 " %s are too few for a row of %" PRId64 "%s", text->name,
                text->count, text_units[a->source.unit], a->time, a->lanes ? " in each lane" : "");
}

static int64_t begin_of(const struct text_windows *w, int64_t row)
{
    return w->lanes ? row % w->lanes * w->lane + row / w->lanes * w->time : row * w->stride;
}

static err fill(const struct text_ids *text, const struct text_windows *w, bool without_labels,
                struct storage *s)
{
    const struct shape shape = {1, {w->time}};
    uint64_t bytes = 0, label_bytes = 0;
    TRY(storage_bytes(text->name, w->rows, &shape, INT64, &bytes));
    TRY(storage_bytes(text->name, w->rows, &shape, INT32, &label_bytes));
    TRY(block_new(bytes, &s->features));
    if (!without_labels) TRY(block_new(label_bytes, &s->labels));
    int64_t *ids = s->features.at;
    int32_t *labels = s->labels.at;
    for (int64_t row = 0; row < w->rows; row++) {
        const int32_t *from = text->ids + begin_of(w, row);
        const int64_t to = row * w->time;
        for (int64_t i = 0; i < w->time; i++) ids[to + i] = from[i];
        for (int64_t i = 0; i < w->time && labels; i++) labels[to + i] = from[i + 1];
    }
    return OK;
}

/* Makes rows of one word */
static err make_pairs(const struct text_ids *text, const struct text_attributes *a,
                      const struct format_context *context, struct dataset *ret)
{
    char use[96];
    snprintf(use, sizeof use, "pairs of %" PRId64 " %s, %d different ones", text->count,
             text_units[a->source.unit], text->words.count);
    struct storage s = {.name = text->name, .use = use};
    struct column columns[STORED_COLUMNS];
    struct dataset d = {.columns = columns, .meanings = text->digest};
    d.columns[LABELS] = (struct column){.name = LABELS_NAME, .dtype = INT32};
    d.columns[FEATURES] = (struct column){
        .name = FEATURES_NAME, .dtype = INT64, .shape = {1, {1}}, .buckets = text->words.count};
    err e = text_pairs_make(text, &a->pairs, random_key(context->seed, "skip_gram"),
                            context->without_labels, &s, &d.rows);
    if (!e) e = text_ids_count(text, &s.counts);
    if (!e) e = storage_give(&s, &d);
    if (!e) *ret = d;
    storage_drop(&s);
    return e;
}

static err check_pairs(const struct text_attributes *a)
{
    const struct text_pairs *p = &a->pairs;
    const char *of_others = a->time ? "time" : a->stride ? "stride" : a->lanes ? "lanes" : NULL;
    const char *of_pairs = p->window      ? "window"
                           : p->random    ? "random_window"
                           : p->subsample ? "subsample"
                                          : NULL;
    if (a->order != ORDER_SKIP_GRAM && of_pairs)
        return fail(ERR_INPUT, "%s: only of \"order\": \"skip_gram\"", of_pairs);
    if (a->order == ORDER_SKIP_GRAM && of_others)
        return fail(ERR_INPUT, "%s: not of \"order\": \"skip_gram\", whose rows are one word each",
                    of_others);
    if (a->order == ORDER_SKIP_GRAM && p->window < 1)
        return fail(ERR_INPUT, "window: expected how many words on each side are neighbours");
    return OK;
}

static err make(const struct text_ids *text, const struct text_attributes *a,
                const struct format_context *context, struct dataset *ret)
{
    struct text_windows w = {0};
    char use[96];
    TRY(find_windows(text, a, &w));
    snprintf(use, sizeof use, "%" PRId64 " %s, %d different ones", text->count,
             text_units[a->source.unit], text->words.count);
    struct storage s = {.name = text->name, .use = use};
    const struct shape shape = {1, {a->time}};
    struct column columns[STORED_COLUMNS];
    struct dataset d = {
        .rows = w.rows, .columns = columns, .lanes = w.lanes, .meanings = text->digest};
    d.columns[LABELS] = (struct column){.name = LABELS_NAME, .dtype = INT32, .shape = shape};
    d.columns[FEATURES] = (struct column){
        .name = FEATURES_NAME, .dtype = INT64, .shape = shape, .buckets = text->words.count};
    err e = fill(text, &w, context->without_labels, &s);
    if (!e) e = text_ids_count(text, &s.counts);
    if (!e) e = storage_give(&s, &d);
    if (!e) *ret = d;
    storage_drop(&s);
    return e;
}

static err open_text(const void *attributes, const struct format_context *context,
                     struct dataset *ret)
{
    const struct text_attributes *a = attributes;
    struct text_ids text;
    TRY(check_pairs(a));
    err e = text_ids_read(&a->source, context, &text);
    if (!e) e = cut(&text, a);
    if (!e)
        e = a->order == ORDER_SKIP_GRAM ? make_pairs(&text, a, context, ret)
                                        : make(&text, a, context, ret);
    text_ids_free(&text);
    return e;
}

const struct format format_text = {
    .object = {"text",
               "characters or words as ids, each labelled with the one behind it, or a word with "
               "one of its neighbours",
               fields, sizeof(struct text_attributes)},
    .open = open_text,
    .meanings = text_meanings,
};
