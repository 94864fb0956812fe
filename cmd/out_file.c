/* out_file.c - see out_file.h. */
#include "cmd/out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/local.h"
#include "core/base/files/own.h"

/* ---- behind a URL ---- */

static ssize_t append(void *writer, const char *from, size_t bytes)
{
    if (file_append(writer, from, bytes) == OK) return (ssize_t)bytes;
    errno = EIO;
    return 0;
}

static err open_there(struct out_file *o)
{
    const cookie_io_functions_t calls = {.write = append};
    TRY(file_create(o->path, &o->writer));
    o->file = fopencookie(o->writer, "w", calls);
    return o->file ? OK : fail(ERR_MEMORY, "no memory for %s", o->path);
}

/* The reason for a failed write is the thread's last error. */
static err publish_there(struct out_file *o)
{
    const bool is_written = !fflush(o->file) && !ferror(o->file) && !o->writer->has_failed;
    return is_written ? file_finish(o->writer) : ERR_IO;
}

/* ---- here ---- */

/* Follows symbolic links; false: there is no such file yet. */
static bool find_old(const struct out_file *o, struct statx *ret)
{
    return statx(AT_FDCWD, o->path, 0, STATX_TYPE | STATX_MODE, ret) == 0;
}

/* A path such as /proc/self/fd/N may lead to a file without a name. */
static bool can_be_replaced(const struct out_file *o, const struct statx *old)
{
    char named[PATH_MAX];
    return S_ISREG(old->stx_mode) && !(old->stx_attributes & STATX_ATTR_MOUNT_ROOT) &&
           realpath(o->path, named);
}

static err open_as_it_is(struct out_file *o)
{
    const err e = local_open_output(o->path, &o->file);
    return e ? fail(ERR_IO, "%s: %s", o->path, error_text()) : OK;
}

/* Creates the temporary file with the permissions of the old one. */
static err open_beside(struct out_file *o, const struct statx *old)
{
    const int descriptor = own_make(o->temporary);
    if (descriptor < 0) return fail(ERR_IO, "%s: %s", o->path, strerror(errno));
    if (old) (void)!fchmod(descriptor, old->stx_mode & 0777);
    o->file = fdopen(descriptor, "w");
    if (o->file) return OK;
    close(descriptor);
    return fail(ERR_MEMORY, "no memory for %s", o->path);
}

static err open_here(struct out_file *o)
{
    struct statx old;
    const bool is_there = find_old(o, &old);
    if (is_there && !can_be_replaced(o, &old)) return open_as_it_is(o);
    o->target = is_there ? realpath(o->path, NULL) : strdup(o->path);
    if (!o->target || asprintf(&o->temporary, "%s.partial-%d", o->target, (int)getpid()) < 0) {
        o->temporary = NULL;
        return fail(ERR_MEMORY, "no memory for %s", o->path);
    }
    const err e = open_beside(o, is_there ? &old : NULL);
    if (e != ERR_IO) return e;
    free(o->temporary);
    o->temporary = NULL;
    return is_there && access(o->path, W_OK) == 0 ? open_as_it_is(o) : e;
}

err out_file_open(struct out_file *o, const char *path)
{
    *o = (struct out_file){.path = strdup(path)};
    if (!o->path) return fail(ERR_MEMORY, "no memory for %s", path);
    return path_is_url(path) ? open_there(o) : open_here(o);
}

/* Closes it first: only that tells whether the last bytes were written. */
static err publish_as_it_is(struct out_file *o)
{
    const int failed = fclose(o->file);
    o->file = NULL;
    return failed ? fail(ERR_IO, "%s: %s", o->path, strerror(errno)) : OK;
}

err out_file_publish(struct out_file *o)
{
    if (o->writer) return publish_there(o);
    if (ferror(o->file) || fflush(o->file)) return fail(ERR_IO, "%s: %s", o->path, strerror(errno));
    if (!o->temporary) return publish_as_it_is(o);
    if (fsync(fileno(o->file)) || rename(o->temporary, o->target))
        return fail(ERR_IO, "%s: %s", o->path, strerror(errno));
    free(o->temporary);
    o->temporary = NULL;
    return publish_as_it_is(o);
}

void out_file_close(struct out_file *o)
{
    if (o->file) {
        __fpurge(o->file);
        if (!o->writer && !o->temporary) (void)!ftruncate(fileno(o->file), 0);
        fclose(o->file);
    }
    if (o->temporary) unlink(o->temporary);
    file_drop(o->writer);
    free(o->path);
    free(o->target);
    free(o->temporary);
    *o = (struct out_file){0};
}

err out_file_remove(const char *path)
{
    if (path_is_url(path) || unlink(path) == 0 || errno == ENOENT) return OK;
    return fail(ERR_IO, "%s: %s", path, strerror(errno));
}
