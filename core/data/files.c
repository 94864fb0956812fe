/* files.c - see files.h. */
#include "core/data/files.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/files/file_system.h"
#include "core/base/fingerprint.h"
#include "core/base/log.h"
#include "core/data/input.h"
#include "core/data/said_once.h"

enum { NAME_BYTES_MAX = PATH_BYTES_MAX, NAMES_GROW_MIN = 16, NAMES_BYTES_MAX = 64 << 20 };

/* Files found so far; capacity: of the array. */
struct file_search {
    const struct format_context *context;
    struct arena *arena;
    struct strings files;
    int capacity;
};

static err add(struct file_search *f, const char *path)
{
    if (f->files.count == FIELD_LIST_MAX)
        return fail(ERR_INPUT, "more than %d files", (int)FIELD_LIST_MAX);
    if (f->files.count == f->capacity) {
        const int capacity = f->capacity ? 2 * f->capacity : NAMES_GROW_MIN;
        const char **at = arena_array(f->arena, (size_t)capacity, sizeof *at);
        if (f->files.count) memcpy(at, f->files.at, (size_t)f->files.count * sizeof *at);
        f->files.at = at;
        f->capacity = capacity;
    }
    f->files.at[f->files.count++] = arena_string(f->arena, path);
    return OK;
}

static err joined(const struct file_search *f, const char *path, const char **ret)
{
    char *whole = path_join(f->context->directory, path);
    if (!whole) return fail(ERR_MEMORY, "no memory for names of files");
    *ret = arena_string(f->arena, whole);
    free(whole);
    return OK;
}

struct fitting {
    struct file_search *found;
    const char *pattern;
    size_t before; /* bytes of the directory that was prepended to the pattern */
    bool is_any, is_any_hidden;
};

/* Whether any component of the path begins with . or _ and that of the pattern does not: _SUCCESS,
 * _temporary and the like are not data. Both have the same number of components. */
static bool is_hidden(const char *path, const char *pattern)
{
    while (path && pattern) {
        if (strchr("._", *path) && *path && *path != *pattern) return true;
        path = strchr(path, '/');
        pattern = strchr(pattern, '/');
        if (path) path++;
        if (pattern) pattern++;
    }
    return false;
}

static err add_fitting(void *context, const char *path)
{
    struct fitting *f = context;
    path += f->before;
    f->is_any_hidden |= is_hidden(path, f->pattern);
    if (is_hidden(path, f->pattern)) return OK;
    f->is_any = true;
    return add(f->found, path);
}

/* Wildcards in the directory before the pattern are literal. */
static err add_all_fitting(struct file_search *f, const char *pattern, const char *whole)
{
    struct fitting fitting = {
        .found = f, .pattern = pattern, .before = strlen(whole) - strlen(pattern)};
    TRY(files_match(whole, fitting.before, add_fitting, &fitting));
    if (fitting.is_any) return OK;
    const err e = fail(ERR_INPUT, "no file fits \"%s\"%s", pattern,
                       fitting.is_any_hidden
                           ? " but those whose names begin with . or _, which are none of data"
                           : "");
    const bool may_lie_elsewhere = !fitting.is_any_hidden && path_is_relative(pattern);
    return may_lie_elsewhere ? input_fail_absent(f->context) : e;
}

static err add_one(struct file_search *f, const char *path)
{
    const char *whole = NULL;
    if (!strpbrk(path, "*?[")) return add(f, path);
    TRY(joined(f, path, &whole));
    if (f->context->only_here && path_is_url(whole)) return add(f, path);
    if (!files_can_be_listed(whole) || file_is_there(whole)) return add(f, path);
    return add_all_fitting(f, path, whole);
}

/* ---- a file of names ---- */

/* Checks that the file exists, as the line number is known here; URLs are checked when read. */
static err check_name(const struct file_search *f, const char *path)
{
    const char *whole = NULL;
    if (strpbrk(path, "*?[")) return OK;
    TRY(joined(f, path, &whole));
    if (path_is_url(whole) || file_is_there(whole)) return OK;
    const err e = fail(ERR_INPUT, "%s: %s", path, strerror(ENOENT));
    return path_is_relative(path) ? input_fail_absent(f->context) : e;
}

static err add_line(struct file_search *f, char *line)
{
    line += strspn(line, " \t");
    size_t length = strlen(line);
    while (length > 0 && strchr(" \t\r\n", line[length - 1])) line[--length] = '\0';
    if (length == 0 || line[0] == '#') return OK;
    if (length + 1 >= NAME_BYTES_MAX)
        return fail(ERR_INPUT, "a name of more than %d bytes", NAME_BYTES_MAX - 2);
    TRY(check_name(f, line));
    return add_one(f, line);
}

static err add_lines(struct file_search *f, FILE *names, const char *path)
{
    char line[NAME_BYTES_MAX];
    for (int number = 1; fgets(line, sizeof line, names); number++) {
        const err e = add_line(f, line);
        if (e) return fail_prefix(e, "%s: line %d", path, number);
    }
    return ferror(names) ? fail(ERR_IO, "%s: %s", path, strerror(errno)) : OK;
}

static err add_names(struct file_search *f, const char *path)
{
    const char *whole = NULL;
    char shown[PATH_BYTES_MAX];
    const int before = f->files.count;
    FILE *names;
    TRY(joined(f, path, &whole));
    TRY(file_open_text(whole, NAMES_BYTES_MAX, &names));
    file_skip_mark(names);
    err e = add_lines(f, names, path_shown(whole, shown));
    fclose(names);
    if (!e && f->files.count == before) e = fail(ERR_INPUT, "%s: it names no file", shown);
    return e;
}

/* ---- a file that is read twice ---- */

struct named_file {
    const char *path; /* as given */
    const char *name; /* without leading "./" */
    size_t bytes;     /* of the name without .gz or .zst */
};

static struct named_file name_of(const char *path)
{
    static const char *const endings[] = {".gz", ".zst"};
    struct named_file n = {path, path, 0};
    while (!strncmp(n.name, "./", 2)) n.name += 2;
    n.bytes = strlen(n.name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        const size_t length = strlen(endings[i]);
        if (n.bytes > length && !strcmp(n.name + n.bytes - length, endings[i])) {
            n.bytes -= length;
            break;
        }
    }
    return n;
}

static int compare(const void *a, const void *b)
{
    const struct named_file *x = a, *y = b;
    const int order = memcmp(x->name, y->name, x->bytes < y->bytes ? x->bytes : y->bytes);
    if (order) return order;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* Files that are read twice, of one kind */
struct doubles {
    const struct named_file *at;
    int count;
    uint64_t what; /* a fingerprint of all names */
};

static void note_double(struct doubles *d, const struct named_file *at)
{
    if (!d->count++) d->at = at;
    d->what = fingerprint_join(d->what, fingerprint(at->name, strlen(at->name)));
}

static void say_listed_twice(const struct doubles *d)
{
    if (d->count == 0 || !said_first(SAID_LISTED_TWICE, d->what)) return;
    if (d->count == 1)
        log_line(LOG_WARNING, "%s: is listed twice: each of its rows counts twice", d->at->path);
    else
        log_line(LOG_WARNING,
                 "%s: is listed twice, and so are others, %d times in all: each of their rows "
                 "counts twice",
                 d->at->path, d->count);
}

static void say_packed_beside(const struct doubles *d)
{
    char more[64] = "";
    if (d->count == 0 || !said_first(SAID_PACKED_BESIDE, d->what)) return;
    if (d->count > 1) snprintf(more, sizeof more, ", and so are %d pairs in all", d->count);
    log_line(LOG_WARNING,
             "%s and %s: both are read%s; if one is the other in compressed form, leave it out, or "
             "each of its rows counts twice",
             d->at[0].path, d->at[1].path, more);
}

/* For lists of overlapping patterns, and folders that have both packed and unpacked copies. */
static void warn_of_doubles(const struct strings *files)
{
    struct doubles listed = {0}, packed = {0};
    struct named_file *sorted = calloc((size_t)files->count + 1, sizeof *sorted);
    if (!sorted) return; /* no warning then */
    for (int i = 0; i < files->count; i++) sorted[i] = name_of(files->at[i]);
    qsort(sorted, (size_t)files->count, sizeof *sorted, compare);
    for (int i = 0; i + 1 < files->count; i++) {
        const struct named_file *a = &sorted[i], *b = &sorted[i + 1];
        if (a->bytes == b->bytes && memcmp(a->name, b->name, a->bytes) == 0)
            note_double(strcmp(a->name, b->name) == 0 ? &listed : &packed, a);
    }
    say_listed_twice(&listed);
    say_packed_beside(&packed);
    free(sorted);
}

err files_find(const struct strings *given, const struct format_context *context,
               struct arena *arena, struct strings *ret)
{
    struct file_search f = {.context = context, .arena = arena};
    for (int i = 0; i < given->count; i++) {
        const char *path = given->at[i];
        TRY(path[0] == '@' ? add_names(&f, path + 1) : add_one(&f, path));
    }
    warn_of_doubles(&f.files);
    *ret = f.files;
    return OK;
}
