/* body.h - room for the body of the message that comes next over a link.
 */
#ifndef NET_STREAM_BODY_H
#define NET_STREAM_BODY_H

#include <stddef.h>

#include "core/base/error.h"

enum { BODY_KEEP_BYTES = 64 << 10 };

struct body {
    unsigned char *at; /* grown to the largest body; given back beyond BODY_KEEP_BYTES */
    size_t capacity;
};

/* What lay there is lost. Call it with a length that has passed its check. ERR_MEMORY. */
err body_reserve(struct body *, size_t bytes);
/* While a message is delivered its body is the owner's, and the next one is read elsewhere. */
struct body body_lend(struct body *);
void body_return(struct body *, struct body lent);

#endif
