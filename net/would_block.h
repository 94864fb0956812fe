/* would_block.h - what errno says of a socket that does not wait. */
#ifndef NET_WOULD_BLOCK_H
#define NET_WOULD_BLOCK_H

#include <errno.h>
#include <stdbool.h>

/* Nothing is wrong: it is full, or empty, or a signal came. */
static inline bool would_block(int reason)
{
    return reason == EAGAIN || reason == EWOULDBLOCK || reason == EINTR;
}

#endif
