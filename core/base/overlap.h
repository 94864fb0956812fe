/* overlap.h - which of a step's traffic continues while something is computed.
 *
 * Decided here and nowhere else, from what does not change within a step: a plan of the step for
 * each worker, of the rounds for each ps, and of the link for both of its ends. Plans are sets of
 * the bits below. They are made anew when a fact changes; everybody else reads the bits, and then
 * looks at what is so at the moment: which parts have come, which batch of a push it is.
 */
#ifndef CORE_BASE_OVERLAP_H
#define CORE_BASE_OVERLAP_H

#include <stdbool.h>
#include <stdint.h>

enum {
    /* Of a step. FORWARD: each node waits for its own values, which may still come; without it all
     * are there before. BACKWARD: gradients leave the replica while the backward pass continues;
     * WITHIN_NODE: those of one node, too. SPECULATE: the forward pass of the next step begins with
     * values that are not sure yet. */
    OVERLAP_FORWARD = 1 << 0,
    OVERLAP_BACKWARD = 1 << 1,
    OVERLAP_WITHIN_NODE = 1 << 2,
    OVERLAP_SPECULATE = 1 << 3,
    /* Of rounds. ADVANCE: the values of a part are updated, and leave, as soon as every worker has
     * brought it. WHOLE_PUSHES: gradients come in one piece, as a window is lent for each. */
    OVERLAP_ADVANCE = 1 << 4,
    OVERLAP_WHOLE_PUSHES = 1 << 5,
    /* Of a link. IN_PARTS: each part of values and gradients is a message, and overtakes what is
     * wanted later; bytes move in a thread while the worker computes. GRADIENTS: parts of them
     * leave before the push. VALUES: some come ahead of VALUES. REST: or behind them. */
    OVERLAP_IN_PARTS = 1 << 6,
    OVERLAP_GRADIENTS = 1 << 7,
    OVERLAP_VALUES = 1 << 8,
    OVERLAP_REST = 1 << 9,
    /* Of a step again. ONWARD: what has left a replica whose device has memory of its own travels
     * on while the backward pass continues. */
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
    bool is_mirrored;       /* the device computes from a copy of its own of what comes, */
    bool mirror_lets_leave; /* of which stretches can leave amid a pass */
    bool has_towers;        /* gradients are sums of several replicas */
    bool clips;             /* they are changed once all are there */
    bool is_looked_at;      /* hooks see values, or a loss that is not finite, before the push */
    bool sums_batches;      /* of several a push */
    bool has_rows;          /* the next batch's rows of tables come with the values */
    bool has_inlet;         /* the next batch goes to the device meanwhile */
    bool knows_next_batch;  /* before the next step is asked for */
};
unsigned overlap_of_step(const struct overlap_step *);

struct overlap_rounds {
    bool takes_all;    /* each is of every worker */
    bool lends;        /* there are fewer windows for gradients than workers */
    bool is_wanted;    /* some link is IN_PARTS */
    bool is_looked_at; /* by visitors, who see whole values */
    bool can_undo;     /* what has advanced can be taken back */
};
unsigned overlap_of_rounds(const struct overlap_rounds *);

struct overlap_link {
    enum parts_choice parts;
    bool shares_memory;
    bool is_near;    /* the same host: bytes take work, and no time beside */
    unsigned rounds; /* of the ps, at both ends: which says so with its values */
    bool is_sync;
    bool all_are_far; /* no worker of the ps is near */
};
unsigned overlap_of_link(const struct overlap_link *);

enum { OVERLAP_TEXT_MAX = 320 };
/* "parts in any order, parts of pushes", or "nothing" */
const char *overlap_text(unsigned plan, char ret[OVERLAP_TEXT_MAX]);

#endif
