/* file_system.c - which file system a path is of: see file_system.h. */
#include "core/base/files/file_system.h"

#include <assert.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/cache.h"
#include "core/base/files/local.h"
#include "core/base/files/own.h"
#include "core/base/files/pipe.h"

/* Set at start and never again */
static const struct file_system *systems[FILE_SYSTEMS_MAX];
static int system_count;

void file_system_register(const struct file_system *system)
{
    assert(system_count < FILE_SYSTEMS_MAX);
    systems[system_count++] = system;
}

bool path_is_relative(const char *path)
{
    return path[0] != '/' && !path_is_url(path) && strcmp(path, STANDARD_INPUT) != 0;
}

char *path_join(const char *directory, const char *path)
{
    char *joined = NULL;
    const bool is_here = !directory || !directory[0] || strcmp(directory, ".") == 0;
    if (!path_is_relative(path) || is_here) return strdup(path);
    const bool has_slash = directory[strlen(directory) - 1] == '/' && path_is_url(directory);
    return asprintf(&joined, "%s%s%s", directory, has_slash ? "" : "/", path) < 0 ? NULL : joined;
}

char *path_from_here(const char *path)
{
    char *const here = getcwd(NULL, 0), *const joined = path_join(here, path);
    free(here);
    return joined;
}

/* ---- whose it is ---- */

static bool has_scheme(const struct file_system *system, const char *path, size_t bytes)
{
    for (const char *const *s = system->schemes; *s; s++)
        if (strlen(*s) == bytes && memcmp(*s, path, bytes) == 0) return true;
    return false;
}

/* NULL: unknown scheme */
static const struct file_system *system_of(const char *path)
{
    const size_t bytes = url_scheme_bytes(path);
    if (!bytes) return &file_system_local;
    for (int i = 0; i < system_count; i++)
        if (has_scheme(systems[i], path, bytes)) return systems[i];
    return NULL;
}

static err unknown_scheme(const char *path)
{
    char shown[PATH_BYTES_MAX], known[256] = "";
    size_t used = 0;
    if (system_count == 0)
        return fail(ERR_INPUT,
                    "%s: this dtrain is built without URLs: build it with libcurl4-openssl-dev, "
                    "libssl-dev and libexpat1-dev",
                    path_shown(path, shown));
    for (int i = 0; i < system_count; i++)
        for (const char *const *s = systems[i]->schemes; *s && used < sizeof known; s++)
            used += (size_t)snprintf(known + used, sizeof known - used, "%s%s://", used ? ", " : "",
                                     *s);
    return fail(ERR_INPUT, "%s: unknown scheme; known are %s", path_shown(path, shown), known);
}

err file_open(const char *path, struct file **ret)
{
    const struct file_system *system = system_of(path);
    if (!system) return unknown_scheme(path);
    return system->open(system, path, ret);
}

err file_open_or_pipe(const char *path, struct file **ret)
{
    struct file *file = NULL;
    if (!path_is_url(path)) return local_open_or_pipe(path, ret);
    TRY(file_open(path, &file));
    return cache_open(path, file, ret);
}

err file_read_at(struct file *f, uint64_t offset, uint64_t until, void *to, size_t max,
                 size_t *ret_bytes)
{
    return f->system->read(f, offset, until, to, max, ret_bytes);
}

err file_state(struct file *f, struct file_state *ret)
{
    return f->system->state(f, ret);
}

void file_close(struct file *f)
{
    if (f) f->system->close(f);
}

/* ---- texts ---- */

static err read_whole(struct file *f, size_t max, char **ret)
{
    const uint64_t bytes = f->state.bytes;
    size_t done = 0, got = 1;
    if (bytes > max)
        return fail(ERR_INPUT, "%s: has %llu bytes, at most %zu are read", f->name,
                    (unsigned long long)bytes, max);
    *ret = malloc((size_t)bytes + 1);
    if (!*ret) return fail(ERR_MEMORY, "%s: no memory to read it", f->name);
    for (; done < bytes && got > 0; done += got)
        TRY(file_read_at(f, done, 0, *ret + done, (size_t)bytes - done, &got));
    return OK;
}

struct whole_text {
    char *at;
    size_t done, bytes;
};

static ssize_t give_text(void *cookie, char *to, size_t max)
{
    struct whole_text *t = cookie;
    const size_t left = t->bytes - t->done, bytes = left < max ? left : max;
    memcpy(to, t->at + t->done, bytes);
    t->done += bytes;
    return (ssize_t)bytes;
}

static int close_text(void *cookie)
{
    struct whole_text *t = cookie;
    free(t->at);
    free(t);
    return 0;
}

static err open_fetched(const char *path, size_t max, struct whole_text *text)
{
    struct file *file;
    TRY(file_open(path, &file));
    const err e = read_whole(file, max, &text->at);
    text->bytes = (size_t)file->state.bytes;
    file_close(file);
    return e;
}

static err open_text_here(const char *path, size_t max, FILE **ret)
{
    struct stat status;
    TRY(local_open_text(path, ret));
    if (fstat(fileno(*ret), &status) || status.st_size <= 0 || (uint64_t)status.st_size <= max)
        return OK;
    fclose(*ret);
    *ret = NULL;
    return fail(ERR_INPUT, "%s: has %lld bytes, at most %zu are read", path,
                (long long)status.st_size, max);
}

err file_open_text(const char *path, size_t max, FILE **ret)
{
    if (!path_is_url(path)) return open_text_here(path, max, ret);
    struct whole_text *text = calloc(1, sizeof *text);
    err e = text ? open_fetched(path, max, text) : fail(ERR_MEMORY, "no memory to read a text");
    const cookie_io_functions_t calls = {.read = give_text, .close = close_text};
    *ret = e ? NULL : fopencookie(text, "r", calls);
    if (*ret) return OK;
    if (text) close_text(text);
    return e ? e : fail(ERR_MEMORY, "no memory to read a text");
}

void file_skip_mark(FILE *file)
{
    static const char mark[] = "\xef\xbb\xbf";
    int at = 0, c = 0;
    while (at < 3 && (c = getc(file)) == (unsigned char)mark[at]) at++;
    if (at == 3) return;
    if (c != EOF) ungetc(c, file);
    while (at > 0) ungetc((unsigned char)mark[--at], file); /* glibc takes back any number */
}

err file_look(const char *path, struct file_state *ret)
{
    struct file *file;
    TRY(file_open(path, &file));
    *ret = file->state;
    file_close(file);
    return OK;
}

err file_find(const char *path, bool *ret_is_there, struct file_state *ret)
{
    const err e = file_look(path, ret);
    const bool is_absent = e == ERR_INPUT && (errno == ENOENT || errno == ENOTDIR);
    if (e && !is_absent) return e;
    *ret_is_there = !e;
    return OK;
}

bool file_is_there(const char *path)
{
    struct file_state state;
    return path_is_url(path) ? file_look(path, &state) == OK : local_is_there(path);
}

/* ---- writing ---- */

static err find_writable(const char *path, const struct file_system **ret)
{
    char shown[PATH_BYTES_MAX];
    const struct file_system *system = system_of(path);
    if (!system) return unknown_scheme(path);
    if (!system->create)
        return fail(ERR_INPUT, "%s: nothing can be written there", path_shown(path, shown));
    *ret = system;
    return OK;
}

err file_create(const char *path, struct file_writer **ret)
{
    const struct file_system *system = NULL;
    TRY(find_writable(path, &system));
    return system->create(system, path, ret);
}

err file_append(struct file_writer *w, const void *from, size_t bytes)
{
    const err e = w->system->write(w, from, bytes);
    w->has_failed |= e != OK;
    w->bytes += bytes;
    return e;
}

err file_finish(struct file_writer *w)
{
    return w->system->finish(w);
}

void file_drop(struct file_writer *w)
{
    if (w) w->system->drop(w);
}

err file_put(const char *path, const void *from, size_t bytes)
{
    struct file_writer *w = NULL;
    TRY(file_create(path, &w));
    err e = file_append(w, from, bytes);
    if (!e) e = file_finish(w);
    file_drop(w);
    return e;
}

bool files_can_be_written(const char *path)
{
    const struct file_system *system = system_of(path);
    return system && (system->create || !path_is_url(path));
}

err file_remove(const char *path)
{
    const struct file_system *system = NULL;
    TRY(find_writable(path, &system));
    return system->remove(path);
}

err file_remove_folder(const char *path)
{
    const struct file_system *system = NULL;
    TRY(find_writable(path, &system));
    return system->remove_folder ? system->remove_folder(path) : OK;
}

err file_move(const char *from, const char *to)
{
    const struct file_system *system = NULL;
    TRY(find_writable(from, &system));
    return system->move(from, to);
}

err files_visit(const char *folder, file_found *found, void *context)
{
    const struct file_system *system = NULL;
    TRY(find_writable(folder, &system));
    return system->visit(system, folder, found, context);
}

/* ---- patterns ---- */

bool files_can_be_listed(const char *path)
{
    const struct file_system *system = system_of(path);
    return system && system->match;
}

err files_match(const char *pattern, size_t plain, file_found *found, void *context)
{
    const struct file_system *system = system_of(pattern);
    if (!system) return unknown_scheme(pattern);
    if (!system->match)
        return fail(ERR_INPUT, "%.*s: its files cannot be listed", (int)plain, pattern);
    return system->match(system, pattern, plain, found, context);
}

char *pattern_escape(const char *pattern, size_t plain)
{
    char *escaped = malloc(plain + strlen(pattern) + 1), *to = escaped;
    if (!escaped) return NULL;
    for (size_t i = 0; i < plain; i++) {
        if (strchr("*?[]\\", pattern[i])) *to++ = '\\';
        *to++ = pattern[i];
    }
    strcpy(to, pattern + plain);
    return escaped;
}

/* As glob(3): a leading dot is matched only by a dot. */
bool pattern_fits(const char *escaped, const char *path)
{
    return fnmatch(escaped, path, FNM_PATHNAME | FNM_PERIOD) == 0;
}
