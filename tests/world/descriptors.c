/* descriptors.c - see descriptors.h; read, write, close, poll, epoll and what is like them. */
#undef _FILE_OFFSET_BITS /* with it open() would be called open64, and so on: both are here */
#include "tests/world/descriptors.h"

#include "tests/world/machine.h"
#include "tests/world/real.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { CALL_NS = 300 };

void call_begins(const char *name, int descriptor)
{
    machine.now_ns += CALL_NS;
    machine_note(name, (uint64_t)(int64_t)descriptor);
    fiber_may_yield();
}

int call_fails(int error)
{
    errno = error;
    return -1;
}

struct description *description_new(enum description_kind kind)
{
    struct description *ret = calloc(1, sizeof *ret);
    ret->kind = kind;
    ret->process = process_now();
    return ret;
}

int descriptor_give(struct description *description, int least)
{
    struct process *process = process_now();
    for (int i = least; i < DESCRIPTORS_MAX; i++) {
        if (process->descriptors[i]) continue;
        process->descriptors[i] = description;
        description->uses++;
        return i;
    }
    return call_fails(EMFILE);
}

struct description *description_of(int descriptor)
{
    struct process *process = process_now();
    if (descriptor >= 0 && descriptor < DESCRIPTORS_MAX && process->descriptors[descriptor])
        return process->descriptors[descriptor];
    errno = EBADF;
    return NULL;
}

void description_changed(const struct description *description)
{
    if (description) fibers_wake(description->process, &description->process->descriptors, 0);
}

static void forget_watched(struct watch_list *list, const struct description *description)
{
    for (int i = list->count - 1; i >= 0; i--) {
        if (list->at[i].description != description) continue;
        memmove(&list->at[i], &list->at[i + 1], (size_t)(--list->count - i) * sizeof *list->at);
        if (list->next > i) list->next--;
    }
}

static void release(struct process *process, struct description *description)
{
    if (--description->uses > 0) return;
    for (int i = 0; i < DESCRIPTORS_MAX; i++) {
        const struct description *list = process->descriptors[i];
        if (list && list->kind == OPEN_LIST) forget_watched(list->list, description);
    }
    if (description->kind == OPEN_SOCKET) socket_close(description->socket);
    if (description->kind == OPEN_FILE) file_close(description);
    if (description->kind == OPEN_MEMORY) REAL(close)(description->memory);
}

void description_drop(struct description *description)
{
    release(description->process, description);
}

int descriptor_close(int descriptor)
{
    struct description *description = description_of(descriptor);
    if (!description) return -1;
    process_now()->descriptors[descriptor] = NULL;
    release(process_now(), description);
    return 0;
}

void descriptors_open_standard(struct process *process)
{
    for (int i = 0; i <= STDERR_FILENO; i++) {
        struct description *standard = calloc(1, sizeof *standard);
        *standard = (struct description){
            .kind = i == STDIN_FILENO ? OPEN_NOTHING : OPEN_OUTPUT, .uses = 1, .process = process};
        process->descriptors[i] = standard;
    }
}

void descriptors_close_all(struct process *process)
{
    for (int i = 0; i < DESCRIPTORS_MAX; i++) {
        struct description *description = process->descriptors[i];
        process->descriptors[i] = NULL;
        if (description) release(process, description);
    }
}

/* ---- what is ready ---- */

static short readiness(const struct description *description)
{
    short ret = 0;
    switch (description->kind) {
    case OPEN_EVENT:
        return (short)(POLLOUT | (description->count > 0 ? POLLIN : 0));
    case OPEN_SOCKET:
        return socket_readiness(description->socket);
    case OPEN_LIST:
        for (int i = 0; i < description->list->count && !ret; i++) {
            const struct watched *watched = &description->list->at[i];
            const short wanted = (short)(watched->events | POLLERR | POLLHUP);
            if (readiness(watched->description) & wanted) ret = POLLIN;
        }
        return ret;
    default:
        return POLLIN | POLLOUT;
    }
}

static int list_ready(struct watch_list *list, struct epoll_event *ret, int most)
{
    int count = 0;
    const int first = list->next;
    for (int i = 0; i < list->count && count < most; i++) {
        const int index = (first + i) % list->count;
        const struct watched *watched = &list->at[index];
        const short wanted = (short)(watched->events | POLLERR | POLLHUP);
        const short ready = (short)(readiness(watched->description) & wanted);
        if (!ready) continue;
        ret[count++] = (struct epoll_event){.events = (uint32_t)ready, .data = watched->data};
        list->next = (index + 1) % list->count;
    }
    return count;
}

static int poll_ready(struct pollfd *at, nfds_t count)
{
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        at[i].revents = 0;
        if (at[i].fd < 0) continue;
        const struct description *description = description_of(at[i].fd);
        const short wanted = (short)(at[i].events | POLLERR | POLLHUP);
        at[i].revents = description ? (short)(readiness(description) & wanted) : POLLNVAL;
        ready += at[i].revents != 0;
    }
    return ready;
}

static uint64_t until_of(int timeout_ms)
{
    return timeout_ms < 0 ? NEVER_NS : machine.now_ns + (uint64_t)timeout_ms * MS_NS;
}

/* Until something of this process changes. false: the time is over, or a signal came (EINTR). */
static bool wait_for_change(uint64_t until_ns)
{
    if (machine.now_ns >= until_ns) return false;
    const bool was_woken = fiber_wait(&process_now()->descriptors, until_ns);
    errno = EINTR;
    return !fiber_take_signals() && (was_woken || machine.now_ns < until_ns);
}

int poll(struct pollfd *at, nfds_t count, int timeout_ms)
{
    if (!process_now()) return REAL(poll)(at, count, timeout_ms);
    const uint64_t until_ns = until_of(timeout_ms);
    call_begins("poll", (int)count);
    errno = 0;
    int ready;
    while (!(ready = poll_ready(at, count)) && wait_for_change(until_ns)) {
    }
    return !ready && errno == EINTR && machine.now_ns < until_ns ? -1 : ready;
}

/* What it is where the compiler checks it. */
int __poll_chk(struct pollfd *at, nfds_t count, int timeout_ms, size_t room);
int __poll_chk(struct pollfd *at, nfds_t count, int timeout_ms, size_t room)
{
    (void)room;
    return poll(at, count, timeout_ms);
}

int epoll_create1(int flags)
{
    if (!process_now()) return REAL(epoll_create1)(flags);
    struct description *list = description_new(OPEN_LIST);
    list->list = calloc(1, sizeof *list->list);
    return descriptor_give(list, 0);
}

int epoll_ctl(int epoll, int operation, int descriptor, struct epoll_event *event)
{
    if (!process_now()) return REAL(epoll_ctl)(epoll, operation, descriptor, event);
    const struct description *list = description_of(epoll);
    struct description *description = description_of(descriptor);
    if (!list || !description) return -1;
    struct watch_list *to = list->list;
    int i = 0;
    while (i < to->count && to->at[i].description != description) i++;
    if ((i < to->count) == (operation == EPOLL_CTL_ADD))
        return call_fails(operation == EPOLL_CTL_ADD ? EEXIST : ENOENT);
    if (operation == EPOLL_CTL_DEL) {
        forget_watched(to, description);
        return 0;
    }
    if (i == WATCHED_MAX) return call_fails(ENOSPC);
    to->at[i] = (struct watched){description, event->events, event->data};
    if (i == to->count) to->count++;
    description_changed(list);
    return 0;
}

int epoll_wait(int epoll, struct epoll_event *ret, int most, int timeout_ms)
{
    if (!process_now()) return REAL(epoll_wait)(epoll, ret, most, timeout_ms);
    const struct description *list = description_of(epoll);
    const uint64_t until_ns = until_of(timeout_ms);
    if (!list) return -1;
    call_begins("epoll_wait", epoll);
    errno = 0;
    int ready;
    while (!(ready = list_ready(list->list, ret, most)) && wait_for_change(until_ns)) {
    }
    machine_note("epoll_wait gives", (uint64_t)ready);
    return !ready && errno == EINTR && machine.now_ns < until_ns ? -1 : ready;
}

/* ---- counters ---- */

int eventfd(unsigned first, int flags)
{
    if (!process_now()) return REAL(eventfd)(first, flags);
    struct description *event = description_new(OPEN_EVENT);
    event->count = first;
    event->is_nonblocking = flags & EFD_NONBLOCK;
    return descriptor_give(event, 0);
}

static ssize_t read_event(struct description *event, void *to, size_t count)
{
    if (count < sizeof event->count) return call_fails(EINVAL);
    if (!event->count) return call_fails(EAGAIN);
    memcpy(to, &event->count, sizeof event->count);
    event->count = 0;
    return sizeof event->count;
}

static ssize_t write_event(struct description *event, const void *from, size_t count)
{
    uint64_t more;
    if (count < sizeof more) return call_fails(EINVAL);
    memcpy(&more, from, sizeof more);
    event->count += more;
    description_changed(event);
    return sizeof more;
}

/* ---- reading and writing ---- */

ssize_t read(int descriptor, void *to, size_t count)
{
    if (!process_now()) return REAL(read)(descriptor, to, count);
    struct description *from = description_of(descriptor);
    if (!from) return -1;
    call_begins("read", descriptor);
    switch (from->kind) {
    case OPEN_EVENT:
        return read_event(from, to, count);
    case OPEN_SOCKET:
        return socket_receive(from->socket, &(struct iovec){to, count}, 1, 0);
    case OPEN_FILE:
        return file_read(&from->file, to, count);
    case OPEN_MEMORY:
        return REAL(read)(from->memory, to, count);
    default:
        return 0;
    }
}

ssize_t readv(int descriptor, const struct iovec *pieces, int count)
{
    if (!process_now()) return REAL(readv)(descriptor, pieces, count);
    const struct description *from = description_of(descriptor);
    if (!from) return -1;
    call_begins("readv", descriptor);
    if (from->kind != OPEN_SOCKET) return call_fails(ENOSYS);
    return socket_receive(from->socket, pieces, count, 0);
}

ssize_t write(int descriptor, const void *from, size_t count)
{
    if (!process_now()) return REAL(write)(descriptor, from, count);
    struct description *to = description_of(descriptor);
    if (!to) return -1;
    if (to->kind != OPEN_OUTPUT) call_begins("write", descriptor);
    switch (to->kind) {
    case OPEN_EVENT:
        return write_event(to, from, count);
    case OPEN_SOCKET:
        return socket_send(to->socket, &(struct iovec){(void *)from, count}, 1);
    case OPEN_FILE:
        return file_write(&to->file, from, count);
    case OPEN_OUTPUT:
        process_says(to->process, from, count);
        return (ssize_t)count;
    case OPEN_MEMORY:
        return REAL(write)(to->memory, from, count);
    default:
        return (ssize_t)count;
    }
}

int close(int descriptor)
{
    if (!process_now()) return REAL(close)(descriptor);
    call_begins("close", descriptor);
    return descriptor_close(descriptor);
}

int fcntl64(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    const long argument = va_arg(arguments, long);
    va_end(arguments);
    if (!process_now()) return REAL(fcntl64)(descriptor, command, argument);
    struct description *description = description_of(descriptor);
    if (!description) return -1;
    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return descriptor_give(description, (int)argument);
    case F_GETFL:
        return description->is_nonblocking ? O_NONBLOCK : 0;
    case F_SETFL:
        description->is_nonblocking = argument & O_NONBLOCK;
        return 0;
    case F_ADD_SEALS:
    case F_GET_SEALS:
        return REAL(fcntl64)(description->memory, command, argument);
    default:
        return 0;
    }
}

int fcntl(int descriptor, int command, ...)
{
    va_list arguments;
    va_start(arguments, command);
    const long argument = va_arg(arguments, long);
    va_end(arguments);
    return fcntl64(descriptor, command, argument);
}

int isatty(int descriptor)
{
    return process_now() ? 0 : REAL(isatty)(descriptor);
}

int ioctl(int descriptor, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    return process_now() ? call_fails(ENOTTY) : REAL(ioctl)(descriptor, request, argument);
}
