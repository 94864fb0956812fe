/* aim.h - blows: faults that hit a task just as a message of some kind arrives at it, or leaves it.
 * Messages are recognized in the bytes of connections (net/wire.h). */
#ifndef TESTS_WORLD_AIM_H
#define TESTS_WORLD_AIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct process;
struct socket;

enum { BLOWS_MOST = 3 };

enum blow_kind {
    BLOW_KILL,
    BLOW_STAND, /* SIGSTOP, and SIGCONT later */
    BLOW_ASK,   /* SIGTERM */
    BLOW_RESET, /* the connection */
    BLOW_HALF,  /* only the sender notices; the other side keeps the dead connection */
    BLOW_DELAY, /* nothing more arrives on it, for a while */
    BLOW_KINDS
};

/* The n-th message of a kind. */
struct blow {
    enum blow_kind kind;
    int message, nth;
    bool is_at_sender; /* the task that is struck */
    bool is_after;     /* after the receiver has read it; else before */
    uint64_t later_ns; /* is_after: so long ago */
    uint64_t lasts_ns;
    int seen;
    bool has_fallen;
};

void blows_draw(struct blow *, int *ret_count, int only); /* only: type of the message; 0: any */
void blow_print(const struct blow *, FILE *);
int blow_message(const char *name); /* 0: no such message */

/* Whom these are for from now on. strike: is told of all that fall, and kills, stops or asks. */
void aim(struct blow *, int count, void (*strike)(struct blow *, struct process *));
/* The bytes are about to arrive; how much later they do. true: the connection is gone. */
bool aim_at_bytes(struct socket *from, const char *bytes, size_t count, uint64_t *ret_later_ns);
void aim_was_read(struct socket *reader);
/* Messages of the kind that have passed, in all clusters */
uint64_t aim_passed(int message);

#endif
