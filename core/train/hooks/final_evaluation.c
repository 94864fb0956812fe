/* final_evaluation.c - the last evaluation as a JSON file, for a program that compares runs:
 *
 *     {"step": 2000, "rows": 4000, "loss": 0.0604, "metrics": {"accuracy": 0.9838}}
 *
 * The file appears whole, by rename. A run that ends without any evaluation writes none.
 */
#include <errno.h>
#include <jansson.h>
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/file_system.h"
#include "core/base/files/replace.h"
#include "core/train/hooks/values.h"

struct final_evaluation {
    const char *path;
};

struct state {
    const char *path;
    uint64_t step;
    int64_t rows; /* 0: none yet */
    int count;    /* of values: the loss, then metrics */
    double values[HOOK_VALUES_MAX];
    const char *names[HOOK_VALUES_MAX];
};

static const struct field fields[] = {
    FIELD_OF("path", STRING, struct final_evaluation, path,
             .help = "the file, relative to the folder in which dtrain was started"),
    {0},
};

static err check(const void *attributes, const struct spec *spec)
{
    const struct final_evaluation *a = attributes;
    const size_t length = strlen(a->path);
    if (length == 0 || length > PATH_BYTES_MAX - sizeof ".tmp")
        return fail(ERR_INPUT, "path: expected 1 to %zu bytes", PATH_BYTES_MAX - sizeof ".tmp");
    if (!spec->data.eval.format.kind) return fail(ERR_INPUT, "needs data.eval");
    return OK;
}

/* Checked at the start: a run of hours must not end with a file that cannot be written. */
static err check_place(const char *path)
{
    char folder[PATH_BYTES_MAX];
    struct stat found;
    if (path_is_url(path))
        return files_can_be_written(path)
                   ? OK
                   : fail(ERR_INPUT, "path: nothing can be written behind such a URL");
    if (stat(path, &found) == 0 && S_ISDIR(found.st_mode))
        return fail(ERR_INPUT, "path: %s is a folder", path);
    snprintf(folder, sizeof folder, "%s", path);
    if (access(dirname(folder), W_OK) == 0) return OK;
    return fail(ERR_INPUT, "path: cannot write %s: %s", path, strerror(errno));
}

static err begin(void *state, const void *attributes, const struct run_view *view)
{
    const struct final_evaluation *a = attributes;
    struct state *s = state;
    TRY(check_place(a->path));
    s->path = a->path;
    s->count = evaluation_names(view->session, s->names);
    return OK;
}

/* Copied, since at the end the memory of the evaluation may hold something else. */
static err evaluated(void *state, const struct run_view *view, const struct occasion *o)
{
    struct state *s = state;
    const struct evaluation *evaluation = o->evaluated.evaluation;
    s->step = view->global_step;
    s->rows = evaluation->rows;
    for (int i = 0; i < s->count && s->rows > 0; i++)
        s->values[i] = evaluation_value(evaluation, i);
    return OK;
}

/* JSON has no NaN. */
static json_t *json_of(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static char *print(const struct state *s)
{
    json_t *metrics = json_object();
    for (int i = 1; i < s->count; i++)
        json_object_set_new(metrics, s->names[i], json_of(s->values[i]));
    json_t *all = json_pack("{sI sI so so}", "step", (json_int_t)s->step, "rows",
                            (json_int_t)s->rows, "loss", json_of(s->values[0]), "metrics", metrics);
    char *text = all ? json_dumps(all, 0) : NULL;
    json_decref(all);
    return text;
}

/* Written if the job failed, too: the last known evaluation may be of use. */
static err end(void *state, const struct run_view *view, const struct occasion *o)
{
    const struct state *s = state;
    if (s->rows == 0) return OK;
    char *text = print(s);
    const err e = text ? file_replace(s->path, text, strlen(text))
                       : fail(ERR_MEMORY, "no memory for %s", s->path);
    free(text);
    return e;
}

const struct hook hook_final_evaluation = {
    .object = {.name = "final_evaluation",
               .summary = "writes the last evaluation to a JSON file at the end",
               .fields = fields,
               .size = sizeof(struct final_evaluation)},
    .state_bytes = sizeof(struct state),
    .check = check,
    .begin = begin,
    .on = {[OCCASION_EVALUATED] = evaluated, [OCCASION_END] = end},
};
