/* turns.h - what determines the result of asynchronous training bit by bit: the order in which a ps
 * applied pushes, and from which of its values each was computed. */
#ifndef CORE_CLUSTER_ROLE_TURNS_H
#define CORE_CLUSTER_ROLE_TURNS_H

#include <stdbool.h>
#include <stdint.h>

enum turn_kind {
    TURN_TAKEN = 1, /* a push became part of the values */
    TURN_DROPPED,   /* on ps/0: too stale (train.max_staleness) */
    TURN_BAD,       /* not finite: the job ended */
    TURN_OPEN,      /* the job ended before the push came here */
    TURN_BREAK,     /* later turns do not follow from the recorded ones */
    TURN_END,       /* the job ended */
    TURN_KINDS
};

#define TURN_NOTHING UINT64_MAX

struct turn {
    enum turn_kind kind;
    int worker;      /* TURN_END: the exit code */
    uint64_t values; /* updates in the values that it was computed from; TURN_NOTHING: any, it is
                        not used */
    uint64_t rows;   /* likewise for its rows of tables; TURN_NOTHING: none here */
    bool asks_rows;  /* on no ps did rows come with the values: the worker requested them */
    uint64_t batch;  /* on ps/0: 1 + the batch; 0: no queue. TURN_END, who told the cause: 1: this
                        ps; 2 + w: worker w, perhaps for another ps */
};

/* The turns of one ps, in order. */
struct turns {
    const struct turn *at; /* NULL: not a replay */
    int64_t count;
};

#endif
