/* standardize.c - what columns are standardized by: measured once, kept beside the checkpoints, as
 * {"columns": [{"name": "age", "mean": [38.6], "deviation": [13.6]}]}. */
#include "core/data/stats/standardize.h"

#include <errno.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints.h"
#include "core/train/spec/spec_inside.h"

static const char file_name[] = "standardize.json";

static err path_in(const char *folder, char ret[CHECKPOINT_PATH_MAX])
{
    const int length = snprintf(ret, CHECKPOINT_PATH_MAX, "%s/%s", folder, file_name);
    return length < CHECKPOINT_PATH_MAX ? OK : fail(ERR_INPUT, "%s: too long a path", folder);
}

/* Without a checkpoint a file of an attempt that came to nothing means nothing. */
static bool has_checkpoint(const char *folder)
{
    char prefix[CHECKPOINT_PATH_MAX];
    return folder && checkpoint_find(folder, prefix) == OK;
}

struct kept {
    struct objects columns;
};

static const struct field standard_fields[] = {
    {.name = "name",
     .type = FIELD_STRING,
     .offset = offsetof(struct standard, name),
     .help = "of the column"},
    {.name = "mean",
     .type = FIELD_FLOATS,
     .offset = offsetof(struct standard, mean),
     .help = "of each of its numbers"},
    {.name = "deviation",
     .type = FIELD_FLOATS,
     .offset = offsetof(struct standard, deviation),
     .min = DBL_MIN,
     .max = DBL_MAX,
     .help = "of each of its numbers"},
    {0},
};

static const struct object standard_object = {"standard", "what a column is standardized by",
                                              standard_fields, sizeof(struct standard)};

static const struct field kept_fields[] = {
    {.name = "columns",
     .type = FIELD_OBJECTS,
     .offset = offsetof(struct kept, columns),
     .object = &standard_object,
     .help = "all that are standardized"},
    {0},
};

static const struct object kept_object = {"standardize", "what columns are standardized by",
                                          kept_fields, sizeof(struct kept)};

static err parse_kept(struct spec *spec, json_t *json)
{
    struct kept kept;
    TRY(fields_parse(&kept_object, json, "", &spec->arena, &kept));
    return standardize_give(&kept.columns, &spec->data.columns);
}

static err read_kept(struct spec *spec, const char *folder)
{
    char path[CHECKPOINT_PATH_MAX];
    json_t *json = NULL;
    TRY(path_in(folder, path));
    if (access(path, R_OK))
        return fail(ERR_INPUT,
                    "%s: %s: column \"%s\" is standardized by what the run that made the "
                    "checkpoint has kept there",
                    path, strerror(errno), standardize_wanting(&spec->data.columns));
    err e = spec_read(path, &json);
    if (!e) e = parse_kept(spec, json);
    json_decref(json);
    return e ? fail_prefix(e, "%s", path) : OK;
}

static err measure(struct spec *spec)
{
    const struct data_spec *data = &spec->data;
    const struct format_context context = {.directory = spec->directory,
                                           .seed = (uint64_t)spec->seed};
    const err e = standardize_measure(&data->train, &context, &data->columns, &spec->arena);
    return e ? fail_prefix(e, "%s: data.train", spec->source) : OK;
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

/* As if the spec had said so. */
static err note(struct spec *spec)
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

/* Tasks that would not standardize by the same numbers have no common fingerprint. */
err spec_standardize(struct spec *spec, const char *folder, bool is_restored)
{
    if (!standardize_wanting(&spec->data.columns)) return OK;
    TRY(is_restored || has_checkpoint(folder) ? read_kept(spec, folder) : measure(spec));
    TRY(note(spec));
    return spec_make_fingerprint(spec->json, spec->fingerprint);
}

/* Takes the JSON; NULL: there was no memory for it. */
static err write_kept(const char *path, json_t *json)
{
    char *text = json ? json_dumps(json, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
    const err e = text ? output_replace(path, text, strlen(text))
                       : fail(ERR_MEMORY, "no memory for %s", path);
    json_decref(json);
    free(text);
    return e;
}

/* [] where none is standardized */
static json_t *list_standards(const struct spec *spec)
{
    json_t *list = json_array();
    struct standard standard;
    for (int i = 0; i < spec->data.columns.count; i++)
        if (standard_of(&spec->data.columns, i, &standard))
            json_array_append_new(list, json_of(&standard));
    return list;
}

err spec_keep_standards(const struct spec *spec, const char *folder)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(path_in(folder, path));
    json_t *list = list_standards(spec);
    if (json_array_size(list) > 0) return write_kept(path, json_pack("{so}", "columns", list));
    json_decref(list);
    return OK;
}

err spec_copy_standards(const char *from, const char *to)
{
    char source[CHECKPOINT_PATH_MAX], path[CHECKPOINT_PATH_MAX];
    json_t *json = NULL;
    TRY(path_in(from, source));
    TRY(path_in(to, path));
    if (access(source, F_OK)) return OK;
    TRY(spec_read(source, &json));
    return write_kept(path, json);
}
