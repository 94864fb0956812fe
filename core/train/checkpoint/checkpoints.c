/* checkpoints.c - opens a run's folder, and creates folders for shards: see checkpoints.h. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/file_system.h"
#include "core/base/files/own.h"
#include "core/base/log.h"
#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints_inside.h"

enum { NAME_LENGTH_MAX = 192 }; /* of a file in the folder, and of one in a folder there */

/* ---- opening ---- */

/* The file that tests whether the folder can be written: always the same name, so that killed
 * processes leave at most one, until the next test. */
static const char proof[] = ".writable";

static err prove_url_writable(const char *directory)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(folder_join(directory, proof, path));
    TRY(file_put(path, "", 0));
    return file_remove(path);
}

/* Fails if a file of the run is a folder: every save would fail, permanently. */
static err find_strange_folders(const char *directory)
{
    char path[CHECKPOINT_PATH_MAX];
    struct stat status;
    for (int i = 0; i < RUN_FILES; i++) {
        TRY(folder_join(directory, run_file_names[i], path));
        if (!lstat(path, &status) && S_ISDIR(status.st_mode))
            return fail(ERR_INPUT, "%s: a folder, where a file of the run is to be: move it away",
                        path);
    }
    return OK;
}

/* Tests by writing a file, because permissions alone do not tell: a disk may be mounted read-only.
 * Other tasks may do so at the same moment; it does not matter whose file is removed. */
static err prove_writable(const char *directory)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(folder_join(directory, proof, path));
    const int file = own_make(path);
    if (file < 0)
        return fail(ERR_IO, "cannot write into the folder %s: %s", directory, strerror(errno));
    close(file);
    unlink(path);
    return find_strange_folders(directory);
}

static err trim_url(const char *path, char ret[CHECKPOINT_PATH_MAX])
{
    size_t bytes = strlen(path);
    while (bytes > 0 && path[bytes - 1] == '/') bytes--;
    if (bytes + NAME_LENGTH_MAX >= CHECKPOINT_PATH_MAX)
        return fail(ERR_INPUT, "%.64s...: its path is too long for a folder of checkpoints", path);
    snprintf(ret, CHECKPOINT_PATH_MAX, "%.*s", (int)bytes, path);
    return OK;
}

/* Resolved once, so that a later change of the working folder or of a link does not move the run.
 */
err checkpoints_place(const char *path, char ret[CHECKPOINT_PATH_MAX])
{
    char resolved[PATH_MAX];
    if (path_is_url(path)) return trim_url(path, ret);
    if (!*path) return fail(ERR_INPUT, "the folder of the checkpoints has no name");
    TRY(folder_make(path));
    if (!realpath(path, resolved)) return fail(ERR_IO, "%s: %s", path, strerror(errno));
    if (strlen(resolved) + NAME_LENGTH_MAX >= CHECKPOINT_PATH_MAX)
        return fail(ERR_INPUT, "%.64s...: its path is too long for a folder of checkpoints", path);
    return folder_copy(resolved, ret);
}

static err open_folder(const char *path, char ret[CHECKPOINT_PATH_MAX])
{
    TRY(checkpoints_place(path, ret));
    return path_is_url(ret) ? prove_url_writable(ret) : prove_writable(ret);
}

bool checkpoints_is_ours(const struct checkpoints *c, const char *prefix)
{
    char folder[CHECKPOINT_PATH_MAX];
    folder_split(prefix, folder);
    return strcmp(folder, c->directory) == 0;
}

/* Completes removals of a killed chief. Other checkpoints without an index stay in the list, and
 * their files in the folder: a copy of the folder may be incomplete. */
static err finish_removals(struct checkpoints *c)
{
    struct checkpoint_state *state = &c->state;
    bool *is_let_go = calloc((size_t)state->count + 1, sizeof *is_let_go);
    if (!is_let_go) return fail(ERR_MEMORY, "no memory for a list of checkpoints");
    for (int i = 0; i < state->count; i++)
        is_let_go[i] = checkpoints_lets_go(c, i) && !has_index(state->records[i].prefix);
    for (int i = state->count - 1; i >= 0; i--) {
        const char *prefix = state->records[i].prefix;
        if (!is_let_go[i]) continue;
        const bool is_usual = checkpoint_step(prefix) >= 0 && checkpoints_is_ours(c, prefix);
        if (is_usual && bundle_remove(prefix)) log_line(LOG_WARNING, "%s", error_text());
        state_forget(state, i);
    }
    free(is_let_go);
    return OK;
}

/* With keep_max 0 the state file names the newest only; those before it are in the folder. */
static err add_unnamed(struct checkpoints *c)
{
    struct checkpoint_state *state = &c->state;
    if (c->retention.keep_max > 0 || state->count == 0) return OK;
    const struct checkpoint_record newest = state->records[state->count - 1];
    struct checkpoint_state all = {.preserved_s = state->preserved_s};
    err e = checkpoints_search(c->directory, checkpoint_step(newest.prefix), &all);
    if (!e) e = state_add(&all, newest.prefix, newest.time_s);
    if (e) {
        state_fini(&all);
        return e;
    }
    state_fini(state);
    *state = all;
    return OK;
}

/* Without a valid state file, as in a partly copied folder, the run resumes from checkpoints that
 * it finds; it does not own them, and never removes them. */
static err search(struct checkpoints *c)
{
    TRY(checkpoints_search(c->directory, INT64_MAX, &c->state));
    for (int i = 0; i < c->state.count; i++) c->state.records[i].is_found = true;
    return OK;
}

/* ret_why: why the folder was searched; "": it was not, or there is no state file */
static err load(struct checkpoints *c, double now_s, char ret_why[ERROR_TEXT_MAX],
                bool *ret_is_searched)
{
    err e = state_read(c->directory, &c->state);
    ret_why[0] = '\0';
    *ret_is_searched = false;
    if (e && e != ERR_INPUT) return e;
    if (e) snprintf(ret_why, ERROR_TEXT_MAX, "%s", error_text());
    if (c->state.count == 0) {
        *ret_is_searched = true;
        TRY(search(c));
    } else {
        TRY(finish_removals(c));
        TRY(add_unnamed(c));
    }
    if (c->state.preserved_s <= 0) c->state.preserved_s = now_s;
    return OK;
}

static const char *name_of(const struct checkpoint_state *state, int before_newest)
{
    return strrchr(state->records[state->count - 1 - before_newest].prefix, '/') + 1;
}

/* Says that the newest checkpoint will be refused (checkpoints_add_lost). */
static void warn_of_lost(const struct checkpoint_state *state, const char *why)
{
    if (state->count == 1)
        log_line(LOG_WARNING,
                 "%s; %s has data files but no index: copy the index there, or use another "
                 "checkpoint_dir to start over",
                 why, name_of(state, 0));
    else
        log_line(LOG_WARNING,
                 "%s; %s has data files but no index: copy the index there, or remove the data "
                 "files to resume from %s",
                 why, name_of(state, 0), name_of(state, 1));
}

/* Logged now: otherwise only the losses would show whether the run resumed or started over. */
static void warn_of_search(const struct checkpoints *c, const char *why)
{
    const struct checkpoint_state *state = &c->state;
    char absent[ERROR_TEXT_MAX];
    snprintf(absent, sizeof absent, "%.400s: no state file (" CHECKPOINT_STATE ")", c->directory);
    if (!why[0] && state->count == 0) return; /* a new folder */
    if (!why[0]) why = absent;
    if (state->count == 0)
        log_line(LOG_WARNING, "%s; the folder has no checkpoint: starts over", why);
    else if (!has_index(state->records[state->count - 1].prefix))
        warn_of_lost(state, why);
    else
        log_line(LOG_WARNING,
                 "%s; resumes from the newest of %d %s that are in the folder, %s; none of them is "
                 "ever removed or replaced; use another checkpoint_dir to start over",
                 why, state->count, state->count == 1 ? "checkpoint" : "checkpoints",
                 name_of(state, 0));
}

bool checkpoints_has_begun(const char *directory)
{
    static const char *const names[] = {CHECKPOINT_STATE, TOKEN_NAME};
    char path[CHECKPOINT_PATH_MAX];
    struct stat status;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!folder_join(directory, names[i], path) && stat(path, &status) == 0) return true;
    return false;
}

err checkpoints_prove(const char *directory)
{
    char resolved[CHECKPOINT_PATH_MAX];
    return open_folder(directory, resolved);
}

/* The list first, then the sweep: listed files are not litter. */
err checkpoints_open(const char *directory, const struct retention *retention, double now_s,
                     struct checkpoints **ret)
{
    struct checkpoints *c = calloc(1, sizeof *c);
    if (!c) return fail(ERR_MEMORY, "no memory for a list of checkpoints");
    c->retention = *retention;
    char why[ERROR_TEXT_MAX];
    bool is_searched;
    err e = open_folder(directory, c->directory);
    if (!e) e = load(c, now_s, why, &is_searched);
    if (!e) checkpoints_sweep(c, now_s);
    if (!e && is_searched) e = checkpoints_add_lost(c);
    if (e) {
        checkpoints_close(c);
        return e;
    }
    if (is_searched) warn_of_search(c, why);
    *ret = c;
    return OK;
}

void checkpoints_close(struct checkpoints *c)
{
    if (!c) return;
    state_fini(&c->state);
    free(c);
}

const char *checkpoints_directory(const struct checkpoints *c)
{
    return c->directory;
}

const char *checkpoints_newest(const struct checkpoints *c, int index)
{
    for (int i = c->state.count - 1; i >= 0 && index >= 0; i--) {
        const bool is_newest = i == c->state.count - 1;
        const char *prefix = c->state.records[i].prefix;
        if ((is_newest || has_index(prefix)) && index-- == 0) return prefix;
    }
    return NULL;
}

/* ---- shards ---- */

err checkpoint_temporary_folder(const char *directory, uint64_t step, uint64_t tag,
                                char ret_folder[CHECKPOINT_PATH_MAX])
{
    char prefix[CHECKPOINT_PATH_MAX], folder[CHECKPOINT_PATH_MAX + 32];
    TRY(checkpoint_name(directory, step, 0, prefix));
    snprintf(folder, sizeof folder, "%s_temp_%016" PRIx64, prefix, tag);
    return folder_copy(folder, ret_folder);
}

err checkpoint_make_folder(const char *folder)
{
    if (path_is_url(folder)) return OK; /* it exists once it has a file */
    if (own_folder(folder)) return OK;
    return errno == ENOENT ? folder_make(folder)
                           : fail(ERR_IO, "cannot make the folder %s: %s", folder, strerror(errno));
}

err checkpoints_begin(struct checkpoints *c, uint64_t step, uint64_t tag,
                      char ret_folder[CHECKPOINT_PATH_MAX])
{
    char folder[CHECKPOINT_PATH_MAX];
    TRY(checkpoint_temporary_folder(c->directory, step, tag, folder));
    TRY(checkpoint_make_folder(folder)); /* a ps may have been first */
    return folder_copy(folder, ret_folder);
}

void checkpoint_shard_prefix(const char *folder, int shard, int shards,
                             char ret_prefix[CHECKPOINT_PATH_MAX])
{
    snprintf(ret_prefix, CHECKPOINT_PATH_MAX, "%s/" CHECKPOINT_PART "%05d-of-%05d", folder, shard,
             shards);
}

void checkpoint_remove_shard(const char *prefix)
{
    char folder[CHECKPOINT_PATH_MAX];
    const char *name = folder_split(prefix, folder);
    if (strncmp(name, CHECKPOINT_PART, strlen(CHECKPOINT_PART)) == 0)
        folder_remove_named(folder, name);
}

void checkpoints_abandon(struct checkpoints *c, const char *folder)
{
    if (checkpoints_is_ours(c, folder)) folder_remove_named(folder, CHECKPOINT_PART);
}

/* ---- the token ---- */

enum {
    TOKEN_BYTES = 16,
    TOKEN_TEXT_MAX = 64,
    RESIZES_MAX = 1 << 30, /* larger numbers are not counts of resizes */
};

static err token_path(const char *directory, char ret[CHECKPOINT_PATH_MAX])
{
    return folder_join(directory, TOKEN_NAME, ret);
}

static void token_text(uint64_t token, char ret[TOKEN_BYTES + 1])
{
    snprintf(ret, TOKEN_BYTES + 1, "%016" PRIx64, token);
}

/* Replaces the file atomically, because a ps may read it at any time. Creates the folder if
 * somebody removed it. After the token it has the number of resizes, if there were any. */
static err write_token(const struct checkpoints *c, uint64_t token)
{
    char path[CHECKPOINT_PATH_MAX], text[TOKEN_TEXT_MAX];
    TRY(token_path(c->directory, path));
    token_text(token, text);
    if (c->resizes)
        snprintf(text + TOKEN_BYTES, sizeof text - TOKEN_BYTES, " %" PRIu64, c->resizes);
    TRY(folder_make(c->directory));
    return path_is_url(path) ? file_put(path, text, strlen(text))
                             : output_replace(path, text, strlen(text));
}

void checkpoints_token_remove(struct checkpoints *c, uint64_t token)
{
    char path[CHECKPOINT_PATH_MAX];
    if (checkpoints_token_is_seen(c->directory, token) && !token_path(c->directory, path))
        folder_unlink(path);
}

/* Reads the file instead of only its attributes: a remote file system then asks its server, not its
 * cache. ERR_INPUT: there is none. */
static err read_token(const char *directory, char ret[TOKEN_BYTES])
{
    char path[CHECKPOINT_PATH_MAX];
    struct file_reader reader;
    TRY(token_path(directory, path));
    TRY(file_reader_open(path, &reader));
    const err e = file_reader_read(&reader, 0, ret, TOKEN_BYTES);
    file_reader_close(&reader);
    return e;
}

err checkpoints_token_find(const char *directory, uint64_t token, bool *ret_is_seen)
{
    char wanted[TOKEN_BYTES + 1], found[TOKEN_BYTES];
    token_text(token, wanted);
    const err e = read_token(directory, found);
    *ret_is_seen = !e && memcmp(found, wanted, TOKEN_BYTES) == 0;
    return e == ERR_INPUT ? OK : e;
}

err checkpoints_token(const char *directory, uint64_t *ret)
{
    char found[TOKEN_BYTES + 1] = "";
    const err e = read_token(directory, found);
    *ret = e ? 0 : strtoull(found, NULL, 16);
    return e == ERR_INPUT ? OK : e;
}

bool checkpoints_token_is_seen(const char *directory, uint64_t token)
{
    bool is_seen;
    return !checkpoints_token_find(directory, token, &is_seen) && is_seen;
}

/* ---- who publishes ---- */

/* Keeps a checkpoint in the list whose index was missing when the folder was opened, but not what
 * an attempt of this process left. */
static err keep_lost(struct checkpoints *c, const struct checkpoint_state *before)
{
    if (before->count == 0) return OK;
    const struct checkpoint_record *lost = &before->records[before->count - 1];
    if (!lost->is_found || has_index(lost->prefix)) return OK;
    TRY(state_add(&c->state, lost->prefix, lost->time_s));
    c->state.records[c->state.count - 1].is_found = true;
    return OK;
}

/* Takes over the count of an earlier owner; an invalid text counts as none. */
static err note_resizes(struct checkpoints *c)
{
    char path[CHECKPOINT_PATH_MAX], text[TOKEN_TEXT_MAX];
    uint8_t *read = NULL;
    size_t bytes = 0;
    TRY(token_path(c->directory, path));
    const err e = bundle_file_load(path, sizeof text - 1, &read, &bytes);
    if (!e && bytes > TOKEN_BYTES) {
        memcpy(text, read, bytes);
        text[bytes] = '\0';
        const uint64_t known = strtoull(text + TOKEN_BYTES, NULL, 10);
        if (known > c->resizes && known <= RESIZES_MAX) c->resizes = known;
    }
    free(read);
    return e == ERR_INPUT ? OK : e;
}

uint64_t checkpoints_resizes(const struct checkpoints *c)
{
    return c->resizes;
}

err checkpoints_own(struct checkpoints *c, uint64_t token, uint64_t resizes, double now_s)
{
    char why[ERROR_TEXT_MAX];
    bool is_searched;
    TRY(note_resizes(c));
    if (resizes > c->resizes) c->resizes = resizes;
    TRY(write_token(c, token));
    c->token = token;
    struct checkpoint_state before = c->state;
    c->state = (struct checkpoint_state){0};
    err e = load(c, now_s, why, &is_searched);
    if (!e && is_searched) e = keep_lost(c, &before);
    state_fini(&before);
    return e;
}

/* ret_is_there: the newest checkpoint of the state file is not in our list: another chief wrote it,
 * and removed its token when it was done. */
static err find_stranger(const struct checkpoints *c, bool *ret_is_there)
{
    struct checkpoint_state found;
    const err e = state_read(c->directory, &found);
    *ret_is_there = !e && found.count > 0;
    if (e) return e == ERR_INPUT ? OK : e;
    for (int i = 0; i < c->state.count && *ret_is_there; i++) {
        const struct checkpoint_record *ours = &c->state.records[i],
                                       *newest = &found.records[found.count - 1];
        *ret_is_there = strcmp(ours->prefix, newest->prefix) != 0 ||
                        (!ours->is_found && ours->time_s != newest->time_s);
    }
    state_fini(&found);
    return OK;
}

err checkpoints_take_again(const struct checkpoints *c)
{
    bool is_strange;
    TRY(find_stranger(c, &is_strange));
    if (is_strange) return fail(ERR_PEER, "another chief has written to %s since", c->directory);
    return write_token(c, c->token);
}

err checkpoints_still_own(const struct checkpoints *c)
{
    char wanted[TOKEN_BYTES + 1], found[TOKEN_BYTES];
    if (!c->token) return OK;
    const err e = read_token(c->directory, found);
    if (e) return e == ERR_INPUT ? checkpoints_take_again(c) : e;
    token_text(c->token, wanted);
    if (memcmp(found, wanted, TOKEN_BYTES) == 0) return OK;
    return fail(ERR_PEER, "another chief writes to %s now", c->directory);
}
