/* own.c - see own.h. */
#include "core/base/files/own.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRIES_MAX = 16 /* another process may create the name at the same moment */ };

/* O_NONBLOCK has no effect on regular files. */
enum { NO_LINK = O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC };

static int refuse(int file, int why)
{
    if (file >= 0) close(file);
    errno = why;
    return -1;
}

int own_open(const char *path, int flags)
{
    struct stat status;
    const int file = open(path, flags | NO_LINK);
    if (file < 0) return -1;
    if (fstat(file, &status)) return refuse(file, errno);
    return S_ISREG(status.st_mode) ? file : refuse(file, EINVAL);
}

FILE *own_read(const char *path)
{
    const int file = own_open(path, O_RDONLY);
    FILE *stream = file >= 0 ? fdopen(file, "r") : NULL;
    if (file >= 0 && !stream) (void)refuse(file, errno);
    return stream;
}

int own_open_or_make(const char *path)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        int file = own_open(path, O_RDWR);
        if (file >= 0) return file;
        const bool is_none = errno == ELOOP || errno == EINVAL || errno == ENXIO;
        if (errno != ENOENT && !is_none) return -1;
        if (is_none && unlink(path) && errno != ENOENT) return -1;
        file = open(path, O_RDWR | O_CREAT | O_EXCL | NO_LINK, 0666);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return refuse(-1, EEXIST);
}

int own_make(const char *path)
{
    for (int i = 0; i < TRIES_MAX; i++) {
        const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | NO_LINK, 0666);
        if (file >= 0 || errno != EEXIST) return file;
        if (unlink(path) && errno != ENOENT) return -1;
    }
    return refuse(-1, EEXIST);
}

bool own_write(int file, const void *from, size_t bytes)
{
    const char *at = from, *const end = at + bytes;
    while (at < end) { /* ends: each time more is written */
        const ssize_t done = write(file, at, (size_t)(end - at));
        if (done < 0 && errno == EINTR) continue;
        if (done == 0) errno = ENOSPC;
        if (done <= 0) return false;
        at += done;
    }
    return true;
}

bool own_folder(const char *path)
{
    struct stat status;
    for (int i = 0; i < TRIES_MAX; i++) {
        if (mkdir(path, 0777) == 0) return true;
        if (errno != EEXIST) return false;
        if (lstat(path, &status) == 0 && S_ISDIR(status.st_mode)) return true;
        if (unlink(path) && errno != ENOENT) return false;
    }
    errno = EEXIST;
    return false;
}

int own_folder_open(const char *path)
{
    return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}
