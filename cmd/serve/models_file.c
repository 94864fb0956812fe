/* models_file.c - see models_file.h. */
#include "cmd/serve/models_file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/counters.h"
#include "core/base/files/file_system.h"

enum { FILE_BYTES_MAX = 1 << 20 };

static const struct field model_fields[] = {
    {.name = "name",
     .type = FIELD_STRING,
     .offset = offsetof(struct listed_model, name),
     .help = "NAME in /v1/models/NAME"},
    {.name = "spec", .type = FIELD_STRING, .offset = offsetof(struct listed_model, spec)},
    {.name = "checkpoint",
     .type = FIELD_STRING,
     .offset = offsetof(struct listed_model, checkpoint)},
    {.name = "set",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct listed_model, set),
     .fallback = "[]"},
    {.name = "follow",
     .type = FIELD_BOOL,
     .offset = offsetof(struct listed_model, follow),
     .fallback = "false"},
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

/* Relative to the folder of the file */
static err join(const char *directory, struct arena *arena, const char **path)
{
    char *joined = path_join(directory, *path);
    if (!joined) return fail(ERR_MEMORY, "no memory for a path");
    *path = arena_string(arena, joined);
    free(joined);
    return OK;
}

/* As it stands in a URL, and in a label of /metrics */
static bool is_name(const char *name)
{
    const size_t length = strlen(name);
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || strchr("/:?#%\"\\", name[i]))
            return false;
    return length > 0 && length < SERVED_MODEL_MAX;
}

static err check_models(const char *path, struct arena *arena, struct objects *models)
{
    const char *slash = strrchr(path, '/');
    const char *directory =
        slash ? arena_format(arena, "%.*s", (int)(slash - path) + 1, path) : NULL;
    struct listed_model *at = (struct listed_model *)models->at;
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
        TRY(join(directory, arena, &at[i].spec));
        TRY(join(directory, arena, &at[i].checkpoint));
    }
    return OK;
}

static err parse(FILE *file, const char *path, struct arena *arena, struct objects *ret)
{
    json_error_t error;
    json_t *json = json_loadf(file, JSON_REJECT_DUPLICATES, &error);
    err e = json ? fields_parse(&file_object, json, "", arena, ret)
                 : fail(ERR_INPUT, "line %d: %s", error.line, error.text);
    json_decref(json);
    return e ? e : check_models(path, arena, ret);
}

err models_file_read(const char *path, struct arena *arena, struct objects *ret)
{
    FILE *file = NULL;
    TRY(file_open_text(path, FILE_BYTES_MAX, &file));
    const err e = parse(file, path, arena, ret);
    fclose(file);
    return e ? fail_prefix(e, "%s", path) : OK;
}
