/* faults.c - see faults.h. Each wrapper is one system call. */
#include "tests/core/train/checkpoint/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    int left; /* calls until it strikes; 0: unarmed, or it has */
    int error;
    bool has_struck;
} fault;

void faults_arm(int call, int error)
{
    fault.left = call;
    fault.error = error;
    fault.has_struck = false;
}

bool faults_disarm(void)
{
    fault.left = 0;
    return fault.has_struck;
}

static bool strikes(void)
{
    if (fault.left == 0 || --fault.left > 0) return false;
    fault.has_struck = true;
    if (fault.error == 0) raise(SIGKILL);
    errno = fault.error;
    return true;
}

/* ld makes the real ones of these names. */
int __real_open64(const char *path, int flags, ...);
ssize_t __real_write(int file, const void *from, size_t bytes);
int __real_fsync(int file);
int __real_rename(const char *from, const char *to);
int __real_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags);
int __real_link(const char *from, const char *to);
int __real_unlink(const char *path);
int __real_unlinkat(int folder, const char *path, int flags);
int __real_mkdir(const char *path, mode_t mode);
int __real_rmdir(const char *path);

int __wrap_open64(const char *path, int flags, ...);
ssize_t __wrap_write(int file, const void *from, size_t bytes);
int __wrap_fsync(int file);
int __wrap_rename(const char *from, const char *to);
int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags);
int __wrap_link(const char *from, const char *to);
int __wrap_unlink(const char *path);
int __wrap_unlinkat(int folder, const char *path, int flags);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rmdir(const char *path);

int __wrap_open64(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    return strikes() ? -1 : __real_open64(path, flags, mode);
}

/* What does not go to a file (the log) never fails. */
ssize_t __wrap_write(int file, const void *from, size_t bytes)
{
    return file > STDERR_FILENO && strikes() ? -1 : __real_write(file, from, bytes);
}

int __wrap_fsync(int file)
{
    return strikes() ? -1 : __real_fsync(file);
}

int __wrap_rename(const char *from, const char *to)
{
    return strikes() ? -1 : __real_rename(from, to);
}

int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags)
{
    return strikes() ? -1 : __real_renameat2(from_folder, from, to_folder, to, flags);
}

int __wrap_link(const char *from, const char *to)
{
    return strikes() ? -1 : __real_link(from, to);
}

int __wrap_unlink(const char *path)
{
    return strikes() ? -1 : __real_unlink(path);
}

int __wrap_unlinkat(int folder, const char *path, int flags)
{
    return strikes() ? -1 : __real_unlinkat(folder, path, flags);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    return strikes() ? -1 : __real_mkdir(path, mode);
}

int __wrap_rmdir(const char *path)
{
    return strikes() ? -1 : __real_rmdir(path);
}
