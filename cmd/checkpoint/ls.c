/* ls.c - `dtrain checkpoint ls DIR`: the checkpoints of a folder, oldest step first.
 *
 * Lists those that the state file names and others in the folder: kept permanently, or copied there
 * by hand. One that cannot be opened is listed with its error, and the exit code is that of bad
 * input.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cmd/checkpoint/checkpoint.h"
#include "cmd/json_print.h"
#include "core/base/files/file_system.h"
#include "core/base/text.h"
#include "core/cluster/role/verdict.h"
#include "core/train/checkpoint/checkpoints.h"

#define INDEX_ENDING ".index"
#define LEASE_BEGINNING ".lease-"

enum { TIME_TEXT_MAX = 32, NAMES_MAX = 4 * CHECKPOINTS_MAX };

struct checkpoint_row {
    const char *prefix;
    bool is_named;  /* by the state file */
    bool is_newest; /* the newest of those named */
};

struct listing {
    const char *directory;
    char **names; /* file names of indices and leases, sorted */
    int name_count;
    char **named; /* prefixes that the state file names */
    int named_count;
    struct checkpoint_row *rows;
    int row_count;
    bool is_damaged;
    bool json;
    struct arena *arena;
};

/* ---- the folder ---- */

static int is_wanted(const struct dirent *entry)
{
    if (strncmp(entry->d_name, LEASE_BEGINNING, strlen(LEASE_BEGINNING)) == 0) return 1;
    return entry->d_name[0] != '.' && text_ends_with(entry->d_name, INDEX_ENDING);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static err take_folder(struct listing *l)
{
    struct dirent **found;
    const int count = scandir(l->directory, &found, is_wanted, alphasort);
    if (count < 0) return fail(ERR_INPUT, "%s: %s", l->directory, strerror(errno));
    l->names = arena_array(l->arena, (size_t)count + 1, sizeof *l->names);
    for (; l->name_count < count; l->name_count++) {
        l->names[l->name_count] = arena_string(l->arena, found[l->name_count]->d_name);
        free(found[l->name_count]);
    }
    free(found);
    return OK;
}

static err take_found(void *context, const char *path)
{
    struct listing *l = context;
    if (l->name_count == NAMES_MAX) return OK;
    l->names[l->name_count++] = arena_string(l->arena, base_name(path));
    return OK;
}

static err take_listed(struct listing *l)
{
    char *pattern = arena_format(l->arena, "%s/*" INDEX_ENDING, l->directory);
    l->names = arena_array(l->arena, NAMES_MAX, sizeof *l->names);
    TRY(files_match(pattern, strlen(l->directory), take_found, l));
    pattern = arena_format(l->arena, "%s/" LEASE_BEGINNING "*", l->directory);
    return files_match(pattern, strlen(l->directory), take_found, l);
}

static err read_folder(struct listing *l)
{
    if (!path_is_url(l->directory)) TRY(take_folder(l));
    if (path_is_url(l->directory) && files_can_be_listed(l->directory)) TRY(take_listed(l));
    if (l->name_count < NAMES_MAX) return OK;
    return fail(ERR_INPUT, "%s: more than %d files of checkpoints", l->directory, (int)NAMES_MAX);
}

/* Compares only the last path component: the state file may have relative or moved paths. */
static bool is_named(const struct listing *l, const char *name)
{
    for (int i = 0; i < l->named_count; i++)
        if (strcmp(base_name(l->named[i]), name) == 0) return true;
    return false;
}

static int compare_rows(const void *a, const void *b)
{
    const struct checkpoint_row *x = a, *y = b;
    const int64_t left = checkpoint_step(x->prefix), right = checkpoint_step(y->prefix);
    if (left != right) return left < right ? -1 : 1;
    return strcmp(x->prefix, y->prefix);
}

static void make_rows(struct listing *l, struct arena *arena)
{
    l->rows = arena_array(arena, (size_t)(l->name_count + l->named_count) + 1, sizeof *l->rows);
    for (int i = 0; i < l->named_count; i++)
        l->rows[l->row_count++] =
            (struct checkpoint_row){l->named[i], true, i == l->named_count - 1};
    for (int i = 0; i < l->name_count; i++) {
        const char *file = l->names[i];
        if (!text_ends_with(file, INDEX_ENDING)) continue;
        const int length = (int)(strlen(file) - strlen(INDEX_ENDING));
        char *name = arena_format(arena, "%.*s", length, file);
        if (file[0] == '.' || is_named(l, name)) continue;
        char *prefix = arena_format(arena, "%s/%s", l->directory, name);
        l->rows[l->row_count++] = (struct checkpoint_row){prefix, false, false};
    }
    qsort(l->rows, (size_t)l->row_count, sizeof *l->rows, compare_rows);
}

/* ---- one row ---- */

/* Modification time of the index, which is written last; local time. */
static const char *time_text(const char *prefix, char text[TIME_TEXT_MAX])
{
    char path[CHECKPOINT_PATH_MAX + sizeof INDEX_ENDING];
    struct file_state state;
    struct tm local;
    snprintf(path, sizeof path, "%s" INDEX_ENDING, prefix);
    if (file_look(path, &state) || !localtime_r(&(time_t){state.changed_s}, &local)) return "-";
    strftime(text, TIME_TEXT_MAX, "%Y-%m-%d %H:%M:%S", &local);
    return text;
}

static int64_t stored_bytes(const struct bundle *bundle)
{
    int64_t bytes = 0;
    for (int i = 0; i < bundle_entries(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        for (int s = 0; s < (entry->slice_count ? entry->slice_count : 1); s++)
            bytes += bundle_place(bundle, entry, s).bytes;
    }
    return bytes;
}

static int count_variables(const struct bundle *bundle)
{
    int count = 0;
    for (int i = 0; i < bundle_entries(bundle); i++)
        count += checkpoint_part(bundle, bundle_at(bundle, i)) == PART_VARIABLE;
    return count;
}

/* A lease is .lease-NAME.HOLDER; holders have no dot. */
static void print_leases(const struct listing *l, const char *prefix)
{
    const char *name = base_name(prefix);
    const size_t length = strlen(name);
    for (int i = 0; i < l->name_count; i++) {
        const char *file = l->names[i], *own = file + strlen(LEASE_BEGINNING);
        char path[CHECKPOINT_PATH_MAX];
        struct file_state state;
        if (strncmp(file, LEASE_BEGINNING, strlen(LEASE_BEGINNING)) != 0) continue;
        if (strncmp(own, name, length) != 0 || own[length] != '.') continue;
        if (strchr(own + length + 1, '.')) continue;
        snprintf(path, sizeof path, "%s/%s", l->directory, file);
        if (file_look(path, &state)) continue; /* released meanwhile */
        const long long age_s = (long long)(time(NULL) - state.changed_s);
        printf(", %s by %s, renewed %lld s ago", age_s < LEASE_MAX_S ? "leased" : "stale lease",
               own + length + 1, age_s);
    }
}

/* Opening checks the index and the sizes of data files; `verify` checks the data's checksums. */
static void print_row(struct listing *l, const struct checkpoint_row *row)
{
    char when[TIME_TEXT_MAX];
    struct bundle *bundle;
    printf("%10lld  %-19s  ", (long long)checkpoint_step(row->prefix),
           time_text(row->prefix, when));
    if (bundle_open(row->prefix, &bundle)) {
        printf("%s", error_text());
        l->is_damaged = true;
    } else {
        printf("%6d  %14lld  %9d  %s", bundle_shards(bundle), (long long)stored_bytes(bundle),
               count_variables(bundle), base_name(row->prefix));
        bundle_close(bundle);
    }
    if (row->is_newest) printf(", newest");
    if (!row->is_named && l->named_count) printf(", kept");
    print_leases(l, row->prefix);
    puts("");
}

/* The same as a row of the table; times are in seconds since 1970. */
static json_t *row_json(struct listing *l, const struct checkpoint_row *row)
{
    char path[CHECKPOINT_PATH_MAX + sizeof INDEX_ENDING];
    struct file_state state;
    struct bundle *bundle;
    snprintf(path, sizeof path, "%s" INDEX_ENDING, row->prefix);
    json_t *json = json_pack("{ss sI sb sb}", "checkpoint", row->prefix, "step",
                             (json_int_t)checkpoint_step(row->prefix), "newest", row->is_newest,
                             "kept", !row->is_named && l->named_count);
    if (file_look(path, &state) == OK)
        json_object_set_new(json, "time", json_integer(state.changed_s));
    if (bundle_open(row->prefix, &bundle)) {
        json_object_set_new(json, "error", json_string(error_text()));
        l->is_damaged = true;
        return json;
    }
    json_object_update_new(json, json_pack("{si sI si}", "shards", bundle_shards(bundle), "bytes",
                                           (json_int_t)stored_bytes(bundle), "variables",
                                           count_variables(bundle)));
    bundle_close(bundle);
    return json;
}

static err print_rows_json(struct listing *l)
{
    json_t *rows = json_array();
    for (int i = 0; i < l->row_count; i++) json_array_append_new(rows, row_json(l, &l->rows[i]));
    return json_print(json_pack("{ss so}", "folder", l->directory, "checkpoints", rows));
}

static err list(struct listing *l, struct arena *arena)
{
    TRY(read_folder(l));
    err e = checkpoint_list(l->directory, &l->named, &l->named_count);
    if (e && e != ERR_INPUT) return e; /* ERR_INPUT: no readable state file, which is fine */
    make_rows(l, arena);
    if (e && l->row_count == 0) return e;
    if (l->json) return print_rows_json(l);
    if (e) printf("no newest one: %s\n", error_text());
    printf("%10s  %-19s  %6s  %14s  %9s\n", "step", "time", "shards", "bytes", "variables");
    for (int i = 0; i < l->row_count; i++) print_row(l, &l->rows[i]);
    return OK;
}

err checkpoint_ls(const struct checkpoint_call *call, int *ret_code)
{
    struct listing l = {.directory = call->words[0], .json = call->json, .arena = call->arena};
    err e = list(&l, call->arena);
    free(l.named);
    if (l.is_damaged) *ret_code = EXIT_INPUT;
    return e;
}
