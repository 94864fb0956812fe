/* stream.h - a link over a stream socket: the traffic of tcp, once connected.
 *
 * Sending: header and payload leave with one sendmsg from where they are; what does not fit waits
 * in the queue. Receiving: one readv takes the rest of a payload straight to its place (the window
 * or the body's buffer) and what follows to a small stage, from which headers are parsed. So a
 * small message costs one system call, and of a large one only the first STAGE_BYTES are copied.
 */
#ifndef NET_STREAM_H
#define NET_STREAM_H

#include <netdb.h>

#include "net/link.h"
#include "net/stream/body.h"

enum { STAGE_BYTES = 4096 };

struct stream {
    struct link link;                          /* first */
    int fd;                                    /* -1: none */
    struct tls *tls;                           /* NULL: what travels is not encrypted */
    struct addrinfo *addresses, *next_address; /* while connecting */
    struct parcel_queue queue;
    bool is_send_broken;    /* the peer takes no more; what it sent before is still read */
    struct message message; /* the one that is coming, once its header is there */
    bool in_payload;
    bool was_stopped;       /* messages that have come were not delivered yet */
    bool is_held;           /* was_stopped: the next one has no place yet */
    void *place;            /* of the next one, which may come */
    struct payload payload; /* what of it has not come yet: of a window, or of the body */
    struct body body;
    size_t stage_from, stage_to; /* unparsed bytes of the stage */
    unsigned char stage[STAGE_BYTES];
};

extern const struct link_ops stream_ops;

#endif
