/* watches.c - see watches.h. */
#include "net/loop/watches.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WATCHES_START = 16 };

err watches_open(struct watches *ret)
{
    *ret = (struct watches){.first_free = -1};
    ret->members_fd = epoll_create1(EPOLL_CLOEXEC);
    ret->guests_fd = epoll_create1(EPOLL_CLOEXEC);
    if (ret->members_fd >= 0 && ret->guests_fd >= 0) return OK;
    const int reason = errno;
    watches_close(ret);
    return fail(ERR_IO, "cannot open an event loop: %s", strerror(reason));
}

void watches_close(struct watches *watches)
{
    if (watches->members_fd >= 0) close(watches->members_fd);
    if (watches->guests_fd >= 0) close(watches->guests_fd);
    watches->members_fd = watches->guests_fd = -1;
    free(watches->at);
    watches->at = NULL;
}

static err grow(struct watches *watches)
{
    if (watches->count == LOOP_WATCH_MAX)
        return fail(ERR_MEMORY, "more than %d connections and files", LOOP_WATCH_MAX);
    const int count = watches->count ? 2 * watches->count : WATCHES_START;
    struct watch *at = realloc(watches->at, (size_t)count * sizeof *at);
    if (!at) return fail(ERR_MEMORY, "no memory for %d descriptors", count);
    watches->at = at;
    for (int i = count - 1; i >= watches->count; i--) {
        at[i] = (struct watch){.fd = -1, .next_free = watches->first_free};
        watches->first_free = i;
    }
    watches->count = count;
    return OK;
}

static int control(const struct watches *watches, int operation, int index)
{
    const struct watch *watch = &watches->at[index];
    struct epoll_event event = {.events = watch->events,
                                .data.u64 = (uint64_t)watch->generation << 32 | (uint32_t)index};
    return epoll_ctl(watch->is_guest ? watches->guests_fd : watches->members_fd, operation,
                     watch->fd, &event);
}

/* The new generation makes pending events for the old watch recognisable. */
static void release(struct watches *watches, int index)
{
    struct watch *watch = &watches->at[index];
    *watch = (struct watch){
        .fd = -1, .generation = watch->generation + 1, .next_free = watches->first_free};
    watches->first_free = index;
}

err watches_add(struct watches *watches, const struct loop_watcher *watcher, int *ret_watch)
{
    if (watches->first_free < 0) TRY(grow(watches));
    const int index = watches->first_free;
    struct watch *watch = &watches->at[index];
    watches->first_free = watch->next_free;
    watch->fd = watcher->fd;
    watch->events = watcher->events;
    watch->ready = watcher->ready;
    watch->context = watcher->context;
    watch->is_guest = watcher->is_guest;
    if (control(watches, EPOLL_CTL_ADD, index)) {
        const int reason = errno;
        release(watches, index);
        return fail(ERR_IO, "cannot watch a descriptor: %s", strerror(reason));
    }
    *ret_watch = index;
    return OK;
}

void watches_change(struct watches *watches, int watch, uint32_t events)
{
    if (watches->at[watch].events == events) return;
    watches->at[watch].events = events;
    control(watches, EPOLL_CTL_MOD, watch);
}

void watches_move(struct watches *watches, int watch, bool is_guest)
{
    if (watch < 0 || watches->at[watch].is_guest == is_guest) return;
    control(watches, EPOLL_CTL_DEL, watch);
    watches->at[watch].is_guest = is_guest;
    control(watches, EPOLL_CTL_ADD, watch);
}

void watches_remove(struct watches *watches, int watch)
{
    if (watch < 0) return;
    control(watches, EPOLL_CTL_DEL, watch);
    release(watches, watch);
}

bool watches_dispatch(struct watches *watches, const struct epoll_event *event)
{
    const uint32_t index = (uint32_t)event->data.u64;
    const struct watch watch = watches->at[index]; /* a copy: the table may move */
    if (watch.fd < 0 || watch.generation != event->data.u64 >> 32) return false;
    if (!watch.plain_ready) return watch.ready(watch.context, event->events);
    watch.plain_ready(watch.context);
    return true;
}
