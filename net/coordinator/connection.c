/* connection.c - see connection.h. */
#include "net/coordinator/connection.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "net/address.h"
#include "net/would_block.h"

enum { ADDRESSES_MAX = 16 }; /* of one name */

static err fail_system(const char *what)
{
    return fail(ERR_IO, "%s: %s", what, strerror(errno));
}

/* Waits for a poll event. Also OK when the connection breaks: the next read or write reports it. */
static err wait_for(const struct server_connection *c, short event, uint64_t until_ms)
{
    struct pollfd ready = {.fd = c->fd, .events = event};
    for (uint64_t now_ms = clock_ms(); now_ms < until_ms; now_ms = clock_ms()) {
        const int count = poll(&ready, 1, (int)(until_ms - now_ms));
        if (count > 0) return OK;
        if (count < 0 && errno != EINTR) return fail_system("cannot wait");
    }
    return fail(ERR_IO, "no answer in time");
}

/* ---- opening and closing ---- */

static err finish_connecting(struct server_connection *c, uint64_t until_ms)
{
    int reason = 0;
    socklen_t bytes = sizeof reason;
    TRY(wait_for(c, POLLOUT, until_ms));
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &reason, &bytes)) reason = errno;
    return reason ? fail(ERR_IO, "cannot connect: %s", strerror(reason)) : OK;
}

static err connect_to(struct server_connection *c, const struct addrinfo *to, uint64_t until_ms)
{
    const int at_once = 1;
    c->fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) return fail_system("cannot open a socket");
    (void)setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    if (connect(c->fd, to->ai_addr, to->ai_addrlen) == 0) return OK;
    return errno == EINPROGRESS ? finish_connecting(c, until_ms) : fail_system("cannot connect");
}

err connection_open(struct server_connection *c, const char *address, uint64_t until_ms)
{
    struct address split;
    struct addrinfo *all;
    c->fd = -1;
    TRY(address_split(address, &split));
    err e = address_resolve(&split, &all);
    if (e) return fail_prefix(ERR_IO, "cannot connect");
    int tried = 0;
    e = ERR_IO;
    for (const struct addrinfo *to = all; e && to && tried < ADDRESSES_MAX; to = to->ai_next) {
        connection_close(c);
        e = connect_to(c, to, until_ms);
        tried++;
    }
    freeaddrinfo(all);
    if (e) connection_close(c);
    return e;
}

void connection_close(struct server_connection *c)
{
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}

/* ---- bytes ---- */

err connection_send(struct server_connection *c, const void *from, size_t bytes, uint64_t until_ms)
{
    for (size_t sent = 0; sent < bytes;) { /* ends: wait_for has a limit */
        const ssize_t some =
            send(c->fd, (const char *)from + sent, bytes - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (some > 0) sent += (size_t)some;
        if (some < 0 && !would_block(errno)) return fail_system("cannot send");
        if (sent < bytes) TRY(wait_for(c, POLLOUT, until_ms));
    }
    return OK;
}

err connection_receive(struct server_connection *c, void *to, size_t bytes, uint64_t until_ms)
{
    for (size_t come = 0; come < bytes;) { /* ends: wait_for has a limit */
        TRY(wait_for(c, POLLIN, until_ms));
        const ssize_t some = recv(c->fd, (char *)to + come, bytes - come, MSG_DONTWAIT);
        if (some == 0) return fail(ERR_IO, "it has closed the connection");
        if (some < 0 && !would_block(errno)) return fail_system("cannot receive");
        if (some > 0) come += (size_t)some;
    }
    return OK;
}
