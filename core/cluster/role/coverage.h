/* coverage.h - which rows of the data are in the values: counted by ps/0, push by push as they are
 * applied.
 *
 * Of the stream that all workers share (core/data/source.h) a worker has rows of its own; push
 * number n of a worker brings the n-th so many of them. An epoch is open until everybody who is
 * counted on has pushed beyond it. Then it is closed: rows that were not applied are lost (their
 * gradients were dropped, or their worker is gone), those that were applied more than once twice.
 * What comes of a closed epoch after all (of a worker that is back) is late, and lost no more.
 *
 * Where ps/0 hands batches out from a queue (batch_queue.h) it knows of each whether it was used:
 * an epoch is open until all of it is.
 *
 * A push may bring many small epochs. Then several of them are counted as if they were one.
 */
#ifndef CORE_CLUSTER_ROLE_COVERAGE_H
#define CORE_CLUSTER_ROLE_COVERAGE_H

#include <stdbool.h>
#include <stdint.h>

struct ledger; /* role.h */
struct torn_pushes;
struct message;

/* Data that come while they are used have one epoch, which is never over. */
static const uint64_t DATA_ROWS_ENDLESS = UINT64_C(1) << 52;

/* Open at a time: a worker that is farther ahead of another one closes the oldest. */
enum { COVERAGE_EPOCHS = 32 };

enum { SHARE_WORKERS_MAX = 4096 }; /* of a job, whatever a file or another task says */

/* How workers share the rows. */
struct data_share {
    uint64_t rows;     /* of an epoch; 0: nothing is counted; DATA_ROWS_ENDLESS: there is no end */
    uint64_t batch;    /* rows of a gradient */
    uint64_t workers;  /* 1 .. SHARE_WORKERS_MAX */
    uint64_t replicas; /* gradients of a round: what is summed into one push follows from them; 0:
                          all workers use one queue, and `workers` is 1 */
};
bool data_share_is_queue(const struct data_share *);
/* Those of as many epochs as are counted as one. */
uint64_t data_share_rows(const struct data_share *);
uint32_t data_share_gradients(const struct data_share *, int worker); /* in one push */
/* Of pushes that are in the values of some ps only: rows that count as lost, though ps/0 has them,
 * and of a queue, whose batch another worker was given then, rows that other ps have twice. None of
 * what cannot be counted. */
struct torn_rows {
    uint64_t lost, twice;
};
struct torn_rows data_share_torn(const struct data_share *, const struct torn_pushes *torn,
                                 int workers);
/* Can it be counted? Not of no rows, nor by more workers than a job has. */
bool data_share_is_countable(const struct data_share *);

struct coverage {
    struct data_share share;
    uint64_t first;                    /* the oldest open one: epoch, or so many as are one */
    uint64_t applied[COVERAGE_EPOCHS]; /* rows, of those from `first` on; of a queue: of the first,
                                          those that were left out when it began */
    uint64_t twice, lost, late;        /* rows, of all closed epochs */
    uint64_t total;                    /* rows of all pushes that were applied */
};

/* All pushes of these ledgers [workers] were applied; NULL: there were none. */
void coverage_begin(struct coverage *, const struct data_share *, const struct ledger *);
/* The data are shared in another way than before: open epochs are closed, and every worker begins
 * with its first push that lies wholly in the next epoch (of endless data: in their only one). ret:
 * [workers of the new share] the numbers of their last pushes before it, at `step`. ret_left: rows
 * that nobody has brought, and nobody will. Returns the epoch. */
uint64_t coverage_begin_anew(struct coverage *, const struct data_share *, uint64_t step,
                             struct ledger *ret, uint64_t *ret_left);
/* The same where rows lie in memory, and are as many as before: everybody continues behind the last
 * row that any worker before, [workers of the old share], had brought. ret_left: rows in front of
 * it that nobody has brought. */
uint64_t coverage_go_on(struct coverage *, const struct data_share *, const struct ledger *before,
                        uint64_t step, struct ledger *ret, uint64_t *ret_left);
/* Does every push bring the same rows? */
bool data_share_is_same(const struct data_share *, const struct data_share *);

/* Must the oldest epoch be closed before this push is applied? */
bool coverage_is_full(const struct coverage *, int worker, uint64_t push);
void coverage_apply(struct coverage *, int worker, uint64_t push);
/* Has a worker that has pushed so often nothing more to bring for the oldest epoch? */
bool coverage_is_past(const struct coverage *, int worker, uint64_t pushes);

/* How many rows so many pushes bring, and where in the stream the last one of them ends. */
uint64_t coverage_brought(const struct coverage *, int worker, uint64_t pushes);
uint64_t coverage_reached(const struct coverage *, int worker, uint64_t pushes);
/* Rows before `reached` that are not in the values, of what is open. */
uint64_t coverage_missing(const struct coverage *, uint64_t reached);

/* ---- of a queue ---- */

struct batch_queue; /* batch_queue.h */
/* A push of one batch. */
void coverage_apply_batch(struct coverage *);
/* Is nothing left of the oldest epoch? */
bool coverage_has_all(const struct coverage *, const struct batch_queue *);
/* As coverage_go_on, to a queue or from one: from shares, all that nobody has brought is handed out
 * first; to shares, what lies in front of the last batch that was used is left out. queue: of the
 * share that is a queue. false: no memory, or too much is open. */
bool coverage_to_queue(struct coverage *, const struct data_share *, const struct ledger *before,
                       struct batch_queue *ret);
uint64_t coverage_from_queue(struct coverage *, const struct data_share *,
                             const struct batch_queue *, uint64_t step, struct ledger *ret,
                             uint64_t *ret_left);

/* Of one epoch, or of several that are counted as one, and of the run so far; what ps/0 tells the
 * chief. Rows of one that is endless: those that pushes have brought. */
struct covered {
    uint64_t epoch, epochs; /* the first, and how many */
    uint64_t rows, applied; /* of all of them */
    uint64_t twice, lost, late, total;
};
/* The oldest. queue: of a share that is one. */
struct covered coverage_of_oldest(const struct coverage *, const struct batch_queue *);
/* All that are open up to the last one of which there are rows; the oldest at least. */
struct covered coverage_of_open(const struct coverage *, const struct batch_queue *);
struct covered coverage_close(struct coverage *, const struct batch_queue *);

/* As a row of numbers, in the order of the struct: in SETUP and in checkpoints. */
enum { COVERAGE_NUMBERS = 9 + COVERAGE_EPOCHS };
void coverage_numbers(const struct coverage *, int64_t ret[COVERAGE_NUMBERS]);
/* false: they are no coverage: a number is negative, or beyond all rows that are ever read */
bool coverage_of(const int64_t numbers[COVERAGE_NUMBERS], struct coverage *ret);

/* The same as a body in the byte order of the wire: COVERED. */
enum { COVERED_NUMBERS = 8 };
void covered_pack(const struct covered *, uint64_t ret_numbers[COVERED_NUMBERS]);
bool covered_unpack(const struct message *, struct covered *ret);

#endif
