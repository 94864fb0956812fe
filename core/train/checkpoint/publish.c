/* publish.c - publishes a new checkpoint and removes old ones.
 *
 * Publishing changes the folder in steps, so that a kill after any of them leaves complete
 * checkpoints: the shards are joined under a free name, the state file is written, old checkpoints
 * are removed, and the state file is written without them. A leased one stays listed until its
 * lease ends.
 *
 * A checkpoint of the same step must not be overwritten file by file: the new one is called
 * model.ckpt-0STEP while the old one exists, and gets the usual name, by links, when that is free.
 * One that is not listed belongs to another run, or is kept forever: it is left alone.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/files/file_id.h"
#include "core/base/files/replace.h"
#include "core/base/log.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints_inside.h"

static const double SECONDS_PER_HOUR = 3600;

/* ---- what may be removed ---- */

/* Whether retention keeps it forever: one per keep_every_hours. Missed ones are not made up for. */
static bool stays_for_good(const struct checkpoints *c, const struct checkpoint_record *record,
                           double *preserved_s)
{
    const double period_s = c->retention.keep_every_hours * SECONDS_PER_HOUR;
    if (period_s <= 0 || record->time_s <= *preserved_s + period_s) return false;
    *preserved_s += period_s;
    if (record->time_s > *preserved_s + period_s) *preserved_s = record->time_s;
    return true;
}

static bool is_replaced(const struct checkpoint_state *state, int index)
{
    const int newest = state->count - 1;
    const int64_t step = checkpoint_step(state->records[newest].prefix);
    return index != newest && step >= 0 && checkpoint_step(state->records[index].prefix) == step;
}

/* Follows the order of remove_replaced and remove_oldest. */
bool checkpoints_lets_go(const struct checkpoints *c, int index)
{
    const struct checkpoint_state *state = &c->state;
    const int64_t keep_max = c->retention.keep_max;
    double preserved_s = state->preserved_s;
    int64_t excess = state->count - keep_max;
    if (state->records[index].is_found) return false;
    if (is_replaced(state, index)) return true;
    for (int i = 0; i < state->count; i++) excess -= is_replaced(state, i);
    for (int i = 0; keep_max > 0 && i <= index && excess > 0; i++) {
        if (is_replaced(state, i)) continue;
        const bool stays = stays_for_good(c, &state->records[i], &preserved_s);
        if (i == index) return !stays;
        excess--;
    }
    return false;
}

/* false: it cannot be removed now. Checkpoints in other folders, or found by a search only, are
 * never removed. */
static bool remove_files(const struct checkpoints *c, const struct checkpoint_record *record,
                         double now_s)
{
    const char *prefix = record->prefix;
    char meta[CHECKPOINT_PATH_MAX + 8]; /* the graph, where TensorFlow wrote it */
    if (record->is_found || !checkpoints_is_ours(c, prefix)) return true;
    if (strcmp(prefix, c->held) == 0 || lease_is_held(prefix, now_s)) return false;
    if (bundle_remove(prefix)) {
        log_line(LOG_WARNING, "an old checkpoint stays for now: %s", error_text());
        return false;
    }
    snprintf(meta, sizeof meta, "%s.meta", prefix);
    folder_unlink(meta);
    return true;
}

/* Removes older checkpoints of the newest one's step. */
static void remove_replaced(struct checkpoints *c, double now_s)
{
    struct checkpoint_state *state = &c->state;
    for (int i = state->count - 2; i >= 0; i--)
        if (is_replaced(state, i) && remove_files(c, &state->records[i], now_s))
            state_forget(state, i);
}

/* keep_max 0: removes none. When one is removed from the list, the next one moves to its index. */
static void remove_oldest(struct checkpoints *c, double now_s)
{
    struct checkpoint_state *state = &c->state;
    const int64_t keep_max = c->retention.keep_max;
    int stays = 0; /* kept ones at the start of the list */
    for (int64_t excess = state->count - keep_max; keep_max > 0 && excess > 0; excess--) {
        const struct checkpoint_record *record = &state->records[stays];
        if (stays_for_good(c, record, &c->state.preserved_s) || remove_files(c, record, now_s)) {
            state_forget(state, stays);
        } else {
            stays++;
        }
    }
}

static err write_state(const struct checkpoints *c)
{
    const int first = c->retention.keep_max > 0 ? 0 : c->state.count - 1;
    return state_write(c->directory, &c->state, first);
}

/* Called right after checking the token. If it is gone now, another chief has come and ended the
 * job in between; a storage failure does not mean that. */
static bool is_taken_over(const struct checkpoints *c)
{
    bool is_ours;
    return c->token && !checkpoints_token_find(c->directory, c->token, &is_ours) && !is_ours;
}

/* A state file that still lists removed checkpoints does no harm: the next one will not. If another
 * chief leads by now, the names may be those of its own. */
static void let_go(struct checkpoints *c, double now_s)
{
    const int before = c->state.count;
    if (is_taken_over(c)) return;
    remove_replaced(c, now_s);
    remove_oldest(c, now_s);
    if (c->state.count != before && write_state(c)) log_line(LOG_WARNING, "%s", error_text());
}

/* ---- the new checkpoint ---- */

/* Appends it to the list and the state file. A record of the same name means the same files. */
static err announce(struct checkpoints *c, const char *prefix, double now_s)
{
    struct checkpoint_state *state = &c->state;
    for (int i = state->count - 1; i >= 0; i--) {
        if (strcmp(state->records[i].prefix, prefix) == 0) state_forget(state, i);
    }
    if (state->count == CHECKPOINTS_MAX) state_forget(state, 0);
    TRY(state_add(state, prefix, now_s));
    err e = checkpoints_still_own(c);
    if (!e) e = write_state(c);
    if (!e && is_taken_over(c))
        e = fail(ERR_PEER, "another chief has written to %s meanwhile", c->directory);
    if (e) state_forget(state, state->count - 1);
    return e;
}

/* Which names of a step have data files or an index, including links and pipes, by the number of
 * zeros before the step. */
struct taken_names {
    uint64_t step;
    bool is_taken[SPARE_ZEROS_MAX + 1];
};

static void note_taken(void *context, const char *name)
{
    struct taken_names *taken = context;
    const char *rest;
    const int64_t step = checkpoint_name_step(name, &rest);
    if (step < 0 || (uint64_t)step != taken->step) return;
    if (!is_data_ending(rest) && strcmp(rest, CHECKPOINT_INDEX) != 0) return;
    const size_t usual = (size_t)snprintf(NULL, 0, CHECKPOINT_NAME "%" PRId64, step);
    const size_t zeros = (size_t)(rest - name) - usual;
    if (zeros <= SPARE_ZEROS_MAX) taken->is_taken[zeros] = true;
}

/* The usual name, or if that is taken, one with zeros before the step. Data files without an index
 * count as taken, too: they are not ours, and their index may come back. If the folder cannot be
 * listed, checks for index files only. */
static err free_name(const struct checkpoints *c, uint64_t step, char ret[CHECKPOINT_PATH_MAX])
{
    struct taken_names taken = {.step = step};
    if (folder_visit(c->directory, note_taken, &taken))
        log_line(LOG_DEBUG, "cannot list the folder, and looks for index files by name: %s",
                 error_text());
    for (int zeros = 0; zeros <= SPARE_ZEROS_MAX; zeros++) {
        bool has_one;
        TRY(checkpoint_name(c->directory, step, zeros, ret));
        if (taken.is_taken[zeros]) continue;
        TRY(folder_find_index(ret, &has_one));
        if (!has_one) return OK;
    }
    return fail(ERR_IO,
                "%s: all names for this step are taken by checkpoints that cannot be removed", ret);
}

err checkpoints_merge(const char *folder, int shards, const char *prefix)
{
    char(*names)[CHECKPOINT_PATH_MAX] = calloc((size_t)shards, sizeof *names);
    const char **prefixes = calloc((size_t)shards, sizeof *prefixes);
    err e =
        names && prefixes ? OK : fail(ERR_MEMORY, "no memory for the names of %d shards", shards);
    for (int i = 0; !e && i < shards; i++) {
        checkpoint_shard_prefix(folder, i, shards, names[i]);
        prefixes[i] = names[i];
    }
    if (!e) e = bundle_merge(prefixes, shards, prefix);
    free(names);
    free(prefixes);
    return e;
}

/* Removes the files of a failed attempt, and returns its error. */
static err undo(const char *prefix, err e)
{
    char text[ERROR_TEXT_MAX];
    snprintf(text, sizeof text, "%s", error_text());
    if (bundle_remove(prefix)) log_line(LOG_WARNING, "%s", error_text());
    return fail(e, "%s", text);
}

/* The links of a checkpoint made so far, data files before the index. Another chief may have
 * created the same names. */
struct shard_links {
    const char *from, *to;
    int shards, count;
    struct file_id *ids; /* [shards + 1] */
};

static err link_path(const char *prefix, int file, int shards, char **ret)
{
    return file < shards ? bundle_data_path(prefix, file, shards, ret)
                         : bundle_index_path(prefix, ret);
}

static err link_next(struct shard_links *l)
{
    char *old = NULL, *new = NULL;
    err e = link_path(l->from, l->count, l->shards, &old);
    if (!e) e = link_path(l->to, l->count, l->shards, &new);
    if (!e && (!file_id_find(old, &l->ids[l->count]) || link(old, new)))
        e = fail(ERR_IO, "%s: %s", new, strerror(errno));
    if (!e) l->count++;
    free(old);
    free(new);
    return e;
}

/* The index comes last, as always. */
static err link_all(struct shard_links *l)
{
    while (l->count < l->shards) TRY(link_next(l));
    TRY(file_sync_folder(l->to));
    TRY(link_next(l));
    return file_sync_folder(l->to);
}

static void unlink_ours(const struct shard_links *l)
{
    for (int i = l->count - 1; i >= 0; i--) {
        char *path;
        if (link_path(l->to, i, l->shards, &path)) return;
        if (file_id_is_at(path, &l->ids[i]) && bundle_unlink(path))
            log_line(LOG_WARNING, "%s", error_text());
        if (i == l->shards) (void)file_sync_folder(path); /* the index is gone before its data */
        free(path);
    }
}

/* Links it under the usual name, too, or leaves it as it was. */
static err name_twice(struct checkpoints *c, const char *usual, int shards, double now_s)
{
    struct shard_links links = {c->state.records[c->state.count - 1].prefix, usual, shards, 0,
                                calloc((size_t)shards + 1, sizeof *links.ids)};
    err e = links.ids ? OK : fail(ERR_MEMORY, "no memory for the names of %d files", shards);
    if (!e) e = link_all(&links);
    if (!e) e = announce(c, usual, now_s);
    if (e) unlink_ours(&links);
    free(links.ids);
    return e;
}

/* Renames the newest to the usual name if that is free now. Without hard links, as behind URLs, or
 * on failure, it keeps its name, which is just as valid. */
static void take_usual_name(struct checkpoints *c, uint64_t step, const char *usual, int shards,
                            double now_s)
{
    const char *spare = c->state.records[c->state.count - 1].prefix;
    struct taken_names taken = {.step = step};
    if (strcmp(spare, usual) == 0 || path_is_url(usual) || has_index(usual)) return;
    if (folder_visit(c->directory, note_taken, &taken) || taken.is_taken[0]) return;
    if (!name_twice(c, usual, shards, now_s)) let_go(c, now_s);
}

/* If the newest is gone, somebody has removed everything, most likely the whole folder. Leaves any
 * remaining files alone. */
static void forget_removed(struct checkpoints *c)
{
    struct checkpoint_state *state = &c->state;
    if (state->count == 0 || has_index(state->records[state->count - 1].prefix)) return;
    log_line(LOG_WARNING, "%s is gone", state->records[state->count - 1].prefix);
    for (int i = state->count - 1; i >= 0; i--)
        if (!has_index(state->records[i].prefix)) state_forget(state, i);
}

/* Turns the shards into a checkpoint that the state file lists, or removes them. */
static err join(struct checkpoints *c, const char *folder, int shards, const char *prefix,
                double now_s)
{
    TRY(checkpoints_still_own(c));
    TRY(checkpoints_merge(folder, shards, prefix)); /* undoes its own changes on failure: it knows
                                                       which files are its own */
    const err e = announce(c, prefix, now_s);
    return e && e != ERR_PEER ? undo(prefix, e) : e; /* files of that name may be another chief's */
}

/* Removes index files by name, which also works behind a URL: a folder that cannot be listed would
 * keep them. */
static void remove_indexes(const char *folder, int shards)
{
    char path[CHECKPOINT_PATH_MAX + sizeof CHECKPOINT_INDEX];
    for (int i = 0; path_is_url(folder) && i < shards; i++) {
        checkpoint_shard_prefix(folder, i, shards, path);
        strcat(path, CHECKPOINT_INDEX);
        folder_unlink(path);
    }
}

err checkpoints_publish(struct checkpoints *c, const char *folder, int shards, uint64_t step,
                        double now_s, char ret_prefix[CHECKPOINT_PATH_MAX])
{
    char usual[CHECKPOINT_PATH_MAX], prefix[CHECKPOINT_PATH_MAX];
    forget_removed(c);
    if (shards < 1 || shards > BUNDLE_SHARDS_MAX)
        return fail(ERR_INPUT, "a checkpoint of %d shards: 1 to %d are possible", shards,
                    (int)BUNDLE_SHARDS_MAX);
    TRY(checkpoint_name(c->directory, step, 0, usual));
    err e = free_name(c, step, prefix);
    if (!e) e = join(c, folder, shards, prefix, now_s);
    if (!e) remove_indexes(folder, shards);
    checkpoints_abandon(c, folder);
    if (e) return e;

    let_go(c, now_s);
    take_usual_name(c, step, usual, shards, now_s);
    return folder_copy(c->state.records[c->state.count - 1].prefix, ret_prefix);
}
