/* faults.c - see faults.h. Each wrapper is one system call. */
#include "tests/core/train/checkpoint/faults.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
    int left; /* calls until it strikes; 0: unarmed, or it has */
    int error;
    bool has_struck;
    void (*other)(void);
    int killed_after;
} fault;

static bool rename_replaces;

void faults_arm(int call, int error)
{
    fault.left = call;
    fault.error = error;
    fault.has_struck = false;
    fault.other = NULL;
}

void faults_arm_other(int call, void (*other)(void), int killed_after)
{
    faults_arm(call, 0);
    fault.other = other;
    fault.killed_after = killed_after;
}

void faults_rename_replaces(bool is_so)
{
    rename_replaces = is_so;
}

bool faults_disarm(void)
{
    fault.left = 0;
    fault.other = NULL;
    return fault.has_struck;
}

static bool strikes(void)
{
    if (fault.left == 0 || fault.other || --fault.left > 0) return false;
    fault.has_struck = true;
    if (fault.error == 0) raise(SIGKILL);
    errno = fault.error;
    return true;
}

/* Does the file at `to` get its name in this call, as one of a checkpoint? */
static bool strikes_name(const char *to)
{
    if (!fault.other) return strikes();
    if (!strstr(to, "/model.ckpt-") || --fault.left > 0) return false;
    fault.has_struck = true;
    void (*const other)(void) = fault.other;
    fault.other = NULL;
    fault.left = 0;
    other();
    fault.left = fault.killed_after;
    return false;
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
    return strikes_name(to) ? -1 : __real_rename(from, to);
}

int __wrap_renameat2(int from_folder, const char *from, int to_folder, const char *to,
                     unsigned flags)
{
    if (strikes_name(to)) return -1;
    if (!rename_replaces) return __real_renameat2(from_folder, from, to_folder, to, flags);
    errno = EINVAL;
    return -1;
}

int __wrap_link(const char *from, const char *to)
{
    return strikes_name(to) ? -1 : __real_link(from, to);
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
