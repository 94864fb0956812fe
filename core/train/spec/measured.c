/* measured.c - statistics of the training data that become part of the spec: measured once, kept
 * beside the checkpoints, as {"classes": ["no", "yes"], "columns": [{"name": "age", "mean": [38.6],
 * "deviation": [13.6]}], "features": as in core/train/spec/features.h}. */
#include <errno.h>
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/file_system.h"
#include "core/data/stats/label_words.h"
#include "core/data/stats/standardize.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/spec/features.h"
#include "core/train/spec/spec_inside.h"

/* Without a checkpoint the file is left over from an attempt that failed, and is not used. If
 * storage does not answer it is not known whether there is one. */
static err find_checkpoint(const char *folder, bool *ret)
{
    char prefix[CHECKPOINT_PATH_MAX];
    const err e = folder ? checkpoint_find(folder, prefix) : ERR_INPUT;
    *ret = e == OK;
    return e == ERR_IO ? e : OK;
}

struct kept_measures {
    struct strings classes;
    struct objects columns;
    json_t *features; /* borrowed */
};

static const struct field standard_fields[] = {
    FIELD_OF("name", STRING, struct standard, name, .help = "of the column"),
    FIELD_OF("mean", FLOATS, struct standard, mean, .help = "of each of its numbers"),
    FIELD_OF("deviation", FLOATS, struct standard, deviation, .min = DBL_MIN, .max = DBL_MAX,
             .help = "of each of its numbers"),
    {0},
};

static const struct object standard_object = {"standard", "what a column is standardized by",
                                              standard_fields, sizeof(struct standard)};

static const struct field kept_fields[] = {
    FIELD_OF("classes", STRINGS, struct kept_measures, classes, .fallback = "[]",
             .help = "the words that labels are"),
    FIELD_OF("columns", OBJECTS, struct kept_measures, columns, .fallback = "[]",
             .object = &standard_object, .help = "all that are standardized"),
    FIELD_OF("features", JSON, struct kept_measures, features, .fallback = "null",
             .help = "what they mean"),
    {0},
};

static const struct object kept_object = {"measured", "what the training data say of themselves",
                                          kept_fields, sizeof(struct kept_measures)};

/* What is still missing, for a message. NULL: nothing. */
static const char *name_wanting(struct spec *spec)
{
    if (label_words_are_wanting(&spec->data)) return "the words that labels are";
    const char *column = standardize_wanting(&spec->data.columns);
    return column ? arena_format(&spec->arena, "what column \"%s\" is standardized by", column)
                  : NULL;
}

/* A file in a folder of this program's own that is there and cannot be read is a failure of
 * storage, as if it could not be written. */
static err find_kept(const char *path, bool *ret)
{
    struct file_state state;
    const err e = file_find(path, ret, &state);
    return e == ERR_INPUT && errno == EACCES ? ERR_IO : e;
}

static err take_wanting(struct spec *spec, const struct kept_measures *kept)
{
    if (label_words_are_wanting(&spec->data)) {
        if (kept->classes.count == 0) return fail(ERR_INPUT, "classes: expected words");
        label_words_give(&spec->data, &kept->classes);
    }
    return standardize_give(&kept->columns, &spec->data.columns);
}

static err parse_kept(struct spec *spec, json_t *json)
{
    struct kept_measures kept;
    TRY(fields_parse(&kept_object, json, "", &spec->arena, &kept));
    spec->kept_features = json_incref(kept.features);
    spec->feature_names = features_names(kept.features, &spec->arena);
    return name_wanting(spec) ? take_wanting(spec, &kept) : OK;
}

/* Checkpoints of other programs, and of older versions of dtrain, have no such file: then nothing
 * is compared. */
static err read_kept(struct spec *spec, const char *folder)
{
    char path[CHECKPOINT_PATH_MAX];
    json_t *json = NULL;
    TRY(folder_join(folder, MEASURED_NAME, path));
    bool is_kept; /* asked once: storage may answer differently the next time */
    TRY(find_kept(path, &is_kept));
    if (!is_kept && !name_wanting(spec)) return OK;
    if (!is_kept)
        return fail(ERR_INPUT, "%s: %s: the run that made the checkpoint has kept there %s", path,
                    strerror(ENOENT), name_wanting(spec));
    err e = spec_read_kept(path, &json);
    if (!e) e = parse_kept(spec, json);
    json_decref(json);
    return e ? fail_prefix(e, "%s", path) : OK;
}

/* ---- measuring ---- */

/* Labels first: rows whose label is not one of the words do not count in means and deviations. */
static err measure(struct spec *spec)
{
    struct data_spec *data = &spec->data;
    const struct format_context context = {.directory = spec->directory,
                                           .seed = (uint64_t)spec->seed};
    err e = OK;
    if (label_words_are_wanting(data)) e = label_words_measure(data, &context, &spec->arena);
    if (!e && standardize_wanting(&data->columns))
        e = standardize_measure(&data->train, &context, &data->columns, &spec->arena);
    if (e && data->train.follow)
        e = fail_prefix(e, "%s: from the files that are there at the start", name_wanting(spec));
    return e ? fail_prefix(spec_fail_data(spec, "data.train", e), "%s", spec->source) : OK;
}

static json_t *list_of(const struct floats *numbers)
{
    json_t *list = json_array();
    for (int i = 0; i < numbers->count; i++) json_array_append_new(list, json_real(numbers->at[i]));
    return list;
}

static json_t *json_of(const struct standard *s)
{
    return json_pack("{sssoso}", "name", s->name, "mean", list_of(&s->mean), "deviation",
                     list_of(&s->deviation));
}

static err note_columns(struct spec *spec)
{
    json_t *columns = json_object_get(json_object_get(spec->json, "data"), "columns");
    struct standard standard;
    for (int i = 0; i < spec->data.columns.count; i++) {
        if (!standard_of(&spec->data.columns, i, &standard)) continue;
        json_t *numbers = json_of(&standard);
        const bool is_noted =
            numbers && !json_object_update(json_array_get(columns, (size_t)i), numbers);
        json_decref(numbers);
        if (!is_noted) return fail(ERR_MEMORY, "no memory for means and deviations");
    }
    return OK;
}

/* A word that is not UTF-8 could not be written as a name. */
static err list_words(const struct strings *words, json_t **ret)
{
    *ret = json_array();
    for (int i = 0; i < words->count; i++)
        if (json_array_append_new(*ret, json_string(words->at[i])))
            return fail(ERR_INPUT, "label \"%s\": not UTF-8", words->at[i]);
    return OK;
}

static err note_classes(struct spec *spec)
{
    json_t *train = json_object_get(json_object_get(spec->json, "data"), "train"), *words = NULL;
    const err e = list_words(label_words_of(&spec->data.train), &words);
    if (!e && json_array_size(words) > 0) json_object_set(train, "classes", words);
    json_decref(words);
    return e;
}

/* As if the spec had said so. Tasks that measured different values, or whose files hold other words
 * or boundaries, do not have the same fingerprint. */
static err note(struct spec *spec)
{
    TRY(note_classes(spec));
    TRY(note_columns(spec));
    return spec_make_fingerprint(spec->json, spec->features, spec->fingerprint);
}

static err settle(struct spec *spec)
{
    const err e = label_words_settle(&spec->data, &spec->arena);
    return e ? fail_prefix(e, "%s", spec->source) : OK;
}

static err describe(struct spec *spec)
{
    err e = features_describe(spec, &spec->features);
    if (!e) e = features_compare(spec, spec->kept_features, spec->features);
    return e ? fail_prefix(e, "%s", spec->source) : OK;
}

err spec_take_kept(struct spec *spec, const char *folder, bool is_restored)
{
    bool is_there = is_restored;
    if (!is_restored) TRY(find_checkpoint(folder, &is_there));
    return is_there ? read_kept(spec, folder) : OK;
}

err spec_measure(struct spec *spec)
{
    if (name_wanting(spec)) TRY(measure(spec));
    TRY(settle(spec));
    TRY(describe(spec));
    return note(spec);
}

err spec_take_measured(struct spec *spec, json_t *json)
{
    TRY(parse_kept(spec, json));
    TRY(settle(spec));
    spec->features = spec->kept_features;
    spec->kept_features = NULL;
    return note(spec);
}

err spec_write_kept(const char *path, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
    const err e = text ? output_replace(path, text, strlen(text))
                       : fail(ERR_MEMORY, "no memory for %s", path);
    json_decref(json);
    free(text);
    return e;
}

/* [] if none is standardized */
static json_t *list_standards(const struct spec *spec)
{
    json_t *list = json_array();
    struct standard standard;
    for (int i = 0; i < spec->data.columns.count; i++)
        if (standard_of(&spec->data.columns, i, &standard))
            json_array_append_new(list, json_of(&standard));
    return list;
}

static err tell(const struct spec *spec, const json_t *features, json_t **ret)
{
    json_t *words = NULL, *columns = list_standards(spec);
    err e = list_words(label_words_of(&spec->data.train), &words);
    *ret = e ? NULL
             : json_pack("{sOsOsO?}", "classes", words, "columns", columns, "features", features);
    json_decref(words);
    json_decref(columns);
    if (!e && !*ret) e = fail(ERR_MEMORY, "no memory for what the data say of themselves");
    return e;
}

err spec_tell_measured(const struct spec *spec, json_t **ret)
{
    return tell(spec, spec->features, ret);
}

err spec_keep_measured(const struct spec *spec, const json_t *features, const char *folder)
{
    char path[CHECKPOINT_PATH_MAX];
    json_t *json;
    TRY(folder_join(folder, MEASURED_NAME, path));
    TRY(tell(spec, features, &json));
    return spec_write_kept(path, json);
}

err spec_copy_measured(const char *from, const char *to)
{
    char source[CHECKPOINT_PATH_MAX], path[CHECKPOINT_PATH_MAX];
    json_t *json = NULL;
    TRY(folder_join(from, MEASURED_NAME, source));
    TRY(folder_join(to, MEASURED_NAME, path));
    bool is_there;
    TRY(find_kept(source, &is_there));
    if (!is_there) return OK;
    TRY(spec_read_kept(source, &json));
    return spec_write_kept(path, json);
}

err spec_read_features(const char *folder, json_t **ret)
{
    char path[CHECKPOINT_PATH_MAX];
    json_t *json = NULL;
    *ret = NULL;
    TRY(folder_join(folder, MEASURED_NAME, path));
    bool is_there;
    TRY(find_kept(path, &is_there));
    if (!is_there) return OK;
    const err e = spec_read_kept(path, &json);
    if (e) return fail_prefix(e, "%s", path);
    *ret = json_incref(json_object_get(json, "features"));
    json_decref(json);
    return OK;
}
