/* body.c - see body.h. */
#include "net/stream/body.h"

#include <stdlib.h>

err body_reserve(struct body *body, size_t bytes)
{
    if (bytes <= body->capacity) return OK;
    free(body->at);
    body->capacity = 0;
    body->at = malloc(bytes);
    if (!body->at) return fail(ERR_MEMORY, "no memory for a body of %zu bytes", bytes);
    body->capacity = bytes;
    return OK;
}

struct body body_lend(struct body *body)
{
    const struct body lent = *body;
    *body = (struct body){0};
    return lent;
}

void body_return(struct body *body, struct body lent)
{
    if (!body->at && lent.capacity <= BODY_KEEP_BYTES)
        *body = lent;
    else
        free(lent.at);
}
