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
    PROTOCOL_VERSION = 3,
    MESSAGE_HEADER_BYTES = 80,
    MESSAGE_BODY_MAX = 16 << 20,
    MESSAGE_MAGIC = 0x31745264
};

/* What every task may say. The roles give them their meaning: core/cluster/role/role.h */
enum message_type {
    MESSAGE_HELLO = 1, /* body: JSON of who I am; first on every connection */
    MESSAGE_WELCOME,   /* body: JSON of who I am */
    MESSAGE_REFUSED,   /* body: text; the connection ends after it */
    MESSAGE_STATE,  /* ps to worker, on every connection and whenever it changes; code: ps_state */
    MESSAGE_SETUP,  /* chief to ps; body: JSON of the ps' share, and what to restore it from */
    MESSAGE_READY,  /* ps to chief; code: ready_code; sequence: arrays that have come so far */
    MESSAGE_INIT,   /* chief to ps; code: array (0 values, 1 + k slot k); stretch: all of it */
    MESSAGE_SERVE,  /* chief to ps: everybody is ready, go */
    MESSAGE_JOIN,   /* worker to ps: I want values (not before `step`); sequence: of my last push;
                       code: JOIN_*; version: its number */
    MESSAGE_LEDGER, /* ps to worker, answer to JOIN: what has come of you, see struct ledger;
                       version: of the JOIN. On a new link it comes after the windows, and a
                       PUSH not before it */
    MESSAGE_VALUES, /* ps to worker; stretch: values; code: values_code */
    MESSAGE_PUSH,   /* worker to ps; stretch: the gradient of one step; code: gradients in it */
    MESSAGE_FINISHED, /* worker to ps: I have no ticket, and push no more */
    MESSAGE_SAVE, /* chief to ps/0: make a cut; to the others: make it at `step`, body: ledger */
    MESSAGE_CUT,  /* ps to chief: the state at `step` is copied; of ps/0 with its ledger as body */
    MESSAGE_RESUME, /* chief to ps/0: the cut is made, or given up */
    MESSAGE_SAVED,  /* ps to chief: the shard is written (ps/0: and RESUME has come); code 0, or an
                       exit code and body: text */
    MESSAGE_SHARD, /* ps to chief that share no folder; code: shard_file; body: bytes at `offset` */
    MESSAGE_STOP,  /* any to ps/0, ps to chief: end the job well; code and body of its verdict */
    MESSAGE_VERDICT, /* code and body: text; the job ends */
    MESSAGE_ASK,     /* a visitor to a ps; body: JSON and numbers (core/cluster/visit/body.h) */
    MESSAGE_ANSWER,  /* ps to the visitor; body: the same */
    MESSAGE_TRACE,   /* of a timeline; code: trace_code; step: its first
                        (core/cluster/task/trace/trace.h) */
    MESSAGE_TYPES
};

enum ps_state { PS_EMPTY, PS_READY, PS_SERVING };

enum ready_code {
    READY_WANTS, /* the next array, by INIT (none where the block is empty) */
    READY_RESTORED,
    READY_FAILED, /* to restore; body: text */
};

enum join_code {
    JOIN_PLAIN,
    JOIN_TAKES_BACK, /* what an earlier life pushed and no round has taken yet comes again */
};

enum values_code {
    VALUES_TICKET = 1,  /* one more step may be computed (ps/0 says so) */
    VALUES_DROPPED = 2, /* the gradient that this answers was too old and not applied */
    VALUES_FINAL = 4,   /* nobody will change them any more */
    VALUES_HELD = 8,    /* none yet, for a cut: only what became of the gradient */
};

enum trace_code {
    TRACE_PLAN,    /* chief to ps/0, ps/0 to workers; sequence: how many steps */
    TRACE_MARK,    /* worker to ps: its first step begins; sequence: its clock */
    TRACE_PUSHING, /* worker to ps: a push of `version` bytes comes next; sequence: its clock */
    TRACE_CLOCK,   /* ps to worker, answer to both; body: three times */
    TRACE_END,     /* worker to ps: its last step is over */
    TRACE_COLLECT, /* chief to ps: whoever has not ended is not waited for */
    TRACE_PART,    /* worker to ps/0, ps to chief; body: spans of the sender, or of worker `task` */
};

enum shard_file { SHARD_DATA, SHARD_INDEX };

struct message {
    uint32_t type;       /* enum message_type */
    uint32_t code;       /* see enum message_type; VERDICT, REFUSED, STOP, SAVED: an exit code */
    uint32_t task;       /* index of the sender in its job */
    uint32_t job;        /* enum job of the sender */
    uint64_t generation; /* names one life of the values: drawn by the chief whenever it initialises
                            or restores them. What belongs to another one is void */
    uint64_t sequence; /* PUSH: number in the worker's stream of pushes, from 1. (worker, sequence)
                          is applied at most once in a generation, in order */
    uint64_t step; /* global step (of the values; of the values that the gradient is meant for) */
    uint64_t version;        /* updates of the ps' block so far, in this generation */
    uint64_t offset, length; /* bytes of the window; length 0: none */
    uint32_t body_bytes;
    const void *body; /* valid during the call that delivers it; not terminated */
};

#endif
