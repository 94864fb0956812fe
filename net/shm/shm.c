/* shm.c - how two tasks of one host find and check each other.
 *
 * The listening side owns an abstract Unix socket. The connecting side makes the control memory and
 * passes it with its eventfd; the listening side checks both, maps the memory and answers with its
 * own eventfd. Both check that the other belongs to the same user. A connection that does not greet
 * within LINK_CONNECT_MAX_MS is dropped; its owner never hears of it.
 */
#include "net/shm/shm.h"

#include "net/address.h"
#include "net/shm/area.h"
#include "net/loop_inside.h"
#include "net/shm/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, GREETING_MAGIC = 0x6d687364 };

struct name {
    struct sockaddr_un at;
    socklen_t bytes;
};

/* An empty name: the system chooses one. */
static err make_name(const char *address, struct name *ret)
{
    *ret = (struct name){.at.sun_family = AF_UNIX};
    const size_t length = strlen(address);
    if (length > sizeof ret->at.sun_path - 1)
        return fail(ERR_INPUT, "socket name \"%.32s...\" is longer than %zu characters", address,
                    sizeof ret->at.sun_path - 1);
    memcpy(ret->at.sun_path + 1, address, length);
    ret->bytes = offsetof(struct sockaddr_un, sun_path) + (length ? 1 + length : 0);
    return OK;
}

static int unix_socket(void)
{
    return socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
}

static bool peer_of(int fd, struct ucred *ret)
{
    socklen_t bytes = sizeof *ret;
    return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret, &bytes);
}

static err check_user(int fd)
{
    struct ucred peer;
    if (!peer_of(fd, &peer) || peer.uid != geteuid())
        return fail(ERR_PEER, "belongs to another user");
    return OK;
}

void shm_greeting(struct shm_greeting *ret)
{
    *ret = (struct shm_greeting){.magic = GREETING_MAGIC,
                                 .version = PROTOCOL_VERSION,
                                 .slots = RING_SLOTS,
                                 .control_bytes = sizeof(struct shm_control)};
}

static err check_greeting(const struct passed *passed, int fd_count)
{
    struct shm_greeting expected;
    shm_greeting(&expected);
    if (passed->size != sizeof expected || memcmp(passed->bytes, &expected, sizeof expected))
        return fail(ERR_PROTOCOL, "greeted in an unknown way");
    if (passed->fd_count != fd_count)
        return fail(ERR_PROTOCOL, "passed %d descriptors, expected %d", passed->fd_count, fd_count);
    return OK;
}

/* Writing to anything but an eventfd could block or do harm. */
static err check_eventfd(int fd)
{
    char path[64], target[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0 || strcmp(target, "anon_inode:[eventfd]"))
        return fail(ERR_PROTOCOL, "passed something else than an eventfd");
    if (fcntl(fd, F_SETFL, O_NONBLOCK))
        return fail(ERR_PEER, "cannot use its eventfd: %s", strerror(errno));
    return OK;
}

static err greet(struct shm *shm, int control_fd)
{
    struct passed passed = {.size = sizeof(struct shm_greeting)};
    shm_greeting((struct shm_greeting *)passed.bytes);
    if (control_fd >= 0) passed.fds[passed.fd_count++] = control_fd;
    int wake_fd = -1;
    TRY(loop_wake_fd(shm->link.loop, &wake_fd));
    passed.fds[passed.fd_count++] = wake_fd;
    bool is_sent = false;
    TRY(pass_send(shm->fd, &passed, &is_sent));
    return is_sent ? OK : fail(ERR_PEER, "does not take a greeting");
}

/* Listening side: the memory and the eventfd are checked before anything is believed. */
static err answer_greeting(struct shm *shm, struct passed *passed)
{
    TRY(check_greeting(passed, 2));
    TRY(area_check(passed->fds[0], sizeof(struct shm_control)));
    TRY(check_eventfd(passed->fds[1]));
    void *control = NULL;
    TRY(area_map(passed->fds[0], sizeof(struct shm_control), true, &control));
    shm_use_control(shm, control);
    TRY(greet(shm, -1));
    shm->peer_wake_fd = passed->fds[1];
    passed->fds[1] = -1; /* kept */
    return OK;
}

/* Connecting side: the answer. */
static err take_answer(struct shm *shm, struct passed *passed)
{
    TRY(check_greeting(passed, 1));
    TRY(check_eventfd(passed->fds[0]));
    shm->peer_wake_fd = passed->fds[0];
    passed->fds[0] = -1; /* kept */
    return OK;
}

static bool finish_connecting(struct shm *shm)
{
    struct passed passed;
    err e = pass_receive(shm->fd, sizeof(struct shm_greeting), &passed);
    if (!e && passed.size == 0) return false;
    if (!e) {
        e = shm->link.is_active ? take_answer(shm, &passed) : answer_greeting(shm, &passed);
        pass_close(&passed);
    }
    if (e)
        link_end(&shm->link, e);
    else
        link_open(&shm->link);
    return shm->link.is_announced;
}

static bool shm_ready(void *context, uint32_t events)
{
    struct shm *shm = context;
    return shm->link.state == LINK_CONNECTING ? finish_connecting(shm) : shm_traffic_ready(shm);
}

static err attach(struct shm *shm)
{
    const struct loop_watcher watcher = {.fd = shm->fd,
                                         .events = EPOLLIN,
                                         .ready = shm_ready,
                                         .context = shm,
                                         .is_guest = shm->link.is_guest};
    return loop_attach(shm->link.loop, &watcher, &shm->link.watch);
}

static err new_link(const struct link_origin *origin, int fd, struct shm **ret)
{
    struct link *link = NULL;
    TRY(link_new(sizeof(struct shm), origin, &link));
    struct shm *shm = (struct shm *)link;
    shm->fd = fd;
    shm->peer_wake_fd = -1;
    *ret = shm;
    return OK;
}

/* ---- listening ---- */

static void arrived(struct listener *listener, int fd)
{
    const struct link_origin origin = {.transport = &transport_shm,
                                       .ops = &shm_ops,
                                       .loop = listener->loop,
                                       .events = &listener->events,
                                       .context = listener->context,
                                       .is_guest = listener->is_for_guests};
    struct ucred peer = {0};
    struct shm *shm;
    if (check_user(fd) || !peer_of(fd, &peer) || new_link(&origin, fd, &shm)) {
        close(fd);
        return;
    }
    snprintf(shm->link.peer_name, sizeof shm->link.peer_name, "%.200s (pid %d)", listener->address,
             (int)peer.pid);
    const err e = attach(shm);
    if (e) link_end(&shm->link, e);
}

/* Whoever listens on this name says so when asked for his identity. */
static err explain_listen(const char *address, const struct name *name, int reason)
{
    char owner[64] = "";
    struct ucred peer;
    const int fd = reason == EADDRINUSE ? unix_socket() : -1;
    if (fd >= 0 && !connect(fd, (const struct sockaddr *)&name->at, name->bytes) &&
        peer_of(fd, &peer)) {
        char process[16];
        snprintf(process, sizeof process, "%d", (int)peer.pid);
        process_text(process, owner, sizeof owner);
    }
    if (fd >= 0) close(fd);
    const bool is_used = reason == EADDRINUSE;
    return fail(is_used ? ERR_PEER : ERR_IO, "cannot listen on %s: %s%s%s", address,
                is_used ? "address already in use" : strerror(reason), owner[0] ? " by " : "",
                owner);
}

static err open_listening(const char *address, int *ret_fd)
{
    struct name name;
    TRY(make_name(address, &name));
    const int fd = unix_socket();
    if (fd >= 0 && !bind(fd, (const struct sockaddr *)&name.at, name.bytes) &&
        !listen(fd, BACKLOG)) {
        *ret_fd = fd;
        return OK;
    }
    const int reason = errno;
    if (fd >= 0) close(fd);
    return explain_listen(address, &name, reason);
}

static void real_name(int fd, char *ret)
{
    struct name name = {.bytes = sizeof name.at};
    if (getsockname(fd, (struct sockaddr *)&name.at, &name.bytes)) return;
    const int length = (int)name.bytes - (int)offsetof(struct sockaddr_un, sun_path) - 1;
    snprintf(ret, ADDRESS_MAX, "%.*s", length > 0 ? length : 0, name.at.sun_path + 1);
}

static err shm_listen(struct loop *loop, const char *address, const struct link_events *events,
                      void *context, char *ret_address, struct listener **ret)
{
    int fd = -1;
    TRY(open_listening(address, &fd));
    struct listener like = {.transport = &transport_shm,
                            .loop = loop,
                            .events = *events,
                            .context = context,
                            .arrived = arrived};
    real_name(fd, like.address);
    TRY(listener_open(&like, fd, ret));
    if (ret_address) memcpy(ret_address, like.address, ADDRESS_MAX);
    return OK;
}

/* ---- connecting ---- */

static err reach(struct shm *shm, const struct name *name)
{
    if (shm->fd < 0) return fail(ERR_PEER, "cannot open a socket: %s", strerror(errno));
    if (connect(shm->fd, (const struct sockaddr *)&name->at, name->bytes)) {
        if (errno == ECONNREFUSED) return fail(ERR_PEER, "refused");
        return fail(ERR_PEER, "cannot connect: %s",
                    errno == EAGAIN ? "too many wait already" : strerror(errno));
    }
    TRY(check_user(shm->fd));
    int control_fd = -1;
    void *control = NULL;
    TRY(area_new(sizeof(struct shm_control), &control_fd, &control));
    shm_use_control(shm, control);
    const err e = greet(shm, control_fd);
    close(control_fd);
    if (e) return e;
    return attach(shm);
}

static err shm_connect(struct loop *loop, const char *address, const struct link_events *events,
                       void *context, struct link **ret)
{
    struct name name;
    TRY(make_name(address, &name));
    const struct link_origin origin = {.transport = &transport_shm,
                                       .ops = &shm_ops,
                                       .loop = loop,
                                       .events = events,
                                       .context = context,
                                       .is_active = true};
    struct shm *shm;
    TRY(new_link(&origin, unix_socket(), &shm));
    link_set_peer_name(&shm->link, address);
    /* Whatever the reason, this host does not do shared memory with that peer: ERR_PEER, so that
     * the owner takes another transport. */
    if (reach(shm, &name)) link_end(&shm->link, ERR_PEER);
    *ret = &shm->link;
    return OK;
}

const struct transport transport_shm = {
    .name = "shm",
    .listen = shm_listen,
    .unlisten = listener_close,
    .connect = shm_connect,
};
