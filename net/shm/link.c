/* link.c - the traffic of an shm link. */
#include "net/shm/shm.h"

#include "net/closing.h"
#include "net/shared_memory.h"
#include "net/loop_inside.h"
#include "net/shm/pass.h"
#include "net/wire.h"
#include "net/would_block.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { WAKES_PER_LOOK = 64 };

static struct shm *shm_of(struct link *link)
{
    return (struct shm *)link;
}

void shm_use_control(struct shm *shm, struct shm_control *control)
{
    shm->control = control;
    shm->out.ring = &control->ring[shm->link.is_active ? 0 : 1];
    shm->in.ring = &control->ring[shm->link.is_active ? 1 : 0];
}

/* To be called after a header was put, or the peer got the room that it waits for. */
static void wake_peer(struct shm *shm)
{
    _Atomic uint32_t *sleeps = &shm->out.ring->taker_sleeps;
    if (!atomic_load(sleeps) || !atomic_exchange(sleeps, 0)) return;
    const ssize_t sent = send(shm->wake_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    (void)sent; /* full: enough wake-ups are pending; broken: the end of the link is noticed
                   elsewhere */
}

/* ---- sending ---- */

static int window_count(const struct link_windows *windows)
{
    return windows->rows.bytes ? 3 : 2;
}

/* The descriptors travel with one byte in the stream of bodies, which keeps them in order. */
static ssize_t send_windows(struct shm *shm)
{
    const struct link_windows *windows = &shm->link.shared.windows;
    const struct passed passed = {
        .size = 1,
        .fds = {windows->values.fd, windows->gradients.fd, windows->rows.fd},
        .fd_count = window_count(windows)};
    bool is_sent = false;
    if (pass_send(shm->fd, &passed, &is_sent)) return -1;
    return is_sent ? 1 : 0;
}

static void send_payload(struct shm *shm, struct parcel *parcel)
{
    while (parcel->sent < parcel_bytes(parcel) && !shm->is_socket_broken) {
        const size_t offset = parcel->sent - sizeof parcel->header;
        const ssize_t sent =
            parcel->carries_windows
                ? send_windows(shm)
                : send(shm->fd, (const char *)parcel->payload + offset,
                       parcel->payload_bytes - offset, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent > 0) parcel->sent += (size_t)sent;
        if (sent == 0 || (sent < 0 && would_block(errno))) return;
        if (sent < 0) shm->is_socket_broken = shm->link.needs_look = true;
    }
}

/* Sends as much of the parcel as goes without blocking. */
static err push(struct shm *shm, struct parcel *parcel)
{
    const bool is_new = parcel->sent == 0;
    if (is_new) {
        bool is_put;
        TRY(ring_put(&shm->out, parcel->header, &is_put));
        if (!is_put) return OK;
        parcel->sent = sizeof parcel->header;
    }
    send_payload(shm, parcel);
    if (is_new) wake_peer(shm);
    return OK;
}

/* The socket is watched for room only while a body waits for it. */
static void watch_output(const struct shm *shm)
{
    struct parcel_queue *queue = (struct parcel_queue *)&shm->queue;
    const bool waits =
        queue->count > 0 && parcel_queue_at(queue, 0)->sent > 0 && !shm->is_socket_broken;
    loop_change(shm->link.loop, shm->link.watch, waits ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static err flush(struct shm *shm)
{
    while (shm->queue.count > 0 && !shm->is_socket_broken) {
        struct parcel *oldest = parcel_queue_at(&shm->queue, 0);
        TRY(push(shm, oldest));
        if (oldest->sent < parcel_bytes(oldest)) break;
        parcel_queue_pop(&shm->queue);
    }
    return OK;
}

static err shm_send(struct link *link, const struct parcel *parcel)
{
    struct shm *shm = shm_of(link);
    struct parcel rest = *parcel;
    if (shm->queue.count == 0) TRY(push(shm, &rest));
    if (rest.sent == parcel_bytes(parcel) || shm->is_socket_broken) return OK;
    TRY(parcel_queue_add(&shm->queue, &rest));
    watch_output(shm);
    return OK;
}

static err check_passable(const struct window *window)
{
    if (window->fd >= 0 || !window->bytes) return OK;
    if (window->lacks) return link_fail_making(ERR_IO, "shared memory", window->lacks);
    return fail(ERR_IO, "its windows are no shared memory");
}

static err shm_share(struct link *link)
{
    const struct link_windows *windows = &link->shared.windows;
    TRY(check_passable(&windows->values));
    TRY(check_passable(&windows->gradients));
    TRY(check_passable(&windows->rows));
    /* Prevents new writable mappings of the values; existing ones stay. Older kernels lack this
     * seal. */
    (void)fcntl(windows->values.fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
    struct parcel parcel = {.payload = "", .payload_bytes = 1, .carries_windows = true};
    link_pack_windows(link, parcel.header);
    return shm_send(link, &parcel);
}

static const struct parcel_queue *shm_outgoing(const struct link *link)
{
    return &((const struct shm *)link)->queue;
}

/* ---- receiving ---- */

/* The descriptors are closed: the mappings keep the memory alive. */
static err map_window(int fd, size_t bytes, bool is_writable, struct window *ret)
{
    TRY(shared_memory_check(fd, bytes));
    *ret = (struct window){.bytes = bytes, .fd = -1};
    return shared_memory_map(fd, bytes, is_writable, &ret->base);
}

static err map_windows(struct shm *shm, const struct passed *passed)
{
    const struct link_windows *expected = &shm->link.shared.windows;
    if (passed->fd_count != window_count(expected))
        return fail(ERR_PROTOCOL, "shared windows without their memory");
    const int *fds = passed->fds;
    struct link_windows windows = {0};
    err e = map_window(fds[0], expected->values.bytes, false, &windows.values);
    if (!e) e = map_window(fds[1], expected->gradients.bytes, true, &windows.gradients);
    if (!e && expected->rows.bytes)
        e = map_window(fds[2], expected->rows.bytes, true, &windows.rows);
    if (e) {
        link_free_windows(&windows);
        return e;
    }
    shm->in_body = false;
    shm->link.deadline_ms = 0;
    link_adopt_windows(&shm->link, &windows, true);
    return OK;
}

static err receive_windows(struct shm *shm, bool *ret_done)
{
    struct passed passed;
    TRY(pass_receive(shm->fd, 1, &passed));
    if (passed.size == 0) return OK;
    const err e = map_windows(shm, &passed);
    pass_close(&passed);
    *ret_done = !e;
    return e;
}

static void deliver(struct shm *shm)
{
    struct message message = shm->message; /* a copy: more may come while this is delivered */
    const struct body body = message.body_bytes > 0 ? body_lend(&shm->body) : (struct body){0};
    shm->in_body = false;
    message.body = body.at;
    link_deliver(&shm->link, &message);
    if (body.at) body_return(&shm->body, body);
}

static err begin_message(struct shm *shm, const unsigned char *header)
{
    struct message *message = &shm->message;
    TRY(wire_unpack(header, message));
    shm->body_have = 0;
    shm->in_body = true;
    if (message->type == MESSAGE_WINDOWS) return link_check_windows(&shm->link, message);
    return link_check(&shm->link, message);
}

/* ret_done: the message was complete and has been delivered. */
static err receive_body(struct shm *shm, bool *ret_done)
{
    if (shm->message.type == MESSAGE_WINDOWS) return receive_windows(shm, ret_done);
    TRY(body_reserve(&shm->body, shm->message.body_bytes));
    while (shm->body_have < shm->message.body_bytes) {
        const ssize_t got = recv(shm->fd, shm->body.at + shm->body_have,
                                 shm->message.body_bytes - shm->body_have, MSG_DONTWAIT);
        if (got == 0) return fail(ERR_PEER, "closed the connection in the middle of a message");
        if (got < 0 && would_block(errno)) return OK;
        if (got < 0) return fail(ERR_PEER, "lost in the middle of a message: %s", strerror(errno));
        shm->body_have += (size_t)got;
        link_set_deadline(&shm->link, false);
    }
    shm->link.deadline_ms = 0;
    deliver(shm);
    *ret_done = true;
    return OK;
}

static bool has_bytes(const struct message *message)
{
    return message->body_bytes > 0 || message->type == MESSAGE_WINDOWS;
}

/* Takes one message; ret_done false: none is complete, or it may not be delivered while its owner
 * computes. */
static err take_one(struct shm *shm, bool *ret_done)
{
    unsigned char header[MESSAGE_HEADER_BYTES];
    if (!shm->in_body) {
        if (!ring_take(&shm->in, header)) return OK;
        if (atomic_load(&shm->in.ring->putter_waits)) wake_peer(shm);
        TRY(begin_message(shm, header));
    }
    shm->was_stopped =
        loop_is_moving(shm->link.loop) && !link_may_come_amid(&shm->link, &shm->message);
    if (shm->was_stopped) return OK;
    if (has_bytes(&shm->message) && !shm->link.deadline_ms) link_set_deadline(&shm->link, true);
    return receive_body(shm, ret_done);
}

static int take_messages(struct shm *shm)
{
    int count = 0;
    for (bool is_done = true; is_done && link_may_deliver(&shm->link, count);) {
        is_done = false;
        const err e = take_one(shm, &is_done);
        if (e) link_end(&shm->link, e);
        count += is_done;
    }
    return count;
}

/* The socket is closed: delivers what the peer put before, then ends the link. */
static bool end_lost(struct shm *shm, const char *why)
{
    int total = 0;
    for (int taken = 1; taken && total < RING_SLOTS; total += taken) taken = take_messages(shm);
    if (shm->link.state == LINK_OPEN && !shm->was_stopped)
        link_end(&shm->link, fail(ERR_PEER, "%s", why));
    return total > 0;
}

/* While no body is expected: bytes on the socket belong to a header that is still in the ring. */
static bool check_socket(struct shm *shm)
{
    char byte;
    const ssize_t got = recv(shm->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (got < 0 && would_block(errno) && !shm->is_socket_broken) return false;
    if (got == 0 || (got < 0 && would_block(errno))) return end_lost(shm, "closed the connection");
    if (got < 0) return end_lost(shm, strerror(errno));
    if (ring_is_empty(&shm->in))
        link_end(&shm->link, fail(ERR_PROTOCOL, "sent bytes that no message announced"));
    return false;
}

/* true: the queue has become empty. */
static bool send_queued(struct shm *shm)
{
    if (shm->queue.count == 0) return false;
    const err e = flush(shm);
    if (e) {
        link_end(&shm->link, e);
        return false;
    }
    watch_output(shm);
    return shm->queue.count == 0;
}

static bool shm_look(struct link *link)
{
    struct shm *shm = shm_of(link);
    if (link->state != LINK_OPEN) return false;
    bool delivered = send_queued(shm);
    delivered |= take_messages(shm) > 0;
    if (shm->is_socket_broken && link->state == LINK_OPEN)
        delivered |= end_lost(shm, "closed the connection");
    link->needs_look = shm->is_socket_broken || shm->was_stopped;
    return delivered;
}

bool shm_traffic_ready(struct shm *shm)
{
    const bool delivered = shm_look(&shm->link);
    if (shm->link.state != LINK_OPEN || shm->in_body) return delivered;
    return check_socket(shm) || delivered;
}

bool shm_wake_ready(void *context, uint32_t events)
{
    struct shm *shm = context;
    char wakes[WAKES_PER_LOOK];
    const ssize_t got = recv(shm->wake_fd, wakes, sizeof wakes, MSG_DONTWAIT);
    if (got > 0 || (got < 0 && would_block(errno))) return shm_look(&shm->link);
    return end_lost(shm, "closed the connection");
}

/* ---- sleeping ---- */

static bool waits_for_room(struct shm *shm)
{
    return shm->queue.count > 0 && parcel_queue_at(&shm->queue, 0)->sent == 0;
}

static bool shm_arm(struct link *link)
{
    struct shm *shm = shm_of(link);
    if (link->state != LINK_OPEN) return false; /* epoll reports it */
    const bool waits = waits_for_room(shm);
    if (waits) atomic_store(&shm->out.ring->putter_waits, 1);
    atomic_store(&shm->in.ring->taker_sleeps, 1);
    const bool is_deaf_guest = link->is_guest && shm->queue.count > 0;
    if (!shm->in_body && !is_deaf_guest && !ring_is_empty(&shm->in)) return true;
    return waits && ring_has_room(&shm->out);
}

static void shm_disarm(struct link *link)
{
    struct shm *shm = shm_of(link);
    if (link->state != LINK_OPEN) return;
    atomic_store_explicit(&shm->in.ring->taker_sleeps, 0, memory_order_relaxed);
    atomic_store_explicit(&shm->out.ring->putter_waits, 0, memory_order_relaxed);
}

/* ---- the end ---- */

/* The ring stays readable for the peer, which empties it before it heeds the end of the socket. */
static void shm_hang_up(struct link *link)
{
    struct shm *shm = shm_of(link);
    if (shm->fd < 0) return;
    if (link->state == LINK_OPEN && flush(shm)) shm->is_socket_broken = true;
    loop_detach(link->loop, link->watch);
    loop_detach(link->loop, link->wake_watch);
    (void)close_accepted(shm->fd); /* perhaps another user's: identity may be unchecked yet */
    if (shm->wake_fd >= 0) close(shm->wake_fd);
    shm->fd = shm->wake_fd = link->watch = link->wake_watch = -1;
}

static void shm_drop(struct link *link)
{
    struct shm *shm = shm_of(link);
    shared_memory_unmap(shm->control, sizeof *shm->control);
    parcel_queue_free(&shm->queue);
    free(shm->body.at);
}

const struct link_ops shm_ops = {
    .look = shm_look,
    .arm = shm_arm,
    .disarm = shm_disarm,
    .send = shm_send,
    .share = shm_share,
    .outgoing = shm_outgoing,
    .hang_up = shm_hang_up,
    .drop = shm_drop,
    .shares_memory = true,
};
