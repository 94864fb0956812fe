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
    struct file file; /* first */
    int descriptor;
    char path[];
};

/* What a person can mend by another path or other rights is bad input, the rest is the system's. */
static err system_failed(const char *path)
{
    const int why = errno;
    const bool is_users =
        why == ENOENT || why == ENOTDIR || why == EACCES || why == ELOOP || why == ENAMETOOLONG;
    const err e = fail(is_users ? ERR_INPUT : ERR_IO, "%s: %s", path, strerror(why));
    errno = why;
    return e;
}

static err find_state(struct file *file, struct file_state *ret)
{
    const struct local_file *f = (const struct local_file *)file;
    struct stat status;
    if (fstat(f->descriptor, &status)) return fail(ERR_IO, "%s: %s", f->path, strerror(errno));
    if (!S_ISREG(status.st_mode)) /* only regular files have a size to check headers against */
        return errno = EINVAL, fail(ERR_INPUT, "%s: expected a regular file, this is a %s", f->path,
                                    S_ISDIR(status.st_mode) ? "folder" : "device, pipe or socket");
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
