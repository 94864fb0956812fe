/* parcel_queue.h - a link's queue of outgoing messages, in order, except that some overtake others
 * (message_urgency).
 *
 * A parcel is a packed header and its payload. Its payload is borrowed while it is on the
 * sender's stack; once queued, a body is a copy that the queue owns and a stretch is still the
 * sender's window. The array of parcels grows to what a link needed once and stays, so that
 * queueing stretches allocates nothing in a steady state.
 */
#ifndef NET_PARCEL_QUEUE_H
#define NET_PARCEL_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "core/base/error.h"
#include "net/message.h"

struct patches;

struct parcel {
    unsigned char header[MESSAGE_HEADER_BYTES];
    const void *payload;
    size_t payload_bytes;
    /* For a stretch: its offset in the window, and the window's patches */
    uint64_t offset;
    const struct patches *patches;
    bool is_body;         /* else a stretch, which is never copied */
    bool carries_windows; /* shm: descriptors of the link's windows are sent with the payload */
    size_t sent;          /* bytes of header and payload that have left */
    uint64_t urgency;     /* it overtakes parcels before it that yield and are less urgent */
    bool yields;
};

struct parcel_queue {
    struct parcel *at; /* circular */
    size_t first, count, capacity;
    size_t body_bytes; /* of queued bodies, which are copies */
};

/* Inserts it by urgency; copies a body. ERR_PEER beyond LINK_QUEUE_MAX parcels or
 * MESSAGE_BODY_MAX body bytes. */
err parcel_queue_add(struct parcel_queue *, const struct parcel *);
struct parcel *parcel_queue_at(struct parcel_queue *,
                               size_t index); /* 0 is the oldest; index < count */
struct parcel
parcel_queue_take(struct parcel_queue *);      /* removes the oldest; its copy is the caller's */
void parcel_queue_pop(struct parcel_queue *);  /* removes the oldest and frees its copy */
void parcel_queue_free(struct parcel_queue *); /* leaves an empty queue */
/* Bytes not sent yet; with_stretches: including stretches, where these are sent at all. */
size_t parcel_queue_bytes(const struct parcel_queue *, bool with_stretches);

size_t parcel_bytes(const struct parcel *); /* header and payload */
void parcel_free(struct parcel *);          /* one that was taken */

#endif
