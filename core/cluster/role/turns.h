/* turns.h - what decides the bits of asynchronous training: the order in which a ps took what the
 * workers pushed, and which of its values each push was computed from. */
#ifndef CORE_CLUSTER_ROLE_TURNS_H
#define CORE_CLUSTER_ROLE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

enum turn_kind {
    TURN_TAKEN = 1, /* a push became part of the values */
    TURN_DROPPED,   /* of ps/0: it was too old (train.max_staleness) */
    TURN_BAD,       /* it was not finite, and the job ended */
    TURN_OPEN,      /* the job ended before the push came here */
    TURN_BREAK,     /* what comes behind it does not follow from what is noted here */
    TURN_END,       /* the job ended */
    TURN_KINDS
};

#define TURN_NOTHING UINT64_MAX

struct turn {
    enum turn_kind kind;
    int worker;      /* TURN_END: the exit code */
    uint64_t values; /* updates that were in the values that it was computed from; TURN_NOTHING: any
                        do, since nothing comes of it */
    uint64_t rows;  /* likewise when its rows of tables were read; TURN_NOTHING: it had none here */
    bool asks_rows; /* they did not come with the values, on no ps: the worker asked for them */
    uint64_t batch; /* of ps/0: 1 + which one; 0: they are not handed out. TURN_END: 1: the ps has
                       found why; 2 + a worker: that has, or has told what another ps found */
};

/* Of one ps, in this order. */
struct turns {
    const struct turn *at; /* NULL: none are given */
    int64_t count;
};

#endif
