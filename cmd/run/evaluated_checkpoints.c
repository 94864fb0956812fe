/* evaluated_checkpoints.c - see evaluated_checkpoints.h. */
#include "cmd/run/evaluated_checkpoints.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/files/file_system.h"
#include "core/base/files/replace.h"
#include "core/base/log.h"

enum { JSON_BYTES_MAX = 32 << 20, SUFFIX_MAX = 8 /* ".index" */ };

/* ---- the file ---- */

static err read_one(json_t *json, struct evaluated_checkpoint *ret)
{
    json_int_t step, seconds, nanoseconds;
    json_error_t error;
    if (json_unpack_ex(json, &error, 0, "{sI s[II!]}", "step", &step, "written", &seconds,
                       &nanoseconds))
        return fail(ERR_INPUT, "%s", error.text);
    *ret = (struct evaluated_checkpoint){
        .step = step, .written = {seconds, nanoseconds}, .is_tried = true, .is_done = true};
    return OK;
}

static err read_json(json_t *json, struct evaluated_checkpoints *v)
{
    json_t *list, *one;
    json_error_t error;
    size_t i;
    int keep;
    if (json_unpack_ex(json, &error, 0, "{si so}", "keep_best", &keep, "evaluated", &list))
        return fail(ERR_INPUT, "%s", error.text);
    if (keep < v->keep) return OK;
    if (json_array_size(list) > CHECKPOINTS_MAX)
        return fail(ERR_INPUT, "more than %d checkpoints", CHECKPOINTS_MAX);
    v->at = calloc(json_array_size(list) + 1, sizeof *v->at);
    if (!v->at) return fail(ERR_MEMORY, "no memory for %zu checkpoints", json_array_size(list));
    json_array_foreach(list, i, one) TRY(read_one(one, &v->at[v->count++]));
    return OK;
}

/* No file: nothing was evaluated yet. */
static err load(struct evaluated_checkpoints *v)
{
    struct file_state found;
    bool is_there;
    json_error_t error;
    FILE *file;
    TRY(file_find(v->path, &is_there, &found));
    if (!is_there) return OK;
    if (found.bytes > JSON_BYTES_MAX) return fail(ERR_INPUT, "too large");
    TRY(file_open_text(v->path, JSON_BYTES_MAX, &file));
    json_t *json = json_loadf(file, 0, &error);
    const bool has_failed = ferror(file);
    fclose(file);
    if (!json && has_failed) return fail(ERR_IO, "%s: cannot be read", v->path);
    if (!json) return fail(ERR_INPUT, "line %d: %s", error.line, error.text);
    err e = read_json(json, v);
    json_decref(json);
    return e;
}

static json_t *list_of(const struct evaluated_checkpoints *v)
{
    json_t *list = json_array();
    for (int i = 0; i < v->count; i++) {
        const struct evaluated_checkpoint *one = &v->at[i];
        if (!one->is_done) continue;
        json_array_append_new(list, json_pack("{sI s[II]}", "step", (json_int_t)one->step,
                                              "written", (json_int_t)one->written.tv_sec,
                                              (json_int_t)one->written.tv_nsec));
    }
    return list;
}

static err write_down(const struct evaluated_checkpoints *v)
{
    json_t *json = json_pack("{si so}", "keep_best", v->keep, "evaluated", list_of(v));
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    err e = text ? file_replace(v->path, text, strlen(text))
                 : fail(ERR_MEMORY, "no memory for %s", v->path);
    free(text);
    json_decref(json);
    return e;
}

/* ---- life ---- */

err evaluated_checkpoints_open(struct evaluated_checkpoints *v, const char *folder, int keep)
{
    *v = (struct evaluated_checkpoints){.keep = keep};
    TRY(folder_join(folder, "evaluated.json", v->path));
    const err e = load(v);
    if (!e || e == ERR_IO) return e;
    log_line(LOG_WARNING, "%s: %s; all checkpoints are evaluated again", v->path, error_text());
    v->count = 0;
    return OK;
}

void evaluated_checkpoints_close(struct evaluated_checkpoints *v)
{
    free(v->at);
}

/* ---- the folder ---- */

static struct evaluated_checkpoint look_at(const char *prefix)
{
    char path[CHECKPOINT_PATH_MAX + SUFFIX_MAX];
    struct file_state found;
    struct evaluated_checkpoint one = {.step = checkpoint_step(prefix)};
    snprintf(path, sizeof path, "%s.index", prefix);
    if (file_look(path, &found) == OK)
        one.written = (struct timespec){found.changed_s, found.changed_ns};
    return one;
}

static void recall(const struct evaluated_checkpoints *v, struct evaluated_checkpoint *one)
{
    for (int i = 0; i < v->count; i++) {
        const struct evaluated_checkpoint *known = &v->at[i];
        if (known->step == one->step && known->written.tv_sec == one->written.tv_sec &&
            known->written.tv_nsec == one->written.tv_nsec)
            *one = *known;
    }
}

err evaluated_checkpoints_follow(struct evaluated_checkpoints *v, char **prefixes, int count)
{
    struct evaluated_checkpoint *at = calloc((size_t)count + 1, sizeof *at);
    if (!at) return fail(ERR_MEMORY, "no memory for %d checkpoints", count);
    for (int i = 0; i < count; i++) {
        at[i] = look_at(prefixes[i]);
        recall(v, &at[i]);
    }
    free(v->at);
    v->at = at;
    v->count = count;
    return OK;
}

bool evaluated_checkpoints_has(const char *prefix)
{
    char path[CHECKPOINT_PATH_MAX + SUFFIX_MAX];
    struct file_state found;
    bool is_there;
    snprintf(path, sizeof path, "%s.index", prefix);
    return file_find(path, &is_there, &found) || is_there;
}

err evaluated_checkpoints_note(struct evaluated_checkpoints *v, int index, bool is_done)
{
    v->at[index].is_tried = true;
    v->at[index].is_done = is_done;
    return is_done ? write_down(v) : OK;
}
