/* pass.c - sendmsg and recvmsg with ancillary data. */
#include "net/shm/pass.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/link.h"

union control {
    struct cmsghdr header; /* for its alignment */
    /* Room for one more than is allowed, so that too many are noticed. */
    unsigned char bytes[CMSG_SPACE((PASS_FDS + 1) * sizeof(int))];
};

err pass_send(int socket, const struct passed *passed, bool *ret_sent)
{
    union control control = {0};
    struct iovec part = {(void *)passed->bytes, passed->size};
    const size_t fd_bytes = (size_t)passed->fd_count * sizeof(int);
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = CMSG_SPACE(fd_bytes)};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fd_bytes);
    memcpy(CMSG_DATA(rights), passed->fds, fd_bytes);
    const ssize_t sent = sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        return fail(ERR_PEER, "cannot pass memory: %s", strerror(errno));
    *ret_sent = sent == (ssize_t)passed->size;
    return OK;
}

static void take_rights(struct msghdr *message, struct passed *passed, bool *too_many)
{
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
        if (at->cmsg_level != SOL_SOCKET || at->cmsg_type != SCM_RIGHTS) continue;
        const size_t count = (at->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(at) + i * sizeof fd, sizeof fd);
            if (passed->fd_count < PASS_FDS) {
                passed->fds[passed->fd_count++] = fd;
                continue;
            }
            close(fd);
            *too_many = true;
        }
    }
}

err pass_receive(int socket, size_t size, struct passed *ret)
{
    assert(size <= PASS_BYTES_MAX);
    struct passed passed = {.fds = {-1, -1, -1}};
    union control control;
    struct iovec part = {passed.bytes, size};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = control.bytes,
                             .msg_controllen = sizeof control.bytes};
    const ssize_t got = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got == 0) return fail(ERR_PEER, "closed the connection");
    if (got < 0 && errno != EAGAIN && errno != EINTR)
        return fail(ERR_PEER, "lost: %s", strerror(errno));
    if (got > 0) {
        passed.size = (size_t)got;
        bool too_many = false;
        take_rights(&message, &passed, &too_many);
        if (too_many || message.msg_flags & MSG_CTRUNC) {
            pass_close(&passed);
            return too_many ? fail(ERR_PROTOCOL, "passed more than %d descriptors", PASS_FDS)
                            : link_fail_making(ERR_IO, "shared memory", EMFILE);
        }
    }
    *ret = passed;
    return OK;
}

void pass_close(struct passed *passed)
{
    for (int i = 0; i < passed->fd_count; i++)
        if (passed->fds[i] >= 0) close(passed->fds[i]);
    passed->fd_count = 0;
}
