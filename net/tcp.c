/* tcp.c - connections between hosts; once connected, stream.c carries the messages. */
#include "net/address.h"
#include "net/loop_inside.h"
#include "net/stream.h"
#include "net/tls.h"
#include "net/wire.h"

#include "core/base/log.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    KEEPALIVE_IDLE_S = 10, /* a silent peer is asked, */
    KEEPALIVE_EVERY_S = 5, /* again, */
    KEEPALIVE_PROBES = 6,  /* and given up after 40 s */
    /* Sent bytes must be acknowledged within this (TCP_USER_TIMEOUT); generous, because a peer that
     * computes and does not read for longer counts as lost too. */
    UNACKNOWLEDGED_MAX_MS = 120000,
    WINDOW_BYTES = 8 << 20, /* 64 ms of 1 Gbit/s */
    BACKLOG = 1024,
    FD_DIGITS_MAX = 6,
    CONGESTION_NAME_MAX = 32,
    NETWORK_RTT_MAX_US = 5000, /* above this the peer is taken to be in another network */
};

struct endpoint {
    struct sockaddr_storage at;
    socklen_t bytes;
};

static void set_number(int fd, int level, int option, int value)
{
    /* Errors are ignored: the connection works without any of these options. */
    (void)setsockopt(fd, level, option, &value, sizeof value);
}

static bool has_ends(int fd, struct endpoint *ret_own, struct endpoint *ret_peer)
{
    *ret_own = *ret_peer = (struct endpoint){.bytes = sizeof ret_own->at};
    return !getsockname(fd, (struct sockaddr *)&ret_own->at, &ret_own->bytes) &&
           !getpeername(fd, (struct sockaddr *)&ret_peer->at, &ret_peer->bytes);
}

static bool is_same_host(const struct endpoint *a, const struct endpoint *b)
{
    const struct sockaddr_in *a4 = (const struct sockaddr_in *)&a->at,
                             *b4 = (const struct sockaddr_in *)&b->at;
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)&a->at,
                              *b6 = (const struct sockaddr_in6 *)&b->at;
    if (a->at.ss_family != b->at.ss_family) return false;
    if (a->at.ss_family == AF_INET) return a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    return !memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof a6->sin6_addr);
}

static bool set_congestion_control(int fd, const char *name)
{
    return !setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name));
}

/* By the round trip time of the TCP handshake. */
static bool is_in_same_network(int fd)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;
    return !getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &bytes) && info.tcpi_rtt &&
           info.tcpi_rtt <= NETWORK_RTT_MAX_US;
}

/* BBR, the default of many systems and good over long distances, halves the throughput of loopback;
 * and where workers share a link it divides it unevenly, so that all wait for the slowest (a step
 * of 13 MB at 1 Gbit/s takes 7 % less time without). */
static void choose_congestion_control(int fd, bool is_loopback)
{
    char name[CONGESTION_NAME_MAX] = "";
    socklen_t bytes = sizeof name;
    const bool is_bbr = !getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &bytes) &&
                        !strncmp(name, "bbr", strlen("bbr"));
    if (is_loopback && set_congestion_control(fd, "reno")) return;
    if (is_loopback || (is_bbr && is_in_same_network(fd)))
        (void)(set_congestion_control(fd, "cubic") || set_congestion_control(fd, "reno"));
}

/* A worker does not read while a node computes. SO_RCVLOWAT makes the system widen the receive
 * buffer, and it stays wide when the option is lowered again. */
static void widen_window(int fd)
{
    set_number(fd, SOL_SOCKET, SO_RCVLOWAT, WINDOW_BYTES);
    set_number(fd, SOL_SOCKET, SO_RCVLOWAT, 1);
}

/* Otherwise the system sizes the buffers: fixed ones of 4 MiB were measured and were no faster. */
static void tune(struct stream *stream)
{
    const int fd = stream->fd;
    struct endpoint own, peer;
    set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
    set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEPALIVE_EVERY_S);
    set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
    set_number(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, UNACKNOWLEDGED_MAX_MS);
    if (!has_ends(fd, &own, &peer)) return;
    stream->link.is_near =
        address_is_loopback((const struct sockaddr *)&peer.at) || is_same_host(&own, &peer);
    if (stream->link.is_active && !stream->link.is_near) widen_window(fd);
    choose_congestion_control(fd, address_is_loopback((const struct sockaddr *)&peer.at));
}

/* "127.0.0.1:2222", "[::1]:2222" */
static void endpoint_text(const struct endpoint *endpoint, char *ret, size_t size)
{
    char host[INET6_ADDRSTRLEN + IF_NAMESIZE] = "?", port[8] = "?";
    (void)getnameinfo((const struct sockaddr *)&endpoint->at, endpoint->bytes, host, sizeof host,
                      port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(ret, size, strchr(host, ':') ? "[%s]:%s" : "%s:%s", host, port);
}

/* ---- authentication ---- */

/* An incoming peer that fails authentication is not announced to anybody; it is told by a TLS
 * alert.
 */
static void refuse(struct stream *stream, err why)
{
    const struct link *link = &stream->link;
    if (!link->is_active && log_again(loop_note_refusal(link->loop)))
        log_line(LOG_WARNING, "%s %s", link->peer_name, error_text());
    link_end(&stream->link, why);
}

static bool shake_hands(struct stream *stream)
{
    bool is_done;
    const err e = tls_shake_hands(stream->tls, &is_done);
    const uint32_t out = tls_has_unsent(stream->tls) ? EPOLLOUT : 0;
    if (e) {
        refuse(stream, e);
        return false;
    }
    /* Bytes after the handshake are already in TLS' buffer, where epoll does not see them: EPOLLOUT
     * wakes the loop. */
    loop_change(stream->link.loop, stream->link.watch, EPOLLIN | (is_done ? EPOLLOUT : out));
    if (!is_done) return false;
    stream->link.right = tls_right(stream->tls);
    link_open(&stream->link);
    return true;
}

/* To be called once the socket is connected. */
static bool begin(struct stream *stream)
{
    struct tls_keys *keys = loop_keys(stream->link.loop);
    if (!keys) {
        link_open(&stream->link);
        return true;
    }
    const err e = tls_open(keys, stream->fd, stream->link.is_active, &stream->tls);
    if (e) {
        link_end(&stream->link, e);
        return false;
    }
    return shake_hands(stream);
}

/* ---- listening ---- */

static const struct link_ops *const ops = &stream_ops;

static bool tcp_ready(void *context, uint32_t events);

static void arrived(struct listener *listener, int fd)
{
    struct endpoint peer = {.bytes = sizeof peer.at};
    struct link *link = NULL;
    const struct link_origin origin = {.transport = &transport_tcp,
                                       .ops = ops,
                                       .loop = listener->loop,
                                       .events = &listener->events,
                                       .context = listener->context,
                                       .listener = listener,
                                       .is_guest = listener->is_for_guests};
    if (getpeername(fd, (struct sockaddr *)&peer.at, &peer.bytes) ||
        link_new(sizeof(struct stream), &origin, &link)) {
        close(fd);
        return;
    }
    struct stream *stream = (struct stream *)link;
    stream->fd = fd;
    endpoint_text(&peer, link->peer_name, sizeof link->peer_name);
    tune(stream);
    const struct loop_watcher watcher = {.fd = fd,
                                         .events = EPOLLIN,
                                         .ready = tcp_ready,
                                         .context = stream,
                                         .is_guest = link->is_guest};
    const err e = loop_attach(link->loop, &watcher, &link->watch);
    if (e)
        link_end(link, e);
    else
        (void)begin(stream);
}

/* Sends what the socket takes. Reads first what has come, or close() would discard the message. */
static void say_last(int fd, const struct message *m)
{
    enum { LAST_WORDS_MAX = 1024, READ_MAX = 4096 };
    unsigned char words[MESSAGE_HEADER_BYTES + LAST_WORDS_MAX];
    char heard[READ_MAX];
    if (m->body_bytes > LAST_WORDS_MAX) return;
    wire_pack(m, words);
    if (m->body_bytes) memcpy(words + MESSAGE_HEADER_BYTES, m->body, m->body_bytes);
    (void)!recv(fd, heard, sizeof heard, MSG_DONTWAIT);
    (void)!send(fd, words, MESSAGE_HEADER_BYTES + m->body_bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
    shutdown(fd, SHUT_WR);
}

static err explain_listen(const char *address, int reason)
{
    char owner[64] = "";
    if (reason == EADDRINUSE) address_owner(address, owner, sizeof owner);
    if (owner[0])
        return fail(ERR_PEER, "cannot listen on %s: address already in use by %s", address, owner);
    const char *text = reason == EADDRINUSE      ? "address already in use"
                       : reason == EADDRNOTAVAIL ? "not an address of this host"
                       : reason == EACCES        ? "not allowed (ports below 1024 need privileges)"
                                                 : strerror(reason);
    const bool may_change = reason == EADDRINUSE || reason == EADDRNOTAVAIL;
    return fail(may_change ? ERR_PEER : ERR_IO, "cannot listen on %s: %s", address, text);
}

/* Prefers IPv4, so that a name means the same address on every host. */
static const struct addrinfo *preferred(const struct addrinfo *list)
{
    for (const struct addrinfo *at = list; at; at = at->ai_next)
        if (at->ai_family == AF_INET) return at;
    return list;
}

static err open_listening(const char *address, int *ret_fd)
{
    struct address split;
    TRY(address_split(address, &split));
    struct addrinfo *list;
    const err e = address_resolve(&split, &list);
    if (e) return fail_prefix(ERR_PEER, "cannot listen on %s", address);
    const struct addrinfo *at = preferred(list);
    const int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd >= 0) set_number(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    const bool is_open = fd >= 0 && !bind(fd, at->ai_addr, at->ai_addrlen) && !listen(fd, BACKLOG);
    const int reason = errno;
    freeaddrinfo(list);
    if (!is_open) {
        if (fd >= 0) close(fd);
        return explain_listen(address, reason);
    }
    *ret_fd = fd;
    return OK;
}

/* "fd:7": a listening socket inherited from the process that started this one. */
static err adopt_listening(const char *address, int *ret_fd)
{
    const char *digits = address + strlen("fd:");
    int listens = 0, family = 0;
    socklen_t bytes = sizeof listens;
    const bool is_number = isdigit((unsigned char)digits[0]) && strlen(digits) <= FD_DIGITS_MAX &&
                           strspn(digits, "0123456789") == strlen(digits);
    const int fd = is_number ? atoi(digits) : -1;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) || !listens ||
        getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &bytes) ||
        (family != AF_INET && family != AF_INET6))
        return fail(ERR_IO, "cannot listen on %s: not an inherited listening socket", address);
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, O_NONBLOCK))
        return fail(ERR_IO, "cannot listen on %s: %s", address, strerror(errno));
    *ret_fd = fd;
    return OK;
}

/* The given address with the port that the system chose. */
static void real_address(const char *address, int fd, char *ret)
{
    struct endpoint own = {.bytes = sizeof own.at};
    unsigned port = 0;
    if (!getsockname(fd, (struct sockaddr *)&own.at, &own.bytes))
        port =
            ntohs(own.at.ss_family == AF_INET ? ((const struct sockaddr_in *)&own.at)->sin_port
                                              : ((const struct sockaddr_in6 *)&own.at)->sin6_port);
    snprintf(ret, ADDRESS_MAX, "%.*s:%u", (int)(strrchr(address, ':') - address), address, port);
}

static void own_address(int fd, char *ret)
{
    struct endpoint own = {.bytes = sizeof own.at};
    if (getsockname(fd, (struct sockaddr *)&own.at, &own.bytes)) own.bytes = 0;
    endpoint_text(&own, ret, ADDRESS_MAX);
}

err address_reserve(const char *address, char ret_address[ADDRESS_MAX], int *ret_fd)
{
    const bool is_inherited = strncmp(address, "fd:", 3) == 0;
    TRY(is_inherited ? adopt_listening(address, ret_fd) : open_listening(address, ret_fd));
    if (is_inherited)
        own_address(*ret_fd, ret_address);
    else
        real_address(address, *ret_fd, ret_address);
    return OK;
}

/* Finds the own address on the route: connecting a UDP socket sends nothing. */
static err look_for_way(const struct addrinfo *to, struct endpoint *ret_own)
{
    const int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ret_own->bytes = sizeof ret_own->at;
    const bool is_found = fd >= 0 && !connect(fd, to->ai_addr, to->ai_addrlen) &&
                          !getsockname(fd, (struct sockaddr *)&ret_own->at, &ret_own->bytes);
    const int reason = errno;
    if (fd >= 0) close(fd);
    return is_found ? OK : fail(ERR_PEER, "no way there: %s", strerror(reason));
}

err address_towards(const char *address, char ret_host[ADDRESS_MAX])
{
    struct address split;
    struct addrinfo *list;
    struct endpoint own;
    TRY(address_split(address, &split));
    err e = address_resolve(&split, &list);
    if (!e) {
        e = look_for_way(preferred(list), &own);
        freeaddrinfo(list);
    }
    if (e) return fail_prefix(e, "%s", address);
    endpoint_text(&own, ret_host, ADDRESS_MAX);
    *strrchr(ret_host, ':') = '\0';
    return OK;
}

/* Allows loopback addresses; others only with keys or --insecure. */
static err check_open(const struct loop *loop, const char *address, int fd)
{
    struct endpoint own = {.bytes = sizeof own.at};
    const bool is_known = !getsockname(fd, (struct sockaddr *)&own.at, &own.bytes);
    if (loop_keys(loop) || loop_is_insecure(loop) ||
        (is_known && address_is_loopback((const struct sockaddr *)&own.at)))
        return OK;
    return fail(ERR_INPUT,
                "%s can be reached from other hosts, and there is no key: openssl rand -hex 32 > "
                "job.key && chmod 600 job.key makes one, --key_file=job.key gives it to each task "
                "(--insecure: whoever reaches a task reads and changes what it trains)",
                address);
}

static err tcp_listen(struct loop *loop, const char *address, const struct link_events *events,
                      void *context, char *ret_address, struct listener **ret)
{
    int fd = -1;
    struct listener like = {.transport = &transport_tcp,
                            .loop = loop,
                            .events = *events,
                            .context = context,
                            .arrived = arrived,
                            .say_last = loop_keys(loop) ? NULL : say_last}; /* nothing in clear */
    TRY(address_reserve(address, like.address, &fd));
    const err e = check_open(loop, like.address, fd);
    if (e) {
        close(fd);
        return e;
    }
    TRY(listener_open(&like, fd, ret));
    if (ret_address) memcpy(ret_address, like.address, ADDRESS_MAX);
    return OK;
}

/* ---- connecting ---- */

static err explain_connect(int reason)
{
    if (reason == ECONNREFUSED) return fail(ERR_PEER, "refused");
    return fail(ERR_PEER, "cannot connect: %s", strerror(reason));
}

static void give_up_socket(struct stream *stream)
{
    loop_detach(stream->link.loop, stream->link.watch);
    if (stream->fd >= 0) close(stream->fd);
    stream->fd = stream->link.watch = -1;
}

static err start_connecting(struct stream *stream, const struct addrinfo *to)
{
    stream->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (stream->fd < 0) return link_fail_making(ERR_PEER, "a connection", errno);
    if (connect(stream->fd, to->ai_addr, to->ai_addrlen) && errno != EINPROGRESS)
        return explain_connect(errno);
    const struct loop_watcher watcher = {
        .fd = stream->fd, .events = EPOLLOUT, .ready = tcp_ready, .context = stream};
    return loop_attach(stream->link.loop, &watcher, &stream->link.watch);
}

/* Tries the next address of the host's name; why: the error of the last one. */
static void connect_next(struct stream *stream, err why)
{
    while (why && stream->next_address) {
        give_up_socket(stream);
        const struct addrinfo *to = stream->next_address;
        stream->next_address = to->ai_next;
        why = start_connecting(stream, to);
    }
    if (why) link_end(&stream->link, why);
}

/* A connection to an unused local port can connect to itself (simultaneous open). */
static bool is_connected_to_itself(int fd)
{
    struct endpoint own, peer;
    return has_ends(fd, &own, &peer) && own.bytes == peer.bytes &&
           !memcmp(&own.at, &peer.at, own.bytes);
}

static bool finish_connecting(struct stream *stream)
{
    int reason = 0;
    socklen_t bytes = sizeof reason;
    if (getsockopt(stream->fd, SOL_SOCKET, SO_ERROR, &reason, &bytes)) reason = errno;
    if (!reason && is_connected_to_itself(stream->fd)) reason = ECONNREFUSED;
    if (reason) {
        connect_next(stream, explain_connect(reason));
        return false;
    }
    tune(stream);
    loop_change(stream->link.loop, stream->link.watch, EPOLLIN);
    return begin(stream);
}

static bool tcp_ready(void *context, uint32_t events)
{
    struct stream *stream = context;
    if (stream->link.state == LINK_CONNECTING)
        return stream->tls ? shake_hands(stream) : finish_connecting(stream);
    if (stream->is_held && events & (EPOLLHUP | EPOLLERR)) stream->is_send_broken = true;
    return stream_ops.look(&stream->link);
}

static err tcp_connect(struct loop *loop, const char *address, const struct link_events *events,
                       void *context, struct link **ret)
{
    struct address split;
    TRY(address_split(address, &split));
    const struct link_origin origin = {.transport = &transport_tcp,
                                       .ops = ops,
                                       .loop = loop,
                                       .events = events,
                                       .context = context,
                                       .is_active = true};
    struct link *link;
    TRY(link_new(sizeof(struct stream), &origin, &link));
    struct stream *stream = (struct stream *)link;
    stream->fd = -1;
    link_set_peer_name(link, address);
    const err e = address_resolve(&split, &stream->addresses);
    stream->next_address = stream->addresses;
    connect_next(stream, e ? e : ERR_PEER);
    *ret = link;
    return OK;
}

const struct transport transport_tcp = {
    .name = "tcp",
    .what = "TCP",
    .reach = TRANSPORT_ANYWHERE,
    .listen = tcp_listen,
    .connect = tcp_connect,
};
