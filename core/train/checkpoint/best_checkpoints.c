/* best_checkpoints.c - see best_checkpoints.h. */
#include "core/train/checkpoint/best_checkpoints.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/file_system.h"
#include "core/base/files/own.h"
#include "core/base/files/replace.h"
#include "core/base/log.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints_inside.h"

static const char state_name[] = "checkpoint";

enum { JSON_BYTES_MAX = 1 << 20 };

/* ---- files ---- */

err best_checkpoints_prefix(const struct best_checkpoints *b, int64_t step,
                            char ret[CHECKPOINT_PATH_MAX])
{
    char name[64];
    snprintf(name, sizeof name, "model.ckpt-%lld", (long long)step);
    return folder_join(b->folder, name, ret);
}

static err write_text(const struct best_checkpoints *b, const char *name, const char *text)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(folder_join(b->folder, name, path));
    return file_replace(path, text, strlen(text));
}

/* ---- the two lists ---- */

/* As in TensorFlow, the last one of the list is the one to use. */
static err write_state(const struct best_checkpoints *b)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return fail(ERR_MEMORY, "no memory for %s", state_name);
    fprintf(out, "model_checkpoint_path: \"model.ckpt-%lld\"\n", (long long)b->at[0].step);
    for (int i = b->count - 1; i >= 0; i--)
        fprintf(out, "all_model_checkpoint_paths: \"model.ckpt-%lld\"\n", (long long)b->at[i].step);
    err e = fclose(out) ? fail(ERR_MEMORY, "no memory for %s", state_name)
                        : write_text(b, state_name, text);
    free(text);
    return e;
}

static bool has_step(const struct best_checkpoints *b, int64_t step)
{
    for (int i = 0; i < b->count; i++)
        if (b->at[i].step == step) return true;
    return false;
}

static json_t *list_stale(const struct best_checkpoints *b)
{
    json_t *list = json_array();
    for (int i = 0; i < b->stale_count; i++)
        if (!has_step(b, b->stale[i]))
            json_array_append_new(list, json_integer((json_int_t)b->stale[i]));
    return list;
}

static err write_json(const struct best_checkpoints *b)
{
    json_t *list = json_array();
    for (int i = 0; i < b->count; i++) {
        char name[64];
        snprintf(name, sizeof name, "model.ckpt-%lld", (long long)b->at[i].step);
        json_array_append_new(list, json_pack("{sI sf ss}", "step", (json_int_t)b->at[i].step,
                                              "value", b->at[i].value, "checkpoint", name));
    }
    json_t *json =
        json_pack("{ss so so}", "metric", b->metric, "best", list, "leaving", list_stale(b));
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    err e = text ? write_text(b, BEST_NAME, text) : fail(ERR_MEMORY, "no memory for " BEST_NAME);
    free(text);
    json_decref(json);
    return e;
}

static err read_entry(json_t *json, struct best_checkpoints *b)
{
    json_int_t step;
    double value;
    if (json_unpack(json, "{sI sF}", "step", &step, "value", &value) || step < 0)
        return fail(ERR_INPUT, "best[%d] is no checkpoint", b->count);
    b->at[b->count++] = (struct best_checkpoint){.step = step, .value = value};
    return OK;
}

/* A missing list is empty */
static err read_stale(json_t *list, struct best_checkpoints *b)
{
    json_t *step;
    size_t i;
    if (json_array_size(list) > BEST_STALE_MAX)
        return fail(ERR_INPUT, "leaving: more than %d", BEST_STALE_MAX);
    json_array_foreach(list, i, step)
    {
        if (!json_is_integer(step) || json_integer_value(step) < 0)
            return fail(ERR_INPUT, "leaving[%zu] is no step", i);
        b->stale[b->stale_count++] = json_integer_value(step);
    }
    return OK;
}

static err read_json(json_t *json, struct best_checkpoints *b)
{
    const char *metric;
    json_t *list, *leaving = NULL, *entry;
    size_t i;
    if (json_unpack(json, "{ss so s?o}", "metric", &metric, "best", &list, "leaving", &leaving))
        return fail(ERR_INPUT, "it lacks \"metric\" or \"best\"");
    if (strcmp(metric, b->metric) != 0)
        return fail(ERR_INPUT,
                    "the checkpoints kept there are the best by %.64s, not by %s; move them away",
                    metric, b->metric);
    if (json_array_size(list) > BEST_MAX) return fail(ERR_INPUT, "more than %d", BEST_MAX);
    json_array_foreach(list, i, entry) TRY(read_entry(entry, b));
    return read_stale(leaving, b);
}

/* File contents and permissions are up to the user (ERR_INPUT); other errors are the system's. */
static err refused(const char *path)
{
    const int why = errno;
    const bool is_users =
        why == EINVAL || why == ELOOP || why == ENXIO || why == EACCES || why == ENOTDIR;
    return is_users ? fail(ERR_INPUT, "%s: expected a regular file: %s", path, strerror(why))
                    : fail(ERR_IO, "%s: %s", path, strerror(why));
}

/* *ret NULL: no such file. */
static err open_here(const char *path, FILE **ret)
{
    struct stat found;
    *ret = own_read(path);
    if (!*ret) return errno == ENOENT ? OK : refused(path);
    if (fstat(fileno(*ret), &found) == 0 && found.st_size <= JSON_BYTES_MAX) return OK;
    fclose(*ret);
    return fail(ERR_INPUT, "%s: too large", path);
}

static err open_behind_url(const char *path, FILE **ret)
{
    struct file_state found;
    bool is_there;
    *ret = NULL;
    TRY(file_find(path, &is_there, &found));
    return is_there ? file_open_text(path, JSON_BYTES_MAX, ret) : OK;
}

/* A missing file means that nothing is kept yet. */
static err load_file(struct best_checkpoints *b)
{
    char path[CHECKPOINT_PATH_MAX];
    json_error_t error;
    FILE *file;
    TRY(folder_join(b->folder, BEST_NAME, path));
    TRY(path_is_url(path) ? open_behind_url(path, &file) : open_here(path, &file));
    if (!file) return OK;
    json_t *json = json_loadf(file, 0, &error);
    const bool has_failed = ferror(file);
    fclose(file);
    if (!json && has_failed) return fail(ERR_IO, "%s: cannot be read", path);
    if (!json) return fail(ERR_INPUT, "%s: line %d: %s", path, error.line, error.text);
    err e = read_json(json, b);
    json_decref(json);
    return e ? fail_prefix(e, "%s", path) : OK;
}

/* Drops an entry; its files are removed once best.json no longer lists it. */
static void leave(struct best_checkpoints *b, int index)
{
    if (b->stale_count < BEST_STALE_MAX) b->stale[b->stale_count++] = b->at[index].step;
    b->count--;
    memmove(&b->at[index], &b->at[index + 1], (size_t)(b->count - index) * sizeof *b->at);
}

static void set_aside(struct best_checkpoints *b)
{
    for (int i = b->count - 1; i >= 0; i--)
        if (b->at[i].step <= b->since) leave(b, i);
}

static err load(struct best_checkpoints *b)
{
    if (b->is_loaded) return OK;
    b->count = b->stale_count = 0;
    const err e = load_file(b);
    b->is_loaded = e == OK;
    set_aside(b);
    return e;
}

void best_checkpoints_begin(struct best_checkpoints *b, int64_t step)
{
    b->since = step;
    set_aside(b);
}

err best_checkpoints_open(struct best_checkpoints *b, const char *checkpoint_dir,
                          const char *metric, enum better better, int keep)
{
    *b = (struct best_checkpoints){.metric = metric, .better = better, .keep = keep, .since = -1};
    TRY(folder_join(checkpoint_dir, "best", b->folder));
    const err e = keep ? load(b) : OK;
    if (e != ERR_IO) return e;
    log_line(LOG_WARNING, "best checkpoints: %s; tries again with the next one", error_text());
    return OK;
}

/* The rank of this value among the others, after equally good ones; count: it is the worst. */
static int place_of(const struct best_checkpoints *b, double value)
{
    int place = 0;
    while (place < b->count && !better_is(b->better, value, b->at[place].value)) place++;
    return place;
}

bool best_checkpoints_wants(const struct best_checkpoints *b, double value)
{
    return isfinite(value) && place_of(b, value) < b->keep;
}

static err remove_files(const struct best_checkpoints *b, int64_t step)
{
    char prefix[CHECKPOINT_PATH_MAX];
    TRY(best_checkpoints_prefix(b, step, prefix));
    return bundle_remove(prefix);
}

static err remove_stale(struct best_checkpoints *b)
{
    for (; b->stale_count; b->stale_count--) {
        const int64_t step = b->stale[b->stale_count - 1];
        if (!has_step(b, step)) TRY(remove_files(b, step));
    }
    return OK;
}

/* A symbolic link of this name may be intended, or may point to somebody else's files. */
static err make_folder(const struct best_checkpoints *b)
{
    if (path_is_url(b->folder)) return OK;
    if (mkdir(b->folder, 0777) == 0) return file_sync_folder(b->folder);
    const int folder = errno == EEXIST ? own_folder_open(b->folder) : -1;
    if (folder >= 0) return close(folder), OK;
    return fail(ERR_IO, "%s: expected a folder, and no link to one: %s", b->folder,
                strerror(errno));
}

static bool is_kept(const struct best_checkpoints *b, int64_t step)
{
    char prefix[CHECKPOINT_PATH_MAX];
    return !best_checkpoints_prefix(b, step, prefix) && has_index(prefix);
}

err best_checkpoints_offer(struct best_checkpoints *b, const char *prefix,
                           const struct best_checkpoint *entry)
{
    char kept[CHECKPOINT_PATH_MAX];
    if (b->keep) TRY(load(b));
    for (int i = b->count - 1; i >= 0; i--) {
        if (b->at[i].step != entry->step) continue;
        /* a finished run that is started again evaluates the last one again */
        if (b->at[i].value == entry->value && is_kept(b, entry->step)) return OK;
        leave(b, i);
    }
    if (!best_checkpoints_wants(b, entry->value)) return OK;
    const int place = place_of(b, entry->value);
    TRY(make_folder(b));
    TRY(best_checkpoints_prefix(b, entry->step, kept));
    const err e = bundle_link(prefix, kept, NULL);
    if (e) {
        (void)bundle_remove(kept); /* a partial copy may fill the disk */
        return e;
    }
    memmove(&b->at[place + 1], &b->at[place], (size_t)(b->count - place) * sizeof *b->at);
    b->at[place] = *entry;
    b->count++;
    while (b->count > b->keep) leave(b, b->count - 1); /* several if --keep_best is smaller now */
    TRY(write_state(b));
    TRY(write_json(b));
    return remove_stale(b);
}

/* ---- what is left of others ---- */

struct left {
    const struct best_checkpoints *best;
    char folder[CHECKPOINT_PATH_MAX]; /* of the run */
    double now_s;
};

static bool is_named(const struct best_checkpoints *b, int64_t step)
{
    for (int i = 0; i < b->stale_count; i++)
        if (b->stale[i] == step) return true;
    return has_step(b, step);
}

static void look_at_lease(void *context, const char *name)
{
    const struct left *left = context;
    const char *rest = NULL;
    char path[CHECKPOINT_PATH_MAX];
    if (strncmp(name, LEASE_NAME, strlen(LEASE_NAME)) != 0) return;
    const int64_t step = checkpoint_name_step(name + strlen(LEASE_NAME), &rest);
    if (step < 0 || strcmp(rest, "." BEST_HOLDER) != 0) return;
    if (folder_join(left->folder, name, path)) return;
    if (file_age(path, LEASE_MAX_S, left->now_s) != FILE_OLD) return;
    if (!is_named(left->best, step) && remove_files(left->best, step))
        log_line(LOG_WARNING, "best checkpoints: %s", error_text());
    else
        folder_unlink(path);
}

static void look_at_temporary(void *context, const char *name)
{
    const struct left *left = context;
    char path[CHECKPOINT_PATH_MAX];
    if (!is_temporary_file(name) || folder_join(left->best->folder, name, path)) return;
    if (file_age(path, LEASE_MAX_S, left->now_s) == FILE_OLD) folder_unlink(path);
}

void best_checkpoints_sweep(const struct best_checkpoints *b, const char *prefix, double now_s)
{
    struct left left = {.best = b, .now_s = now_s};
    folder_split(prefix, left.folder);
    if (folder_visit(left.folder, look_at_lease, &left) ||
        folder_visit(b->folder, look_at_temporary, &left))
        log_line(LOG_WARNING, "best checkpoints: %s", error_text());
}
