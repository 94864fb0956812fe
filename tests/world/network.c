/* network.c - see network.h: connections as TCP's. What is sent is cut into pieces, each of which
 * arrives in order and late; a way that is cut keeps what is under way until it heals or somebody
 * gives up. */
#include "tests/world/network.h"

#include "tests/world/aim.h"
#include "tests/world/sockets.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum {
    SENT_MAX = 256 << 10, /* and not yet read by the other side */
    PIECE_MAX = 64 << 10,
    SYN_TRIES = 7, /* 1 + 2 + 4 + ... s */
    LOOKS_ALIVE_S = 5,
    DEAD_S = 40,
    RETRY_MS = 200,
};

struct network network;
static struct socket *sockets; /* all that ever were */

void network_start(void)
{
    network.ns_per_kib = 1000 + draw_below(20000);
    network.jitter = 1 + (int)draw_below(4);
    for (int a = 0; a < HOSTS_MAX; a++)
        for (int b = 0; b <= a; b++)
            network.delay_ns[a][b] = network.delay_ns[b][a] =
                a == b ? 5000 : 20000 + draw_below(300000);
}

void network_cut(int host, int other, bool is_cut)
{
    if (host == other) return;
    network.is_cut[host][other] = network.is_cut[other][host] = is_cut;
}

static uint64_t delay_between(int host, int other)
{
    const uint64_t delay = network.delay_ns[host][other];
    return delay + draw_below(delay * (uint64_t)network.jitter);
}

struct socket *socket_new(int domain, int type)
{
    struct socket *ret = calloc(1, sizeof *ret);
    ret->domain = domain;
    ret->type = type;
    ret->host = process_now()->host;
    ret->pid = process_now()->pid;
    ret->passing.is_foreign = domain == AF_UNIX;
    ret->next = sockets;
    sockets = ret;
    return ret;
}

static void changed(const struct socket *socket)
{
    if (socket->serve && socket->state != SOCKET_LISTENS)
        ((struct socket *)socket)->serve((struct socket *)socket);
    else
        description_changed(socket->description);
}

static void fail_socket(struct socket *socket, int error)
{
    if (socket->state == SOCKET_OVER) return;
    machine_note("connection ends", (uint64_t)error);
    socket->error = error;
    socket->state = SOCKET_OVER;
    changed(socket);
}

/* ---- under way ---- */

static void arrive(void *subject, uint64_t unused);

static void carry(struct socket *socket)
{
    struct piece *piece = socket->first;
    if (!piece || socket->is_carried) return;
    socket->is_carried = true;
    event_at(piece->due_ns > machine.now_ns ? piece->due_ns : machine.now_ns, arrive, socket, 0);
}

static void put_with(struct socket *socket, enum piece_kind kind, const void *bytes, size_t count,
                     struct rights *rights)
{
    if (!socket->peer) return;
    struct piece *piece = calloc(1, sizeof *piece + count);
    const uint64_t takes_ns =
        delay_between(socket->host, socket->peer->host) + count * network.ns_per_kib / 1024;
    piece->kind = kind;
    piece->count = count;
    piece->rights = rights;
    piece->sent_ns = machine.now_ns;
    piece->due_ns = machine.now_ns + takes_ns;
    if (count) memcpy(piece->bytes, bytes, count);
    if (socket->last)
        socket->last->next = piece;
    else
        socket->first = piece;
    socket->last = piece;
    carry(socket);
}

static void put(struct socket *socket, enum piece_kind kind, const void *bytes, size_t count)
{
    put_with(socket, kind, bytes, count, NULL);
}

static void drop_pieces(struct socket *socket)
{
    socket->first = socket->last = NULL;
}

static void be_reset(void *subject, uint64_t unused)
{
    struct socket *socket = subject;
    drop_pieces(socket);
    if (socket->state == SOCKET_OPEN) fail_socket(socket, ECONNRESET);
}

static void keep_bytes(struct socket *to, const struct piece *piece)
{
    if (to->end + piece->count > to->room) {
        memmove(to->bytes, to->bytes + to->begin, to->end - to->begin);
        to->end -= to->begin;
        to->begin = 0;
    }
    if (to->end + piece->count > to->room) {
        to->room = 2 * (to->end + piece->count);
        to->bytes = realloc(to->bytes, to->room);
    }
    memcpy(to->bytes + to->end, piece->bytes, piece->count);
    to->end += piece->count;
    if (piece->rights) {
        piece->rights->at = to->came;
        if (to->last_rights)
            to->last_rights->next = piece->rights;
        else
            to->first_rights = piece->rights;
        to->last_rights = piece->rights;
    }
    to->came += piece->count;
}

static void take_piece(struct socket *from, struct socket *to, const struct piece *piece)
{
    machine_note("arrives", piece->count);
    to->heard_ns = machine.now_ns;
    if (piece->kind == PIECE_RESET) {
        be_reset(to, 0);
        return;
    }
    if (to->was_forgotten || (to->state == SOCKET_OVER && to->error != ETIMEDOUT) ||
        (to->is_closed && piece->kind == PIECE_BYTES)) {
        event_at(machine.now_ns + delay_between(to->host, from->host), be_reset, from, 0);
        return;
    }
    if (piece->kind == PIECE_END)
        to->has_end = true;
    else
        keep_bytes(to, piece);
    changed(to);
}

/* The way is cut: again later, until the system gives up. */
static void arrive_later(struct socket *socket)
{
    const struct piece *piece = socket->first;
    if (socket->user_timeout_ms &&
        machine.now_ns - piece->sent_ns > socket->user_timeout_ms * MS_NS) {
        drop_pieces(socket);
        network.lost++;
        fail_socket(socket, ETIMEDOUT);
        return;
    }
    socket->is_carried = true;
    event_at(machine.now_ns + (RETRY_MS + draw_below(RETRY_MS)) * MS_NS, arrive, socket, 0);
}

static void arrive(void *subject, uint64_t unused)
{
    struct socket *socket = subject;
    struct piece *piece = socket->first;
    socket->is_carried = false;
    if (!piece || !socket->peer || socket->was_forgotten) return;
    if (network.is_cut[socket->host][socket->peer->host]) {
        arrive_later(socket);
        return;
    }
    uint64_t later_ns = 0;
    if (!piece->is_looked_at && piece->kind == PIECE_BYTES &&
        aim_at_bytes(socket, piece->bytes, piece->count, &later_ns))
        return;
    piece->is_looked_at = true;
    if (later_ns) {
        socket->is_carried = true;
        event_at(machine.now_ns + later_ns, arrive, socket, 0);
        return;
    }
    socket->first = piece->next;
    if (!socket->first) socket->last = NULL;
    take_piece(socket, socket->peer, piece);
    free(piece);
    carry(socket);
}

/* ---- whether the other side is still there ---- */

static void look_alive(void *subject, uint64_t unused)
{
    struct socket *socket = subject;
    if (socket->state != SOCKET_OPEN || socket->is_closed) return;
    const bool is_cut = network.is_cut[socket->host][socket->peer->host] ||
                        network.is_cut[socket->peer->host][socket->host];
    if (!is_cut && socket->peer->was_forgotten) {
        be_reset(socket, 0);
        return;
    }
    if (!is_cut) socket->heard_ns = machine.now_ns;
    if (machine.now_ns - socket->heard_ns >= DEAD_S * SECOND_NS) {
        drop_pieces(socket);
        network.lost++;
        fail_socket(socket, ETIMEDOUT);
        return;
    }
    event_at(machine.now_ns + LOOKS_ALIVE_S * SECOND_NS, look_alive, socket, 0);
}

static void become_open(struct socket *socket)
{
    socket->state = SOCKET_OPEN;
    socket->heard_ns = machine.now_ns;
    event_at(machine.now_ns + LOOKS_ALIVE_S * SECOND_NS, look_alive, socket, 0);
}

/* ---- connections ---- */

struct socket *socket_listening(int host, int port)
{
    for (struct socket *at = sockets; at; at = at->next)
        if (at->state == SOCKET_LISTENS && at->host == host && at->port == port &&
            at->domain != AF_UNIX)
            return at;
    return NULL;
}

struct socket *socket_named(int host, const char *name, int bytes)
{
    for (struct socket *at = sockets; at; at = at->next)
        if (at->domain == AF_UNIX && at->host == host && !at->is_closed &&
            at->name_bytes == bytes && bytes && memcmp(at->name, name, (size_t)bytes) == 0)
            return at;
    return NULL;
}

void socket_serve(int host, int port, void (*serve)(struct socket *))
{
    struct socket *listener = calloc(1, sizeof *listener);
    *listener = (struct socket){
        .host = host, .port = port, .state = SOCKET_LISTENS, .serve = serve, .next = sockets};
    sockets = listener;
}

void sockets_join(struct socket *a, struct socket *b)
{
    a->peer = b;
    b->peer = a;
    become_open(a);
    become_open(b);
}

int socket_free_port(int host)
{
    enum { FIRST = 32768, COUNT = 20000 };
    static int next;
    (void)host;
    return FIRST + next++ % COUNT;
}

/* Both ends know of it at once. */
int socket_connect_local(struct socket *socket, const char *name, int bytes)
{
    struct socket *listener = socket_named(socket->host, name, bytes);
    if (!listener || listener->state != SOCKET_LISTENS) return ECONNREFUSED;
    if (listener->waiting == BACKLOG_MAX) return EAGAIN;
    struct socket *other = calloc(1, sizeof *other);
    *other = (struct socket){.domain = AF_UNIX,
                             .type = socket->type,
                             .host = socket->host,
                             .peer_host = socket->host,
                             .pid = listener->pid,
                             .passing.is_foreign = true,
                             .next = sockets};
    sockets = other;
    sockets_join(socket, other);
    listener->backlog[listener->waiting++] = other;
    changed(listener);
    return 0;
}

static void be_connected(void *subject, uint64_t unused)
{
    struct socket *socket = subject;
    if (socket->is_closed || socket->state != SOCKET_CONNECTS) return;
    become_open(socket);
    changed(socket);
}

static void be_refused(void *subject, uint64_t unused)
{
    struct socket *socket = subject;
    network.refused++;
    if (!socket->is_closed) fail_socket(socket, ECONNREFUSED);
}

static void arrive_first(void *subject, uint64_t tries);

static void try_again(struct socket *socket, uint64_t tries)
{
    if (tries + 1 == SYN_TRIES)
        fail_socket(socket, ETIMEDOUT);
    else
        event_at(machine.now_ns + (SECOND_NS << tries), arrive_first, socket, tries + 1);
}

static void arrive_first(void *subject, uint64_t tries)
{
    struct socket *socket = subject;
    const int to = socket->peer_host;
    if (socket->is_closed) return;
    const bool is_cut = network.is_cut[socket->host][to] || network.is_cut[to][socket->host];
    struct socket *listener = is_cut ? NULL : socket_listening(to, socket->peer_port);
    if (is_cut || (listener && listener->waiting == BACKLOG_MAX)) {
        try_again(socket, tries);
        return;
    }
    const uint64_t back_ns = machine.now_ns + delay_between(to, socket->host);
    if (!listener) {
        event_at(back_ns, be_refused, socket, 0);
        return;
    }
    struct socket *other = calloc(1, sizeof *other);
    *other = (struct socket){.domain = socket->domain,
                             .type = socket->type,
                             .host = to,
                             .port = listener->port,
                             .peer_host = socket->host,
                             .peer_port = socket->port,
                             .peer = socket,
                             .next = sockets};
    sockets = other;
    socket->peer = other;
    become_open(other);
    other->serve = listener->serve;
    if (!other->serve) listener->backlog[listener->waiting++] = other;
    changed(listener);
    event_at(back_ns, be_connected, socket, 0);
}

void socket_connect(struct socket *socket, int host, int port)
{
    socket->state = SOCKET_CONNECTS;
    socket->peer_host = host;
    socket->peer_port = port;
    if (!socket->port) socket->port = socket_free_port(socket->host);
    event_at(machine.now_ns + delay_between(socket->host, host), arrive_first, socket, 0);
}

static void reset(struct socket *socket)
{
    drop_pieces(socket);
    put(socket, PIECE_RESET, NULL, 0);
    network.resets++;
}

/* Nobody takes them any more. */
static void drop_rights(struct socket *socket)
{
    for (const struct rights *at = socket->first_rights; at; at = at->next)
        for (int i = 0; i < at->count; i++) description_drop(at->given[i]);
    socket->first_rights = socket->last_rights = NULL;
}

void socket_close(struct socket *socket)
{
    socket->description = NULL;
    socket->is_closed = true;
    drop_rights(socket);
    for (int i = 0; i < socket->waiting; i++) socket_close(socket->backlog[i]);
    socket->waiting = 0;
    if (socket->state == SOCKET_LISTENS) socket->state = SOCKET_OVER;
    if (!socket->peer || socket->was_forgotten || socket->state == SOCKET_OVER) return;
    if (socket->end > socket->begin || socket->state == SOCKET_CONNECTS)
        reset(socket);
    else if (!socket->has_shut)
        put(socket, PIECE_END, NULL, 0);
}

/* ---- bytes ---- */

short socket_readiness(const struct socket *socket)
{
    short ret = 0;
    if (socket->state == SOCKET_LISTENS) return socket->waiting > 0 ? POLLIN : 0;
    if (socket->state == SOCKET_NEW) return POLLOUT | POLLHUP;
    if (socket->state == SOCKET_CONNECTS) return 0;
    if (socket->end > socket->begin || socket->has_end) ret |= POLLIN;
    if (socket->under_way < SENT_MAX) ret |= POLLOUT;
    if (socket->state == SOCKET_OVER)
        ret |= (short)(POLLIN | POLLOUT | POLLHUP | (socket->error ? POLLERR : 0));
    if (socket->has_end && socket->has_shut) ret |= POLLHUP;
    return ret;
}

/* The other side may send more. */
static void note_read(struct socket *socket, size_t count)
{
    struct socket *peer = socket->peer;
    socket->was_read += count;
    aim_was_read(socket);
    const bool was_full = peer->under_way >= SENT_MAX;
    peer->under_way -= count;
    if (was_full) changed(peer);
}

ssize_t socket_receive(struct socket *socket, const struct iovec *pieces, int count, int flags)
{
    size_t got = 0;
    const size_t held = socket->end - socket->begin;
    for (int i = 0; i < count && got < held; i++) {
        const size_t left = held - got, n = pieces[i].iov_len < left ? pieces[i].iov_len : left;
        if (pieces[i].iov_base) memcpy(pieces[i].iov_base, socket->bytes + socket->begin + got, n);
        got += n;
    }
    machine_note("receives", got);
    if (got > 0) {
        if (flags & MSG_PEEK) return (ssize_t)got;
        socket->begin += got;
        note_read(socket, got);
        return (ssize_t)got;
    }
    if (socket->error) {
        const int error = socket->error;
        socket->error = 0;
        return call_fails(error);
    }
    if (socket->has_end || socket->state == SOCKET_OVER) return 0;
    return call_fails(socket->state == SOCKET_OPEN ? EAGAIN : ENOTCONN);
}

ssize_t socket_send(struct socket *socket, const struct iovec *pieces, int count)
{
    size_t sent = 0;
    if (socket->error) {
        const int error = socket->error;
        socket->error = 0;
        return call_fails(error);
    }
    if (socket->state == SOCKET_CONNECTS) return call_fails(EAGAIN);
    if (socket->state != SOCKET_OPEN || socket->has_shut) return call_fails(EPIPE);
    for (int i = 0; i < count; i++)
        for (size_t at = 0; at < pieces[i].iov_len && socket->under_way < SENT_MAX;) {
            size_t n = pieces[i].iov_len - at, room = SENT_MAX - socket->under_way;
            if (n > room) n = room;
            if (n > PIECE_MAX) n = PIECE_MAX;
            if (n > 1 && draw_chance(64)) n = 1 + draw_below(n);
            put(socket, PIECE_BYTES, (const char *)pieces[i].iov_base + at, n);
            socket->under_way += n;
            sent += n;
            at += n;
        }
    machine_note("sends", sent);
    return sent ? (ssize_t)sent : call_fails(EAGAIN);
}

ssize_t socket_pass(struct socket *socket, const struct iovec *bytes, struct rights *rights)
{
    if (socket->state != SOCKET_OPEN || socket->has_shut || socket->error) return call_fails(EPIPE);
    if (socket->under_way + bytes->iov_len > SENT_MAX) return call_fails(EAGAIN);
    put_with(socket, PIECE_BYTES, bytes->iov_base, bytes->iov_len, rights);
    socket->under_way += bytes->iov_len;
    machine_note("passes", bytes->iov_len);
    network.passed++;
    return (ssize_t)bytes->iov_len;
}

struct rights *socket_take_rights(struct socket *socket, size_t *count)
{
    struct rights *ret = socket->first_rights;
    if (socket->end == socket->begin) return NULL;
    if (ret && ret->at == socket->was_read) {
        socket->first_rights = ret->next;
        if (!ret->next) socket->last_rights = NULL;
    } else {
        ret = NULL;
    }
    const struct rights *next = socket->first_rights;
    if (next && *count > next->at - socket->was_read) *count = next->at - socket->was_read;
    return ret;
}

void socket_shut(struct socket *socket)
{
    if (socket->state != SOCKET_OPEN || socket->has_shut) return;
    socket->has_shut = true;
    put(socket, PIECE_END, NULL, 0);
}

/* ---- what goes wrong ---- */

bool network_reset_one(int host, int other)
{
    struct socket *chosen = NULL;
    uint64_t count = 0;
    for (struct socket *at = sockets; at; at = at->next)
        if (at->state == SOCKET_OPEN && !at->is_closed && at->host == host &&
            at->domain != AF_UNIX && at->peer->host == other && draw_below(++count) == 0)
            chosen = at;
    if (chosen) network_reset(chosen, true);
    return chosen;
}

/* Who is not told hears of it when it sends, or after a while. */
void network_reset(struct socket *socket, bool is_heard)
{
    struct socket *peer = socket->peer;
    be_reset(socket, 0);
    if (is_heard)
        be_reset(peer, 0);
    else
        socket->was_forgotten = true;
}

void network_forget_host(int host)
{
    for (struct socket *at = sockets; at; at = at->next) {
        if (at->host != host) continue;
        drop_pieces(at);
        at->was_forgotten = true;
    }
}
