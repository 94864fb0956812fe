/* body.h - a reusable buffer for the body of the next message of a link.
 */
#ifndef NET_STREAM_BODY_H
#define NET_STREAM_BODY_H

#include <stddef.h>

#include "core/base/error.h"

enum { BODY_KEEP_BYTES = 64 << 10 };

struct body {
    unsigned char *at; /* grows to the largest body; freed beyond BODY_KEEP_BYTES */
    size_t capacity;
};

/* The old content is lost. The length must have been checked. ERR_MEMORY. */
err body_reserve(struct body *, size_t bytes);
/* Moves the buffer out while its message is delivered; the next body gets another one. */
struct body body_lend(struct body *);
void body_return(struct body *, struct body lent);

#endif
