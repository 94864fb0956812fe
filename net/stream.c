/* stream.c - see stream.h. */
#include "net/stream.h"

#include "net/loop_inside.h"
#include "net/tls.h"
#include "net/shared_memory.h"
#include "net/wire.h"
#include "net/would_block.h"

#include "core/base/clock.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    SHORT_BYTES = 256 << 10, /* 2 ms of 1 Gbit/s */
    READS_PER_LOOK_MAX = 16, /* then other links have their turn */
    PIECES_PER_SEND_MAX = 32,
    PIECES_PER_READ_MAX = 16,
    DRAIN_BYTES_MAX = 16 << 20,
    DRAINS_MAX = 16,
};

/* ---- sending ---- */

/* The unsent rest of the parcel, in at most `max` pieces. */
static int parcel_pieces(const struct parcel *parcel, struct iovec *pieces, int max)
{
    const size_t header_bytes = sizeof parcel->header;
    const size_t payload_sent = parcel->sent > header_bytes ? parcel->sent - header_bytes : 0;
    int count = 0;
    if (parcel->sent < header_bytes)
        pieces[count++] =
            (struct iovec){(void *)(parcel->header + parcel->sent), header_bytes - parcel->sent};
    if (payload_sent == parcel->payload_bytes) return count;
    const struct payload left = {.base = (char *)parcel->payload - parcel->offset,
                                 .offset = parcel->offset + payload_sent,
                                 .left = parcel->payload_bytes - payload_sent,
                                 .patches = parcel->patches};
    return count + payload_pieces(&left, pieces + count, max - count);
}

static size_t bytes_of(const struct iovec *pieces, int count)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++) bytes += pieces[i].iov_len;
    return bytes;
}

/* Returns bytes sent; 0: the socket is full or broken. */
static size_t send_pieces(struct stream *stream, struct iovec *pieces, int count)
{
    const struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)count};
    const ssize_t sent = stream->tls ? tls_send(stream->tls, pieces, count)
                                     : sendmsg(stream->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent >= 0) return (size_t)sent;
    if (!would_block(errno)) stream->is_send_broken = stream->link.needs_look = true;
    return 0;
}

static void advance_queue(struct parcel_queue *queue, size_t sent)
{
    while (sent > 0) {
        struct parcel *oldest = parcel_queue_at(queue, 0);
        const size_t left = parcel_bytes(oldest) - oldest->sent;
        const size_t step = sent < left ? sent : left;
        oldest->sent += step;
        sent -= step;
        if (step == left) parcel_queue_pop(queue);
    }
}

static bool waits_to_send(const struct stream *stream)
{
    const bool has_some = stream->queue.count > 0 || (stream->tls && tls_has_unsent(stream->tls));
    return has_some && !stream->is_send_broken;
}

/* Sends several parcels per system call. */
static void flush(struct stream *stream)
{
    struct parcel_queue *queue = &stream->queue;
    if (queue->count == 0 && waits_to_send(stream)) (void)send_pieces(stream, NULL, 0);
    while (queue->count > 0 && !stream->is_send_broken) {
        struct iovec pieces[PIECES_PER_SEND_MAX];
        int count = 0;
        for (size_t i = 0; i < queue->count && count < PIECES_PER_SEND_MAX; i++)
            count += parcel_pieces(parcel_queue_at(queue, i), pieces + count,
                                   PIECES_PER_SEND_MAX - count);
        const size_t sent = send_pieces(stream, pieces, count);
        if (sent == 0) break;
        advance_queue(queue, sent);
    }
}

/* Whether TLS has read bytes from the socket that were not taken from it yet. */
static bool has_unread(const struct stream *stream)
{
    return stream->tls && tls_has_unread(stream->tls);
}

/* A guest with undelivered messages must wake the loop though its socket is empty: EPOLLOUT does
 * that. A guest that does not read its answers is not read from; epoll reports its end anyway. */
static void watch_output(const struct stream *stream)
{
    const bool waits = waits_to_send(stream);
    const bool is_guest = stream->link.is_guest;
    const uint32_t in = (is_guest && waits) || stream->is_held ? 0 : EPOLLIN;
    const bool has_more = stream->was_stopped || has_unread(stream);
    const uint32_t out = waits || (is_guest && has_more) ? EPOLLOUT : 0;
    loop_change(stream->link.loop, stream->link.watch, in | out);
}

/* Sends until the socket is full; true: all was sent. */
static bool send_now(struct stream *stream, struct parcel *parcel)
{
    struct iovec pieces[PIECES_PER_SEND_MAX];
    size_t sent, offered;
    do {
        const int count = parcel_pieces(parcel, pieces, PIECES_PER_SEND_MAX);
        offered = bytes_of(pieces, count);
        sent = send_pieces(stream, pieces, count);
        parcel->sent += sent;
    } while (sent == offered && parcel->sent < parcel_bytes(parcel));
    return parcel->sent == parcel_bytes(parcel);
}

static err stream_send(struct link *link, const struct parcel *parcel)
{
    struct stream *stream = (struct stream *)link;
    struct parcel rest = *parcel;
    const bool is_gone =
        stream->queue.count == 0 && !stream->is_send_broken && send_now(stream, &rest);
    if (stream->is_send_broken) return OK; /* the link ends once what the peer sent has been read */
    if (!is_gone) TRY(parcel_queue_add(&stream->queue, &rest));
    if (!is_gone || stream->tls) watch_output(stream);
    return OK;
}

static err stream_share(struct link *link)
{
    struct parcel parcel = {0};
    link_pack_windows(link, parcel.header);
    return stream_send(link, &parcel);
}

static const struct parcel_queue *stream_outgoing(const struct link *link)
{
    return &((const struct stream *)link)->queue;
}

/* ---- receiving ---- */

enum read_result { NOTHING, SOME, ALL, END, FAILED }; /* ALL: the socket is empty now */

static enum read_result read_some(struct stream *stream)
{
    struct iovec pieces[PIECES_PER_READ_MAX + 1];
    const struct iovec stage = {stream->stage + stream->stage_to, STAGE_BYTES - stream->stage_to};
    int count = payload_pieces(&stream->payload, pieces, PIECES_PER_READ_MAX);
    const size_t places = bytes_of(pieces, count);
    if (places == stream->payload.left) pieces[count++] = stage;
    const ssize_t got = stream->tls ? tls_receive(stream->tls, pieces, count)
                        : count > 1 ? readv(stream->fd, pieces, count)
                                    : recv(stream->fd, pieces->iov_base, pieces->iov_len, 0);
    if (got == 0) return END;
    if (got < 0) return would_block(errno) ? NOTHING : FAILED;
    stream->link.progress += (uint64_t)got;
    const size_t direct = (size_t)got < places ? (size_t)got : places;
    payload_advance(&stream->payload, direct);
    stream->stage_to += (size_t)got - direct;
    return (size_t)got < bytes_of(pieces, count) ? ALL : SOME;
}

/* The header stands at the front of the stage: decides where its payload goes. */
static err begin_message(struct stream *stream)
{
    struct message *message = &stream->message;
    TRY(wire_unpack(stream->stage + stream->stage_from, message));
    stream->stage_from += MESSAGE_HEADER_BYTES;
    stream->in_payload = true;
    if (message->type == MESSAGE_WINDOWS) return link_check_windows(&stream->link, message);
    TRY(link_check(&stream->link, message));
    TRY(body_reserve(&stream->body, message->body_bytes));
    stream->payload =
        (struct payload){.base = (char *)stream->body.at, .left = message->body_bytes};
    if (message->length == 0) return OK;
    const struct window *window = link_incoming(&stream->link, message->type);
    stream->payload = (struct payload){.base = window->base ? window->base : stream->place,
                                       .offset = message->offset,
                                       .left = message->length,
                                       .patches = link_patches(&stream->link, message->type)};
    return OK;
}

static void take_from_stage(struct stream *stream)
{
    const size_t staged = stream->stage_to - stream->stage_from;
    const size_t step = staged < stream->payload.left ? staged : stream->payload.left;
    payload_take(&stream->payload, stream->stage + stream->stage_from, step);
    stream->stage_from += step;
}

static err make_windows(struct stream *stream)
{
    const struct link_windows *expected = &stream->link.shared.windows;
    struct link_windows windows = {0};
    err e = window_new_plain(expected->values.bytes, &windows.values);
    if (!e) e = window_new_plain(expected->gradients.bytes, &windows.gradients);
    if (!e && expected->rows.bytes) e = window_new_plain(expected->rows.bytes, &windows.rows);
    if (e)
        link_free_windows(&windows);
    else
        link_adopt_windows(&stream->link, &windows, true);
    return e;
}

static err finish_message(struct stream *stream)
{
    stream->in_payload = false;
    if (stream->message.type == MESSAGE_WINDOWS) return make_windows(stream);
    struct message message = stream->message; /* a copy: more may come while this is delivered */
    const struct body body = message.body_bytes > 0 ? body_lend(&stream->body) : (struct body){0};
    message.body = body.at;
    link_deliver(&stream->link, &message);
    if (body.at) body_return(&stream->body, body);
    return OK;
}

static bool is_amid_message(const struct stream *stream)
{
    return stream->in_payload || stream->stage_to > 0;
}

/* The rest of a message must come in time. While this side has stopped delivering there is no new
 * deadline, but a guest's message keeps the one it has. */
static void set_deadline(struct stream *stream, bool is_new)
{
    if (is_amid_message(stream) && !stream->was_stopped)
        link_set_deadline(&stream->link, is_new);
    else if (!stream->in_payload)
        stream->link.deadline_ms = 0;
}

/* Parses one message; false: it is not complete. */
static bool parse_one(struct stream *stream)
{
    const bool is_of_other =
        !stream->in_payload && wire_is_of_other_version(stream->stage + stream->stage_from);
    err e = stream->in_payload ? OK : begin_message(stream);
    if (!e) take_from_stage(stream);
    if (!e && stream->payload.left > 0) return false;
    if (!e) e = finish_message(stream);
    if (e && is_of_other) link_end_of_other_version(&stream->link, e);
    if (e) link_end(&stream->link, e);
    return true;
}

static bool has_header(const struct stream *stream)
{
    return stream->in_payload || stream->stage_to - stream->stage_from >= MESSAGE_HEADER_BYTES;
}

static bool may_next_come_amid(const struct stream *stream)
{
    struct message message = stream->message;
    if (!stream->in_payload && wire_unpack(stream->stage + stream->stage_from, &message))
        return false;
    return link_may_come_amid(&stream->link, &message);
}

static bool may_go_on(struct stream *stream, int delivered)
{
    if (loop_is_moving(stream->link.loop) && !may_next_come_amid(stream)) return false;
    return link_may_deliver(&stream->link, delivered);
}

/* Whether the next message has to wait in the peer because there is no memory for its stretch yet.
 * A malformed header does not wait: parse_one reports it. */
static bool waits_for_place(struct stream *stream)
{
    struct link *link = &stream->link;
    struct message m;
    const bool has_memory =
        link->is_active || !link->shared.is_there || link->shared.windows.gradients.base;
    if (has_memory || stream->in_payload) return false;
    if (wire_unpack(stream->stage + stream->stage_from, &m) || m.type == MESSAGE_WINDOWS ||
        link_check(link, &m) || !m.length)
        return false;
    stream->place = link_place(link, &m);
    stream->is_held = !stream->place && link->state == LINK_OPEN;
    return !stream->place || link->state != LINK_OPEN;
}

/* Delivers complete messages until this look has had its share; count: how many this look has
 * delivered so far. */
static void parse_stage(struct stream *stream, int *count)
{
    const int before = *count;
    stream->was_stopped = false;
    while (has_header(stream) && stream->link.state == LINK_OPEN) {
        stream->was_stopped = !may_go_on(stream, *count) || waits_for_place(stream);
        if (stream->was_stopped || !parse_one(stream)) break;
        ++*count;
    }
    stream->stage_to -= stream->stage_from;
    memmove(stream->stage, stream->stage + stream->stage_from, stream->stage_to);
    stream->stage_from = 0;
    set_deadline(stream, *count > before);
}

/* Checks a rest that is shorter than a header: another program may have sent it. */
static err check_rest(const struct stream *stream)
{
    if (stream->in_payload) return OK;
    return wire_check_begin(stream->stage + stream->stage_from,
                            stream->stage_to - stream->stage_from);
}

static void end_lost(struct stream *stream, enum read_result arrival)
{
    const char *where = is_amid_message(stream) ? " in the middle of a message" : "";
    const int reason = errno;
    const err e = check_rest(stream);
    errno = reason;
    if (e)
        link_end(&stream->link, e);
    else if (arrival == FAILED)
        link_end(&stream->link, fail(ERR_PEER, "lost%s: %s", where, strerror(errno)));
    else
        link_end(&stream->link, fail(ERR_PEER, "closed the connection%s", where));
}

/* A short read means that the socket is empty, which saves one more read. If was_stopped, complete
 * messages are left, and nothing more is read from the socket. */
static bool stream_read(struct stream *stream)
{
    enum read_result arrival = SOME;
    int count = 0;
    const bool is_moving = loop_is_moving(stream->link.loop); /* perhaps while parsing the stage */
    if (is_moving && stream->in_payload && !may_next_come_amid(stream)) {
        stream->was_stopped = true;
        return false;
    }
    if (is_moving || stream->was_stopped) parse_stage(stream, &count);
    for (int i = 0; i < READS_PER_LOOK_MAX && arrival == SOME && !stream->was_stopped; i++) {
        if (stream->link.state != LINK_OPEN) return count > 0;
        arrival = read_some(stream);
        if (arrival == NOTHING) break;
        if (arrival == END || arrival == FAILED)
            end_lost(stream, arrival);
        else
            parse_stage(stream, &count);
    }
    if (stream->is_send_broken && arrival != SOME) end_lost(stream, END);
    return count > 0;
}

/* A guest that is gone, or does not read its answers: its requests need no answer now. */
static bool is_deaf_guest(const struct stream *stream)
{
    return stream->link.is_guest && (stream->is_send_broken || stream->queue.count > 0);
}

static bool stream_look(struct link *link)
{
    struct stream *stream = (struct stream *)link;
    if (link->state != LINK_OPEN) return false;
    const bool had_queue = stream->queue.count > 0;
    flush(stream);
    if ((link->is_guest || stream->is_held) && stream->is_send_broken) end_lost(stream, END);
    const bool hears = !stream->is_held && !is_deaf_guest(stream);
    const bool delivered = hears && stream_read(stream);
    if (link->state != LINK_OPEN) return true;
    const bool has_more = hears && has_unread(stream);
    link->needs_look =
        stream->is_send_broken || ((stream->was_stopped || has_more) && !stream->is_held);
    watch_output(stream);
    return delivered || (had_queue && stream->queue.count == 0);
}

/* ---- the end ---- */

/* Closing a socket with unread bytes resets the connection, and what was sent last (a verdict)
 * could be lost. */
static void drain(int fd)
{
    size_t total = 0;
    for (int i = 0; i < DRAINS_MAX && total < DRAIN_BYTES_MAX; i++) {
        const ssize_t got = recv(fd, NULL, DRAIN_BYTES_MAX, MSG_DONTWAIT | MSG_TRUNC);
        if (got <= 0) break;
        total += (size_t)got;
    }
}

static void stream_hang_up(struct link *link)
{
    struct stream *stream = (struct stream *)link;
    if (stream->fd < 0) return;
    if (link->state == LINK_OPEN) {
        flush(stream);
        tls_close(stream->tls);
        stream->tls = NULL;
        shutdown(stream->fd, SHUT_WR);
        drain(stream->fd);
    }
    loop_detach(link->loop, stream->link.watch);
    close(stream->fd);
    stream->fd = stream->link.watch = -1;
}

static void stream_drop(struct link *link)
{
    struct stream *stream = (struct stream *)link;
    tls_close(stream->tls);
    if (stream->addresses) freeaddrinfo(stream->addresses);
    parcel_queue_free(&stream->queue);
    free(stream->body.at);
}

static void go_on(struct link *link)
{
    struct stream *stream = (struct stream *)link;
    if (!stream->is_held) return;
    stream->is_held = false;
    link->needs_look = true;
    watch_output(stream);
}

static void keep_short(struct link *link)
{
    const int bytes = SHORT_BYTES;
    /* a hint: without this option the system only buffers more */
    (void)setsockopt(((struct stream *)link)->fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &bytes,
                     sizeof bytes);
}

const struct link_ops stream_ops = {
    .keep_short = keep_short,
    .go_on = go_on,
    .look = stream_look,
    .send = stream_send,
    .share = stream_share,
    .outgoing = stream_outgoing,
    .hang_up = stream_hang_up,
    .drop = stream_drop,
};
