/* overlap.h - which traffic of a step overlaps with computing.
 *
 * Decided here and nowhere else, from facts that do not change within a step: a plan of the step
 * for each worker, of the rounds for each ps, and of the link for both of its ends. Plans are sets
 * of the bits below, computed again when a fact changes; other code reads the bits, and then checks
 * the state of the moment: which parts have come, which batch of a push it is.
 */
#ifndef CORE_BASE_OVERLAP_H
#define CORE_BASE_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Of a step. FORWARD: each node waits only for its own values; without it all values have come
     * before. BACKWARD: gradients leave the replica while the backward pass continues; WITHIN_NODE:
     * those of one node, too. SPECULATE: the forward pass of the next step begins with values that
     * may still be replaced. */
    OVERLAP_FORWARD = 1 << 0,
    OVERLAP_BACKWARD = 1 << 1,
    OVERLAP_WITHIN_NODE = 1 << 2,
    OVERLAP_SPECULATE = 1 << 3,
    /* Of rounds. ADVANCE: the values of a part are updated and sent as soon as every worker's
     * gradients for it have come. WHOLE_PUSHES: gradients come in one piece, as a window is lent
     * for each push. */
    OVERLAP_ADVANCE = 1 << 4,
    OVERLAP_WHOLE_PUSHES = 1 << 5,
    /* Of a link. IN_PARTS: each part of values and gradients is a message, and overtakes parts that
     * are needed later; bytes move in a thread while the worker computes. GRADIENTS: parts of them
     * leave before PUSH. VALUES: some come before the message VALUES. REST: or after it. */
    OVERLAP_IN_PARTS = 1 << 6,
    OVERLAP_GRADIENTS = 1 << 7,
    OVERLAP_VALUES = 1 << 8,
    OVERLAP_REST = 1 << 9,
    /* Of a step again. ONWARD: gradients copied from a device with memory of its own are sent on
     * while the backward pass continues. */
    OVERLAP_ONWARD = 1 << 10,
    OVERLAP_BITS = 11,
};

/* When parts travel by themselves (--parts) */
enum parts_choice {
    PARTS_AUTO,   /* over links to other hosts */
    PARTS_ALWAYS, /* over every link that carries bytes */
    PARTS_NEVER,
};

struct overlap_step {
    bool is_sync;
    bool is_alone; /* a single process: nothing travels */
    enum parts_choice parts;
    bool is_mirrored;       /* the device computes from a copy of its own of the values, */
    bool mirror_lets_leave; /* of which stretches can be copied back during a pass */
    bool has_towers;        /* gradients are sums of several replicas */
    bool clips;             /* gradients are scaled once all are there */
    bool is_looked_at;      /* hooks see values, or a loss that is not finite, before the push */
    bool sums_batches;      /* a push is the sum of several batches */
    bool has_rows;          /* the next batch's rows of tables come with the values */
    bool has_inlet;         /* the next batch is copied to the device meanwhile */
    bool knows_next_batch;  /* before the next step is requested */
};
unsigned overlap_of_step(const struct overlap_step *);

struct overlap_rounds {
    bool takes_all;    /* each round needs every worker */
    bool lends;        /* there are fewer windows for gradients than workers */
    bool is_wanted;    /* some link is IN_PARTS */
    bool is_looked_at; /* visitors read the values, and must see them whole */
    bool can_undo;     /* an update by ADVANCE can be undone */
};
unsigned overlap_of_rounds(const struct overlap_rounds *);

struct overlap_link {
    enum parts_choice parts;
    bool shares_memory;
    bool is_near;    /* the same host: moving bytes takes CPU time, and no time of a network */
    unsigned rounds; /* the plan of the ps, at both ends: it comes with the values */
    bool is_sync;
    bool all_are_far; /* no worker of the ps is near */
};
unsigned overlap_of_link(const struct overlap_link *);

enum { OVERLAP_TEXT_MAX = 320 };
/* "parts in any order, parts of pushes", or "nothing" */
const char *overlap_text(unsigned plan, char ret[OVERLAP_TEXT_MAX]);

#endif
