/* model.h - what variables, gradients and windows are in the simulated cluster.
 *
 * Nothing is computed. A state of a ps is a node of a tree: what was applied, to which state. Its
 * hash stands for the bits of all variables, a gradient's hash for the bits that come of one batch
 * and of the values that its worker saw. Same bits is same hash.
 */
#ifndef TESTS_SIMULATE_MODEL_H
#define TESTS_SIMULATE_MODEL_H

#include <stdbool.h>
#include <stdint.h>

enum {
    HOMES_MAX = 4,
    PS_MAX = 5, /* three homes and two that follow them (core/base/replicas.h) */
    WORKERS_MAX = 7,
    PIECES = 4,             /* of a block, which come and go one by one */
    PIECE_FLOATS = 4 << 10, /* a part of it, as the roles cut it */
    ROWS_AT = PIECES,       /* where rows of tables stand in a window, behind the block's pieces */
    WINDOW_PIECES,
    NOTHING = -1
};

struct node {
    int parent; /* index of a node; NOTHING: these are initial values */
    int ps;     /* whose part it is: the home of who has it */
    uint64_t generation, step, hash;
    int updates; /* in the whole lineage */
    /* of each worker, in the whole lineage: the number of its last push that was applied, and a
     * hash over the numbers of all of them */
    uint64_t sequences[WORKERS_MAX], sets[WORKERS_MAX];
    /* numbers below the last one that were never applied here, and pushes that were dropped: as
     * many must the former be at most, or a batch was lost */
    uint64_t missing[WORKERS_MAX], dropped[WORKERS_MAX];
    uint64_t
        used; /* of the last update, of one gradient: 1 + the batch of the data, 0: none is said */
    bool has_everybody; /* every update since the first brought a gradient of every worker */
};

enum content_kind {
    CONTENT_NONE,
    CONTENT_WRITING, /* a step is being computed into it */
    CONTENT_GRADIENT,
    CONTENT_ARRAY, /* initial or restored values, on their way to a ps */
    CONTENT_TORN,  /* changed while it was read */
};

/* What stands in a gradient window. */
struct content {
    enum content_kind kind;
    int worker;
    uint64_t generation;
    uint64_t batch; /* GRADIENT: of the worker's stream, from 0 */
    uint64_t data;  /* GRADIENT: 1 + the batch of the data, where these are handed out; 0: else */
    uint64_t step;  /* GRADIENT: global step of the values that it comes from */
    uint64_t hash;
    bool is_torn;    /* GRADIENT: values changed while it was computed */
    bool is_mixed;   /* GRADIENT: of values of several steps */
    int node, array; /* ARRAY: of which state; NOTHING: initial values */
    uint64_t wanted; /* of rows: 1 + the batch whose rows are to come next; 0: none */
};

/* What a ps brings of rows. */
struct row_back {
    uint64_t wanted; /* as it was asked; 0: nothing has come */
    int node, worker;
};

/* Memory that a ps shares with a worker. */
struct windows {
    struct content gradient[WINDOW_PIECES];
    struct row_back back;
    int copy; /* node that the worker sees, where it has a copy of its own */
};

struct nodes {
    struct node *at;
    int count, capacity;
};

void nodes_free(struct nodes *);
/* Values of a ps at the start of a generation: initial ones, or those of `parent`. */
int nodes_begin(struct nodes *, int parent, int ps, uint64_t generation);
/* One update. */
struct update {
    const struct content *const *gradients; /* [count], in worker order */
    int count, workers;
    bool is_late; /* of an earlier step, which stays where it is */
};
int nodes_apply(struct nodes *, int parent, const struct update *);
uint64_t nodes_hash(const struct nodes *, int parent, const struct update *); /* of what comes */
int nodes_leave_out(struct nodes *, int parent, uint64_t step); /* the rounds until this step */

uint64_t gradient_hash(int worker, uint64_t batch, uint64_t seen);
uint64_t mix(uint64_t a, uint64_t b);

/* Of a run where every round has all workers and nothing goes wrong: the hash of each home that has
 * variables after `steps` rounds. */
struct undisturbed {
    int homes, workers;
    const bool *has_variables; /* [homes] */
    uint64_t steps;
};
void undisturbed_hashes(const struct undisturbed *, uint64_t ret_hashes[HOMES_MAX]);

#endif
