/* file.c - see file.h. */
#include "core/train/checkpoint/bundle/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files/file_id.h"
#include "core/base/files/own.h"
#include "core/base/files/pipe.h"
#include "core/base/files/replace.h"
#include "core/base/files/url.h"
#include "core/base/log.h"

enum {
    CALL_BYTES_MAX = 1 << 30, /* bytes of one system call */
    NAME_TRIES_MAX = 16,      /* attempts at an unused temporary name */
    PICKED_BYTES = 32 << 10,
    JOINED_BYTES = 1 << 20,
    REPLACE_TRIES = 8,
};

static err system_failed(const char *path)
{
    return fail(ERR_IO, "%s: %s", path, strerror(errno));
}

err bundle_index_path(const char *prefix, char **ret)
{
    if (asprintf(ret, "%s.index", prefix) >= 0) return OK;
    return fail(ERR_MEMORY, "no memory for the name of a checkpoint");
}

err bundle_data_path(const char *prefix, int shard, int shards, char **ret)
{
    if (asprintf(ret, "%s.data-%05d-of-%05d", prefix, shard, shards) >= 0) return OK;
    return fail(ERR_MEMORY, "no memory for the name of a checkpoint");
}

/* A file that exists but cannot be read is a storage failure, which may pass: a caller that took it
 * for damaged or missing would continue without it. */
err file_reader_open(const char *path, struct file_reader *ret)
{
    struct file_reader s = {.path = path};
    const err e = file_open(path, &s.file);
    const bool is_denied = e == ERR_INPUT && !path_is_url(path) && errno == EACCES;
    if (e) return is_denied ? ERR_IO : e;
    s.bytes = (int64_t)s.file->state.bytes;
    *ret = s;
    return OK;
}

/* A read may return less than requested. There is no read-ahead for files from which rows are
 * picked. */
err file_reader_read(const struct file_reader *s, int64_t offset, void *ret, size_t bytes)
{
    uint8_t *to = ret;
    const int64_t until = bytes < PICKED_BYTES ? offset + (int64_t)bytes : s->until;
    while (bytes > 0) {
        size_t got = 0;
        TRY(file_read_at(s->file, (uint64_t)offset, (uint64_t)until, to, bytes, &got));
        if (got == 0)
            return fail(ERR_INPUT, "%s: truncated: it ends at byte %lld, %zu more were expected",
                        s->file->name, (long long)offset, bytes);
        to += got;
        offset += (int64_t)got;
        bytes -= got;
    }
    return OK;
}

void file_reader_close(struct file_reader *s)
{
    file_close(s->file);
    s->file = NULL;
}

static err load(const struct file_reader *s, size_t bytes_max, uint8_t **ret, size_t *ret_bytes)
{
    if (s->bytes > (int64_t)bytes_max)
        return fail(ERR_INPUT, "%s: %lld bytes, at most %zu are possible", s->path,
                    (long long)s->bytes, bytes_max);
    const size_t bytes = (size_t)s->bytes;
    uint8_t *at = bytes ? malloc(bytes) : NULL;
    if (bytes && !at) return fail(ERR_MEMORY, "%s: no memory for %zu bytes", s->path, bytes);
    const err e = file_reader_read(s, 0, at, bytes);
    if (e) {
        free(at);
        return e;
    }
    *ret = at;
    *ret_bytes = bytes;
    return OK;
}

err bundle_file_load(const char *path, size_t bytes_max, uint8_t **ret, size_t *ret_bytes)
{
    struct file_reader s;
    TRY(file_reader_open(path, &s));
    const err e = load(&s, bytes_max, ret, ret_bytes);
    file_reader_close(&s);
    return e;
}

/* TensorFlow's pattern of temporary names, so that tools that clean up recognize them. */
static err open_temporary(const char *beside, struct output *o)
{
    for (int i = 0; i < NAME_TRIES_MAX; i++) {
        uint64_t tag = 0;
        if (getrandom(&tag, sizeof tag, 0) != sizeof tag) return system_failed("getrandom");
        char *path = NULL;
        if (asprintf(&path, "%s.tempstate%llu", beside, (unsigned long long)tag) < 0)
            return fail(ERR_MEMORY, "no memory for the name of a checkpoint");
        o->file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (o->file >= 0) {
            o->temporary = path;
            return OK;
        }
        const bool is_taken = errno == EEXIST;
        const err e = system_failed(path);
        free(path);
        if (!is_taken) return e;
    }
    return fail(ERR_IO, "%s: no temporary name is free", beside);
}

err output_open(const char *path, const char *beside, struct output *ret)
{
    struct output o = {.file = -1, .path = strdup(path)};
    err e = o.path ? OK : fail(ERR_MEMORY, "no memory to write %s", path);
    if (!e) e = path_is_url(path) ? file_create(path, &o.writer) : open_temporary(beside, &o);
    if (e) free(o.path);
    if (!e) *ret = o;
    return e;
}

static err write_piece(int file, const char *path, int64_t offset, const uint8_t *at, size_t bytes)
{
    while (bytes > 0) {
        const ssize_t done =
            pwrite(file, at, bytes < CALL_BYTES_MAX ? bytes : CALL_BYTES_MAX, offset);
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return system_failed(path);
        if (done == 0) return fail(ERR_IO, "%s: the system accepts no more bytes", path);
        at += done;
        offset += done;
        bytes -= (size_t)done;
    }
    return OK;
}

err bundle_file_piece(const char *path, int64_t offset, const void *from, size_t bytes)
{
    if (path_is_url(path))
        return fail(ERR_INPUT,
                    "%s: a file behind a URL cannot come from others: every ps must reach it",
                    path);
    const int file = own_open_or_make(path);
    if (file < 0) return system_failed(path);
    err e = write_piece(file, path, offset, from, bytes);
    if (!e && fdatasync(file)) e = system_failed(path);
    const int closed = close(file); /* a file system over a network may fail only now */
    return !e && closed ? system_failed(path) : e;
}

/* A full disk first accepts a part, and fails the next call. */
err output_write(struct output *o, const void *from, size_t bytes)
{
    if (!o->writer && !own_write(o->file, from, bytes)) return system_failed(o->path);
    o->bytes += (int64_t)bytes;
    return o->writer ? file_append(o->writer, from, bytes) : OK;
}

static err write_ahead(struct output *o, int64_t offset, const void *from, size_t bytes)
{
    if (!o->ahead) TRY(file_open_nameless(o->path, &o->ahead));
    return write_piece(o->ahead, o->path, offset, from, bytes);
}

err output_write_at(struct output *o, int64_t offset, const void *from, size_t bytes)
{
    if (offset == o->bytes) return output_write(o, from, bytes);
    if (o->writer) return write_ahead(o, offset, from, bytes);
    if (lseek(o->file, offset, SEEK_SET) < 0) return system_failed(o->path);
    o->bytes = offset;
    return output_write(o, from, bytes);
}

static err append_ahead(struct output *o, uint8_t *buffer, size_t bytes)
{
    const ssize_t got = pread(o->ahead, buffer, bytes, o->bytes);
    if (got < 0) return system_failed(o->path);
    if (got == 0) return fail(ERR_IO, "%s: a piece of it is gone", o->path);
    return output_write(o, buffer, (size_t)got);
}

err output_join(struct output *o, int64_t end)
{
    if (!o->writer) return output_write_at(o, end, NULL, 0);
    if (o->bytes >= end) return OK; /* everything came in file order */
    uint8_t *buffer = malloc(JOINED_BYTES);
    err e = buffer ? OK : fail(ERR_MEMORY, "%s: no memory", o->path);
    while (!e && o->bytes < end) { /* ends: each time there are more bytes, or it fails */
        const int64_t left = end - o->bytes;
        e = append_ahead(o, buffer, left < JOINED_BYTES ? (size_t)left : JOINED_BYTES);
    }
    free(buffer);
    return e;
}

/* Must precede the rename: otherwise a crash could leave an empty file of that name. */
err output_sync(struct output *o)
{
    if (o->writer) return OK;
    if (fsync(o->file)) return system_failed(o->path);
    const int closed = close(o->file); /* a file system over a network may fail only now */
    o->file = -1;
    return closed ? system_failed(o->path) : OK;
}

err output_publish(struct output *o)
{
    if (o->writer) return file_finish(o->writer);
    if (rename(o->temporary, o->path)) return system_failed(o->path);
    free(o->temporary);
    o->temporary = NULL;
    return OK;
}

err output_publish_new(struct output *o, bool *ret_is_taken)
{
    *ret_is_taken = false;
    if (o->writer) return file_finish(o->writer);
    TRY(bundle_rename_new(o->temporary, o->path, ret_is_taken));
    free(o->temporary);
    o->temporary = NULL;
    return OK;
}

/* May be called in any state of an output, and twice. */
void output_drop(struct output *o)
{
    if (!o->path) return;
    if (o->file >= 0) close(o->file);
    if (o->ahead) close(o->ahead);
    file_drop(o->writer);
    if (o->temporary) unlink(o->temporary);
    free(o->temporary);
    free(o->path);
    *o = (struct output){0};
}

static err write_out(struct output *o, const void *bytes, size_t count)
{
    TRY(output_write(o, bytes, count));
    TRY(output_sync(o));
    return output_publish(o);
}

/* ret_is_gone: somebody removed the temporary file before it was renamed. */
static err try_to_replace(const char *path, const void *bytes, size_t count, bool *ret_is_gone)
{
    struct output output = {0};
    TRY(output_open(path, path, &output));
    errno = 0;
    err e = write_out(&output, bytes, count);
    *ret_is_gone = e && errno == ENOENT;
    /* after the rename it has succeeded */
    if (!e && file_sync_folder(path)) log_line(LOG_WARNING, "%s", error_text());
    output_drop(&output);
    return e;
}

/* A new chief may remove temporary files from the folder, including this one: then it is written
 * again. */
err output_replace(const char *path, const void *bytes, size_t count)
{
    bool is_gone = true;
    err e = OK;
    for (int i = 0; i < REPLACE_TRIES && is_gone; i++) {
        is_gone = false;
        e = try_to_replace(path, bytes, count, &is_gone);
    }
    return e;
}

err bundle_unlink(const char *path)
{
    if (path_is_url(path)) return file_remove(path);
    return unlink(path) && errno != ENOENT ? system_failed(path) : OK;
}

err bundle_rename(const char *from, const char *to)
{
    if (path_is_url(from)) return file_move(from, to);
    if (rename(from, to) == 0) return OK;
    return fail(ERR_IO, "%s: cannot become %s: %s", from, to, strerror(errno));
}

/* For file systems without hard links, as on some removable disks: checks first, then renames. */
static int rename_after_look(const char *from, const char *to)
{
    struct stat status;
    if (lstat(to, &status)) return errno == ENOENT ? rename(from, to) : -1;
    errno = EEXIST;
    return -1;
}

/* If a server's reply was lost, the request is repeated, and fails because the name exists: it may
 * be this file. */
static bool is_linked(const char *from, const char *to)
{
    struct file_id id;
    return errno == EEXIST && file_id_find(from, &id) && file_id_is_at(to, &id);
}

static int rename_by_link(const char *from, const char *to)
{
    if (link(from, to) && !is_linked(from, to)) {
        const bool has_none = errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS;
        return has_none ? rename_after_look(from, to) : -1;
    }
    if (!unlink(from) || errno == ENOENT) return 0;
    const int error = errno;
    unlink(to);
    errno = error;
    return -1;
}

err bundle_rename_new(const char *from, const char *to, bool *ret_is_taken)
{
    *ret_is_taken = false;
    if (path_is_url(from)) return file_move(from, to);
    int failed = renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE);
    if (failed && (errno == EINVAL || errno == ENOSYS)) failed = rename_by_link(from, to);
    if (!failed) return OK;
    *ret_is_taken = errno == EEXIST;
    return fail(ERR_IO, "%s: cannot become %s: %s", from, to, strerror(errno));
}
