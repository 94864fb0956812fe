/* shm.c - how two tasks on one host connect and authenticate each other.
 *
 * The listening side owns an abstract Unix socket. The connecting side makes the control memory and
 * passes it; the listening side checks and maps it, and answers with one end of a pair of sockets
 * by which both wake each other. Both check that the other belongs to the same user and knows the
 * secrets that tasks of the job exchange over an authenticated link. A connection that does not
 * greet within LINK_CONNECT_MAX_MS is dropped; the listener's owner never hears of it.
 */
#include "net/shm/shm.h"

#include "core/base/log.h"
#include "net/address.h"
#include "net/closing.h"
#include "net/shared_memory.h"
#include "net/loop_inside.h"
#include "net/shm/pass.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 1024, GREETING_MAGIC = 0x6d687364, FULL_MAGIC = 0x66687364 };

struct name {
    struct sockaddr_un at;
    socklen_t bytes;
};

/* An empty address: the system chooses a name. */
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

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

void shm_split(const char *address, char ret_name[ADDRESS_MAX],
               unsigned char ret_secrets[SHM_SIDES][SHM_SECRET_BYTES])
{
    const char *slash = strrchr(address, '/'), *at = slash ? slash + 1 : "";
    enum { BYTES = SHM_SIDES * SHM_SECRET_BYTES };
    memset(ret_secrets, 0, BYTES);
    snprintf(ret_name, ADDRESS_MAX, "%.*s", slash ? (int)(slash - address) : ADDRESS_MAX, address);
    for (int i = 0; i < BYTES && digit_of(at[0]) >= 0 && digit_of(at[1]) >= 0; i++, at += 2)
        ret_secrets[i / SHM_SECRET_BYTES][i % SHM_SECRET_BYTES] =
            (unsigned char)(digit_of(at[0]) << 4 | digit_of(at[1]));
}

static err draw_secrets(const char *name, unsigned char ret[SHM_SIDES][SHM_SECRET_BYTES])
{
    enum { BYTES = SHM_SIDES * SHM_SECRET_BYTES };
    return getrandom(ret, BYTES, 0) == BYTES
               ? OK
               : fail(ERR_IO, "no random numbers for %s: %s", name, strerror(errno));
}

static void write_address(const char *name, unsigned char secrets[SHM_SIDES][SHM_SECRET_BYTES],
                          char ret[ADDRESS_MAX])
{
    size_t used = (size_t)snprintf(ret, ADDRESS_MAX, "%s/", name);
    for (int i = 0; i < SHM_SIDES * SHM_SECRET_BYTES && used < ADDRESS_MAX; i++)
        used += (size_t)snprintf(ret + used, ADDRESS_MAX - used, "%02x",
                                 secrets[i / SHM_SECRET_BYTES][i % SHM_SECRET_BYTES]);
}

/* Compares in constant time. */
static bool is_secret(const unsigned char *said, const unsigned char *secret)
{
    unsigned char differs = 0;
    for (int i = 0; i < SHM_SECRET_BYTES; i++) differs |= said[i] ^ secret[i];
    return !differs;
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

void shm_greeting(const unsigned char secret[SHM_SECRET_BYTES], struct shm_greeting *ret)
{
    *ret = (struct shm_greeting){.magic = GREETING_MAGIC,
                                 .version = PROTOCOL_VERSION,
                                 .slots = RING_SLOTS,
                                 .control_bytes = sizeof(struct shm_control)};
    memcpy(ret->secret, secret, SHM_SECRET_BYTES);
}

/* Whether the answer says that the listening side has no free descriptor. */
static bool is_full(const struct passed *passed)
{
    struct shm_greeting said;
    if (passed->size != sizeof said) return false;
    memcpy(&said, passed->bytes, sizeof said);
    return said.magic == FULL_MAGIC;
}

static void say_full(int fd, const struct message *unused)
{
    const struct shm_greeting full = {.magic = FULL_MAGIC, .version = PROTOCOL_VERSION};
    (void)!send(fd, &full, sizeof full, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* The first descriptor is the one that has to come with it; others are closed unused. */
static err check_greeting(const struct shm *shm, const struct passed *passed)
{
    const int side = shm->link.is_active ? SHM_SAID_BY_LISTENING : SHM_SAID_BY_CONNECTING;
    const size_t open_bytes = offsetof(struct shm_greeting, secret);
    struct shm_greeting expected;
    shm_greeting(shm->secrets[side], &expected);
    if (is_full(passed)) return fail(ERR_PEER, "no descriptor is left there (ulimit -n)");
    if (passed->size != sizeof expected || memcmp(passed->bytes, &expected, open_bytes))
        return fail(ERR_PROTOCOL, "greeted in an unknown way");
    if (!is_secret(passed->bytes + open_bytes, expected.secret))
        return fail(ERR_PEER, "does not know what tasks of the job have told each other");
    return passed->fd_count > 0 ? OK : fail(ERR_PROTOCOL, "greeted without a descriptor");
}

static err greet(const struct shm *shm, int fd)
{
    const int side = shm->link.is_active ? SHM_SAID_BY_CONNECTING : SHM_SAID_BY_LISTENING;
    struct passed passed = {.size = sizeof(struct shm_greeting), .fds = {fd}, .fd_count = 1};
    struct shm_greeting said;
    shm_greeting(shm->secrets[side], &said);
    memcpy(passed.bytes, &said, sizeof said);
    bool is_sent = false;
    TRY(pass_send(shm->fd, &passed, &is_sent));
    return is_sent ? OK : fail(ERR_PEER, "does not take a greeting");
}

/* Takes ownership of the descriptor. */
static err wake_by(struct shm *shm, int fd)
{
    const struct loop_watcher watcher = {.fd = fd,
                                         .events = EPOLLIN,
                                         .ready = shm_wake_ready,
                                         .context = shm,
                                         .is_guest = shm->link.is_guest};
    shm->wake_fd = fd;
    return loop_attach(shm->link.loop, &watcher, &shm->link.wake_watch);
}

/* The two ends are separate open files: if the peer makes its end blocking, ours stays as it is. */
static err open_wake(struct shm *shm)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends))
        return link_fail_making(ERR_IO, "a connection", errno);
    err e = wake_by(shm, ends[0]);
    if (!e) e = greet(shm, ends[1]);
    close(ends[1]);
    return e;
}

/* Listening side: checks the memory before it uses anything in it. */
static err answer_greeting(struct shm *shm, const struct passed *passed)
{
    TRY(check_greeting(shm, passed));
    TRY(shared_memory_check(passed->fds[0], sizeof(struct shm_control)));
    void *control = NULL;
    TRY(shared_memory_map(passed->fds[0], sizeof(struct shm_control), true, &control));
    shm_use_control(shm, control);
    return open_wake(shm);
}

/* ERR_PROTOCOL unless a Unix stream socket: writing to anything else could block or do harm. */
static err check_socket_type(int fd)
{
    int domain = 0, type = 0;
    socklen_t bytes = sizeof domain;
    const bool is_socket = !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) &&
                           !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes);
    if (is_socket && domain == AF_UNIX && type == SOCK_STREAM) return OK;
    return fail(ERR_PROTOCOL, "passed something else than a socket to wake it by");
}

/* Connecting side: handles the answer. */
static err take_answer(struct shm *shm, struct passed *passed)
{
    TRY(check_greeting(shm, passed));
    TRY(check_socket_type(passed->fds[0]));
    const int fd = passed->fds[0];
    passed->fds[0] = -1; /* now shm's */
    return wake_by(shm, fd);
}

/* Tells the owner's turned_away(): the link was not announced yet. */
static void turn_away(struct shm *shm)
{
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", error_text());
    listener_turn_away(shm->link.listener, shm->fd);
    (void)fail(ERR_IO, "%s", why);
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
    if (e == ERR_IO && shm->link.listener) turn_away(shm);
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
    shm->wake_fd = -1;
    *ret = shm;
    return OK;
}

/* ---- listening ---- */

/* Closes a connection that is another user's, or for which there is no memory. If too many such
 * closes block, stops listening. */
static void turn_down(struct listener *listener, int fd)
{
    if (close_accepted(fd)) return;
    listener_stop(listener);
    log_line(
        LOG_WARNING,
        "another user of this host keeps connections to %s from being closed: no more are taken "
        "there, and new peers use TCP",
        listener->address);
}

static void arrived(struct listener *listener, int fd)
{
    const struct link_origin origin = {.transport = &transport_shm,
                                       .ops = &shm_ops,
                                       .loop = listener->loop,
                                       .events = &listener->events,
                                       .context = listener->context,
                                       .listener = listener,
                                       .is_guest = listener->is_for_guests};
    struct ucred peer = {0};
    struct shm *shm;
    if (check_user(fd) || !peer_of(fd, &peer) || new_link(&origin, fd, &shm)) {
        turn_down(listener, fd);
        return;
    }
    memcpy(shm->secrets, listener->secrets, sizeof shm->secrets);
    snprintf(shm->link.peer_name, sizeof shm->link.peer_name, "%.200s (pid %d)", listener->address,
             (int)peer.pid);
    const err e = attach(shm);
    if (e) link_end(&shm->link, e);
}

/* Finds out who listens on this name by the peer credentials of a connection. */
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
    if (fd >= 0) (void)close_accepted(fd);
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
    unsigned char secrets[SHM_SIDES][SHM_SECRET_BYTES];
    char name[ADDRESS_MAX], said[ADDRESS_MAX];
    const bool are_drawn = !strchr(address, '/'); /* else an earlier listener's, with secrets */
    shm_split(address, name, secrets);
    TRY(open_listening(name, &fd));
    struct listener like = {.transport = &transport_shm,
                            .loop = loop,
                            .events = *events,
                            .context = context,
                            .arrived = arrived,
                            .say_last = say_full};
    real_name(fd, like.address);
    const err e = are_drawn ? draw_secrets(like.address, secrets) : OK;
    if (e) {
        close(fd);
        return e;
    }
    write_address(like.address, secrets, said);
    memcpy(like.secrets, secrets, sizeof secrets);
    TRY(listener_open(&like, fd, ret));
    if (ret_address) memcpy(ret_address, said, sizeof said);
    return OK;
}

/* ---- connecting ---- */

static err reach(struct shm *shm, const struct name *name)
{
    if (shm->fd < 0) return link_fail_making(ERR_PEER, "a connection", errno);
    if (connect(shm->fd, (const struct sockaddr *)&name->at, name->bytes)) {
        if (errno == ECONNREFUSED) return fail(ERR_PEER, "refused");
        return fail(ERR_PEER, "cannot connect: %s",
                    errno == EAGAIN ? "too many wait already" : strerror(errno));
    }
    TRY(check_user(shm->fd));
    int control_fd = -1;
    void *control = NULL;
    TRY(shared_memory_new(sizeof(struct shm_control), &control_fd, &control));
    shm_use_control(shm, control);
    const err e = greet(shm, control_fd);
    close(control_fd);
    if (e) return e;
    return attach(shm);
}

static err shm_connect(struct loop *loop, const char *address, const struct link_events *events,
                       void *context, struct link **ret)
{
    unsigned char secrets[SHM_SIDES][SHM_SECRET_BYTES];
    char text[ADDRESS_MAX];
    struct name name;
    shm_split(address, text, secrets);
    TRY(make_name(text, &name));
    const struct link_origin origin = {.transport = &transport_shm,
                                       .ops = &shm_ops,
                                       .loop = loop,
                                       .events = events,
                                       .context = context,
                                       .is_active = true};
    struct shm *shm;
    TRY(new_link(&origin, -1, &shm));
    shm->fd = unix_socket();
    memcpy(shm->secrets, secrets, sizeof secrets);
    link_set_peer_name(&shm->link, text);
    /* Whatever the reason, shared memory does not work with that peer: ERR_PEER, so that the owner
     * tries another transport. */
    if (reach(shm, &name)) link_end(&shm->link, ERR_PEER);
    *ret = &shm->link;
    return OK;
}

const struct transport transport_shm = {
    .name = "shm",
    .what = "shared memory",
    .reach = TRANSPORT_WITHIN_HOST,
    .listen = shm_listen,
    .connect = shm_connect,
};
