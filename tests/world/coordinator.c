/* coordinator.c - see coordinator.h: connections, and what befalls it. */
#include "tests/world/coordinator.h"

#include "tests/net/zookeeper_server.h"
#include "tests/world/etcd.h"
#include "tests/world/service.h"
#include "tests/world/sockets.h"

#include <stdlib.h>
#include <string.h>

enum { ZOOKEEPER_PORT = 2181, ETCD_PORT = 2379, EXPIRES_MS = 250, PEERS_MAX = 1024 };

struct peer {
    struct socket *socket;
    struct zookeeper_peer peer;
    unsigned char in[ZOOKEEPER_FRAME_BYTES];
    size_t bytes;
};

static struct zookeeper_server server;
static struct peer *peers[PEERS_MAX];
static int peer_count;
static struct {
    enum coordinator_trouble kind;
    uint64_t until_ns;
} trouble;

static uint64_t now_ms(void)
{
    return machine.now_ns / MS_NS;
}

static bool is_troubled(void)
{
    return machine.now_ns < trouble.until_ns;
}

static bool is_down(void)
{
    return is_troubled() && trouble.kind != COORDINATOR_SILENT;
}

const char *coordinator_value(const char *key)
{
    const struct zookeeper_node *node = zookeeper_server_find(&server, key);
    return node ? node->value : NULL;
}

/* ---- ZooKeeper ---- */

static void hang_up(struct peer *peer)
{
    if (!peer->socket->is_closed) socket_close(peer->socket);
}

/* What there is no room for has gone to somebody who does not read. */
static void say(struct peer *peer, const struct jute_out *out)
{
    const struct iovec piece = {out->to, out->bytes};
    const bool is_heard = !is_troubled();
    if (!is_heard || !out->bytes) return;
    if (socket_send(peer->socket, &piece, 1) != (ssize_t)out->bytes) hang_up(peer);
}

/* The frames that are whole. */
static void take_frames(struct peer *peer)
{
    static unsigned char bytes[ZOOKEEPER_FRAME_BYTES];
    size_t at = 0;
    while (peer->bytes - at >= JUTE_INT_BYTES && !peer->socket->is_closed) {
        struct jute_in in = {.at = peer->in + at, .end = peer->in + peer->bytes};
        const size_t count = (size_t)jute_int(&in);
        struct jute_out out = {.to = bytes, .room = sizeof bytes};
        if (peer->bytes - at - JUTE_INT_BYTES < count) break;
        machine_note("asks", count);
        const bool goes_on =
            zookeeper_server_answer(&server, &peer->peer, now_ms(), in.at, count, &out);
        say(peer, &out);
        if (!goes_on) hang_up(peer);
        at += JUTE_INT_BYTES + count;
    }
    memmove(peer->in, peer->in + at, peer->bytes - at);
    peer->bytes -= at;
}

static struct peer *peer_of(struct socket *socket)
{
    struct peer *peer = socket->served;
    if (peer) return peer;
    peer = socket->served = calloc(1, sizeof *peer);
    peer->socket = socket;
    if (peer_count < PEERS_MAX) peers[peer_count++] = peer;
    return peer;
}

static void serve(struct socket *socket)
{
    struct peer *peer = peer_of(socket);
    if (socket->is_closed || socket->state == SOCKET_LISTENS) return;
    if (is_down() || socket->has_end || socket->state != SOCKET_OPEN) {
        hang_up(peer);
        return;
    }
    for (ssize_t got = 1; got > 0 && peer->bytes < sizeof peer->in;) {
        const struct iovec room = {peer->in + peer->bytes, sizeof peer->in - peer->bytes};
        got = socket_receive(socket, &room, 1, 0);
        if (got > 0) peer->bytes += (size_t)got;
    }
    take_frames(peer);
}

/* ---- etcd ---- */

static void act(const struct request *request, struct response *response)
{
    if (is_troubled())
        response->status = 503;
    else
        etcd_answer(&server, now_ms(), request, response);
}

/* ---- time, and what befalls it ---- */

static void expire(void *subject, uint64_t unused)
{
    if (!is_troubled()) zookeeper_server_expire(&server, now_ms());
    event_at(machine.now_ns + EXPIRES_MS * MS_NS, expire, NULL, 0);
}

static void come_back(void *subject, uint64_t unused)
{
    if (is_troubled()) return;
    for (int i = 0; i < ZOOKEEPER_SESSIONS_MAX; i++) server.sessions[i].heard_ms = now_ms();
}

/* But no number of a session or a lease is ever given again: they are of a time, or random. */
static void forget(void)
{
    const int64_t ids = server.ids;
    memset(&server, 0, sizeof server);
    server.ids = ids;
}

void coordinator_fail(enum coordinator_trouble kind, uint64_t until_ns)
{
    trouble.kind = kind;
    trouble.until_ns = until_ns;
    machine_say("the coordinator %s for %.3f s",
                kind == COORDINATOR_DOWN     ? "is down"
                : kind == COORDINATOR_SILENT ? "is silent"
                                             : "forgets everything, and is down",
                (double)(until_ns - machine.now_ns) / 1e9);
    if (kind == COORDINATOR_FORGETS) forget();
    for (int i = 0; i < peer_count && kind != COORDINATOR_SILENT; i++) hang_up(peers[i]);
    event_at(until_ns, come_back, NULL, 0);
}

void coordinator_heal(void)
{
    trouble.until_ns = 0;
    forget();
}

void coordinator_start(void)
{
    socket_serve(COORDINATOR_HOST, ZOOKEEPER_PORT, serve);
    service_start(COORDINATOR_HOST, ETCD_PORT, act);
    event_at(machine.now_ns + EXPIRES_MS * MS_NS, expire, NULL, 0);
}
