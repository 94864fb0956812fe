/* event_file.c - see event_file.h. */
#include "core/train/summary/event_file.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/crc32c.h"
#include "core/base/files/file_system.h"
#include "core/base/log.h"
#include "core/base/threads/thread.h"

enum {
    NAMES_TRIED_MAX = 1000,
    WRITES_MAX = 10000,          /* of one flush: signals and full pipes cut writes short */
    FLUSH_BYTES = 64 << 10,      /* beyond this it is flushed without being asked */
    PENDING_BYTES_MAX = 8 << 20, /* beyond this it is dropped if the disk refuses it */
    HOST_BYTES_MAX = 256,
    URL_FILE_BYTES = 1 << 20, /* beyond this the next file is begun */
};

/* mkdir -p. A parent that cannot be made is noticed with the folder itself. */
static err make_folder(const char *path)
{
    if (path_is_url(path)) return OK; /* it is there with its first file */
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

/* A host's name may have characters that a file's name cannot. */
static void host_name(char ret[HOST_BYTES_MAX])
{
    if (gethostname(ret, HOST_BYTES_MAX) != 0 || ret[0] == '\0') strcpy(ret, "localhost");
    ret[HOST_BYTES_MAX - 1] = '\0';
    for (char *c = ret; *c; c++)
        if (*c == '/') *c = '_';
}

/* Tries one name. ret: the file's descriptor, or -1 if the name is taken. */
static err create(const char *path, int *ret)
{
    *ret = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*ret >= 0 || errno == EEXIST) return OK;
    return fail(ERR_IO, "%s: the file cannot be made: %s", path, strerror(errno));
}

/* Behind a URL nobody waits for an answer: the name is new by its random number. */
static err create_at_url(const char *directory, int64_t seconds, const char *host,
                         const char *suffix, struct event_file *ret)
{
    uint32_t tag = 0;
    if (getrandom(&tag, sizeof tag, 0) != sizeof tag)
        return fail(ERR_IO, "getrandom: %s", strerror(errno));
    *ret = (struct event_file){.fd = -1};
    if (asprintf(&ret->path, "%s/events.out.tfevents.%010" PRId64 ".%s.%08" PRIx32 "%s", directory,
                 seconds, host, tag, suffix) < 0)
        return fail(ERR_MEMORY, "%s: no memory", directory);
    ret->name = strdup(ret->path);
    if (ret->name) return OK;
    free(ret->path);
    return fail(ERR_MEMORY, "%s: no memory", directory);
}

/* Other processes may look for a name at the same time: whoever creates the file has it. */
err event_file_create(const char *directory, int64_t seconds, const char *suffix,
                      struct event_file *ret, int64_t *ret_seconds)
{
    assert(directory[0]);
    TRY(make_folder(directory));
    char host[HOST_BYTES_MAX];
    host_name(host);
    *ret_seconds = seconds;
    if (path_is_url(directory)) return create_at_url(directory, seconds, host, suffix, ret);
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
    event_file_write_here(file);
    if (file->fd >= 0) close(file->fd);
    free(file->path);
    free(file->name);
    buffer_drop(&file->pending);
    buffer_drop(&file->stored);
    *file = (struct event_file){.fd = -1};
}

void event_file_remove(struct event_file *file)
{
    if (!file->name)
        unlink(file->path);
    else if (file_remove(file->path))
        log_line(LOG_WARNING, "%s", error_text());
    event_file_close(file);
}

/* Cuts the file after the last whole record. Returns 0 or the system's error. */
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

/* Readers would stop at half a record. */
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

/* The same bytes are written again with the next flush: a reader that has seen half of them
 * continues there. */
static err refused(struct event_file *file, int error)
{
    if (file->pending.used <= PENDING_BYTES_MAX)
        return fail(ERR_IO, "%s: cannot be written: %s", file->path, strerror(error));
    const int lost = file->pending_records;
    drop_pending(file);
    return fail(ERR_IO, "%s: cannot be written: %s; %d events are lost", file->path,
                strerror(error), lost);
}

/* The file was deleted or replaced; later writes are lost. Logged once. */
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

/* ---- behind a URL ---- */

static err begin_next(struct event_file *file)
{
    char *path = NULL;
    if (asprintf(&path, "%s.%05d", file->name, file->number + 1) < 0)
        return fail(ERR_MEMORY, "%s: no memory", file->name);
    free(file->path);
    file->path = path;
    file->number++;
    file->stored.used = file->first_bytes;
    return OK;
}

/* What the server refuses stays in memory until the next flush. */
static err flush_to_url(struct event_file *file)
{
    if (file->stored.used > URL_FILE_BYTES) TRY(begin_next(file));
    const size_t before = file->stored.used;
    buffer_put(&file->stored, file->pending.at, file->pending.used);
    err e = file->stored.is_short ? fail(ERR_MEMORY, "%s: no memory for events", file->path)
                                  : file_put(file->path, file->stored.at, file->stored.used);
    if (!e) {
        drop_pending(file);
        return OK;
    }
    file->stored.used = before;
    file->stored.is_short = false;
    if (file->pending.used <= PENDING_BYTES_MAX) return e;
    e = fail(e, "%s; %d events are lost", error_text(), file->pending_records);
    drop_pending(file);
    return e;
}

/* ---- a thread that writes ---- */

/* The thread writes from a copy of its own; the owner gathers records in the original. */
struct event_thread {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct event_file file; /* the thread's while is_busy */
    bool is_busy, ends;
    char why[ERROR_TEXT_MAX]; /* a failure that has not been reported yet, or "" */
};

static void *write_on(void *context)
{
    struct event_thread *t = context;
    pthread_mutex_lock(&t->lock);
    while (!t->ends || t->is_busy) { /* ends: when the owner says so */
        if (!t->is_busy) {
            pthread_cond_wait(&t->changed, &t->lock);
            continue;
        }
        pthread_mutex_unlock(&t->lock);
        const err e = event_file_flush(&t->file);
        pthread_mutex_lock(&t->lock);
        if (e) snprintf(t->why, sizeof t->why, "%s", error_text());
        t->is_busy = false;
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

err event_file_write_beside(struct event_file *file)
{
    struct event_thread *t = calloc(1, sizeof *t);
    if (!t) return fail(ERR_MEMORY, "%s: no memory", file->path);
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->changed, NULL);
    t->file = *file;
    const err e = thread_start(&t->thread, write_on, t);
    if (e) {
        free(t);
        return e;
    }
    char *path = strdup(file->path); /* for messages: the thread may go on to the next file */
    *file = (struct event_file){
        .path = path, .fd = -1, .thread = t, .first_bytes = t->file.first_bytes};
    return path ? OK : fail(ERR_MEMORY, "no memory for the name of a file");
}

/* Without memory for it, it stays where it is. */
static void give(struct event_file *from, struct event_file *to)
{
    const size_t before = to->pending.used;
    buffer_put(&to->pending, from->pending.at, from->pending.used);
    if (to->pending.is_short) {
        to->pending.used = before;
        to->pending.is_short = false;
        return;
    }
    to->pending_records += from->pending_records;
    if (!to->first_bytes) to->first_bytes = from->first_bytes;
    drop_pending(from);
}

void event_file_write_here(struct event_file *file)
{
    struct event_thread *t = file->thread;
    if (!t) return;
    pthread_mutex_lock(&t->lock);
    t->ends = true;
    pthread_cond_signal(&t->changed);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    give(file, &t->file);
    free(file->path);
    buffer_drop(&file->pending);
    *file = t->file;
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->changed);
    free(t);
}

static err flush_beside(struct event_file *file)
{
    struct event_thread *t = file->thread;
    char why[ERROR_TEXT_MAX];
    pthread_mutex_lock(&t->lock);
    if (!t->is_busy && file->pending.used) {
        give(file, &t->file);
        t->is_busy = true;
        pthread_cond_signal(&t->changed);
    }
    memcpy(why, t->why, sizeof why);
    t->why[0] = '\0';
    pthread_mutex_unlock(&t->lock);
    if (file->pending.used > PENDING_BYTES_MAX) return refused(file, ETIMEDOUT);
    return why[0] ? fail(ERR_IO, "%s", why) : OK;
}

err event_file_flush(struct event_file *file)
{
    if (file->thread) return flush_beside(file);
    if (file->pending.used == 0) return OK;
    if (file->name) return flush_to_url(file);
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

/* TensorFlow's masked checksum. */
static void add_checksum(struct buffer *pending, const void *data, size_t bytes)
{
    buffer_fixed32(pending, crc32c_mask(crc32c(data, bytes)));
}

/* If there is no memory for a record, those before it are kept. */
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
    if (!file->first_bytes) file->first_bytes = pending->used;
    const size_t most = file->name ? URL_FILE_BYTES : FLUSH_BYTES;
    return pending->used < most ? OK : event_file_flush(file);
}
