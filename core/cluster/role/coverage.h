/* coverage.h - which rows of the data are in the values: counted by ps/0, push by push as they are
 * applied.
 *
 * Each worker has its own rows of the stream that all share (core/data/source.h); its pushes bring
 * them in order, a fixed number each. An epoch is open until all workers that are counted on have
 * pushed beyond it. Then it is closed: rows that were not applied count as lost (gradients dropped,
 * or worker gone), those applied more than once as twice. Rows of a closed epoch that come later
 * (from a worker that is back) count as late, and no more as lost.
 *
 * Where ps/0 hands batches out from a queue (batch_queue.h) it knows which were used: an epoch is
 * open until all of its rows are.
 *
 * A push may span many small epochs. Then several of them are counted as one.
 */
#ifndef CORE_CLUSTER_ROLE_COVERAGE_H
#define CORE_CLUSTER_ROLE_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

struct ledger; /* role.h */
struct torn_pushes;
struct message;

/* Data that arrive during training have one epoch, which never ends. */
static const uint64_t DATA_ROWS_ENDLESS = UINT64_C(1) << 52;

/* Open at a time: a worker that is further ahead of another closes the oldest. */
enum { COVERAGE_EPOCHS = 32 };

enum { SHARE_WORKERS_MAX = 4096 }; /* the limit for numbers read from files and messages */

/* How workers share the rows. */
struct data_share {
    uint64_t rows;     /* of an epoch; 0: nothing is counted; DATA_ROWS_ENDLESS: no end */
    uint64_t batch;    /* rows of a gradient */
    uint64_t workers;  /* 1 .. SHARE_WORKERS_MAX */
    uint64_t replicas; /* gradients of a round, from which those of one push follow; 0: all workers
                          use one queue, and `workers` is 1 */
};
bool data_share_is_queue(const struct data_share *);
/* Rows of the epochs that are counted as one. */
uint64_t data_share_rows(const struct data_share *);
uint32_t data_share_gradients(const struct data_share *, int worker); /* in one push */
/* The rows of torn pushes: those that count as lost, though ps/0 has them, and, with a queue, which
 * gave the batch to another worker, those that other ps have twice. 0 if the share is not
 * countable. */
struct torn_rows {
    uint64_t lost, twice;
};
struct torn_rows data_share_torn(const struct data_share *, const struct torn_pushes *torn,
                                 int workers);
/* Whether rows can be counted: there are some, and the numbers are within limits. */
bool data_share_is_countable(const struct data_share *);

struct coverage {
    struct data_share share;
    uint64_t first;                    /* the oldest open epoch, or group counted as one */
    uint64_t applied[COVERAGE_EPOCHS]; /* rows of each from `first` on; of a queue: rows of the
                                          first that were left out when it began */
    uint64_t twice, lost, late;        /* rows of all closed epochs */
    uint64_t total;                    /* rows of all pushes that were applied */
};

/* Begins as if all pushes of these ledgers [workers] were applied; NULL: none were. */
void coverage_begin(struct coverage *, const struct data_share *, const struct ledger *);
/* The data are now shared in another way: closes open epochs; every worker begins with its first
 * push that lies wholly in the next epoch (endless data: in their only one). ret: [workers of the
 * new share] ledgers with the numbers of their last pushes before that, at `step`. ret_left: rows
 * that no worker has pushed and none will. Returns the epoch. */
uint64_t coverage_begin_anew(struct coverage *, const struct data_share *, uint64_t step,
                             struct ledger *ret, uint64_t *ret_left);
/* The same for data in memory with the same number of rows: all continue after the last row that
 * any worker had pushed. before: [workers of the old share]. ret_left: rows before it that nobody
 * has pushed. */
uint64_t coverage_go_on(struct coverage *, const struct data_share *, const struct ledger *before,
                        uint64_t step, struct ledger *ret, uint64_t *ret_left);
/* Whether every push brings the same rows with both. */
bool data_share_is_same(const struct data_share *, const struct data_share *);

/* Must the oldest epoch be closed before this push is applied? */
bool coverage_is_full(const struct coverage *, int worker, uint64_t push);
void coverage_apply(struct coverage *, int worker, uint64_t push);
/* Whether a worker after this many pushes has pushed all its rows of the oldest epoch. */
bool coverage_is_past(const struct coverage *, int worker, uint64_t pushes);

/* How many rows this many pushes bring; and the row of the stream at which the last one ends. */
uint64_t coverage_brought(const struct coverage *, int worker, uint64_t pushes);
uint64_t coverage_reached(const struct coverage *, int worker, uint64_t pushes);
/* Rows of open epochs before `reached` that are not in the values. */
uint64_t coverage_missing(const struct coverage *, uint64_t reached);

/* ---- of a queue ---- */

struct batch_queue; /* batch_queue.h */
/* A push of one batch. */
void coverage_apply_batch(struct coverage *);
/* Whether all rows of the oldest epoch were used. */
bool coverage_has_all(const struct coverage *, const struct batch_queue *);
/* As coverage_go_on, from shares to a queue or back. To a queue: rows that nobody has pushed are
 * handed out first. From a queue: unused batches before the last used one are left out. queue: the
 * old one. false: no memory, or too many open batches. */
bool coverage_to_queue(struct coverage *, const struct data_share *, const struct ledger *before,
                       struct batch_queue *ret);
uint64_t coverage_from_queue(struct coverage *, const struct data_share *,
                             const struct batch_queue *, uint64_t step, struct ledger *ret,
                             uint64_t *ret_left);

/* Counts of one epoch, or of several counted as one, and of the run so far; ps/0 sends them to the
 * chief. rows: of endless data those that were pushed. */
struct covered {
    uint64_t epoch, epochs; /* the first one, and how many */
    uint64_t rows, applied; /* of all these epochs */
    uint64_t twice, lost, late, total;
};
/* Counts of the oldest epoch. queue: if the share is one. */
struct covered coverage_of_oldest(const struct coverage *, const struct batch_queue *);
/* Counts of the open epochs up to the last one with rows; at least the oldest. */
struct covered coverage_of_open(const struct coverage *, const struct batch_queue *);
struct covered coverage_close(struct coverage *, const struct batch_queue *);

/* As a row of numbers, in the order of the struct: in SETUP and in checkpoints. */
enum { COVERAGE_NUMBERS = 9 + COVERAGE_EPOCHS };
void coverage_numbers(const struct coverage *, int64_t ret[COVERAGE_NUMBERS]);
/* false: not valid: a number is negative, or more rows than any stream has */
bool coverage_of(const int64_t numbers[COVERAGE_NUMBERS], struct coverage *ret);

/* To and from the body of COVERED, in the byte order of the wire. */
enum { COVERED_NUMBERS = 8 };
void covered_pack(const struct covered *, uint64_t ret_numbers[COVERED_NUMBERS]);
bool covered_unpack(const struct message *, struct covered *ret);

#endif
