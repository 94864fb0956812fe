/* features.c - see features.h. */
#include "core/train/spec/features.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"
#include "core/data/columns/column.h"
#include "core/data/labels.h"
#include "core/data/stats/label_words.h"

enum { CHANGES_TEXT_MAX = 1200, VALUE_TEXT_MAX = 100, CHANGES_NAMED = 5 };

static err no_memory(void)
{
    return fail(ERR_MEMORY, "no memory for what features mean");
}

/* If a member cannot be stored, the whole is not compared: *to becomes NULL, and stays NULL. Takes
 * the value, as jansson does, and NULL, too. */
static void put(json_t **to, const char *name, json_t *value)
{
    if (!json_object_set_new(*to, name, value)) return;
    json_decref(*to);
    *to = NULL;
}

static void append(json_t **to, json_t *value)
{
    if (!json_array_append_new(*to, value)) return;
    json_decref(*to);
    *to = NULL;
}

/* ---- values ---- */

static const char *value_text(const json_t *value, char ret[VALUE_TEXT_MAX])
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(9));
    const bool is_long = text && strlen(text) >= VALUE_TEXT_MAX;
    snprintf(ret, VALUE_TEXT_MAX, "%.*s%s", VALUE_TEXT_MAX - 4, text ? text : "?",
             is_long ? "..." : "");
    free(text);
    return ret;
}

/* 1 and 1.0 are the same number. */
static bool is_same(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) return json_number_value(a) == json_number_value(b);
    if (!json_is_array(a) || json_array_size(a) != json_array_size(b))
        return json_equal((json_t *)a, (json_t *)b);
    for (size_t i = 0; i < json_array_size(a); i++)
        if (!is_same(json_array_get(a, i), json_array_get(b, i))) return false;
    return true;
}

/* ---- columns ---- */

static const struct column_spec *column_at(const struct objects *columns, int i)
{
    return (const struct column_spec *)columns->at + i;
}

/* "age", or, if that is the name of an earlier column, "age (bucketized)" */
static json_t *name_key(const struct objects *columns, int before, const char *key)
{
    for (int i = 0; i < before; i++) {
        const struct column_spec *column = column_at(columns, i);
        if (strcmp(column->name, key) == 0)
            return json_sprintf("%s (%s)", key, column->column.kind->object->name);
    }
    return json_string(key);
}

static void name_keys(const struct objects *columns, int i, json_t *column)
{
    json_t *keys = json_object_get(column, "keys");
    for (size_t k = 0; k < json_array_size(keys); k++)
        json_array_set_new(keys, k,
                           name_key(columns, i, json_string_value(json_array_get(keys, k))));
}

/* Not part of the meaning: where files are, how many ids a row may have, how large ids may be. */
static void leave_out(const struct column_kind *kind, json_t *column)
{
    for (const struct field *field = kind->object.fields; field->name; field++)
        if (field->may_differ) json_object_del(column, field->name);
    if (kind->id) json_object_del(column, "max");
    if (kind->limit_name) json_object_del(column, kind->limit_name);
}

static json_t *describe_column(const struct objects *columns, int i)
{
    const struct column_spec *spec = column_at(columns, i);
    const struct column_kind *kind = spec->column.kind->descriptor;
    json_t *column = fields_write(&kind->object, spec->column.attributes);
    leave_out(kind, column);
    name_keys(columns, i, column);
    put(&column, "column", json_string(kind->object.name));
    if (json_is_null(json_object_get(column, "source")))
        put(&column, "source", json_string(spec->name));
    if (kind->content)
        put(&column, kind->content_name,
            json_sprintf("%" PRId64 ", digest %016" PRIx64, spec->content.count,
                         spec->content.digest));
    return column;
}

static err describe_columns(struct spec *spec, json_t *ret)
{
    const struct format_context context = {.directory = spec->directory};
    struct column_spec *columns = spec->data.columns.at;
    for (int i = 0; i < spec->data.columns.count; i++) {
        TRY(column_note_content(&columns[i], &context));
        if (json_object_set_new(ret, columns[i].name, describe_column(&spec->data.columns, i)))
            return no_memory();
    }
    return OK;
}

/* ---- all of it ---- */

static json_t *list_of(const struct strings *texts)
{
    json_t *list = json_array();
    for (int i = 0; i < texts->count; i++) {
        json_t *text = json_string(texts->at[i]);
        if (text) append(&list, text); /* else it is not UTF-8, as the name of a cell may not be */
    }
    return list;
}

/* What the numbers of each label mean; the cells may have other names. */
static json_t *describe_labels(const struct source_spec *source)
{
    const struct objects *labels = labels_listed(source);
    json_t *list = json_array();
    for (int i = 0; i < labels->count; i++) {
        json_t *label = fields_write(&label_spec_object, (const struct label_spec *)labels->at + i);
        json_object_del(label, "cell");
        json_object_del(label, "separator");
        append(&list, label);
    }
    return list;
}

/* The word "1" means the same as a numeric label without a word. */
static json_t *describe_positive(const struct source_spec *source)
{
    const char *positive = label_positive_of(source);
    return positive && strcmp(positive, "1") ? json_string(positive) : json_null();
}

/* For tables without cell names: which cells are features, and in which order. */
static void describe_cells(const struct spec *spec, json_t **ret)
{
    static const char *const keys[] = {"label", "columns", "except"};
    const json_t *train = json_object_get(json_object_get(spec->json, "data"), "train");
    const bool has_names = !json_is_false(json_object_get(train, "header")) ||
                           json_array_size(json_object_get(train, "names")) > 0;
    if (has_names || spec->data.columns.count > 0) return;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        json_t *cells = json_object_get(train, keys[i]);
        char name[VALUE_TEXT_MAX];
        snprintf(name, sizeof name, "%s of cells without names", keys[i]);
        put(ret, name, cells ? json_incref(cells) : json_null());
    }
}

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* The words that count as empty, in any order, or the number that stands for an empty cell; null:
 * neither */
static json_t *describe_missing(const struct spec *spec, const char *source)
{
    const json_t *data = json_object_get(spec->json, "data");
    json_t *given = json_object_get(json_object_get(data, source), "missing");
    const size_t count = json_array_size(given);
    const char **words = count ? malloc(count * sizeof *words) : NULL;
    if (!json_is_array(given)) return given ? json_incref(given) : json_null();
    if (count == 0) return json_null();
    json_t *list = words ? json_array() : NULL;
    for (size_t i = 0; words && i < count; i++) {
        const char *word = json_string_value(json_array_get(given, i));
        words[i] = word ? word : "";
    }
    if (words) qsort(words, count, sizeof *words, compare_texts);
    for (size_t i = 0; list && i < count; i++) append(&list, json_string(words[i]));
    free(words);
    return list;
}

/* ---- of both sources ---- */

/* A word has to be the same class in training and evaluation data. */
static err compare_classes(const struct strings *train, const struct strings *eval)
{
    json_t *places = json_object();
    err e = places ? OK : no_memory();
    for (int i = 0; i < train->count && !e; i++) /* what is not UTF-8 is not compared */
        json_object_set_new(places, train->at[i], json_integer(i));
    for (int i = 0; i < eval->count && !e; i++) {
        const json_t *place = json_object_get(places, eval->at[i]);
        if (place && json_integer_value(place) != i)
            e = fail(
                ERR_INPUT,
                "data.eval: \"%.64s\" is class %d by its \"classes\", and class %d by those of "
                "data.train: list the same words in the same order, or none in data.eval",
                eval->at[i], i, (int)json_integer_value(place));
    }
    json_decref(places);
    return e;
}

/* Only labels that both sources list are compared. */
static err compare_labels(const struct data_spec *data, const struct objects *labels)
{
    for (int i = 0; i < labels->count; i++) {
        const char *name = ((const struct label_spec *)labels->at)[i].name;
        TRY(compare_classes(label_words_named(&data->train, name),
                            label_words_named(&data->eval, name)));
    }
    return OK;
}

static err compare_label_words(const struct data_spec *data)
{
    TRY(compare_classes(label_words_of(&data->train), label_words_of(&data->eval)));
    TRY(compare_labels(data, labels_listed(&data->train)));
    return compare_labels(data, labels_listed(&data->eval));
}

/* A warning only: another file may write empty cells in another way. Of other formats nothing is
 * said. */
static err compare_missing(const struct spec *spec)
{
    const bool is_given =
        json_is_object(json_object_get(json_object_get(spec->json, "data"), "eval"));
    if (!is_given || spec->data.eval.format.kind != spec->data.train.format.kind) return OK;
    json_t *train = describe_missing(spec, "train"), *eval = describe_missing(spec, "eval");
    char there[VALUE_TEXT_MAX], here[VALUE_TEXT_MAX];
    const err e = train && eval ? OK : no_memory();
    if (!e && !is_same(train, eval))
        log_line(
            LOG_WARNING,
            "data.eval: \"missing\" is %s, that of data.train is %s: the same cells are not the "
            "same features in both",
            value_text(eval, here), value_text(train, there));
    json_decref(train);
    json_decref(eval);
    return e;
}

static err compare_sources(const struct spec *spec)
{
    if (!spec->data.eval.format.kind) return OK;
    TRY(compare_label_words(&spec->data));
    return compare_missing(spec);
}

err features_describe(struct spec *spec, json_t **ret)
{
    *ret = NULL;
    TRY(compare_sources(spec));
    json_t *columns = json_object();
    const err e = columns ? describe_columns(spec, columns) : no_memory();
    json_t *all =
        e ? NULL : json_pack("{sf sf}", "scale", spec->data.scale, "offset", spec->data.offset);
    put(&all, "columns", columns);
    if (label_words_of(&spec->data.train)->count)
        put(&all, "classes", list_of(label_words_of(&spec->data.train)));
    put(&all, "positive", describe_positive(&spec->data.train));
    put(&all, "missing", describe_missing(spec, "train"));
    describe_cells(spec, &all);
    if (labels_listed(&spec->data.train)->count)
        put(&all, "labels", describe_labels(&spec->data.train));
    *ret = all;
    return e || all ? e : no_memory();
}

struct strings features_names(const json_t *features, struct arena *arena)
{
    const json_t *list = json_object_get(features, "names");
    struct strings names = {arena_array(arena, json_array_size(list), sizeof *names.at), 0};
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        if (name) names.at[names.count++] = arena_string(arena, name);
    }
    return names;
}

/* ---- comparing ---- */

struct feature_changes {
    char text[CHANGES_TEXT_MAX];
    size_t used;
    int count;
};

static void add_change(struct feature_changes *c, const char *of, const char *what,
                       const json_t *kept, const json_t *now)
{
    char was[VALUE_TEXT_MAX], is[VALUE_TEXT_MAX];
    if (c->count++ >= CHANGES_NAMED || c->used >= sizeof c->text) return;
    c->used +=
        (size_t)snprintf(c->text + c->used, sizeof c->text - c->used,
                         "%s%s%s\"%.60s\" was %s, now it is %s", c->count > 1 ? "; " : "", of,
                         *of ? ": " : "", what, value_text(kept, was), value_text(now, is));
}

/* Older checkpoints have the word "1", too (describe_positive). */
static const json_t *meaning_of(const char *name, const json_t *kept)
{
    const char *word = json_string_value(kept);
    return word && strcmp(name, "positive") == 0 && strcmp(word, "1") == 0 ? json_null() : kept;
}

static void compare_members(struct feature_changes *c, const char *of, const json_t *kept,
                            const json_t *now)
{
    const char *name;
    json_t *value;
    json_object_foreach((json_t *)now, name, value)
    {
        const json_t *before = meaning_of(name, json_object_get(kept, name));
        if (before && !json_is_object(before) && !is_same(before, value))
            add_change(c, of, name, before, value);
    }
}

/* If the kind of a column has changed, that alone is said of it. */
static void compare_columns(struct feature_changes *c, const json_t *kept, const json_t *now)
{
    const char *name;
    json_t *column;
    char of[VALUE_TEXT_MAX];
    json_object_foreach((json_t *)now, name, column)
    {
        const json_t *before = json_object_get(kept, name);
        const json_t *kind = json_object_get(column, "column");
        const json_t *kind_before = json_object_get(before, "column");
        snprintf(of, sizeof of, "column \"%.60s\"", name);
        if (before && !json_equal((json_t *)kind, (json_t *)kind_before))
            add_change(c, of, "column", kind_before, kind);
        else if (before)
            compare_members(c, of, before, column);
    }
}

err features_compare(const struct spec *spec, const json_t *kept, const json_t *now)
{
    struct feature_changes c = {0};
    compare_members(&c, "", kept, now);
    compare_columns(&c, json_object_get(kept, "columns"), json_object_get(now, "columns"));
    compare_members(&c, "inputs of nodes", json_object_get(kept, "inputs"),
                    json_object_get(now, "inputs"));
    if (c.count == 0) return OK;
    const char *more = c.count > CHANGES_NAMED ? "; ..." : "";
    if (!spec->accepts_changed_features)
        return fail(ERR_INPUT,
                    "features have changed since the checkpoint was made: %s%s "
                    "(--changed_features=accept continues anyway)",
                    c.text, more);
    log_line(LOG_WARNING, "features that changed are accepted: %s%s", c.text, more);
    return OK;
}

/* ---- with the open data ---- */

static json_t *list_inputs(const struct spec *spec, const struct graph *graph)
{
    const struct node_spec *nodes = spec->model.nodes.at;
    json_t *inputs = json_object();
    for (int i = 0; i < spec->model.nodes.count; i++)
        if (nodes[i].inputs.count) put(&inputs, graph->nodes[i].name, list_of(&nodes[i].inputs));
    return inputs;
}

/* NULL: a name is not UTF-8; then it is not known which rows belong to which feature. */
static json_t *list_parts(const struct kernel_parts *parts)
{
    json_t *list = json_array();
    for (int i = 0; i < parts->count; i++) {
        json_t *part = json_pack("[sI]", parts->at[i].name, (json_int_t)parts->at[i].rows);
        if (!part || json_array_append_new(list, part)) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* All kernels together have at most the parts that one may have, since this is read back as a spec
 * is. */
static json_t *list_rows(const struct graph *graph, const struct strings *names)
{
    json_t *rows = json_object();
    struct arena arena = {0};
    int kept = 0;
    for (int i = 0; i < graph->node_count; i++) {
        const struct node *node = &graph->nodes[i];
        const struct kernel_parts parts = kernel_parts_of(graph, node, names, &arena);
        for (int p = 0; p < node->param_count && parts.count <= KERNEL_PARTS_MAX - kept; p++) {
            if (!kernel_has_parts(node, &node->param[p], &parts)) continue;
            json_t *list = list_parts(&parts);
            if (list) put(&rows, node->param[p].name, list);
            kept += parts.count;
        }
    }
    arena_free(&arena);
    return rows;
}

static const char text_ids[] = "ids of the text";

static void note_text(json_t **open, const struct batch_source *source)
{
    if (source->meanings) put(open, text_ids, json_sprintf("digest %016" PRIx64, source->meanings));
}

err features_check_text(const struct spec *spec, const json_t *kept,
                        const struct batch_source *source)
{
    json_t *now = json_object(), *was = json_object();
    note_text(&now, source);
    if (json_object_get(kept, text_ids))
        put(&was, text_ids, json_incref(json_object_get(kept, text_ids)));
    const err e = now && was ? features_compare(spec, was, now) : no_memory();
    json_decref(was);
    json_decref(now);
    return e;
}

err features_check(const struct spec *spec, const struct batch_source *source,
                   const struct graph *graph, json_t **ret)
{
    json_t *open = json_pack("{soso}", "inputs", list_inputs(spec, graph), "rows",
                             list_rows(graph, &source->feature_names));
    if (source->feature_names.count) put(&open, "names", list_of(&source->feature_names));
    note_text(&open, source);
    if (!open) return no_memory();
    err e = features_compare(spec, spec->kept_features, open);
    *ret = spec->features ? json_copy(spec->features) : json_object();
    if (json_object_update(*ret, open) && !e) e = no_memory();
    json_decref(open);
    return e;
}

struct kernel_parts features_rows(const json_t *features, const char *kernel, struct arena *arena)
{
    const json_t *list = json_object_get(json_object_get(features, "rows"), kernel);
    const size_t count = json_array_size(list);
    struct kernel_parts parts = {arena_array(arena, count + 1, sizeof *parts.at), 0};
    for (size_t i = 0; i < count && i < KERNEL_PARTS_MAX; i++) {
        const json_t *part = json_array_get(list, i);
        const char *name = json_string_value(json_array_get(part, 0));
        const json_int_t rows = json_integer_value(json_array_get(part, 1));
        if (!name || rows < 1 || rows > TENSOR_ELEMENTS_MAX) return (struct kernel_parts){0};
        parts.at[parts.count++] = (struct kernel_part){arena_string(arena, name), rows};
    }
    return parts;
}

void features_free(json_t *features)
{
    json_decref(features);
}
