/* state.c - the list of a run's checkpoints, and the file `checkpoint` that stores it.
 *
 * It writes base names, so that the folder may move; it reads whatever TensorFlow writes, including
 * absolute paths of a folder that has moved since. Timestamps are kept over restarts
 * (keep_every_hours).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/bundle/file.h"
#include "core/train/checkpoint/checkpoints_inside.h"

enum { CAPACITY_MIN = 16 };
static const double FOUND_TIME_S = 0; /* older than any checkpoint: marks one found by a search */

/* Doubled each time, so that a list of all 100000 is not copied 100000 times. */
static err make_room(struct checkpoint_state *state)
{
    if (state->count < state->capacity) return OK;
    const int capacity = state->capacity ? 2 * state->capacity : CAPACITY_MIN;
    struct checkpoint_record *records = realloc(state->records, (size_t)capacity * sizeof *records);
    if (!records) return fail(ERR_MEMORY, "no memory for a list of %d checkpoints", capacity);
    state->records = records;
    state->capacity = capacity;
    return OK;
}

err state_add(struct checkpoint_state *state, const char *prefix, double time_s)
{
    if (state->count == CHECKPOINTS_MAX)
        return fail(ERR_INPUT, "more than %d checkpoints", (int)CHECKPOINTS_MAX);
    TRY(make_room(state));
    char *copy = strdup(prefix);
    if (!copy) return fail(ERR_MEMORY, "no memory for the name of a checkpoint");
    state->records[state->count++] = (struct checkpoint_record){copy, time_s, false};
    return OK;
}

void state_forget(struct checkpoint_state *state, int index)
{
    struct checkpoint_record *record = &state->records[index];
    free(record->prefix);
    memmove(record, record + 1, (size_t)(--state->count - index) * sizeof *record);
}

void state_fini(struct checkpoint_state *state)
{
    for (int i = 0; i < state->count; i++) free(state->records[i].prefix);
    free(state->records);
    *state = (struct checkpoint_state){0};
}

/* Whether the index certainly exists: a server that does not answer does not count. */
static bool is_surely_there(const char *prefix)
{
    char index[CHECKPOINT_PATH_MAX + sizeof CHECKPOINT_INDEX];
    double time_s;
    snprintf(index, sizeof index, "%s" CHECKPOINT_INDEX, prefix);
    return !file_time(index, &time_s) && time_s >= 0;
}

/* Relative paths start at the folder. If there is no such file, or the path is absolute, the folder
 * may have moved since the state file was written: looks for the checkpoint beside the state file.
 * A local folder cannot have come from a server. */
static err place(const char *directory, const char *prefix, char ret[CHECKPOINT_PATH_MAX])
{
    char folder[CHECKPOINT_PATH_MAX], beside[CHECKPOINT_PATH_MAX];
    const char *name = folder_split(prefix, folder);
    TRY(path_is_relative(prefix) ? folder_join(directory, prefix, ret) : folder_copy(prefix, ret));
    TRY(folder_join(directory, name, beside));
    const bool is_elsewhere = path_is_url(prefix) && !path_is_url(directory);
    if (name == prefix || (!is_elsewhere && is_surely_there(ret))) return OK;
    return is_surely_there(beside) ? folder_copy(beside, ret) : OK;
}

/* A record without a time takes that of its file. */
static err locate(const char *directory, struct checkpoint_record *record)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(place(directory, record->prefix, path));
    char *copy = strdup(path);
    if (!copy) return fail(ERR_MEMORY, "no memory for the name of a checkpoint");
    free(record->prefix);
    record->prefix = copy;
    record->is_found = record->time_s == FOUND_TIME_S;
    if (record->time_s >= 0) return OK;
    char index[CHECKPOINT_PATH_MAX + sizeof CHECKPOINT_INDEX];
    snprintf(index, sizeof index, "%s" CHECKPOINT_INDEX, record->prefix);
    record->time_s = file_time_s(index);
    return OK;
}

/* ret is unchanged if any part of the text is invalid. */
static err understand(const char *directory, const uint8_t *text, size_t length,
                      struct checkpoint_state *ret)
{
    struct checkpoint_state state = {0};
    err e = state_parse((const char *)text, length, &state);
    for (int i = 0; !e && i < state.count; i++) e = locate(directory, &state.records[i]);
    if (e) {
        state_fini(&state);
    } else {
        *ret = state;
    }
    return e;
}

static err state_find(const char *path, bool *ret_is_there)
{
    struct file_state found;
    double time_s;
    if (path_is_url(path)) return file_find(path, ret_is_there, &found);
    TRY(file_time(path, &time_s));
    *ret_is_there = time_s >= 0;
    return OK;
}

err state_read(const char *directory, struct checkpoint_state *ret)
{
    char path[CHECKPOINT_PATH_MAX];
    uint8_t *text = NULL;
    size_t length = 0;
    bool is_there;
    TRY(folder_join(directory, CHECKPOINT_STATE, path));
    TRY(state_find(path, &is_there));
    if (!is_there) {
        *ret = (struct checkpoint_state){0};
        return OK;
    }
    TRY(bundle_file_load(path, STATE_BYTES_MAX, &text, &length));
    err e = understand(directory, text, length, ret);
    free(text);
    return e ? fail_prefix(e, "%s", path) : OK;
}

/* Prints the path as a C string: bytes that are not plain ASCII in octal. */
static void print_path(FILE *file, const char *field, const char *path)
{
    fprintf(file, "%s: \"", field);
    for (; *path; path++) {
        const unsigned char c = (unsigned char)*path;
        if (c == '"' || c == '\\') {
            fprintf(file, "\\%c", c);
        } else if (c < 0x20 || c >= 0x7f) {
            fprintf(file, "\\%03o", c);
        } else {
            fputc(c, file);
        }
    }
    fputs("\"\n", file);
}

/* The path without the directory, if it is in that directory. */
static const char *short_name(const char *directory, const char *prefix)
{
    const size_t length = strlen(directory);
    const bool is_inside = strncmp(prefix, directory, length) == 0 && prefix[length] == '/';
    return is_inside ? prefix + length + 1 : prefix;
}

/* In the order of CheckpointManager's fields. Timestamps are when checkpoints were created, not
 * found, because keep_every_hours depends on them after a restart. */
static void print(FILE *file, const char *directory, const struct checkpoint_state *state,
                  int first)
{
    const struct checkpoint_record *records = state->records;
    print_path(file, "model_checkpoint_path",
               short_name(directory, records[state->count - 1].prefix));
    for (int i = first; i < state->count; i++) {
        print_path(file, "all_model_checkpoint_paths", short_name(directory, records[i].prefix));
    }
    for (int i = first; i < state->count; i++) {
        const double time_s = records[i].is_found ? FOUND_TIME_S : records[i].time_s;
        fprintf(file, "all_model_checkpoint_timestamps: %.17g\n", time_s);
    }
    fprintf(file, "last_preserved_timestamp: %.17g\n", state->preserved_s);
}

static err replace(const char *directory, const char *text, size_t length)
{
    char path[CHECKPOINT_PATH_MAX];
    TRY(folder_join(directory, CHECKPOINT_STATE, path));
    return output_replace(path, text, length);
}

/* Composes the text in memory first, so that it is written completely or not at all. */
err state_write(const char *directory, const struct checkpoint_state *state, int first)
{
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    if (!file) return fail(ERR_MEMORY, "no memory for the list of checkpoints");
    print(file, directory, state, first);
    const bool is_whole = !ferror(file);
    err e = OK;
    if (fclose(file) != 0 || !is_whole)
        e = fail(ERR_MEMORY, "no memory for the list of checkpoints");
    if (!e) e = replace(directory, text, length);
    free(text);
    return e;
}
