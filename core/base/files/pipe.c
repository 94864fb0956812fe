/* pipe.c - see pipe.h. */
#include "core/base/files/pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/files/own.h"
#include "core/base/log.h"

enum { READ_BYTES = 1 << 16 };

/* Pipes that were read, kept until the process ends */
static struct kept {
    char *path;
    int file;
} kept[PIPES_MAX];
static int kept_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static atomic_flag is_told = ATOMIC_FLAG_INIT; /* the warning about TMPDIR was logged */

err file_open_nameless(const char *path, int *ret)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || !*folder) folder = "/tmp";
    *ret = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (*ret >= 0) return OK;
    if (!atomic_flag_test_and_set(&is_told))
        log_line(LOG_WARNING, "%s (TMPDIR): no file can be made there: %s; it is kept in memory",
                 folder, strerror(errno));
    *ret = memfd_create("dtrain", MFD_CLOEXEC);
    return *ret < 0 ? fail(ERR_IO, "%s: no file for what comes: %s", path, strerror(errno)) : OK;
}

/* Waits for a byte or the end. A pipe that nobody has opened for writing has neither. */
static err await(const char *path, int descriptor)
{
    const uint64_t since_ms = clock_ms();
    for (uint64_t noted_ms = since_ms;;) { /* ends: the limit */
        struct pollfd pollfd = {.fd = descriptor, .events = POLLIN};
        const int ready = poll(&pollfd, 1, LOG_WAIT_NOTE_MS);
        const uint64_t now_ms = clock_ms(), waited_ms = now_ms - since_ms;
        if (ready > 0) return OK;
        if (ready < 0 && errno != EINTR) return fail(ERR_IO, "%s: %s", path, strerror(errno));
        if (waited_ms >= PIPE_SILENT_MS)
            return fail(ERR_TIMEOUT, "%s: nothing came for %d s", path, PIPE_SILENT_MS / 1000);
        if (!log_wait_is_due(since_ms, noted_ms, now_ms)) continue;
        noted_ms = now_ms;
        log_line(log_wait_level(waited_ms), "waiting for what comes from %s, %llu s of %d s", path,
                 (unsigned long long)waited_ms / 1000, PIPE_SILENT_MS / 1000);
    }
}

static err copy(const char *path, int descriptor, int file)
{
    static char bytes[READ_BYTES]; /* one thread at a time is here */
    for (;;) {                     /* ends: with what comes, or a wait */
        TRY(await(path, descriptor));
        const ssize_t got = read(descriptor, bytes, sizeof bytes);
        if (got == 0) return OK;
        if (got < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (got < 0) return fail(ERR_IO, "%s: %s", path, strerror(errno));
        if (!own_write(file, bytes, (size_t)got))
            return fail(ERR_IO, "%s: no room for what comes (TMPDIR): %s", path, strerror(errno));
    }
}

/* Locks the pipe: two readers would each get pieces of rows. Held until the last descriptor of this
 * opening is closed; where locks are not supported, other readers are not detected. */
static err be_alone(const char *path, int descriptor)
{
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return OK;
    return fail(ERR_INPUT,
                "%s: another process reads this pipe: each worker wants a pipe of its own, by a "
                "path of its own",
                path);
}

static err keep(const char *path, int descriptor)
{
    struct kept *new = &kept[kept_count];
    if (kept_count == PIPES_MAX) return fail(ERR_INPUT, "%s: more than %d pipes", path, PIPES_MAX);
    TRY(be_alone(path, descriptor));
    *new = (struct kept){strdup(path), -1};
    err e =
        new->path ? file_open_nameless(path, &new->file) : fail(ERR_MEMORY, "%s: no memory", path);
    if (!e) e = copy(path, descriptor, new->file);
    if (!e) {
        kept_count++;
        return OK;
    }
    free(new->path);
    if (new->file >= 0) close(new->file);
    return e;
}

static err find_or_keep(const char *path, int descriptor, int *ret)
{
    int i = 0;
    while (i < kept_count && strcmp(kept[i].path, path) != 0) i++;
    if (i == kept_count) TRY(keep(path, descriptor));
    *ret = fcntl(kept[i].file, F_DUPFD_CLOEXEC, 0);
    return *ret < 0 ? fail(ERR_IO, "%s: %s", path, strerror(errno)) : OK;
}

err pipe_open(const char *path, int descriptor, int *ret)
{
    pthread_mutex_lock(&lock);
    const err e = find_or_keep(path, descriptor, ret);
    pthread_mutex_unlock(&lock);
    return e;
}
