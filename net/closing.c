/* closing.c - see closing.h. */
#include "net/closing.h"

#include "core/base/threads/thread.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static atomic_int closing_count;

static int domain_of(int fd)
{
    int domain = AF_UNSPEC;
    socklen_t bytes = sizeof domain;
    (void)getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes);
    return domain;
}

/* Shuts down reading first, so that a socket that is empty now stays empty. */
static bool is_empty(int fd)
{
    int unread = 1;
    return !shutdown(fd, SHUT_RD) && !ioctl(fd, FIONREAD, &unread) && unread == 0;
}

/* The same user is trusted: he could stop this process anyway. */
static bool is_of_another_user(int fd)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    if (domain_of(fd) != AF_UNIX) return false;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) || peer.uid != geteuid();
}

static void *close_there(void *context)
{
    close((int)(intptr_t)context);
    atomic_fetch_sub(&closing_count, 1);
    return NULL;
}

bool close_accepted(int fd)
{
    pthread_t thread;
    if (!is_of_another_user(fd) || is_empty(fd)) {
        close(fd);
        return true;
    }
    if (atomic_fetch_add(&closing_count, 1) < CLOSING_MAX &&
        !thread_start(&thread, close_there, (void *)(intptr_t)fd)) {
        pthread_detach(thread);
        return true;
    }
    atomic_fetch_sub(&closing_count, 1);
    return false;
}

/* A TCP socket is only closed: another process may share it, and no descriptors wait in it. */
void close_listening(int fd)
{
    const bool may_hold = domain_of(fd) == AF_UNIX && !shutdown(fd, SHUT_RD);
    for (int waiting; may_hold && (waiting = accept4(fd, NULL, NULL, SOCK_CLOEXEC)) >= 0;)
        if (!close_accepted(waiting)) return; /* others in the backlog may block as well */
    close(fd);
}
