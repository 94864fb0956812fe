/* message.h - what tasks say to each other.
 *
 * A message is a small header, and with it either a body (a few bytes of text or numbers) or a
 * stretch of a window. A window is memory of the sender that the receiver sees as memory of its
 * own: over TCP the stretch is carried into the receiver's buffer before the message is delivered,
 * within one host both sides map the same pages and nothing moves. Payloads are therefore never
 * serialised and never copied on the way.
 *
 * On the wire: MESSAGE_HEADER_BYTES little-endian bytes, then the body or the stretch.
 */
#ifndef NET_MESSAGE_H
#define NET_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

enum {
    PROTOCOL_VERSION = 1,
    MESSAGE_HEADER_BYTES = 80,
    MESSAGE_BODY_MAX = 16 << 20,
    MESSAGE_MAGIC = 0x31745264
};

/* What every task may say. The roles give them their meaning: core/cluster/role.h */
enum message_type {
    MESSAGE_HELLO = 1, /* body: JSON of who I am; first on every connection */
    MESSAGE_WELCOME,   /* body: JSON of who I am and my state */
    MESSAGE_REFUSED,   /* body: text; the connection ends after it */
    MESSAGE_SETUP,     /* chief to ps; body: JSON of the ps' share */
    MESSAGE_READY,     /* ps to chief: set up, windows shared */
    MESSAGE_INIT,      /* chief to ps; stretch: initial values */
    MESSAGE_JOIN,      /* worker to ps: I want values and a ticket */
    MESSAGE_VALUES, /* ps to worker; stretch: values; with or without a ticket for one more step */
    MESSAGE_PUSH,   /* worker to ps; stretch: the gradient of one step */
    MESSAGE_FINISHED, /* worker to ps: I push no more */
    MESSAGE_VERDICT,  /* code and body: text; the job ends */
    MESSAGE_TYPES
};

enum values_code {                    /* bits */
                   VALUES_TICKET = 1, /* one more step may be computed (ps/0 says so) */
                   VALUES_DROPPED =
                       2, /* the gradient that this answers was too old and not applied */
};

struct message {
    uint32_t type; /* enum message_type */
    uint32_t
        code; /* VERDICT, REFUSED: exit code; VALUES: enum values_code; PUSH: gradients in it */
    uint32_t task;        /* index of the sender in its job */
    uint32_t job;         /* enum job of the sender */
    uint64_t incarnation; /* of the sender: drawn at start, names one life of a task */
    uint64_t sequence; /* of the sender's pushes to this ps, from 1: (worker, incarnation, sequence)
                          is applied once */
    uint64_t
        step; /* global step (of the values; of the values that the gradient was computed from) */
    uint64_t version;        /* updates of the ps' block so far */
    uint64_t offset, length; /* bytes of the window; length 0: none */
    uint32_t body_bytes;
    const void *body; /* valid during the call that delivers it; not terminated */
};

#endif
