/* find.c - the checkpoints of any run's folder, for those who only read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/train/checkpoint/checkpoints_inside.h"

static bool is_folder(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* The state file's list; ERR_INPUT where there is none. */
static err read_list(const char *directory, struct checkpoint_state *ret)
{
    TRY(state_read(directory, ret));
    if (ret->count > 0) return OK;
    return fail(ERR_INPUT, "%s: no checkpoint there: looked for a file %s/" CHECKPOINT_STATE,
                directory, directory);
}

/* No older one is taken where the newest is absent: whoever asks must learn that something is
 * wrong.
 */
static err find_newest(const char *directory, char ret_prefix[CHECKPOINT_PATH_MAX])
{
    struct checkpoint_state state = {0};
    TRY(read_list(directory, &state));
    const char *newest = state.records[state.count - 1].prefix;
    const bool is_there = has_index(newest);
    err e = is_there ? folder_copy(newest, ret_prefix)
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
    if (is_folder(path)) return find_newest(path, ret_prefix);
    TRY(folder_copy(path, prefix));
    const size_t length = strlen(prefix), ending = strlen(CHECKPOINT_INDEX);
    if (has_index(prefix)) return folder_copy(prefix, ret_prefix);
    if (length > ending && strcmp(prefix + length - ending, CHECKPOINT_INDEX) == 0) {
        prefix[length - ending] = '\0';
        if (has_index(prefix)) return folder_copy(prefix, ret_prefix);
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
