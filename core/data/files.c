/* files.c - see files.h. */
#include "core/data/files.h"

#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_BYTES_MAX = 4096, NAMES_GROW_MIN = 16 };

/* On their way: where they are, and how many fit. */
struct found {
    const struct format_context *context;
    struct arena *arena;
    struct strings files;
    int capacity;
};

static err add(struct found *f, const char *path)
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

static bool is_relative(const struct found *f, const char *path)
{
    return path[0] != '/' && f->context->directory && f->context->directory[0];
}

static const char *joined(const struct found *f, const char *path)
{
    return is_relative(f, path) ? arena_format(f->arena, "%s/%s", f->context->directory, path)
                                : path;
}

static bool is_there(const struct found *f, const char *path)
{
    return access(joined(f, path), F_OK) == 0;
}

/* The directory in front of a pattern is no part of it: its own stars mean themselves. */
static char *whole_pattern(const struct found *f, const char *pattern, size_t *ret_before)
{
    *ret_before = 0;
    if (!is_relative(f, pattern)) return arena_string(f->arena, pattern);
    const char *directory = f->context->directory;
    char *whole = arena_new(f->arena, 2 * strlen(directory) + strlen(pattern) + 2), *to = whole;
    for (const char *c = directory; *c; c++) {
        if (strchr("*?[]\\", *c)) *to++ = '\\';
        *to++ = *c;
    }
    sprintf(to, "/%s", pattern);
    *ret_before = strlen(directory) + 1;
    return whole;
}

static err add_fitting(struct found *f, const char *pattern)
{
    glob_t fitting = {0};
    size_t before;
    const int status = glob(whole_pattern(f, pattern, &before), 0, NULL, &fitting);
    err e = OK;
    if (status == GLOB_NOSPACE) e = fail(ERR_MEMORY, "no memory for names of files");
    if (status == GLOB_NOMATCH || status == GLOB_ABORTED)
        e = fail(ERR_INPUT, "no file fits \"%s\"", pattern);
    for (size_t i = 0; !e && i < fitting.gl_pathc; i++) e = add(f, fitting.gl_pathv[i] + before);
    globfree(&fitting);
    return e;
}

static err add_one(struct found *f, const char *path)
{
    return strpbrk(path, "*?[") && !is_there(f, path) ? add_fitting(f, path) : add(f, path);
}

/* ---- a file of names ---- */

static err add_line(struct found *f, char *line)
{
    size_t length = strlen(line);
    while (length > 0 && strchr(" \t\r\n", line[length - 1])) line[--length] = '\0';
    if (length == 0 || line[0] == '#') return OK;
    if (length + 1 >= NAME_BYTES_MAX)
        return fail(ERR_INPUT, "a name of more than %d bytes", NAME_BYTES_MAX - 2);
    if (!strpbrk(line, "*?[") && !is_there(f, line))
        return fail(ERR_INPUT, "%s: %s", line, strerror(ENOENT));
    return add_one(f, line);
}

static err add_lines(struct found *f, FILE *names, const char *path)
{
    char line[NAME_BYTES_MAX];
    for (int number = 1; fgets(line, sizeof line, names); number++) {
        const err e = add_line(f, line);
        if (e) return fail_prefix(e, "%s: line %d", path, number);
    }
    return ferror(names) ? fail(ERR_IO, "%s: %s", path, strerror(errno)) : OK;
}

static err add_names(struct found *f, const char *path)
{
    const char *whole = joined(f, path);
    const int before = f->files.count;
    FILE *names = fopen(whole, "re");
    if (!names) return fail(ERR_INPUT, "%s: %s", whole, strerror(errno));
    err e = add_lines(f, names, whole);
    fclose(names);
    if (!e && f->files.count == before) e = fail(ERR_INPUT, "%s: it names no file", whole);
    return e;
}

err files_find(const struct strings *given, const struct format_context *context,
               struct arena *arena, struct strings *ret)
{
    struct found f = {.context = context, .arena = arena};
    for (int i = 0; i < given->count; i++) {
        const char *path = given->at[i];
        TRY(path[0] == '@' ? add_names(&f, path + 1) : add_one(&f, path));
    }
    *ret = f.files;
    return OK;
}
