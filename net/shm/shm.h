/* shm.h - a link within one host: headers in rings, payloads in windows, bodies over a socket.
 *
 * A side that sleeps is woken by a byte on a second socket, one end for each side: nothing that the
 * peer does to its end can make a send of this side block, and no link takes another's wake-up.
 *
 * shm.c makes the connection, link.c carries the messages. Order is that of the ring: a header
 * that announces a body is put first, and the taker continues to the next slot when the body is
 * there.
 */
#ifndef NET_SHM_SHM_H
#define NET_SHM_SHM_H

#include "net/link.h"
#include "net/stream/body.h"
#include "net/shm/ring.h"

struct shm_control {     /* the memory behind one link, made by the side that connects */
    struct ring ring[2]; /* from the connecting side, from the listening side */
};

/* Secret of each side, part of the listener's address, which only tasks of the job tell each other:
 * every user of the host can see the socket's name. */
enum { SHM_SECRET_BYTES = 16 };
enum { SHM_SAID_BY_CONNECTING, SHM_SAID_BY_LISTENING, SHM_SIDES };

/* First bytes on the socket, each way; the connecting side passes the control memory with them, the
 * listening side the peer's end of the wake socket. */
struct shm_greeting {
    uint32_t magic, version, slots, control_bytes;
    unsigned char secret[SHM_SECRET_BYTES];
};

struct shm {
    struct link link; /* first */
    int fd;           /* -1: none */
    int wake_fd;      /* this side's end of the wake socket */
    unsigned char secrets[SHM_SIDES][SHM_SECRET_BYTES];
    struct shm_control *control;
    struct ring_putter out;
    struct ring_taker in;
    struct parcel_queue queue;
    bool is_socket_broken;  /* no more can be sent; what came before is still delivered */
    struct message message; /* whose body is coming, or which waits for the owner */
    bool in_body;
    bool was_stopped; /* a message is complete but not delivered: the owner computes */
    size_t body_have;
    struct body body;
};

extern const struct link_ops shm_ops;

void shm_greeting(const unsigned char secret[SHM_SECRET_BYTES], struct shm_greeting *ret);
/* Splits "NAME/SECRETS"; without secrets they are zeros, which match no task. */
void shm_split(const char *address, char ret_name[ADDRESS_MAX],
               unsigned char ret_secrets[SHM_SIDES][SHM_SECRET_BYTES]);
void shm_use_control(struct shm *, struct shm_control *); /* owns it; initialises the rings */
bool shm_traffic_ready(struct shm *); /* the socket of an open link is readable or writable */
bool shm_wake_ready(void *shm, uint32_t events);

#endif
