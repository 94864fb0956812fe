/* local.c - see local.h. */
#include "core/base/files/local.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/pipe.h"

enum { READ_BYTES_MAX = 1 << 30 }; /* of one system call */

struct local_file {
    struct file file; /* must be first */
    int descriptor;
    char path[];
};

/* ERR_INPUT for what the user can fix by another path or other rights, else ERR_IO. */
static err system_failed(const char *path)
{
    const int why = errno;
    const bool is_users =
        why == ENOENT || why == ENOTDIR || why == EACCES || why == ELOOP || why == ENAMETOOLONG;
    const err e = fail(is_users ? ERR_INPUT : ERR_IO, "%s: %s", path, strerror(why));
    errno = why;
    return e;
}

/* Sockets, and missing devices, cannot even be opened. */
static err fail_special(const char *path)
{
    const err e =
        fail(ERR_INPUT, "%s: expected a regular file, this is a device, pipe or socket", path);
    errno = EINVAL;
    return e;
}

static err find_state(struct file *file, struct file_state *ret)
{
    const struct local_file *f = (const struct local_file *)file;
    struct stat status;
    if (fstat(f->descriptor, &status)) return fail(ERR_IO, "%s: %s", f->path, strerror(errno));
    if (S_ISDIR(status.st_mode))
        return errno = EINVAL,
               fail(ERR_INPUT, "%s: expected a regular file, this is a folder", f->path);
    /* only regular files have a size to check headers against */
    if (!S_ISREG(status.st_mode)) return fail_special(f->path);
    *ret = (struct file_state){
        .bytes = (uint64_t)status.st_size,
        .changed_s = status.st_mtim.tv_sec,
        .changed_ns = status.st_mtim.tv_nsec,
        .touched_s = status.st_ctim.tv_sec,
        .touched_ns = status.st_ctim.tv_nsec,
        .identity = status.st_ino,
    };
    return OK;
}

static void close_local(struct file *file)
{
    const struct local_file *f = (const struct local_file *)file;
    if (f->descriptor >= 0) close(f->descriptor);
    free(file);
}

/* Not blocking: opening a pipe by mistake must not wait for a writer. */
static err open_path(struct local_file *f)
{
    f->descriptor = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (f->descriptor < 0 && errno == ENXIO) return fail_special(f->path);
    return f->descriptor < 0 ? system_failed(f->path) : OK;
}

static err open_standard_input(struct local_file *f)
{
    struct stat status;
    f->file.name = "standard input";
    f->descriptor = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    if (f->descriptor < 0) return system_failed(f->file.name);
    if (fstat(f->descriptor, &status) || !S_ISCHR(status.st_mode)) return OK;
    return fail(ERR_INPUT, "standard input: nothing is sent there (tasks of a local cluster and "
                           "those in the background have none)");
}

static err open_or_pipe(struct local_file *f)
{
    struct stat status;
    TRY(strcmp(f->path, STANDARD_INPUT) == 0 ? open_standard_input(f) : open_path(f));
    if (fstat(f->descriptor, &status) || !S_ISFIFO(status.st_mode)) return OK;
    const int pipe = f->descriptor;
    f->descriptor = -1;
    const err e = pipe_open(f->file.name, pipe, &f->descriptor);
    close(pipe);
    return e;
}

static err open_with(const char *path, err (*open)(struct local_file *), struct file **ret)
{
    struct local_file *f = calloc(1, sizeof *f + strlen(path) + 1);
    if (!f) return fail(ERR_MEMORY, "no memory to read %s", path);
    f->file = (struct file){.system = &file_system_local, .name = strcpy(f->path, path)};
    f->descriptor = -1;
    err e = open(f);
    if (!e) e = find_state(&f->file, &f->file.state);
    if (e)
        close_local(&f->file);
    else
        *ret = &f->file;
    return e;
}

static err open_local(const struct file_system *system, const char *path, struct file **ret)
{
    (void)system;
    return open_with(path, open_path, ret);
}

err local_open_or_pipe(const char *path, struct file **ret)
{
    return open_with(path, open_or_pipe, ret);
}

/* Opening does not block on the other end of a pipe; reading and writing do. */
static FILE *stream_of(int descriptor, const char *mode)
{
    const int flags = fcntl(descriptor, F_GETFL);
    FILE *stream = flags >= 0 && !fcntl(descriptor, F_SETFL, flags & ~O_NONBLOCK)
                       ? fdopen(descriptor, mode)
                       : NULL;
    const int why = errno;
    if (!stream) close(descriptor);
    errno = why;
    return stream;
}

/* Refuses folders, and devices, whose text may be endless, other than terminals. */
static err refuse_text(const char *path, const struct stat *status, int descriptor)
{
    const char *what = S_ISDIR(status->st_mode) ? "folder" : "device";
    if (S_ISREG(status->st_mode) || S_ISFIFO(status->st_mode) || isatty(descriptor)) return OK;
    const err e = fail(ERR_INPUT, "%s: expected a file or a pipe, this is a %s", path, what);
    errno = S_ISDIR(status->st_mode) ? EISDIR : EINVAL;
    return e;
}

/* Replaces *descriptor, which is closed, by one of a file with all that came. */
static err read_pipe(const char *path, int *descriptor)
{
    const int pipe = *descriptor;
    *descriptor = -1;
    const err e = pipe_open(path, pipe, descriptor);
    close(pipe);
    if (!e) (void)lseek(*descriptor, 0, SEEK_SET); /* the same file may have been read before */
    return e;
}

err local_open_text(const char *path, FILE **ret)
{
    struct stat status;
    *ret = NULL;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 && errno == ENXIO) return fail_special(path);
    err e = descriptor < 0 || fstat(descriptor, &status)
                ? fail(ERR_INPUT, "%s: %s", path, strerror(errno))
                : refuse_text(path, &status, descriptor);
    if (!e && S_ISFIFO(status.st_mode)) e = read_pipe(path, &descriptor);
    if (e) {
        const int why = errno;
        if (descriptor >= 0) close(descriptor);
        errno = why;
        return e;
    }
    *ret = stream_of(descriptor, "r");
    return *ret ? OK : fail(ERR_INPUT, "%s: %s", path, strerror(errno));
}

err local_open_output(const char *path, FILE **ret)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
    const int descriptor = open(path, flags, 0666);
    *ret = descriptor >= 0 ? stream_of(descriptor, "w") : NULL;
    if (*ret) return OK;
    return fail(ERR_INPUT, "%s",
                errno == ENXIO ? "a socket, a pipe that nobody reads, or a device that is not there"
                               : strerror(errno));
}

static err read_local(struct file *file, uint64_t offset, uint64_t until, void *to, size_t max,
                      size_t *ret_bytes)
{
    const struct local_file *f = (const struct local_file *)file;
    if (max > READ_BYTES_MAX) max = READ_BYTES_MAX;
    ssize_t got;
    do got = pread(f->descriptor, to, max, (off_t)offset);
    while (got < 0 && errno == EINTR);
    if (got < 0) return fail(ERR_IO, "%s: %s", f->path, strerror(errno));
    *ret_bytes = (size_t)got;
    return OK;
}

static err match_local(const struct file_system *system, const char *pattern, size_t plain,
                       file_found *found, void *context)
{
    glob_t fitting = {0};
    char *escaped = pattern_escape(pattern, plain);
    const int status = escaped ? glob(escaped, 0, NULL, &fitting) : GLOB_NOSPACE;
    err e = status == GLOB_NOSPACE ? fail(ERR_MEMORY, "no memory for names of files") : OK;
    for (size_t i = 0; !e && i < fitting.gl_pathc; i++) e = found(context, fitting.gl_pathv[i]);
    globfree(&fitting);
    free(escaped);
    return e;
}

const struct file_system file_system_local = {
    .open = open_local,
    .read = read_local,
    .state = find_state,
    .close = close_local,
    .match = match_local,
};

bool local_is_there(const char *path)
{
    return access(path, F_OK) == 0;
}
