/* models_file.c - see models_file.h. */
#include "cmd/serve/models_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/counters.h"
#include "core/base/files/file_system.h"

enum { FILE_BYTES_MAX = 1 << 20 };

static const struct field label_fields[] = {
    FIELD_OF("label", STRING, struct labelled_version, label,
             .help = "LABEL in /v1/models/NAME/labels/LABEL"),
    {.name = "checkpoint",
     .type = FIELD_STRING,
     .offset = offsetof(struct labelled_version, checkpoint)},
    {0},
};
static const struct object label_object = {
    .name = "version_label", .fields = label_fields, .size = sizeof(struct labelled_version)};

static const struct field model_fields[] = {
    FIELD_OF("name", STRING, struct listed_model, name, .help = "NAME in /v1/models/NAME"),
    {.name = "spec", .type = FIELD_STRING, .offset = offsetof(struct listed_model, spec)},
    {.name = "checkpoint",
     .type = FIELD_STRING,
     .offset = offsetof(struct listed_model, checkpoint)},
    FIELD_OF("set", STRINGS, struct listed_model, set, .fallback = "[]"),
    FIELD_OF("follow", BOOL, struct listed_model, follow, .fallback = "false"),
    FIELD_OF("version_labels", OBJECTS, struct listed_model, labels, .fallback = "[]",
             .count_max = MODELS_MAX, .object = &label_object),
    {0},
};
static const struct object model_object = {
    .name = "model", .fields = model_fields, .size = sizeof(struct listed_model)};

static const struct field file_fields[] = {
    {.name = "models", .type = FIELD_OBJECTS, .count_max = MODELS_MAX, .object = &model_object},
    {0},
};
static const struct object file_object = {
    .name = "models", .fields = file_fields, .size = sizeof(struct objects)};

/* Joins a relative path to the folder of the file. */
static err join(const char *directory, struct arena *arena, const char **path)
{
    char *joined = path_join(directory, *path);
    if (!joined) return fail(ERR_MEMORY, "no memory for a path");
    *path = arena_string(arena, joined);
    free(joined);
    return OK;
}

/* Valid in a URL and as a label value of /metrics */
static bool is_name(const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || strchr("/:?#%\"\\", name[i]))
            return false;
    return length > 0 && length < SERVED_MODEL_MAX;
}

static const struct labelled_version *label_at(const struct listed_model *m, int i)
{
    return (const struct labelled_version *)m->labels.at + i;
}

static err check_labels(const struct listed_model *m, int model)
{
    for (int i = 0; i < m->labels.count; i++) {
        const char *label = label_at(m, i)->label;
        if (!is_name(label))
            return fail(ERR_INPUT,
                        "models[%d].version_labels[%d].label: \"%.64s\" cannot stand in a URL, or "
                        "is too long",
                        model, i, label);
        for (int k = 0; k < i; k++)
            if (strcmp(label_at(m, k)->label, label) == 0)
                return fail(ERR_INPUT,
                            "models[%d].version_labels[%d].label: version_labels[%d] is \"%.64s\", "
                            "too",
                            model, i, k, label);
    }
    return OK;
}

/* The model with the checkpoint and label of its i-th version. Relative paths are joined later. */
static struct listed_model labelled(const struct listed_model *m, int i)
{
    struct listed_model one = *m;
    one.label = label_at(m, i)->label;
    one.checkpoint = label_at(m, i)->checkpoint;
    one.labels = (struct objects){0};
    return one;
}

/* Versions with a label become entries of their own. */
static err list_versions(struct arena *arena, struct objects *models)
{
    const struct listed_model *from = models->at;
    int count = 0;
    for (int i = 0; i < models->count; i++) {
        TRY(check_labels(&from[i], i));
        count += 1 + from[i].labels.count;
    }
    if (count > MODELS_MAX)
        return fail(ERR_INPUT, "models: %d with their labelled versions: at most %d", count,
                    MODELS_MAX);
    struct listed_model *all = arena_array(arena, (size_t)count, sizeof *all), *to = all;
    for (int i = 0; i < models->count; i++) {
        *to++ = from[i];
        for (int k = 0; k < from[i].labels.count; k++) *to++ = labelled(&from[i], k);
    }
    *models = (struct objects){all, count};
    return OK;
}

static err join_all(const char *path, struct arena *arena, struct objects *models)
{
    const char *slash = strrchr(path, '/');
    const char *directory =
        slash ? arena_format(arena, "%.*s", (int)(slash - path) + 1, path) : NULL;
    struct listed_model *at = (struct listed_model *)models->at;
    for (int i = 0; i < models->count; i++) {
        TRY(join(directory, arena, &at[i].spec));
        TRY(join(directory, arena, &at[i].checkpoint));
    }
    return OK;
}

static err check_models(const struct objects *models)
{
    const struct listed_model *at = models->at;
    if (!models->count) return fail(ERR_INPUT, "models: expected one model or more");
    for (int i = 0; i < models->count; i++) {
        if (!is_name(at[i].name))
            return fail(ERR_INPUT,
                        "models[%d].name: \"%.64s\" cannot stand in a URL, or is too long", i,
                        at[i].name);
        for (int k = 0; k < i; k++)
            if (strcmp(at[i].name, at[k].name) == 0)
                return fail(ERR_INPUT, "models[%d].name: models[%d] is \"%.64s\", too", i, k,
                            at[i].name);
        if (strcmp(at[i].spec, "-") == 0)
            return fail(ERR_INPUT,
                        "models[%d].spec: it is read again with each checkpoint, and has "
                        "to be a file",
                        i);
    }
    return OK;
}

static err parse(FILE *file, const char *path, struct arena *arena, struct objects *ret)
{
    json_error_t error;
    json_t *json = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    const err e = json ? fields_parse(&file_object, json, "", arena, ret)
                       : fail(ERR_INPUT, "line %d: %s", error.line, error.text);
    json_decref(json);
    TRY(e);
    TRY(check_models(ret));
    TRY(list_versions(arena, ret));
    return join_all(path, arena, ret);
}

err models_file_read(const char *path, struct arena *arena, struct objects *ret)
{
    FILE *file = NULL;
    TRY(file_open_text(path, FILE_BYTES_MAX, &file));
    const err e = parse(file, path, arena, ret);
    fclose(file);
    return e ? fail_prefix(e, "%s", path) : OK;
}
