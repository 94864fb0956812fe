/* calls_sockets.c - sockets and names of hosts, as the program asks for them. */
#include "tests/world/machine.h"
#include "tests/world/real.h"
#include "tests/world/sockets.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

enum { NETWORK = 0x0a000000, SOME_RTT_US = 200 };

static struct socket *socket_of(int descriptor)
{
    const struct description *description = description_of(descriptor);
    if (!description) return NULL;
    if (description->kind == OPEN_SOCKET) return description->socket;
    errno = ENOTSOCK;
    return NULL;
}

static int give_socket(struct socket *socket, bool is_nonblocking)
{
    struct description *description = description_new(OPEN_SOCKET);
    description->socket = socket;
    description->is_nonblocking = is_nonblocking;
    const int descriptor = descriptor_give(description, 0);
    if (descriptor >= 0) socket->description = description;
    return descriptor;
}

int socket(int domain, int type, int protocol)
{
    if (!process_now()) return REAL(socket)(domain, type, protocol);
    call_begins("socket", domain);
    const bool is_local = domain == AF_UNIX && (type & 0xf) == SOCK_STREAM;
    if (domain != AF_INET && !is_local) return call_fails(EAFNOSUPPORT);
    return give_socket(socket_new(domain, type & 0xf), type & SOCK_NONBLOCK);
}

int socketpair(int domain, int type, int protocol, int ends[2])
{
    if (!process_now()) return REAL(socketpair)(domain, type, protocol, ends);
    struct socket *a = socket_new(domain, type & 0xf), *b = socket_new(domain, type & 0xf);
    sockets_join(a, b);
    ends[0] = give_socket(a, type & SOCK_NONBLOCK);
    ends[1] = give_socket(b, type & SOCK_NONBLOCK);
    return ends[1] < 0 ? -1 : 0;
}

/* ---- names within a host ---- */

enum { NAME_AT = offsetof(struct sockaddr_un, sun_path) };

static int name_bytes(socklen_t bytes)
{
    return bytes > NAME_AT ? (int)(bytes - NAME_AT) : 0;
}

static const char *name_of(const struct sockaddr *address)
{
    return ((const struct sockaddr_un *)address)->sun_path;
}

static int bind_local(struct socket *socket, const char *name, int bytes)
{
    if (!bytes) { /* the system chooses one */
        static int names;
        socket->name_bytes = 1 + snprintf(socket->name + 1, LOCAL_NAME_BYTES - 1, "%05x", ++names);
        return 0;
    }
    if (socket_named(socket->host, name, bytes)) return call_fails(EADDRINUSE);
    memcpy(socket->name, name, (size_t)bytes);
    socket->name_bytes = bytes;
    return 0;
}

static int say_name(const struct socket *socket, struct sockaddr *ret, socklen_t *bytes)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, socket->name, (size_t)socket->name_bytes);
    memcpy(ret, &address, *bytes < sizeof address ? *bytes : sizeof address);
    *bytes = (socklen_t)(NAME_AT + socket->name_bytes);
    return 0;
}

/* ---- addresses ---- */

/* -1: no host of this machine */
static int host_of(const struct sockaddr *address)
{
    const uint32_t ip = ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr);
    if (ip >> 24 == 127 || ip == INADDR_ANY) return process_now()->host;
    return ip > NETWORK && ip <= NETWORK + HOSTS_MAX ? (int)(ip - NETWORK) - 1 : -1;
}

static int port_of(const struct sockaddr *address)
{
    return ntohs(((const struct sockaddr_in *)address)->sin_port);
}

static struct sockaddr_in address_of(int host, int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(NETWORK + 1 + (uint32_t)host)};
}

static int say_address(int host, int port, struct sockaddr *ret, socklen_t *bytes)
{
    const struct sockaddr_in address = address_of(host, port);
    memcpy(ret, &address, *bytes < sizeof address ? *bytes : sizeof address);
    *bytes = sizeof address;
    return 0;
}

int getsockname(int descriptor, struct sockaddr *ret, socklen_t *bytes)
{
    if (!process_now()) return REAL(getsockname)(descriptor, ret, bytes);
    const struct socket *socket = socket_of(descriptor);
    if (!socket) return -1;
    return socket->domain == AF_UNIX ? say_name(socket, ret, bytes)
                                     : say_address(socket->host, socket->port, ret, bytes);
}

int getpeername(int descriptor, struct sockaddr *ret, socklen_t *bytes)
{
    if (!process_now()) return REAL(getpeername)(descriptor, ret, bytes);
    const struct socket *socket = socket_of(descriptor);
    if (!socket) return -1;
    if (socket->state != SOCKET_OPEN) return call_fails(ENOTCONN);
    return say_address(socket->peer_host, socket->peer_port, ret, bytes);
}

/* "h3", "10.0.0.4", "127.0.0.1" */
static bool find_host(const char *name, int flags, uint32_t *ret_ip)
{
    struct in_addr address;
    if (inet_pton(AF_INET, name, &address) == 1) {
        *ret_ip = ntohl(address.s_addr);
        return true;
    }
    char *end;
    const long host = *name == 'h' ? strtol(name + 1, &end, 10) : -1;
    if (flags & AI_NUMERICHOST || host < 0 || host >= HOSTS_MAX || *end) return false;
    *ret_ip = NETWORK + 1 + (uint32_t)host;
    return true;
}

struct found {
    struct addrinfo info;
    struct sockaddr_in address;
};

int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **ret)
{
    if (!process_now()) return REAL(getaddrinfo)(name, service, hints, ret);
    uint32_t ip;
    call_begins("getaddrinfo", 0);
    if (!find_host(name, hints->ai_flags, &ip)) return EAI_NONAME;
    struct found *found = calloc(1, sizeof *found);
    found->address =
        (struct sockaddr_in){.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(service ? service : "0")),
                             .sin_addr.s_addr = htonl(ip)};
    found->info = (struct addrinfo){.ai_family = AF_INET,
                                    .ai_socktype = SOCK_STREAM,
                                    .ai_addrlen = sizeof found->address,
                                    .ai_addr = (struct sockaddr *)&found->address};
    *ret = &found->info;
    return 0;
}

void freeaddrinfo(struct addrinfo *list)
{
    if (process_now())
        free(list);
    else
        REAL(freeaddrinfo)(list);
}

/* ---- listening and connecting ---- */

int bind(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    if (!process_now()) return REAL(bind)(descriptor, address, bytes);
    struct socket *socket = socket_of(descriptor);
    call_begins("bind", descriptor);
    if (!socket) return -1;
    if (socket->domain == AF_UNIX) return bind_local(socket, name_of(address), name_bytes(bytes));
    if (host_of(address) != socket->host) return call_fails(EADDRNOTAVAIL);
    const int port = port_of(address) ? port_of(address) : socket_free_port(socket->host);
    if (socket_listening(socket->host, port)) return call_fails(EADDRINUSE);
    socket->port = port;
    return 0;
}

int listen(int descriptor, int backlog)
{
    if (!process_now()) return REAL(listen)(descriptor, backlog);
    struct socket *socket = socket_of(descriptor);
    call_begins("listen", descriptor);
    if (!socket) return -1;
    if (socket->domain != AF_UNIX && socket_listening(socket->host, socket->port))
        return call_fails(EADDRINUSE);
    socket->state = SOCKET_LISTENS;
    return 0;
}

int accept4(int descriptor, struct sockaddr *ret, socklen_t *bytes, int flags)
{
    if (!process_now()) return REAL(accept4)(descriptor, ret, bytes, flags);
    struct socket *listener = socket_of(descriptor);
    call_begins("accept", descriptor);
    if (!listener) return -1;
    if (!listener->waiting) return call_fails(EAGAIN);
    const int accepted = give_socket(listener->backlog[0], flags & SOCK_NONBLOCK);
    if (accepted < 0) return -1;
    memmove(listener->backlog, listener->backlog + 1,
            (size_t)--listener->waiting * sizeof listener->backlog[0]);
    return accepted;
}

int connect(int descriptor, const struct sockaddr *address, socklen_t bytes)
{
    if (!process_now()) return REAL(connect)(descriptor, address, bytes);
    struct socket *socket = socket_of(descriptor);
    call_begins("connect", descriptor);
    if (!socket) return -1;
    if (socket->domain == AF_UNIX) {
        const int error = socket_connect_local(socket, name_of(address), name_bytes(bytes));
        return error ? call_fails(error) : 0;
    }
    if (host_of(address) < 0) return call_fails(ENETUNREACH);
    if (socket->type == SOCK_DGRAM) return 0;
    if (socket->state != SOCKET_NEW) return call_fails(EISCONN);
    socket_connect(socket, host_of(address), port_of(address));
    return call_fails(EINPROGRESS);
}

int shutdown(int descriptor, int how)
{
    if (!process_now()) return REAL(shutdown)(descriptor, how);
    struct socket *socket = socket_of(descriptor);
    call_begins("shutdown", how);
    if (!socket) return -1;
    if (how != SHUT_RD) socket_shut(socket);
    return 0;
}

/* ---- options ---- */

int setsockopt(int descriptor, int level, int option, const void *value, socklen_t bytes)
{
    if (!process_now()) return REAL(setsockopt)(descriptor, level, option, value, bytes);
    struct socket *socket = socket_of(descriptor);
    if (!socket) return -1;
    if (level == IPPROTO_TCP && option == TCP_USER_TIMEOUT)
        socket->user_timeout_ms = (uint64_t) * (const int *)value;
    return 0;
}

static int number_of(struct socket *socket, int option)
{
    const int error = socket->error;
    switch (option) {
    case SO_ERROR:
        socket->error = 0;
        return error;
    case SO_ACCEPTCONN:
        return socket->state == SOCKET_LISTENS;
    case SO_DOMAIN:
        return socket->domain;
    case SO_TYPE:
        return socket->type;
    default:
        return 0;
    }
}

int getsockopt(int descriptor, int level, int option, void *ret, socklen_t *bytes)
{
    if (!process_now()) return REAL(getsockopt)(descriptor, level, option, ret, bytes);
    struct socket *socket = socket_of(descriptor);
    if (!socket) return -1;
    memset(ret, 0, *bytes);
    if (level == IPPROTO_TCP && option == TCP_CONGESTION)
        memcpy(ret, "cubic", sizeof "cubic");
    else if (level == SOL_SOCKET && option == SO_PEERCRED)
        *(struct ucred *)ret =
            (struct ucred){socket->peer ? socket->peer->pid : 0, geteuid(), getegid()};
    else if (level == IPPROTO_TCP && option == TCP_INFO)
        ((struct tcp_info *)ret)->tcpi_rtt = SOME_RTT_US;
    else
        *(int *)ret = number_of(socket, option);
    return 0;
}

/* ---- bytes ---- */

ssize_t recv(int descriptor, void *to, size_t count, int flags)
{
    if (!process_now()) return REAL(recv)(descriptor, to, count, flags);
    struct socket *socket = socket_of(descriptor);
    call_begins("recv", descriptor);
    return socket ? socket_receive(socket, &(struct iovec){to, count}, 1, flags) : -1;
}

ssize_t send(int descriptor, const void *from, size_t count, int flags)
{
    if (!process_now()) return REAL(send)(descriptor, from, count, flags);
    struct socket *socket = socket_of(descriptor);
    call_begins("send", descriptor);
    return socket ? socket_send(socket, &(struct iovec){(void *)from, count}, 1) : -1;
}

static struct rights *rights_of(const struct msghdr *message)
{
    struct msghdr *at = (struct msghdr *)message;
    struct cmsghdr *control = message->msg_controllen ? CMSG_FIRSTHDR(at) : NULL;
    if (!control || control->cmsg_type != SCM_RIGHTS) return NULL;
    struct rights *ret = calloc(1, sizeof *ret);
    for (size_t i = 0; i < (control->cmsg_len - CMSG_LEN(0)) / sizeof(int); i++) {
        int descriptor;
        memcpy(&descriptor, CMSG_DATA(control) + i * sizeof descriptor, sizeof descriptor);
        struct description *description = description_of(descriptor);
        if (description) ret->given[ret->count++] = description;
    }
    return ret;
}

static ssize_t pass(struct socket *socket, const struct msghdr *message, struct rights *rights)
{
    const ssize_t sent = socket_pass(socket, message->msg_iov, rights);
    for (int i = 0; i < rights->count && sent > 0; i++) rights->given[i]->uses++;
    return sent;
}

static void give_rights(struct msghdr *message, const struct rights *rights)
{
    struct cmsghdr *control = CMSG_FIRSTHDR(message);
    for (int i = 0; i < rights->count; i++) {
        struct description *description = rights->given[i];
        const int descriptor = descriptor_give(description, 0);
        memcpy(CMSG_DATA(control) + (size_t)i * sizeof descriptor, &descriptor, sizeof descriptor);
        description->uses--;
        description->process = process_now();
    }
    const size_t bytes = (size_t)rights->count * sizeof(int);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(bytes);
    message->msg_controllen = CMSG_SPACE(bytes);
}

static ssize_t receive_message(struct socket *socket, struct msghdr *message, int flags)
{
    struct iovec *pieces = message->msg_iov;
    if (message->msg_iovlen != 1 || socket->domain != AF_UNIX || !message->msg_controllen)
        return socket_receive(socket, pieces, (int)message->msg_iovlen, flags);
    struct iovec piece = *pieces;
    const struct rights *rights = socket_take_rights(socket, &piece.iov_len);
    if (rights)
        give_rights(message, rights);
    else
        message->msg_controllen = 0;
    message->msg_flags = 0;
    return socket_receive(socket, &piece, 1, flags);
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags)
{
    if (!process_now()) return REAL(sendmsg)(descriptor, message, flags);
    struct socket *socket = socket_of(descriptor);
    call_begins("sendmsg", descriptor);
    if (!socket) return -1;
    struct rights *rights = rights_of(message);
    return rights ? pass(socket, message, rights)
                  : socket_send(socket, message->msg_iov, (int)message->msg_iovlen);
}

ssize_t recvmsg(int descriptor, struct msghdr *message, int flags)
{
    if (!process_now()) return REAL(recvmsg)(descriptor, message, flags);
    struct socket *socket = socket_of(descriptor);
    call_begins("recvmsg", descriptor);
    return socket ? receive_message(socket, message, flags) : -1;
}

ssize_t sendto(int descriptor, const void *from, size_t count, int flags, const struct sockaddr *to,
               socklen_t bytes)
{
    if (!process_now()) return REAL(sendto)(descriptor, from, count, flags, to, bytes);
    return call_fails(ENOTCONN);
}
