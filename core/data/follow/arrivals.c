/* arrivals.c - see arrivals.h. */
#include "core/data/follow/arrivals.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/files/own.h"
#include "core/base/log.h"
#include "core/base/text.h"
#include "core/data/parts.h"
#include "core/data/stream/stream.h"

enum { GROW_MIN = 64, NAME_BYTES_MAX = 255, LINE_BYTES_MAX = 512, MS_IN_S = 1000 };

/* ---- the list ---- */

static int compare_name(const struct arrivals *a, int place, const char *name)
{
    return strcmp(a->at[a->by_name[place]].name, name);
}

/* Index in by_name of the name, or where it would be inserted. */
static int place_of(const struct arrivals *a, const char *name)
{
    int from = 0, to = a->count;
    while (from < to) {
        const int middle = (from + to) / 2;
        if (compare_name(a, middle, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool is_taken(const struct arrivals *a, const char *name)
{
    const int place = place_of(a, name);
    return place < a->count && compare_name(a, place, name) == 0;
}

static void grow(struct arrivals *a)
{
    const int capacity = a->capacity ? 2 * a->capacity : GROW_MIN;
    struct arrived *at = arena_array(&a->arena, (size_t)capacity, sizeof *at);
    int *by_name = arena_array(&a->arena, (size_t)capacity, sizeof *by_name);
    if (a->count) memcpy(at, a->at, (size_t)a->count * sizeof *at);
    if (a->count) memcpy(by_name, a->by_name, (size_t)a->count * sizeof *by_name);
    a->at = at;
    a->by_name = by_name;
    a->capacity = capacity;
}

static err add(struct arrivals *a, const char *name, uint64_t bytes, int64_t rows)
{
    if (a->count == ARRIVALS_MAX)
        return fail(ERR_INPUT, "%s: more than %d files", a->list, (int)ARRIVALS_MAX);
    if (a->count == a->capacity) grow(a);
    const int place = place_of(a, name);
    memmove(&a->by_name[place + 1], &a->by_name[place],
            (size_t)(a->count - place) * sizeof *a->by_name);
    a->by_name[place] = a->count;
    a->at[a->count++] = (struct arrived){arena_string(&a->arena, name), bytes, rows, a->rows};
    a->rows += rows;
    return OK;
}

static err bad_line(const struct arrivals *a)
{
    return fail(ERR_INPUT, "%s: line %d: expected rows, bytes and a name, separated by spaces",
                a->list, a->count + 2);
}

static err read_header(struct arrivals *a, const char *line)
{
    long long batch;
    const int count = sscanf(line, "followed 1 batch %lld workers %d per_push %d", &batch,
                             &a->share.workers, &a->share.per_push);
    a->share.batch = batch;
    a->has_header = true;
    return count == 3 ? OK : fail(ERR_INPUT, "%s: is no list of files that were taken", a->list);
}

static err read_line(struct arrivals *a, char *line)
{
    long long rows;
    unsigned long long bytes;
    int at = 0;
    if (!a->has_header) return read_header(a, line);
    line[strlen(line) - 1] = '\0';
    if (sscanf(line, "%lld %llu %n", &rows, &bytes, &at) != 2 || !at || !line[at])
        return bad_line(a);
    if (rows < 0 || rows > INT64_MAX / 2 - a->rows || is_taken(a, &line[at])) return bad_line(a);
    return add(a, &line[at], bytes, rows);
}

/* Ignores an incomplete last line, left by a writer that was killed. */
static err read_lines(struct arrivals *a, FILE *list)
{
    char line[LINE_BYTES_MAX];
    while (fgets(line, sizeof line, list)) {
        const size_t length = strlen(line);
        if (length + 1 == sizeof line) return bad_line(a);
        if (!length || line[length - 1] != '\n') return OK;
        TRY(read_line(a, line));
        a->bytes += (int64_t)length;
    }
    return ferror(list) ? fail(ERR_PEER, "%s: %s", a->list, strerror(errno)) : OK;
}

/* ERR_PEER, here and below: the list cannot be read or written now. */
static err read_list(struct arrivals *a)
{
    FILE *list = own_read(a->list);
    if (!list && errno == ENOENT) return OK;
    if (!list) return fail(ERR_PEER, "%s: %s", a->list, strerror(errno));
    const int status = fseeko(list, (off_t)a->bytes, SEEK_SET);
    const err e = status ? fail(ERR_PEER, "%s: %s", a->list, strerror(errno)) : read_lines(a, list);
    fclose(list);
    return e;
}

/* Appends a line after the last complete one. */
static err write_line(const struct arrivals *a, int list, const char *line, size_t length)
{
    errno = ENOSPC; /* for a partial write */
    const bool is_written = ftruncate(list, (off_t)a->bytes) == 0 &&
                            pwrite(list, line, length, (off_t)a->bytes) == (ssize_t)length &&
                            fdatasync(list) == 0;
    return is_written ? OK : fail(ERR_PEER, "%s: cannot be added to: %s", a->list, strerror(errno));
}

static err write_header(struct arrivals *a, int list)
{
    char line[LINE_BYTES_MAX];
    const int length = snprintf(line, sizeof line, "followed 1 batch %lld workers %d per_push %d\n",
                                (long long)a->share.batch, a->share.workers, a->share.per_push);
    TRY(write_line(a, list, line, (size_t)length));
    return read_list(a);
}

static err write_file(struct arrivals *a, int list, const char *name, uint64_t bytes, int64_t rows)
{
    char line[LINE_BYTES_MAX];
    const int length = snprintf(line, sizeof line, "%lld %llu %s\n", (long long)rows,
                                (unsigned long long)bytes, name);
    TRY(write_line(a, list, line, (size_t)length));
    return read_list(a);
}

/* ---- files in the folder ---- */

static const char *path_of(const struct arrivals *a, const char *name, char *to, size_t max)
{
    snprintf(to, max, "%s%s", a->folder, name);
    return to;
}

static err whole_path(const struct arrivals *a, const char *name, char **ret)
{
    char path[PATH_BYTES_MAX];
    *ret = path_join(a->context.directory, path_of(a, name, path, sizeof path));
    return *ret ? OK : fail(ERR_MEMORY, "no memory for names of files");
}

/* False for names that programs give to incomplete files. */
static bool may_be_taken(const char *name)
{
    const size_t length = strlen(name);
    if (name[0] == '.' || name[0] == '_' || length > NAME_BYTES_MAX || strchr(name, '\n'))
        return false;
    return !text_ends_with(name, ".tmp") && !text_ends_with(name, ".part");
}

struct looking {
    const struct arrivals *arrivals;
    bool is_for_example;
    bool is_end; /* the end marker exists: empty files will stay empty */
    char *first; /* [PATH_BYTES_MAX]; "": none yet */
};

/* Whether to pass over an empty file: later names wait for it only as long as for a file being
 * written; it is taken once it has bytes. */
static err is_void(const struct looking *l, const char *path, bool *ret)
{
    struct file_state state;
    bool is_there = false;
    *ret = false;
    TRY(file_find(path, &is_there, &state));
    const double since_s = clock_unix_s() - (double)state.touched_s;
    if (is_there && state.bytes == 0)
        *ret = l->is_end || since_s >= l->arrivals->source->settle_secs + 1;
    return OK;
}

static err look_at(void *context, const char *path)
{
    const struct looking *l = context;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    bool is_passed_over;
    if (l->first[0] || !may_be_taken(name) || is_taken(l->arrivals, name)) return OK;
    const struct arrivals *a = l->arrivals;
    if (l->is_for_example && text_find(a->passed, a->passed_count, name) >= 0) return OK;
    TRY(is_void(l, path, &is_passed_over));
    if (is_passed_over) return OK;
    snprintf(l->first, PATH_BYTES_MAX, "%s", name);
    return OK;
}

static err is_marked(const struct arrivals *a, bool *ret)
{
    char *path;
    TRY(whole_path(a, a->source->end_marker, &path));
    *ret = file_is_there(path);
    free(path);
    return OK;
}

static err find_first(const struct arrivals *a, bool is_for_example, char first[PATH_BYTES_MAX])
{
    struct looking looking = {.arrivals = a, .is_for_example = is_for_example, .first = first};
    first[0] = '\0';
    TRY(is_marked(a, &looking.is_end));
    char *pattern = path_join(a->context.directory, a->pattern);
    if (!pattern) return fail(ERR_MEMORY, "no memory for names of files");
    const size_t plain = strlen(pattern) - strlen(a->pattern);
    const err e = files_match(pattern, plain, look_at, &looking);
    free(pattern);
    return e;
}

static bool is_same_state(const struct file_state *x, const struct file_state *y)
{
    return x->bytes == y->bytes && x->changed_s == y->changed_s && x->changed_ns == y->changed_ns &&
           x->identity == y->identity;
}

/* Unchanged for settle_secs by its times of change, or, in case clocks differ, as observed here. */
static bool is_settled(struct arrivals *a, const char *name, const struct file_state *state)
{
    const double settle_s = a->source->settle_secs;
    const double last_s = (double)state->touched_s + (double)state->touched_ns * 1e-9;
    const bool is_watched = !strcmp(a->watched, name) && is_same_state(&a->state, state);
    if (!is_watched) {
        snprintf(a->watched, sizeof a->watched, "%s", name);
        a->state = *state;
        a->since_ms = clock_ms();
    }
    if (state->bytes == 0) return false;
    return clock_unix_s() - last_s >= settle_s ||
           (double)(clock_ms() - a->since_ms) >= settle_s * MS_IN_S;
}

/* Finds the first file not yet taken, and whether it is complete. Later names wait for it. */
static err find_whole(struct arrivals *a, bool is_for_example, char name[PATH_BYTES_MAX],
                      struct file_state *state, bool *ret_is_whole)
{
    char *path;
    bool is_there;
    *ret_is_whole = false;
    TRY(find_first(a, is_for_example, name));
    if (!name[0]) return OK;
    TRY(whole_path(a, name, &path));
    const err e = file_find(path, &is_there, state);
    free(path);
    if (!e && is_there) *ret_is_whole = is_settled(a, name, state);
    return e;
}

/* ---- taking ---- */

/* No index is saved, as files come and go. */
err arrivals_rows(const struct arrivals *a, const char *name, struct arrived_rows *ret)
{
    char path[PATH_BYTES_MAX];
    struct format_context context = a->context;
    bool is_stream;
    context.only_file = path_of(a, name, path, sizeof path);
    context.has_other_parts = true;
    context.index_folder = NULL;
    *ret = (struct arrived_rows){0};
    TRY(stream_is_wanted(a->source, &context, &is_stream));
    if (!is_stream) return dataset_open(a->source, &context, &ret->all);
    TRY(stream_open(a->source, &context, &ret->stream));
    stream_describe(ret->stream, &ret->all);
    return OK;
}

void arrived_rows_close(struct arrived_rows *rows)
{
    stream_close(rows->stream);
    dataset_close(&rows->all);
    rows->stream = NULL;
}

err arrivals_check(const struct arrivals *a, const struct arrived *file)
{
    char *path;
    struct file_state state;
    TRY(whole_path(a, file->name, &path));
    err e = file_look(path, &state);
    if (!e && state.bytes != file->bytes)
        e = fail(ERR_INPUT, "%s: had %llu bytes when it was taken, now %llu", path,
                 (unsigned long long)file->bytes, (unsigned long long)state.bytes);
    free(path);
    return e;
}

static err count_rows(const struct arrivals *a, const char *name, int64_t *ret)
{
    struct arrived_rows rows;
    TRY(arrivals_rows(a, name, &rows));
    *ret = rows.all.rows;
    arrived_rows_close(&rows);
    return OK;
}

/* Looks for the end marker first: a file that arrives after it is not part of the stream. */
static err take_next(struct arrivals *a, int list)
{
    char name[PATH_BYTES_MAX];
    struct file_state state;
    bool is_end, is_whole;
    int64_t rows;
    TRY(is_marked(a, &is_end));
    TRY(find_whole(a, false, name, &state, &is_whole));
    a->has_ended = is_end && !name[0];
    if (!is_whole) return OK;
    TRY(count_rows(a, name, &rows));
    if (rows == 0) log_line(LOG_INFO, "%s%s: no row of data", a->folder, name);
    return write_file(a, list, name, state.bytes, rows);
}

/* If others have added files meanwhile, these suffice for now. */
static err take_locked(struct arrivals *a, int list)
{
    const int before = a->count;
    TRY(read_list(a));
    if (!a->has_header) TRY(write_header(a, list));
    return a->count > before ? OK : take_next(a, list);
}

static err look(struct arrivals *a)
{
    const int before = a->count;
    TRY(read_list(a));
    if (a->count > before) return OK;
    const int list = own_open_or_make(a->list);
    if (list < 0 && errno == ENOENT) return OK; /* the folder does not exist yet */
    if (list < 0) return fail(ERR_PEER, "%s: %s", a->list, strerror(errno));
    const bool is_locked = flock(list, LOCK_EX | LOCK_NB) == 0;
    err e = OK;
    if (is_locked)
        e = take_locked(a, list);
    else if (errno != EWOULDBLOCK && errno != EINTR)
        e = fail(ERR_PEER, "%s: cannot be locked: %s", a->list, strerror(errno));
    close(list);
    return e;
}

/* Errors of the list's disk are retried, as with checkpoints. */
err arrivals_look(struct arrivals *a)
{
    const err e = look(a);
    if (e != ERR_PEER) return e;
    log_limited(&a->fails, clock_ms(), LOG_WARNING, "%s; it is tried again", error_text());
    return OK;
}

int arrivals_find(const struct arrivals *a, int64_t row)
{
    int from = 0, to = a->count;
    while (to - from > 1) {
        const int middle = (from + to) / 2;
        if (a->at[middle].before <= row)
            from = middle;
        else
            to = middle;
    }
    return from;
}

/* ---- open and begin ---- */

/* At the start an unreadable list is an error. */
static err read_at_start(struct arrivals *a)
{
    const err e = read_list(a);
    return e == ERR_PEER ? ERR_IO : e;
}

static err split_pattern(struct arrivals *a)
{
    const struct strings *given = parts_given(a->source);
    if (!given) return fail(ERR_INPUT, "\"follow\": its rows come from no file");
    if (given->count != 1 || given->at[0][0] == '@')
        return fail(ERR_INPUT, "\"follow\": expected one pattern, such as \"new/*.csv\"");
    a->pattern = given->at[0];
    const char *slash = strrchr(a->pattern, '/'), *name = slash ? slash + 1 : a->pattern;
    char *folder = arena_string(&a->arena, a->pattern);
    folder[name - a->pattern] = '\0';
    a->folder = folder;
    if (!strpbrk(name, "*?[") || strpbrk(folder, "*?["))
        return fail(ERR_INPUT,
                    "\"follow\": %s: expected a pattern of names in one folder, such as "
                    "\"new/*.csv\"",
                    a->pattern);
    return OK;
}

err arrivals_open(struct arrivals *a, const struct source_spec *source,
                  const struct format_context *context)
{
    *a = (struct arrivals){.source = source, .context = *context};
    if (!context->index_folder || path_is_url(context->index_folder))
        return fail(ERR_INPUT,
                    "\"follow\" wants a train.checkpoint_dir of this host, where the list "
                    "of the files that were taken is kept");
    a->list = arena_format(&a->arena, "%s/followed", context->index_folder);
    TRY(split_pattern(a));
    return read_at_start(a);
}

void arrivals_close(struct arrivals *a)
{
    arena_free(&a->arena);
    *a = (struct arrivals){0};
}

err arrivals_begin(struct arrivals *a, const struct arrivals_share *share)
{
    TRY(read_at_start(a));
    const struct arrivals_share was = a->share;
    if (!a->has_header) {
        a->share = *share;
        return OK;
    }
    if (was.batch == share->batch && was.workers == share->workers &&
        was.per_push == share->per_push)
        return OK;
    return fail(ERR_INPUT,
                "%s: is of %d workers with batches of %lld and %d of them in a push, now there are "
                "%d with %lld and %d: rows would be lost; begin with another checkpoint_dir",
                a->list, was.workers, (long long)was.batch, was.per_push, share->workers,
                (long long)share->batch, share->per_push);
}

/* The newest taken file that still exists; or else the next one to be taken. */
err arrivals_example(struct arrivals *a, const char **ret_name)
{
    char *path;
    struct file_state state;
    bool is_whole = false;
    *ret_name = NULL;
    TRY(read_at_start(a));
    for (int i = a->count - 1; i >= 0 && !*ret_name; i--) {
        TRY(whole_path(a, a->at[i].name, &path));
        if (a->at[i].rows > 0 && file_is_there(path)) *ret_name = a->at[i].name;
        free(path);
    }
    if (*ret_name) return OK;
    char name[PATH_BYTES_MAX];
    bool is_end;
    TRY(is_marked(a, &is_end));
    TRY(find_whole(a, true, name, &state, &is_whole));
    if (is_whole) *ret_name = arena_string(&a->arena, name);
    if (name[0] || !is_end) return OK;
    return fail(ERR_INPUT, "%s: %s, and %s%s says that no more will come: put one %s, or remove %s",
                a->pattern,
                a->rows > 0 ? "the files that were taken are gone, so that their columns cannot be "
                              "known"
                            : "no file has a row of data",
                a->folder, a->source->end_marker, a->rows > 0 ? "back" : "there",
                a->source->end_marker);
}

void arrivals_pass(struct arrivals *a, const char *name)
{
    const int count = a->passed_count;
    if ((count & (count - 1)) == 0) { /* full: 0, 1, 2, 4, ... */
        const char **more = arena_array(&a->arena, 2 * (size_t)count + 1, sizeof *more);
        if (count) memcpy(more, a->passed, (size_t)count * sizeof *more);
        a->passed = more;
    }
    a->passed[a->passed_count++] = arena_string(&a->arena, name);
}
