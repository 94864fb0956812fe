/* event_file.c - see event_file.h. */
#include "core/train/summary/event_file.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/crc32c.h"

enum {
    NAMES_TRIED_MAX = 1000,
    WRITES_MAX = 10000,          /* of one flush: signals and full pipes of the system cut them */
    FLUSH_BYTES = 64 << 10,      /* more than this is written without being asked */
    PENDING_BYTES_MAX = 8 << 20, /* more than this is given up where the disk refuses */
    HOST_BYTES_MAX = 256,
};

/* mkdir -p. Parents that cannot be made are seen with the folder itself. */
static err make_folder(const char *path)
{
    char *copy = strdup(path);
    if (!copy) return fail(ERR_MEMORY, "%s: no memory", path);
    for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)!mkdir(copy, 0777);
        *slash = '/';
    }
    free(copy);
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return OK;
    return fail(ERR_IO, "%s: the folder cannot be made: %s", path, strerror(errno));
}

/* A host's name may hold what a file's name may not. */
static void host_name(char ret[HOST_BYTES_MAX])
{
    if (gethostname(ret, HOST_BYTES_MAX) != 0 || ret[0] == '\0') strcpy(ret, "localhost");
    ret[HOST_BYTES_MAX - 1] = '\0';
    for (char *c = ret; *c; c++)
        if (*c == '/') *c = '_';
}

/* One name. ret: the file's descriptor, or -1 where the name is taken. */
static err create(const char *path, int *ret)
{
    *ret = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*ret >= 0 || errno == EEXIST) return OK;
    return fail(ERR_IO, "%s: the file cannot be made: %s", path, strerror(errno));
}

/* Other processes may look for a name at the same moment: whoever makes the file has it. */
err event_file_create(const char *directory, int64_t seconds, const char *suffix,
                      struct event_file *ret, int64_t *ret_seconds)
{
    assert(directory[0]);
    TRY(make_folder(directory));
    char host[HOST_BYTES_MAX];
    host_name(host);
    for (int64_t s = seconds; s < seconds + NAMES_TRIED_MAX; s++) {
        struct event_file file = {.fd = -1};
        if (asprintf(&file.path, "%s/events.out.tfevents.%010" PRId64 ".%s%s", directory, s, host,
                     suffix) < 0)
            return fail(ERR_MEMORY, "%s: no memory", directory);
        const err e = create(file.path, &file.fd);
        if (!e && file.fd >= 0) {
            *ret = file;
            *ret_seconds = s;
            return OK;
        }
        free(file.path);
        if (e) return e;
    }
    return fail(ERR_IO,
                "%s: no name is free for a file of events: %d of %" PRId64 " s and later are there",
                directory, NAMES_TRIED_MAX, seconds);
}

void event_file_close(struct event_file *file)
{
    close(file->fd);
    free(file->path);
    buffer_drop(&file->pending);
    *file = (struct event_file){.fd = -1};
}

void event_file_remove(struct event_file *file)
{
    unlink(file->path);
    event_file_close(file);
}

/* Behind the last whole record. Returns 0 or the system's error. */
static int write_pending(struct event_file *file)
{
    size_t done = 0;
    for (int i = 0; i < WRITES_MAX && done < file->pending.used; i++) {
        const ssize_t written = pwrite(file->fd, file->pending.at + done, file->pending.used - done,
                                       file->good_bytes + (int64_t)done);
        if (written > 0) done += (size_t)written;
        if (written < 0 && errno != EINTR) return errno;
    }
    return done == file->pending.used ? 0 : EIO;
}

/* Half a record would be the end of the file for every reader. */
static int cut_off(struct event_file *file)
{
    if (!file->is_torn) return 0;
    if (ftruncate(file->fd, file->good_bytes) != 0) return errno;
    file->is_torn = false;
    return 0;
}

/* Written, or given up. */
static void drop_pending(struct event_file *file)
{
    buffer_clear(&file->pending);
    file->pending_records = 0;
}

/* The same bytes are tried again with the next flush: a reader that has seen half of them goes on
 * where it stopped. */
static err refused(struct event_file *file, int error)
{
    if (file->pending.used <= PENDING_BYTES_MAX)
        return fail(ERR_IO, "%s: cannot be written: %s", file->path, strerror(error));
    const int lost = file->pending_records;
    drop_pending(file);
    return fail(ERR_IO, "%s: cannot be written: %s; %d events are lost", file->path,
                strerror(error), lost);
}

/* Removed, or another one has its name: what is written reaches nobody. Told once. */
static err check_gone(struct event_file *file)
{
    struct stat named, open_one;
    if (file->is_gone || fstat(file->fd, &open_one) != 0) return OK;
    const bool is_there = stat(file->path, &named) == 0;
    if (is_there && named.st_ino == open_one.st_ino && named.st_dev == open_one.st_dev) return OK;
    if (!is_there && errno != ENOENT && errno != ENOTDIR) return OK;
    file->is_gone = true;
    return fail(ERR_IO,
                "%s: the file is gone: removed, or moved; events of this run are lost from "
                "here on, until it is started again",
                file->path);
}

err event_file_flush(struct event_file *file)
{
    if (file->pending.used == 0) return OK;
    int error = cut_off(file);
    if (error) return refused(file, error);

    error = write_pending(file);
    if (error) {
        file->is_torn = true;
        (void)!cut_off(file);
        return refused(file, error);
    }
    file->good_bytes += (int64_t)file->pending.used;
    drop_pending(file);
    return check_gone(file);
}

/* TensorFlow's masked one. */
static void add_checksum(struct buffer *pending, const void *data, size_t bytes)
{
    buffer_fixed32(pending, crc32c_mask(crc32c(data, bytes)));
}

/* A record that does not fit into memory leaves those before it as they were. */
err event_file_append(struct event_file *file, const void *data, size_t bytes)
{
    struct buffer *pending = &file->pending;
    const size_t before = pending->used;
    const uint64_t length = htole64(bytes);
    buffer_put(pending, &length, sizeof length);
    add_checksum(pending, &length, sizeof length);
    buffer_put(pending, data, bytes);
    add_checksum(pending, data, bytes);
    if (pending->is_short) {
        pending->used = before;
        pending->is_short = false;
        return fail(ERR_MEMORY, "%s: no memory for an event of %zu bytes", file->path, bytes);
    }
    file->pending_records++;
    return pending->used < FLUSH_BYTES ? OK : event_file_flush(file);
}
