/* pass.h - sends a few bytes and descriptors over a Unix socket (SCM_RIGHTS). */
#ifndef NET_SHM_PASS_H
#define NET_SHM_PASS_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"

enum { PASS_BYTES_MAX = 64, PASS_FDS = 3 };

struct passed {
    unsigned char bytes[PASS_BYTES_MAX];
    size_t size; /* in bytes; 0: nothing has come yet */
    int fds[PASS_FDS], fd_count;
};

/* Sends all or nothing; ret_sent false: the socket is full. ERR_PEER: it is broken. */
err pass_send(int socket, const struct passed *, bool *ret_sent);

/* Takes up to size bytes without waiting. The descriptors are the caller's. ERR_PEER: the peer has
 * gone; ERR_PROTOCOL: it passed more descriptors than PASS_FDS; ERR_IO: this process
 * reached its limit of descriptors; what came is lost. */
err pass_receive(int socket, size_t size, struct passed *ret);
void pass_close(struct passed *); /* closes the descriptors; those that are -1 are skipped */

#endif
