/* would_block.h - tells "not now" from errors of non-blocking sockets. */
#ifndef NET_WOULD_BLOCK_H
#define NET_WOULD_BLOCK_H

#include <errno.h>
#include <stdbool.h>

/* Not an error: the socket is full or empty, or a signal came. */
static inline bool would_block(int reason)
{
    return reason == EAGAIN || reason == EWOULDBLOCK || reason == EINTR;
}

#endif
