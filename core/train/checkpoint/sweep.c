/* sweep.c - recognizes file names in a run's folder: checkpoints, and leftovers of killed runs.
 * Only files with exactly such a name are removed. */
#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/file_id.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints_inside.h"
#include "core/train/checkpoint/publication.h"

enum { TAG_DIGITS = 16, STEP_DIGITS_MAX = 20 + SPARE_ZEROS_MAX, FILE_ENDING_MAX = 64 };

err checkpoint_name(const char *directory, uint64_t step, int zeros, char ret[CHECKPOINT_PATH_MAX])
{
    char name[sizeof CHECKPOINT_NAME + STEP_DIGITS_MAX];
    snprintf(name, sizeof name, CHECKPOINT_NAME "%.*s%" PRIu64, zeros, "00000000", step);
    return folder_join(directory, name, ret);
}

int64_t checkpoint_name_step(const char *name, const char **ret_rest)
{
    const size_t length = strlen(CHECKPOINT_NAME);
    if (strncmp(name, CHECKPOINT_NAME, length) != 0) return -1;
    int64_t step = 0;
    const char *digit = name + length;
    if (!isdigit((unsigned char)*digit)) return -1;
    for (; isdigit((unsigned char)*digit); digit++) {
        if (__builtin_mul_overflow(step, 10, &step) ||
            __builtin_add_overflow(step, *digit - '0', &step))
            return -1;
    }
    *ret_rest = digit;
    return step;
}

int64_t checkpoint_step(const char *prefix)
{
    const char *slash = strrchr(prefix, '/'), *rest = NULL;
    const int64_t step = checkpoint_name_step(slash ? slash + 1 : prefix, &rest);
    return step >= 0 && !*rest ? step : -1;
}

bool checkpoints_keep(const char *name)
{
    const char *rest;
    for (int i = 0; i < RUN_FILES; i++)
        if (strcmp(name, run_file_names[i]) == 0) return true;
    return strcmp(name, PUBLICATION_NAME) == 0 || strcmp(name, BEST_NAME) == 0 ||
           checkpoint_name_step(name, &rest) >= 0;
}

struct sweep {
    struct checkpoints *run;
    double now_s, state_s; /* state_s: modification time of the state file; -1: there is none */
};

/* Whether `text` consists of exactly `count` such digits (0: one or more) */
static bool ends_with_digits(const char *text, const char *digits, size_t count)
{
    const size_t length = strspn(text, digits);
    return !text[length] && (count ? length == count : length > 0);
}

static bool is_named(const struct checkpoint_state *state, const char *prefix)
{
    for (int i = 0; i < state->count; i++) {
        if (strcmp(state->records[i].prefix, prefix) == 0) return true;
    }
    return false;
}

/* When an attempt wrote its last shard; -1: it has none. */
struct save_attempt {
    const char *folder;
    double written_s;
};

static void look_at_shard(void *context, const char *name)
{
    struct save_attempt *attempt = context;
    char path[CHECKPOINT_PATH_MAX];
    double time_s;
    if (strncmp(name, CHECKPOINT_PART, strlen(CHECKPOINT_PART)) != 0 ||
        !text_ends_with(name, CHECKPOINT_INDEX))
        return;
    if (folder_join(attempt->folder, name, path) || file_time(path, &time_s)) return;
    if (time_s > attempt->written_s) attempt->written_s = time_s;
}

/* Whether this is the bundle of a killed attempt that the state file does not list yet: then it is
 * younger than its shards, whose indexes stay until it is listed. */
static bool is_unborn(const struct sweep *sweep, const struct save_attempt *attempt,
                      const char *prefix)
{
    char index[CHECKPOINT_PATH_MAX + sizeof CHECKPOINT_INDEX];
    double time_s;
    snprintf(index, sizeof index, "%s" CHECKPOINT_INDEX, prefix);
    const bool is_known = !file_time(index, &time_s) && attempt->written_s >= 0;
    return is_known && !is_named(&sweep->run->state, prefix) && time_s >= attempt->written_s &&
           time_s >= sweep->state_s;
}

/* Removes what a killed attempt to publish this step left: data files without an index, or both.
 * Does not touch listed checkpoints, even if their index is missing. */
static void remove_unborn(const struct sweep *sweep, const char *folder, uint64_t step)
{
    char prefix[CHECKPOINT_PATH_MAX];
    struct save_attempt attempt = {folder, -1};
    if (folder_visit(folder, look_at_shard, &attempt)) return;
    for (int zeros = 0; zeros <= SPARE_ZEROS_MAX; zeros++) {
        if (checkpoint_name(sweep->run->directory, step, zeros, prefix)) continue;
        if (is_named(&sweep->run->state, prefix)) continue;
        if (has_index(prefix) && !is_unborn(sweep, &attempt, prefix)) continue;
        if (bundle_remove(prefix)) log_line(LOG_WARNING, "%s", error_text());
    }
}

/* Whether this file (such as ".index") of both is the same, by a hard link */
static bool is_linked(const char *a, const char *b, const char *ending)
{
    char path[CHECKPOINT_PATH_MAX + FILE_ENDING_MAX];
    struct file_id id;
    snprintf(path, sizeof path, "%s%s", a, ending);
    if (!file_id_find(path, &id)) return false;
    snprintf(path, sizeof path, "%s%s", b, ending);
    return file_id_is_at(path, &id);
}

/* Data files of the usual name that a checkpoint was about to get */
struct usual_data {
    const char *spare, *usual, *name;
    bool is_ours;
};

static void look_at_link(void *context, const char *name)
{
    struct usual_data *data = context;
    const size_t length = strlen(data->name);
    if (strncmp(name, data->name, length) == 0 && is_data_ending(name + length))
        data->is_ours &= is_linked(data->spare, data->usual, name + length);
}

/* Removes links that a killed chief made; keeps other data files without an index. */
static void remove_links(const char *spare, const char *usual)
{
    char folder[CHECKPOINT_PATH_MAX];
    struct usual_data data = {spare, usual, folder_split(usual, folder), true};
    if (folder_visit(folder, look_at_link, &data) || !data.is_ours) return;
    if (bundle_remove(usual)) log_line(LOG_WARNING, "%s", error_text());
}

/* Inserts a checkpoint that was linked but not yet listed at the start of the list. */
static bool know(struct checkpoint_state *state, const char *prefix, double now_s)
{
    if (is_named(state, prefix) || state_add(state, prefix, now_s)) return false;
    const struct checkpoint_record record = state->records[state->count - 1];
    memmove(state->records + 1, state->records, (size_t)(state->count - 1) * sizeof record);
    state->records[0] = record;
    return true;
}

/* Handles a checkpoint without the usual name: a killed chief may have been about to rename it. */
static void sweep_spare(const struct sweep *sweep)
{
    struct checkpoints *c = sweep->run;
    char usual[CHECKPOINT_PATH_MAX];
    for (int i = c->state.count - 1; i >= 0; i--) {
        const char *prefix = c->state.records[i].prefix;
        const int64_t step = checkpoint_step(prefix);
        if (step < 0 || c->state.records[i].is_found || !checkpoints_is_ours(c, prefix)) continue;
        if (checkpoint_name(c->directory, (uint64_t)step, 0, usual) || !strcmp(prefix, usual))
            continue;
        if (has_index(usual)) {
            i += is_linked(prefix, usual, CHECKPOINT_INDEX) &&
                 know(&c->state, usual, sweep->now_s); /* this moved the others in the list */
        } else if (!is_named(&c->state, usual)) {
            remove_links(prefix, usual);
        }
    }
}

/* model.ckpt-STEP_temp_<16 hex>: a folder of shards */
static bool is_temporary_folder(const char *name, int64_t *ret_step)
{
    static const char temporary[] = "_temp_";
    const char *rest = NULL;
    *ret_step = checkpoint_name_step(name, &rest);
    return *ret_step >= 0 && strncmp(rest, temporary, strlen(temporary)) == 0 &&
           ends_with_digits(rest + strlen(temporary), "0123456789abcdef", TAG_DIGITS);
}

static bool is_name(const char *text, size_t length, const char *name)
{
    return length == strlen(name) && strncmp(text, name, length) == 0;
}

bool is_temporary_file(const char *name)
{
    static const char temporary[] = ".tempstate";
    const char *rest = NULL;
    const char *found = strstr(name, temporary);
    if (!found || !ends_with_digits(found + strlen(temporary), "0123456789", 0)) return false;
    const size_t length = (size_t)(found - name);
    for (int i = 0; i < RUN_FILES; i++)
        if (is_name(name, length, run_file_names[i])) return true;
    const size_t ending = strlen(CHECKPOINT_INDEX);
    return checkpoint_name_step(name, &rest) >= 0 && rest + ending <= found &&
           strncmp(found - ending, CHECKPOINT_INDEX, ending) == 0;
}

/* A lease; if in use, it is younger than a day. */
static bool is_lease(const char *name)
{
    return strncmp(name, LEASE_NAME CHECKPOINT_NAME, strlen(LEASE_NAME CHECKPOINT_NAME)) == 0;
}

static void look_at(void *context, const char *name)
{
    const struct sweep *sweep = context;
    char path[CHECKPOINT_PATH_MAX];
    int64_t step = -1;
    if (folder_join(sweep->run->directory, name, path)) return;
    if (is_temporary_folder(name, &step)) {
        remove_unborn(sweep, path, (uint64_t)step); /* before its folder, which proves that it is
                                                       unpublished */
        folder_remove_named(path, CHECKPOINT_PART);
    } else if (is_temporary_file(name)) {
        folder_unlink(path);
    } else if (is_lease(name) && !lease_is_of_best(name) &&
               file_age(path, STALE_S, sweep->now_s) == FILE_OLD) {
        folder_unlink(path);
    }
}

void checkpoints_sweep(struct checkpoints *c, double now_s)
{
    char state[CHECKPOINT_PATH_MAX];
    struct sweep sweep = {.run = c, .now_s = now_s};
    if (folder_join(c->directory, CHECKPOINT_STATE, state)) return;
    err e = file_time(state, &sweep.state_s);
    if (!e) e = folder_visit(c->directory, look_at, &sweep);
    if (e) log_line(LOG_WARNING, "%s", error_text());
    sweep_spare(&sweep);
}

struct search {
    char directory[CHECKPOINT_PATH_MAX];
    int64_t below;
    struct checkpoint_state *state;
    err failed;
};

/* model.ckpt-STEP.index */
static void add_found(void *context, const char *name)
{
    struct search *search = context;
    const char *rest = NULL;
    char path[CHECKPOINT_PATH_MAX];
    const int64_t step = checkpoint_name_step(name, &rest);
    if (search->failed || step < 0 || step >= search->below || strcmp(rest, CHECKPOINT_INDEX) != 0)
        return;
    search->failed = folder_join(search->directory, name, path);
    if (search->failed) return;
    const double time_s = file_time_s(path);
    path[strlen(path) - strlen(CHECKPOINT_INDEX)] = '\0';
    search->failed = state_add(search->state, path, time_s);
}

static int compare(const void *a, const void *b)
{
    const struct checkpoint_record *x = a, *y = b;
    const int64_t step_x = checkpoint_step(x->prefix), step_y = checkpoint_step(y->prefix);
    return step_x != step_y ? (step_x > step_y) - (step_x < step_y)
                            : (x->time_s > y->time_s) - (x->time_s < y->time_s);
}

err checkpoints_search(const char *directory, int64_t below, struct checkpoint_state *state)
{
    struct search search = {.below = below, .state = state};
    TRY(folder_copy(directory, search.directory));
    TRY(folder_visit(directory, add_found, &search));
    if (search.failed) return search.failed;
    if (state->count > 0)
        qsort(state->records, (size_t)state->count, sizeof *state->records, compare);
    return OK;
}

/* The newest checkpoint with data files but no index. */
struct lost {
    const struct checkpoints *run;
    int64_t step; /* -1: none */
    char prefix[CHECKPOINT_PATH_MAX];
    bool is_only_one; /* there is only one such step */
};

static void look_at_lost(void *context, const char *name)
{
    struct lost *lost = context;
    const char *rest = NULL;
    char path[CHECKPOINT_PATH_MAX];
    const int64_t step = checkpoint_name_step(name, &rest);
    if (step < 0 || step == lost->step || !is_data_ending(rest)) return;
    if (folder_join(lost->run->directory, name, path)) return;
    path[strlen(path) - strlen(rest)] = '\0';
    if (has_index(path)) return;
    lost->is_only_one = lost->step < 0;
    if (step < lost->step || folder_copy(path, lost->prefix)) return;
    lost->step = step;
}

err checkpoints_add_lost(struct checkpoints *c)
{
    struct checkpoint_state *state = &c->state;
    const int newest = state->count - 1;
    struct lost lost = {.run = c, .step = -1};
    TRY(folder_visit(c->directory, look_at_lost, &lost));
    if (newest < 0 ? lost.is_only_one : lost.step <= checkpoint_step(state->records[newest].prefix))
        return OK;
    if (lost.step < 0) return OK;
    TRY(state_add(state, lost.prefix, -1));
    state->records[state->count - 1].is_found = true;
    return OK;
}
