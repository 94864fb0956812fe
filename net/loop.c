/* loop.c - epoll for descriptors, a list of links that are looked at, and the art of waiting.
 *
 * A link is found ready in two ways: its descriptor is (epoll), or looking at it shows something
 * (a ring; a socket by a read that does not wait). Looking is faster and costs nothing for rings;
 * for sockets it costs a system call each, so that it is done for a handful only.
 *
 * Waiting is done in three steps: look, look again for spin_us with sched_yield between looks, and
 * block. Before blocking, every ring is armed: its peer is told that it must write the eventfd,
 * and the ring is looked at once more, so that nothing that came in between is slept over.
 *
 * Nothing is freed while callbacks may stand on it: descriptors leave a watch with a new
 * generation, links and listeners are freed at the end of loop_poll.
 */
#include "net/loop.h"

#include "net/link.h"
#include "net/loop_inside.h"

#include "core/base/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    WATCHES_START = 16,
    EVENTS_MAX = 64,           /* of one epoll_wait */
    LOOKED_AT_SOCKETS_MAX = 8, /* more than these are left to epoll */
    LOOKS_PER_EPOLL = 16,      /* looks at links for one at descriptors while there is traffic */
    EXPIRE_EVERY_MS = 50,
    SIGNALS_PER_LOOK_MAX = 16,
};

struct watch {
    int fd; /* -1: free */
    uint32_t generation, events;
    loop_ready *ready;
    void (*plain_ready)(void *context); /* loop_watch: instead of ready */
    void *context;
    int next_free;
};

struct loop {
    int epoll_fd, wake_fd, signal_fd;
    int spare_fd; /* given up for a moment to turn a connection away */
    struct watch *watches;
    int watch_count, first_free;
    struct link *links;
    struct listener *listeners;
    int socket_links; /* links that are looked at by a system call */
    int spin_us, stall_ms;
    bool is_polling;
    int ends_due;   /* closed() not yet called */
    int dead_count; /* to be freed */
    int busy_looks; /* since descriptors were looked at */
    uint64_t expired_ms;
    void (*caught)(void *context, int signo);
    void *caught_context;
};

err loop_open(struct loop **ret)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop) return fail(ERR_MEMORY, "no memory for an event loop");
    loop->wake_fd = loop->signal_fd = -1;
    loop->first_free = -1;
    loop->spin_us = LOOP_SPIN_US;
    loop->stall_ms = LINK_STALL_MAX_MS;
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (loop->epoll_fd < 0 || loop->spare_fd < 0) {
        const int reason = errno;
        loop_close(loop);
        return fail(ERR_IO, "cannot open an event loop: %s", strerror(reason));
    }
    *ret = loop;
    return OK;
}

static void close_if_open(int fd)
{
    if (fd >= 0) close(fd);
}

/* Frees the links and listeners that nobody can hear of any more. */
static void reap(struct loop *loop)
{
    if (loop->dead_count == 0) return;
    loop->dead_count = 0;
    for (struct link *link = loop->links, *next; link; link = next) {
        next = link->next;
        if (link->state != LINK_CLOSED) continue;
        if (link->previous)
            link->previous->next = next;
        else
            loop->links = next;
        if (next) next->previous = link->previous;
        if (!link->ops->shares_memory) loop->socket_links--;
        link_free(link);
    }
    for (struct listener *at = loop->listeners, *next; at; at = next) {
        next = at->next;
        if (!at->is_closed) continue;
        if (at->previous)
            at->previous->next = next;
        else
            loop->listeners = next;
        if (next) next->previous = at->previous;
        free(at);
    }
}

void loop_close(struct loop *loop)
{
    if (!loop) return;
    assert(!loop->is_polling);
    for (struct link *link = loop->links; link; link = link->next) link_close(link);
    for (struct listener *at = loop->listeners; at; at = at->next) listener_close(at);
    reap(loop);
    close_if_open(loop->wake_fd);
    close_if_open(loop->signal_fd);
    close_if_open(loop->spare_fd);
    close_if_open(loop->epoll_fd);
    free(loop->watches);
    free(loop);
}

void loop_set_spin(struct loop *loop, int spin_us)
{
    loop->spin_us = spin_us;
}

void loop_set_stall(struct loop *loop, int stall_ms)
{
    loop->stall_ms = stall_ms;
}

uint64_t loop_stall_ms(const struct loop *loop)
{
    return (uint64_t)loop->stall_ms;
}

void loop_add_link(struct loop *loop, struct link *link)
{
    link->next = loop->links;
    if (loop->links) loop->links->previous = link;
    loop->links = link;
    if (!link->ops->shares_memory) loop->socket_links++;
}

void loop_add_listener(struct loop *loop, struct listener *listener)
{
    listener->previous = NULL;
    listener->next = loop->listeners;
    if (loop->listeners) loop->listeners->previous = listener;
    loop->listeners = listener;
}

struct listener *loop_first_listener(struct loop *loop)
{
    return loop->listeners;
}

void loop_note_end(struct loop *loop)
{
    loop->ends_due++;
}

void loop_note_dead(struct loop *loop)
{
    loop->dead_count++;
}

/* Watches are named by index, never by pointer: the table moves. */
static err grow_watches(struct loop *loop)
{
    if (loop->watch_count == LOOP_WATCH_MAX)
        return fail(ERR_MEMORY, "more than %d connections and files", LOOP_WATCH_MAX);
    const int count = loop->watch_count ? 2 * loop->watch_count : WATCHES_START;
    struct watch *watches = realloc(loop->watches, (size_t)count * sizeof *watches);
    if (!watches) return fail(ERR_MEMORY, "no memory for %d descriptors", count);
    loop->watches = watches;
    for (int i = count - 1; i >= loop->watch_count; i--) {
        watches[i] = (struct watch){.fd = -1, .next_free = loop->first_free};
        loop->first_free = i;
    }
    loop->watch_count = count;
    return OK;
}

/* epoll hands the index and the generation back, so that an event for a watch that has gone in the
 * meantime is recognised. */
static int control(const struct loop *loop, int operation, int index)
{
    const struct watch *watch = &loop->watches[index];
    struct epoll_event event = {.events = watch->events,
                                .data.u64 = (uint64_t)watch->generation << 32 | (uint32_t)index};
    return epoll_ctl(loop->epoll_fd, operation, watch->fd, &event);
}

/* The new generation makes events that are still on their way strangers. */
static void release(struct loop *loop, int index)
{
    struct watch *watch = &loop->watches[index];
    *watch = (struct watch){
        .fd = -1, .generation = watch->generation + 1, .next_free = loop->first_free};
    loop->first_free = index;
}

err loop_attach(struct loop *loop, const struct loop_watcher *watcher, int *ret_watch)
{
    if (loop->first_free < 0) TRY(grow_watches(loop));
    const int index = loop->first_free;
    struct watch *watch = &loop->watches[index];
    loop->first_free = watch->next_free;
    watch->fd = watcher->fd;
    watch->events = watcher->events;
    watch->ready = watcher->ready;
    watch->context = watcher->context;
    if (control(loop, EPOLL_CTL_ADD, index)) {
        const int reason = errno;
        release(loop, index);
        return fail(ERR_IO, "cannot watch a descriptor: %s", strerror(reason));
    }
    *ret_watch = index;
    return OK;
}

void loop_change(struct loop *loop, int watch, uint32_t events)
{
    if (loop->watches[watch].events == events) return;
    loop->watches[watch].events = events;
    control(loop, EPOLL_CTL_MOD, watch);
}

void loop_detach(struct loop *loop, int watch)
{
    if (watch < 0) return;
    control(loop, EPOLL_CTL_DEL, watch);
    release(loop, watch);
}

err loop_watch(struct loop *loop, int fd, void (*ready)(void *context), void *context)
{
    int index;
    TRY(loop_attach(loop, &(struct loop_watcher){fd, EPOLLIN, NULL, context}, &index));
    loop->watches[index].plain_ready = ready;
    return OK;
}

void loop_unwatch(struct loop *loop, int fd)
{
    for (int i = 0; i < loop->watch_count; i++)
        if (loop->watches[i].fd == fd && loop->watches[i].plain_ready) loop_detach(loop, i);
}

static bool clear_wake(void *context, uint32_t events)
{
    const struct loop *loop = context;
    uint64_t count;
    const ssize_t got = read(loop->wake_fd, &count, sizeof count);
    (void)got; /* nothing to read: somebody else's wake-up, already cleared */
    return false;
}

err loop_wake_fd(struct loop *loop, int *ret_fd)
{
    if (loop->wake_fd < 0) {
        const int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        if (fd < 0) return fail(ERR_IO, "cannot make an eventfd: %s", strerror(errno));
        int watch;
        const err e =
            loop_attach(loop, &(struct loop_watcher){fd, EPOLLIN, clear_wake, loop}, &watch);
        if (e) {
            close(fd);
            return e;
        }
        loop->wake_fd = fd;
    }
    *ret_fd = loop->wake_fd;
    return OK;
}

void loop_turn_away(struct loop *loop, struct listener *listener,
                    void (*say)(struct listener *, int fd))
{
    close_if_open(loop->spare_fd);
    const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) say(listener, fd);
    close_if_open(fd);
    loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static bool read_signals(void *context, uint32_t events)
{
    struct loop *loop = context;
    struct signalfd_siginfo got;
    bool delivered = false;
    for (int i = 0; i < SIGNALS_PER_LOOK_MAX; i++) {
        if (read(loop->signal_fd, &got, sizeof got) != (ssize_t)sizeof got) break;
        loop->caught(loop->caught_context, (int)got.ssi_signo);
        delivered = true;
    }
    return delivered;
}

/* The signals stay blocked after loop_close: one that comes during the last lines of a process must
 * not change how it ends. */
err loop_signals(struct loop *loop, uint64_t mask, void (*caught)(void *context, int signo),
                 void *context)
{
    if (loop->signal_fd >= 0) return fail(ERR_INPUT, "signals are asked for once");
    sigset_t set;
    sigemptyset(&set);
    for (int signo = 1; signo <= 64; signo++)
        if (mask >> (signo - 1) & 1) sigaddset(&set, signo);
    if (pthread_sigmask(SIG_BLOCK, &set, NULL))
        return fail(ERR_IO, "cannot block signals: %s", strerror(errno));
    loop->caught = caught;
    loop->caught_context = context;
    loop->signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (loop->signal_fd < 0) return fail(ERR_IO, "cannot make a signalfd: %s", strerror(errno));
    int watch;
    return loop_attach(loop, &(struct loop_watcher){loop->signal_fd, EPOLLIN, read_signals, loop},
                       &watch);
}

static bool dispatch(struct loop *loop, const struct epoll_event *event)
{
    const uint32_t index = (uint32_t)event->data.u64;
    const struct watch watch = loop->watches[index]; /* a copy: the table may move */
    if (watch.fd < 0 || watch.generation != event->data.u64 >> 32) return false;
    if (!watch.plain_ready) return watch.ready(watch.context, event->events);
    watch.plain_ready(watch.context);
    return true;
}

static void expire_links(struct loop *loop)
{
    const uint64_t now_ms = clock_ms();
    if (now_ms < loop->expired_ms + EXPIRE_EVERY_MS) return;
    loop->expired_ms = now_ms;
    for (struct link *link = loop->links; link; link = link->next)
        if (link->deadline_ms && link->state < LINK_ENDED && now_ms >= link->deadline_ms)
            link_expire(link);
}

static bool look_at_descriptors(struct loop *loop, int wait_ms)
{
    struct epoll_event events[EVENTS_MAX];
    bool delivered = false;
    const int count = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, wait_ms);
    for (int i = 0; i < count; i++) delivered |= dispatch(loop, &events[i]);
    expire_links(loop);
    loop->busy_looks = 0;
    return delivered;
}

static bool look_at_links(struct loop *loop)
{
    const bool with_sockets = loop->socket_links <= LOOKED_AT_SOCKETS_MAX;
    bool delivered = false;
    for (struct link *link = loop->links; link; link = link->next)
        if (with_sockets || link->ops->shares_memory || link->needs_look)
            delivered |= link->ops->look(link);
    return delivered;
}

static bool announce_ends(struct loop *loop)
{
    if (loop->ends_due == 0) return false;
    loop->ends_due = 0; /* those that end in a callback may be missed here: they count again */
    for (struct link *link = loop->links; link; link = link->next)
        if (link->state == LINK_ENDED) link_announce_end(link);
    return true;
}

/* One look at everything; at descriptors only now and then while there is traffic in rings. */
static bool look(struct loop *loop, int looks_per_epoll)
{
    bool delivered = look_at_links(loop);
    if (++loop->busy_looks >= looks_per_epoll) delivered |= look_at_descriptors(loop, 0);
    return announce_ends(loop) || delivered;
}

/* sched_yield: the task that is waited for may need this very core. */
static bool spin(struct loop *loop, uint64_t until_ns)
{
    const bool sockets_are_looked_at = loop->socket_links <= LOOKED_AT_SOCKETS_MAX;
    while (clock_ns() < until_ns) {
        sched_yield();
        if (look(loop, sockets_are_looked_at ? LOOKS_PER_EPOLL : 1)) return true;
    }
    return false;
}

/* Tells every peer that this side sleeps; true: something came in the meantime, do not. */
static bool arm(struct loop *loop)
{
    bool is_ready = loop->ends_due > 0;
    for (struct link *link = loop->links; link; link = link->next)
        if (link->state < LINK_ENDED)
            is_ready |= link->needs_look || (link->ops->arm && link->ops->arm(link));
    return is_ready;
}

static void disarm(struct loop *loop)
{
    for (struct link *link = loop->links; link; link = link->next)
        if (link->ops->disarm && link->state < LINK_ENDED) link->ops->disarm(link);
}

/* How long epoll may sleep: until the caller's time or the first deadline of a link. */
static int sleep_ms(const struct loop *loop, uint64_t until_ms)
{
    const uint64_t next_check_ms = loop->expired_ms + EXPIRE_EVERY_MS;
    for (const struct link *link = loop->links; link; link = link->next)
        if (link->deadline_ms && link->state < LINK_ENDED && link->deadline_ms < until_ms)
            until_ms = link->deadline_ms > next_check_ms ? link->deadline_ms : next_check_ms;
    const uint64_t now_ms = clock_ms();
    return until_ms > now_ms ? (int)(until_ms - now_ms) : 0;
}

static bool block(struct loop *loop, uint64_t until_ms)
{
    const int wait_ms = arm(loop) ? 0 : sleep_ms(loop, until_ms);
    bool delivered = look_at_descriptors(loop, wait_ms);
    disarm(loop);
    return look(loop, LOOKS_PER_EPOLL) || delivered;
}

static bool wait(struct loop *loop, int timeout_ms)
{
    const uint64_t start_ns = clock_ns();
    const uint64_t until_ms = clock_ms() + (uint64_t)timeout_ms;
    if (spin(loop, start_ns + (uint64_t)loop->spin_us * 1000)) return true;
    do {
        if (block(loop, until_ms)) return true;
    } while (clock_ms() < until_ms);
    return false;
}

bool loop_poll(struct loop *loop, int timeout_ms)
{
    if (loop->is_polling) return false; /* from a callback */
    loop->is_polling = true;
    if (timeout_ms < 0 || timeout_ms > LOOP_WAIT_MAX_MS) timeout_ms = LOOP_WAIT_MAX_MS;
    bool delivered = announce_ends(loop);
    delivered |= look(loop, timeout_ms > 0 ? LOOKS_PER_EPOLL : 1);
    if (!delivered && timeout_ms > 0) delivered = wait(loop, timeout_ms);
    loop->is_polling = false;
    reap(loop);
    return delivered;
}
