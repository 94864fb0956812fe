/* loop.c - epoll for descriptors, a list of links to poll, and how to wait for both.
 *
 * A link is found ready in two ways: its descriptor is (epoll), or looking at it shows something
 * (a ring; a socket by a non-blocking read). Looking is faster and costs nothing for rings; for
 * sockets it costs a system call each, so it is done only if there are few of them.
 *
 * Waiting is done in three steps: look, look again for spin_us with sched_yield between looks, and
 * block. Before blocking, every ring is armed: its peer is told that it must wake this side,
 * and the ring is looked at once more, so that nothing that came in between is missed.
 *
 * Guests (guests.h) are in lists of their own. They have an epoll instance of their own, a
 * descriptor that the loop watches only while guests do not rest.
 *
 * Nothing is freed while callbacks may stand on it: descriptors leave a watch with a new
 * generation, links and listeners are freed at the end of loop_poll.
 */
#include "net/loop.h"

#include "net/closing.h"
#include "net/loop/guests.h"
#include "net/loop/links.h"
#include "net/loop/mover.h"
#include "net/loop/watches.h"

#include "core/base/clock.h"
#include "net/message.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    EVENTS_MAX = 64,           /* of one epoll_wait */
    LOOKED_AT_SOCKETS_MAX = 8, /* if there are more sockets, only epoll watches them */
    LOOKS_PER_EPOLL = 16,      /* looks at links per look at descriptors while there is traffic */
    EXPIRE_EVERY_MS = 50,
};

struct loop {
    struct watches watches;
    int spare_fd; /* closed for a moment to accept a connection and turn it away */
    struct links links;
    struct guests guests;
    int guest_watch;       /* of their epoll instance */
    bool guests_are_ready; /* that instance has events */
    bool guest_work_waits; /* loop_begin_guests was refused, or there is more to do */
    bool work_went_last, links_went_last; /* guests' work and links take turns */
    uint64_t (*now_ns)(void);             /* the clock that measures turns */
    int spin_us, stall_ms;
    struct tls_keys *keys; /* borrowed; NULL: links are not encrypted */
    bool is_insecure;      /* loop_set_insecure: without keys, peers on other hosts are accepted */
    uint64_t refusals;     /* peers that failed authentication */
    bool is_polling;
    bool is_moving;      /* within loop_move */
    struct mover *mover; /* NULL until the loop is lent for the first time */
    bool is_lent;
    int busy_looks; /* since descriptors were looked at */
    uint64_t expired_ms;
    struct loop_bytes bytes[MESSAGE_TYPES];
};

static bool note_guests(void *context, uint32_t events)
{
    ((struct loop *)context)->guests_are_ready = true;
    return false;
}

static err watch_guests(struct loop *loop)
{
    const struct loop_watcher watcher = {
        .fd = loop->watches.guests_fd, .events = EPOLLIN, .ready = note_guests, .context = loop};
    return watches_add(&loop->watches, &watcher, &loop->guest_watch);
}

err loop_open(struct loop **ret)
{
    struct loop *loop = calloc(1, sizeof *loop);
    if (!loop) return fail(ERR_MEMORY, "no memory for an event loop");
    loop->now_ns = clock_ns;
    loop->spin_us = LOOP_SPIN_US;
    loop->stall_ms = LINK_STALL_MAX_MS;
    loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    err e = watches_open(&loop->watches);
    if (!e) e = watch_guests(loop);
    if (!e && loop->spare_fd < 0) e = fail(ERR_IO, "cannot open /dev/null");
    if (e)
        loop_close(loop);
    else
        *ret = loop;
    return e;
}

static void close_if_open(int fd)
{
    if (fd >= 0) close(fd);
}

void loop_close(struct loop *loop)
{
    if (!loop) return;
    assert(!loop->is_polling);
    loop_reclaim(loop);
    mover_close(loop->mover);
    links_close(&loop->links);
    links_reap(&loop->links);
    close_if_open(loop->spare_fd);
    watches_close(&loop->watches);
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
    links_put(&loop->links, link);
}

void loop_add_listener(struct loop *loop, struct listener *listener)
{
    listener->previous = NULL;
    listener->next = loop->links.listeners;
    if (listener->next) listener->next->previous = listener;
    loop->links.listeners = listener;
}

struct listener *loop_first_listener(struct loop *loop)
{
    return loop->links.listeners;
}

void loop_close_coming(struct loop *loop, struct listener *listener, int kept)
{
    links_close_coming(&loop->links, listener, kept);
}

void loop_note_end(struct loop *loop)
{
    loop->links.ends_due++;
}

void loop_note_dead(struct loop *loop)
{
    loop->links.dead_count++;
}

/* ---- descriptors ---- */

err loop_attach(struct loop *loop, const struct loop_watcher *watcher, int *ret_watch)
{
    return watches_add(&loop->watches, watcher, ret_watch);
}

void loop_change(struct loop *loop, int watch, uint32_t events)
{
    watches_change(&loop->watches, watch, events);
}

void loop_move_watch(struct loop *loop, int watch, bool is_guest)
{
    watches_move(&loop->watches, watch, is_guest);
}

void loop_detach(struct loop *loop, int watch)
{
    watches_remove(&loop->watches, watch);
}

err loop_watch(struct loop *loop, int fd, void (*ready)(void *context), void *context)
{
    int index;
    TRY(loop_attach(loop, &(struct loop_watcher){.fd = fd, .events = EPOLLIN, .context = context},
                    &index));
    loop->watches.at[index].plain_ready = ready;
    return OK;
}

void loop_unwatch(struct loop *loop, int fd)
{
    for (int i = 0; i < loop->watches.count; i++)
        if (loop->watches.at[i].fd == fd && loop->watches.at[i].plain_ready) loop_detach(loop, i);
}

void loop_turn_away(struct loop *loop, struct listener *listener,
                    void (*say)(const struct listener *, int fd))
{
    close_if_open(loop->spare_fd);
    const int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
        say(listener, fd);
        if (!close_accepted(fd)) listener_stop(listener);
    }
    loop->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* ---- guests ---- */

static bool begin_guests(struct loop *loop)
{
    const uint64_t now_ns = loop->now_ns();
    if (loop->guests.is_serving || guests_rest(&loop->guests, now_ns)) return false;
    guests_begin(&loop->guests, now_ns);
    return true;
}

static void end_guests(struct loop *loop)
{
    guests_end(&loop->guests, loop->now_ns(), loop->links.first[MEMBERS] != NULL);
}

bool loop_begin_guests(struct loop *loop)
{
    loop->guest_work_waits = loop->work_went_last || !begin_guests(loop);
    return !loop->guest_work_waits;
}

bool loop_guests_had_their_slice(const struct loop *loop)
{
    return guests_had_their_slice(&loop->guests, loop->now_ns());
}

void loop_end_guests(struct loop *loop, bool has_more)
{
    loop->guest_work_waits = has_more;
    loop->work_went_last = true;
    loop->links_went_last = false;
    end_guests(loop);
}

bool loop_begin_guests_here(struct loop *loop)
{
    return begin_guests(loop);
}

void loop_end_guests_here(struct loop *loop)
{
    end_guests(loop);
}

/* Ends the guests' turn: what a link does as a member is not charged to guests. */
void loop_move_link(struct loop *loop, struct link *link, bool is_guest)
{
    if (link->is_guest == is_guest) return;
    links_take(&loop->links, link);
    link->is_guest = is_guest;
    links_put(&loop->links, link);
    watches_move(&loop->watches, link->watch, is_guest);
    watches_move(&loop->watches, link->wake_watch, is_guest);
    end_guests(loop);
}

struct loop_bytes loop_bytes(const struct loop *loop, uint32_t type)
{
    return type < MESSAGE_TYPES ? loop->bytes[type] : (struct loop_bytes){0};
}

/* Ignores unknown types. */
void loop_count(struct loop *loop, uint32_t type, struct loop_bytes more)
{
    if (type >= MESSAGE_TYPES) return;
    loop->bytes[type].sent += more.sent;
    loop->bytes[type].received += more.received;
}

uint64_t loop_now_ns(const struct loop *loop)
{
    return loop->now_ns();
}

void loop_set_keys(struct loop *loop, struct tls_keys *keys)
{
    loop->keys = keys;
}

void loop_set_insecure(struct loop *loop, bool is_insecure)
{
    loop->is_insecure = is_insecure;
}

bool loop_is_insecure(const struct loop *loop)
{
    return loop && loop->is_insecure;
}

struct tls_keys *loop_keys(const struct loop *loop)
{
    return loop ? loop->keys : NULL;
}

uint64_t loop_note_refusal(struct loop *loop)
{
    return ++loop->refusals;
}

void loop_set_clock(struct loop *loop, uint64_t (*now_ns)(void))
{
    loop->now_ns = now_ns;
}

static bool look_at_rings_of_guests(struct loop *loop)
{
    bool delivered = false;
    for (struct link *link = loop->links.first[GUESTS], *next; link; link = next) {
        next = link->next; /* the link may become a member's, and leave this list */
        if (link->ops->shares_memory) delivered |= link_look(link);
    }
    return delivered;
}

static bool guests_may(const struct loop *loop)
{
    return !guests_rest(&loop->guests, loop->now_ns());
}

/* After work, links are looked at in any case: while guests rest, their epoll is not watched. */
static bool do_guests_want(const struct loop *loop)
{
    return loop->guests_are_ready || loop->links.guest_rings > 0 || loop->work_went_last;
}

/* Yields this turn of guests to waiting work, but only once: whoever wanted it may have gone. */
static bool leaves_turn(struct loop *loop)
{
    if (!loop->guest_work_waits || !loop->links_went_last || !guests_may(loop)) return false;
    loop->links_went_last = false;
    return true;
}

/* One event at a time: epoll then queues that descriptor last, so that all have their turn. */
static bool serve_guests(struct loop *loop)
{
    if (!do_guests_want(loop) || leaves_turn(loop) || !begin_guests(loop)) return false;
    loop->guests_are_ready = loop->work_went_last = false;
    loop->links_went_last = true;
    bool delivered = loop->links.guest_rings > 0 && look_at_rings_of_guests(loop);
    struct epoll_event event;
    while (!loop_guests_had_their_slice(loop) &&
           epoll_wait(loop->watches.guests_fd, &event, 1, 0) == 1)
        delivered |= watches_dispatch(&loop->watches, &event);
    end_guests(loop);
    return delivered;
}

/* ---- looking ---- */

static void expire_links(struct loop *loop)
{
    const uint64_t now_ms = clock_ms();
    if (now_ms < loop->expired_ms + EXPIRE_EVERY_MS) return;
    loop->expired_ms = now_ms;
    links_expire(&loop->links, now_ms);
}

static bool look_at_descriptors(struct loop *loop, int wait_ms)
{
    struct epoll_event events[EVENTS_MAX];
    bool delivered = false;
    loop_change(loop, loop->guest_watch, guests_may(loop) ? EPOLLIN : 0);
    const int count = epoll_wait(loop->watches.members_fd, events, EVENTS_MAX, wait_ms);
    for (int i = 0; i < count; i++) delivered |= watches_dispatch(&loop->watches, &events[i]);
    delivered |= serve_guests(loop);
    expire_links(loop);
    loop->busy_looks = 0;
    return delivered;
}

static bool look_at_links(struct loop *loop)
{
    const bool with_sockets = loop->links.member_sockets <= LOOKED_AT_SOCKETS_MAX;
    bool delivered = false;
    for (struct link *link = loop->links.first[MEMBERS]; link; link = link->next)
        if (with_sockets || link->ops->shares_memory || link->needs_look || link->deferred.count)
            delivered |= link_look(link);
    return delivered;
}

/* One look at everything; at descriptors only now and then while there is traffic in rings. */
static bool look(struct loop *loop, int looks_per_epoll)
{
    bool delivered = look_at_links(loop);
    if (++loop->busy_looks >= looks_per_epoll) delivered |= look_at_descriptors(loop, 0);
    return links_announce_ends(&loop->links) || delivered;
}

/* sched_yield: the task that this one waits for may need this core. */
static bool spin(struct loop *loop, uint64_t until_ns)
{
    const bool sockets_are_looked_at = loop->links.member_sockets <= LOOKED_AT_SOCKETS_MAX;
    while (clock_ns() < until_ns) {
        sched_yield();
        if (look(loop, sockets_are_looked_at ? LOOKS_PER_EPOLL : 1)) return true;
    }
    return false;
}

/* Tells every peer that this side is about to block; true: something has come, do not block.
 * Resting guests are left out. */
static bool arm(struct loop *loop, bool are_guests_resting)
{
    bool is_ready = links_arm(&loop->links, MEMBERS) || loop->links.ends_due > 0;
    if (are_guests_resting) return is_ready;
    if (loop->links.guest_rings) is_ready |= links_arm(&loop->links, GUESTS);
    return is_ready || loop->guest_work_waits;
}

static void disarm(struct loop *loop)
{
    links_disarm(&loop->links, MEMBERS);
    if (loop->links.guest_rings) links_disarm(&loop->links, GUESTS);
}

/* How long guests still rest, in ms; 0: they do not. */
static uint64_t rest_ms(const struct loop *loop)
{
    enum { MS_IN_NS = 1000000 };
    const uint64_t now_ns = loop->now_ns();
    if (!guests_rest(&loop->guests, now_ns)) return 0;
    return (loop->guests.rests_until_ns - now_ns + MS_IN_NS - 1) / MS_IN_NS;
}

/* How long epoll may block, in ms: until until_ms or the first deadline of a member's link. Guests'
 * deadlines can wait until it returns for another reason. */
static uint64_t sleep_ms(const struct loop *loop, uint64_t until_ms)
{
    const uint64_t next_check_ms = loop->expired_ms + EXPIRE_EVERY_MS;
    const uint64_t deadline_ms = links_deadline_ms(&loop->links, until_ms);
    if (deadline_ms < until_ms)
        until_ms = deadline_ms > next_check_ms ? deadline_ms : next_check_ms;
    const uint64_t now_ms = clock_ms();
    return until_ms > now_ms ? until_ms - now_ms : 0;
}

/* rest_ms() is read only once, because the rest may end between two calls. */
static bool block(struct loop *loop, uint64_t until_ms)
{
    const uint64_t guests_ms = rest_ms(loop);
    uint64_t wait_ms = arm(loop, guests_ms > 0) ? 0 : sleep_ms(loop, until_ms);
    if (guests_ms > 0 && guests_ms < wait_ms) wait_ms = guests_ms;
    bool delivered = look_at_descriptors(loop, (int)wait_ms);
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
        if (!loop->guest_work_waits || !guests_may(loop)) continue;
        loop->guest_work_waits = false; /* reported once: whoever still wants it asks again */
        return true;
    } while (clock_ms() < until_ms);
    return false;
}

/* true: something was delivered or sent. */
static bool move(struct loop *loop)
{
    bool has_moved = false;
    assert(!loop->is_lent);
    if (loop->is_moving) return false;
    loop->is_moving = true;
    for (struct link *link = loop->links.first[MEMBERS]; link; link = link->next)
        has_moved |= link_look(link);
    loop->is_moving = false;
    return has_moved;
}

void loop_move(struct loop *loop)
{
    move(loop);
}

/* Blocks until something comes or more of the queue can be sent. Over shm `watch` reports only
 * bodies and the peer's end, `wake_watch` what is in the ring. */
static void sleep_until_it_moves(struct loop *loop, struct link *link, uint64_t timeout_ms)
{
    const int indices[] = {link->watch, link->wake_watch};
    struct watch watches[2];
    struct pollfd fds[2];
    int count = 0;
    for (int i = 0; i < 2; i++) {
        if (indices[i] < 0) continue;
        watches[count] = loop->watches.at[indices[i]];
        fds[count] =
            (struct pollfd){.fd = watches[count].fd, .events = (short)watches[count].events};
        count++;
    }
    if (!link->ops->arm || !link->ops->arm(link)) poll(fds, (nfds_t)count, (int)timeout_ms);
    if (link->ops->disarm) link->ops->disarm(link);
    loop->is_moving = true;
    for (int i = 0; i < count; i++)
        if (fds[i].revents && link->state == LINK_OPEN)
            watches[i].ready(watches[i].context, EPOLLIN);
    loop->is_moving = false;
}

/* If the other end is in this loop, delivers all that has come for it, as its own process would.
 * Its owner cannot be within a callback, because callbacks do not nest. */
static bool serve_other_end(const struct link *link)
{
    struct link *other = link->ops->other_end ? link->ops->other_end(link) : NULL;
    return other && link_look(other);
}

static bool move_on(struct loop *loop, const struct link *link)
{
    const bool has_served = serve_other_end(link);
    return move(loop) || has_served;
}

/* A message that is neither a part nor may wait (message_may_wait) stays where it is, with all
 * behind it. A ring is polled for spin_us first, as in wait(). */
err loop_await(struct loop *loop, struct link *link, int timeout_ms)
{
    const uint64_t before = link->progress, until_ms = clock_ms() + (uint64_t)timeout_ms;
    const uint64_t spin_until_ns = clock_ns() + (uint64_t)loop->spin_us * 1000;
    assert(!loop->is_moving); /* not from within a part's callback */
    bool has_moved = move_on(loop, link);
    while (link->state == LINK_OPEN && link->progress == before && !link->needs_look) {
        const uint64_t now_ms = clock_ms();
        const bool is_alone = link->watch < 0 && !has_moved;
        if (now_ms >= until_ms || is_alone)
            return fail(ERR_TIMEOUT, "nothing came for %d ms", is_alone ? 0 : timeout_ms);
        if (link->ops->shares_memory && clock_ns() < spin_until_ns)
            sched_yield();
        else if (link->watch >= 0)
            sleep_until_it_moves(loop, link, until_ms - now_ms);
        has_moved = move_on(loop, link);
    }
    if (link->state != LINK_OPEN) return fail(ERR_PEER, "%s", link->end.text);
    return link->progress == before ? fail(ERR_PEER, "it sent another message first") : OK;
}

bool loop_is_moving(const struct loop *loop)
{
    return loop->is_moving;
}

struct mover *loop_mover(const struct loop *loop)
{
    return loop->mover;
}

/* A link with needs_look has a message that may not be delivered now, in front of all others: it is
 * not watched for input. */
int loop_list_sockets(const struct loop *loop, struct loop_socket *ret, int max)
{
    int count = 0;
    for (struct link *link = loop->links.first[MEMBERS]; link && count < max; link = link->next) {
        if (link->state != LINK_OPEN || link->watch < 0 || link->ops->shares_memory) continue;
        const struct watch *watch = &loop->watches.at[link->watch];
        const uint32_t events = link->needs_look ? watch->events & ~EPOLLIN : watch->events;
        ret[count++] = (struct loop_socket){link, watch->fd, events};
    }
    return count;
}

void loop_look_amid(struct loop *loop, struct link *link)
{
    loop->is_moving = true;
    link_look(link);
    loop->is_moving = false;
}

err loop_lend(struct loop *loop)
{
    assert(!loop->is_lent);
    if (!loop->mover) TRY(mover_open(loop, &loop->mover));
    loop->is_lent = true;
    mover_lend(loop->mover);
    return OK;
}

void loop_reclaim(struct loop *loop)
{
    if (!loop->is_lent) return;
    loop->is_lent = false;
    mover_reclaim(loop->mover);
}

bool loop_poll(struct loop *loop, int timeout_ms)
{
    assert(!loop->is_lent);
    if (loop->is_polling) return false; /* from a callback */
    loop->is_polling = true;
    if (timeout_ms < 0 || timeout_ms > LOOP_WAIT_MAX_MS) timeout_ms = LOOP_WAIT_MAX_MS;
    bool delivered = links_announce_ends(&loop->links);
    delivered |= look(loop, timeout_ms > 0 ? LOOKS_PER_EPOLL : 1);
    if (!delivered && timeout_ms > 0) delivered = wait(loop, timeout_ms);
    loop->is_polling = false;
    links_reap(&loop->links);
    return delivered;
}
