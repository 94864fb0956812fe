/* mapped.c - see mapped.h. */
#include "core/base/files/mapped.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where this thread continues after SIGBUS; NULL: it is not within mapped_read. */
static _Thread_local sigjmp_buf *volatile reading;

/* The previous action for SIGBUS, restored for faults elsewhere, which recur when the handler
 * returns; a signal that a process has sent does not, and is raised again. */
static struct sigaction before;

static void on_fault(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (reading && info->si_code > 0) siglongjmp(*reading, 1);
    sigaction(number, &before, NULL);
    if (info->si_code <= 0) raise(number);
}

static void watch(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    const struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_NODEFER | SA_SIGINFO};
    struct sigaction now;
    pthread_mutex_lock(&mutex);
    if (!sigaction(SIGBUS, NULL, &now) && now.sa_sigaction != on_fault) {
        before = now;
        sigaction(SIGBUS, &action, NULL);
    }
    pthread_mutex_unlock(&mutex);
}

static struct mapped_file map(int descriptor)
{
    struct stat status;
    struct mapped_file none = {0};
    if (fstat(descriptor, &status) || !S_ISREG(status.st_mode) || !status.st_size) return none;
    const size_t bytes = (size_t)status.st_size;
    void *at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, descriptor, 0);
    if (at == MAP_FAILED) return none;
    return (struct mapped_file){at, bytes, descriptor};
}

struct mapped_file mapped_open(const char *path)
{
    const int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return (struct mapped_file){0};
    const struct mapped_file file = map(descriptor);
    if (file.at)
        watch();
    else
        close(descriptor);
    return file;
}

void mapped_close(struct mapped_file *m)
{
    if (m->at) {
        munmap((void *)(uintptr_t)m->at, m->bytes);
        close(m->descriptor);
    }
    *m = (struct mapped_file){0};
}

/* After the end of a truncated file the rest of its last page reads as zeros. */
static bool still_has(const struct mapped_file *m, uint64_t end)
{
    struct stat status;
    return !fstat(m->descriptor, &status) && (uint64_t)status.st_size >= end;
}

err mapped_read(const struct mapped_file *m, uint64_t offset, void *to, size_t bytes)
{
    sigjmp_buf back;
    volatile bool is_there = false;
    if (!sigsetjmp(back, 0)) {
        reading = &back;
        atomic_signal_fence(memory_order_seq_cst);
        memcpy(to, m->at + offset, bytes);
        atomic_signal_fence(memory_order_seq_cst);
        is_there = still_has(m, offset + bytes);
    }
    reading = NULL;
    return is_there ? OK
                    : fail(ERR_IO, "cannot be read at byte %llu: it was cut, or its disk fails",
                           (unsigned long long)offset);
}
