/* hostile.h - a side of an shm connection that is written by hand, for tests. */
#ifndef TESTS_NET_HOSTILE_H
#define TESTS_NET_HOSTILE_H

#include "tests/net/pair.h"

#include "net/shm/shm.h"

#include <sys/socket.h>
#include <sys/un.h>

struct hostile {
    int fd, wake_fd;
    struct shm_control *control;
    uint64_t put;
};

struct sockaddr_un abstract(const char *name, socklen_t *ret_bytes);
void greet(int fd, const int *fds, int fd_count);
void end_hostile(struct hostile *);

#endif
