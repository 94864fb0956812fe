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

struct sockaddr_un abstract(const char *address, socklen_t *ret_bytes);
/* With what this side of the pair is to say first. */
void secret_of(const struct pair *, int side, unsigned char ret[SHM_SECRET_BYTES]);
void greet(const struct pair *, int side, int fd, const int *fds, int fd_count);
void end_hostile(struct hostile *);

#endif
