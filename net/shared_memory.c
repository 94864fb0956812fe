/* shared_memory.c - memory that two tasks can map, sealed so that neither can shrink it. */
#include "net/transport.h"

#include "core/base/memory.h"
#include "net/link.h"
#include "net/shared_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

size_t shared_memory_bytes(size_t bytes)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return bytes < page ? page : (bytes + page - 1) & ~(page - 1);
}

/* Checked beforehand: pages are allocated on first touch, when it is too late to return an error.
 */
static err check_room(size_t bytes)
{
    double available;
    if (memory_of_host("MemAvailable", &available) && (double)bytes > available)
        return fail(ERR_MEMORY, "no memory for a window of %zu bytes: %.0f are available", bytes,
                    available);
    return OK;
}

static err size_and_seal(int fd, size_t bytes)
{
    if (ftruncate(fd, (off_t)bytes))
        return fail(ERR_MEMORY, "cannot make %zu bytes of shared memory: %s", bytes,
                    strerror(errno));
    if (fcntl(fd, F_ADD_SEALS, SEALS))
        return fail(ERR_IO, "cannot seal shared memory: %s", strerror(errno));
    return OK;
}

err shared_memory_map(int fd, size_t bytes, bool is_writable, void **ret)
{
    const int protection = is_writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *base = mmap(NULL, shared_memory_bytes(bytes), protection, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return fail(ERR_MEMORY, "cannot map %zu bytes of shared memory: %s", bytes,
                    strerror(errno));
    *ret = base;
    return OK;
}

void shared_memory_unmap(void *base, size_t bytes)
{
    if (base) munmap(base, shared_memory_bytes(bytes));
}

err shared_memory_new(size_t bytes, int *ret_fd, void **ret_base)
{
    const int fd = memfd_create("dtrain", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return link_fail_making(ERR_IO, "shared memory", errno);
    err e = size_and_seal(fd, shared_memory_bytes(bytes));
    if (!e) e = shared_memory_map(fd, bytes, true, ret_base);
    const int reason = errno;
    if (e)
        close(fd);
    else
        *ret_fd = fd;
    errno = reason;
    return e;
}

err shared_memory_check(int fd, size_t bytes)
{
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS)
        return fail(ERR_PROTOCOL, "passed memory that it could shrink");
    struct stat file;
    if (fstat(fd, &file) || (size_t)file.st_size != shared_memory_bytes(bytes))
        return fail(ERR_PROTOCOL, "passed memory of a wrong size, expected %zu bytes",
                    shared_memory_bytes(bytes));
    return OK;
}

err window_new_plain(size_t bytes, struct window *ret)
{
    TRY(check_room(bytes));
    void *base = mmap(NULL, shared_memory_bytes(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
        return fail(ERR_MEMORY, "no memory for a window of %zu bytes: %s", bytes, strerror(errno));
    *ret = (struct window){.base = base, .bytes = bytes, .fd = -1};
    return OK;
}

err window_new(size_t bytes, struct window *ret)
{
    TRY(check_room(bytes));
    struct window window = {.bytes = bytes};
    errno = 0;
    if (!shared_memory_new(bytes, &window.fd, &window.base)) {
        *ret = window;
        return OK;
    }
    const int reason = errno;
    TRY(window_new_plain(bytes, ret));
    ret->lacks = reason;
    return OK;
}

void window_free(struct window *window)
{
    if (!window->base) return;
    shared_memory_unmap(window->base, window->bytes);
    if (window->fd >= 0) close(window->fd);
    *window = (struct window){.fd = -1};
}
