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
    struct tls *tls;                           /* NULL: not encrypted */
    struct addrinfo *addresses, *next_address; /* while connecting */
    struct parcel_queue queue;
    bool is_send_broken;    /* no more can be sent; what the peer sent is still read */
    struct message message; /* the one being received, once its header is there */
    bool in_payload;
    bool was_stopped;       /* complete messages are left undelivered */
    bool is_held;           /* was_stopped because link_events.place gave no memory yet */
    void *place;            /* the memory for the next stretch */
    struct payload payload; /* where the rest of it goes: to a window or the body */
    struct body body;
    size_t stage_from, stage_to; /* unparsed bytes of the stage */
    unsigned char stage[STAGE_BYTES];
};

extern const struct link_ops stream_ops;

#endif
