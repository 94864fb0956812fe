/* find.c - finds the checkpoints of any run's folder, for readers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/files/file_system.h"
#include "core/base/text.h"
#include "core/train/checkpoint/checkpoints_inside.h"

/* Behind a URL, a path with a state file under it counts as a folder. */
static err is_folder(const char *path, bool *ret)
{
    char text[CHECKPOINT_PATH_MAX];
    struct stat status;
    struct file_state state;
    *ret = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    if (!path_is_url(path)) return OK;
    TRY(folder_join(path, CHECKPOINT_STATE, text));
    return file_find(text, ret, &state);
}

/* A server that does not answer must not be taken for a missing index. */
static err find_index(const char *prefix, bool *ret)
{
    char path[CHECKPOINT_PATH_MAX + sizeof CHECKPOINT_INDEX];
    struct file_state state;
    *ret = !path_is_url(prefix) && has_index(prefix);
    if (!path_is_url(prefix)) return OK;
    snprintf(path, sizeof path, "%s" CHECKPOINT_INDEX, prefix);
    return file_find(path, ret, &state);
}

/* The state file's list; ERR_INPUT: there is none. */
static err read_list(const char *directory, struct checkpoint_state *ret)
{
    TRY(state_read(directory, ret));
    if (ret->count > 0) return OK;
    return fail(ERR_INPUT, "%s: no checkpoint there: looked for a file %s/" CHECKPOINT_STATE,
                directory, directory);
}

/* Does not fall back to an older checkpoint if the newest is missing: the caller must learn that
 * something is wrong. */
static err find_newest(const char *directory, char ret_prefix[CHECKPOINT_PATH_MAX])
{
    struct checkpoint_state state = {0};
    TRY(read_list(directory, &state));
    const char *newest = state.records[state.count - 1].prefix;
    bool is_there = false;
    err e = find_index(newest, &is_there);
    if (!e)
        e = is_there ? folder_copy(newest, ret_prefix)
                     : fail(ERR_INPUT,
                            "%s/" CHECKPOINT_STATE ": its newest checkpoint is absent: looked for "
                            "%s" CHECKPOINT_INDEX,
                            directory, newest);
    state_fini(&state);
    return e;
}

err checkpoint_find(const char *path, char ret_prefix[CHECKPOINT_PATH_MAX])
{
    char prefix[CHECKPOINT_PATH_MAX];
    bool is_there;
    TRY(is_folder(path, &is_there));
    if (is_there) return find_newest(path, ret_prefix);
    TRY(folder_copy(path, prefix));
    TRY(find_index(prefix, &is_there));
    if (is_there) return folder_copy(prefix, ret_prefix);
    if (text_ends_with(prefix, CHECKPOINT_INDEX)) {
        prefix[strlen(prefix) - strlen(CHECKPOINT_INDEX)] = '\0';
        TRY(find_index(prefix, &is_there));
        if (is_there) return folder_copy(prefix, ret_prefix);
    }
    return fail(ERR_INPUT,
                "%s: no checkpoint there: looked for a folder %s and a file %s" CHECKPOINT_INDEX
                "; dtrain checkpoint ls FOLDER says which there are",
                path, path, prefix);
}

/* The pointers first, then the strings. */
static char **pack(const struct checkpoint_state *state)
{
    size_t bytes = (size_t)state->count * sizeof(char *);
    for (int i = 0; i < state->count; i++) bytes += strlen(state->records[i].prefix) + 1;
    char **prefixes = malloc(bytes);
    if (!prefixes) return NULL;
    char *to = (char *)(prefixes + state->count);
    for (int i = 0; i < state->count; i++) {
        prefixes[i] = to;
        to = stpcpy(to, state->records[i].prefix) + 1;
    }
    return prefixes;
}

err checkpoint_list(const char *directory, char ***ret_prefixes, int *ret_count)
{
    struct checkpoint_state state = {0};
    TRY(read_list(directory, &state));
    char **prefixes = pack(&state);
    const int count = state.count;
    state_fini(&state);
    if (!prefixes) return fail(ERR_MEMORY, "no memory for a list of %d checkpoints", count);
    *ret_prefixes = prefixes;
    *ret_count = count;
    return OK;
}
