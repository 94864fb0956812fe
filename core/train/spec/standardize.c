/* standardize.c - what columns are standardized by: measured once, kept beside the checkpoints. */
#include "core/data/stats/standardize.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/log.h"
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

static err read_kept(struct spec *spec, const char *folder)
{
    char path[CHECKPOINT_PATH_MAX];
    json_error_t error;
    TRY(path_in(folder, path));
    if (access(path, R_OK))
        return fail(ERR_INPUT,
                    "%s: %s: column \"%s\" is standardized by what the run that made the "
                    "checkpoint has kept there",
                    path, strerror(errno), standardize_wanting(&spec->data.columns));
    json_t *kept = json_load_file(path, 0, &error);
    if (!kept) return fail(ERR_INPUT, "%s: line %d: %s", path, error.line, error.text);
    const err e = standardize_read(kept, &spec->data.columns, &spec->arena);
    json_decref(kept);
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

/* Tasks that would not standardize by the same numbers have no common fingerprint. */
err spec_standardize(struct spec *spec, const char *folder, bool is_restored)
{
    if (!standardize_wanting(&spec->data.columns)) return OK;
    TRY(is_restored || has_checkpoint(folder) ? read_kept(spec, folder) : measure(spec));
    json_t *columns = json_object_get(json_object_get(spec->json, "data"), "columns");
    TRY(standardize_note(&spec->data.columns, columns));
    return spec_make_fingerprint(spec->json, spec->fingerprint);
}

static err write_text(struct output *output, const char *text)
{
    TRY(output_write(output, text, strlen(text)));
    TRY(output_sync(output));
    return output_publish(output);
}

static err replace(const char *path, const char *text)
{
    struct output output = {0};
    TRY(output_open(path, path, &output));
    const err e = write_text(&output, text);
    output_drop(&output);
    if (!e && bundle_sync_folder(path)) log_line(LOG_WARNING, "%s", error_text());
    return e;
}

err spec_keep_standards(const struct spec *spec, const char *folder)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(path_in(folder, path));
    json_t *kept = standardize_write(&spec->data.columns);
    char *text = kept ? json_dumps(kept, JSON_INDENT(2) | JSON_PRESERVE_ORDER) : NULL;
    err e = text ? OK : fail(ERR_MEMORY, "no memory for %s", path);
    if (!e && json_object_size(kept) > 0) e = replace(path, text);
    json_decref(kept);
    free(text);
    return e;
}
