/* replace.c - see replace.h. */
#include "core/base/files/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/files/file_system.h"
#include "core/base/files/own.h"
#include "core/base/log.h"
#include "core/base/random.h"

static err system_failed(const char *path)
{
    return fail(ERR_IO, "%s: %s", path, strerror(errno));
}

err file_sync_folder(const char *path)
{
    if (path_is_url(path)) return OK;
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!folder) return fail(ERR_MEMORY, "no memory for the folder of %s", path);
    const int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* EINVAL: a file system that cannot sync folders
     */
    const bool is_done = file >= 0 && (fsync(file) == 0 || errno == EINVAL);
    const err e = is_done ? OK : system_failed(folder);
    if (file >= 0) close(file);
    free(folder);
    return e;
}

/* Network file systems may report errors only in close(). */
static err write_whole(int file, const char *path, const void *from, size_t bytes)
{
    const bool is_written = own_write(file, from, bytes) && fsync(file) == 0;
    const err e = is_written ? OK : system_failed(path);
    return close(file) && !e ? system_failed(path) : e;
}

static err replace(const char *path, const char *temporary, const void *from, size_t bytes)
{
    const int file = own_make(temporary);
    if (file < 0) return system_failed(temporary);
    err e = write_whole(file, path, from, bytes);
    if (!e && rename(temporary, path)) e = system_failed(path);
    if (e) unlink(temporary);
    return e;
}

/* After the rename it has succeeded: failing to sync the folder is only logged. */
err file_replace(const char *path, const void *from, size_t bytes)
{
    char *temporary;
    if (path_is_url(path)) return file_put(path, from, bytes);
    if (asprintf(&temporary, "%s.tmp", path) < 0)
        return fail(ERR_MEMORY, "no memory to write %s", path);
    const err e = replace(path, temporary, from, bytes);
    free(temporary);
    if (!e && file_sync_folder(path)) log_line(LOG_WARNING, "%s", error_text());
    return e;
}

bool file_replace_cached(const char *path, const struct iovec *pieces, int count)
{
    const uint64_t own = random_u64((uint64_t)getpid(), clock_ns());
    char *temporary;
    if (asprintf(&temporary, "%s.%016llx", path, (unsigned long long)own) < 0) return false;
    const int file = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool is_written = file >= 0;
    for (int i = 0; is_written && i < count; i++)
        is_written = own_write(file, pieces[i].iov_base, pieces[i].iov_len);
    is_written = is_written && rename(temporary, path) == 0;
    const int why = errno;
    if (file >= 0) close(file);
    if (file >= 0 && !is_written) unlink(temporary);
    free(temporary);
    errno = why;
    return is_written;
}
