/* batch_queue.h - which worker computes which batch of asynchronous training: ps/0 hands them out
 * from one queue, so that each is used once, by whichever worker is free.
 *
 * Batch b of the stream is its rows b B .. b B + B - 1. A worker has a plan: the batches of its
 * next pushes, so that it can prefetch them; whole stretches, if consecutive batches are read at
 * once. The first batch is committed while a ticket is out for it; the others can be reassigned at
 * any time, as the worker begins none before ps/0 has answered. A push takes the first one. When a
 * worker is evicted, the others go back to the queue; the committed one stays with its ticket
 * (ps_role.h, "Who decides").
 */
#ifndef CORE_CLUSTER_ROLE_BATCH_QUEUE_H
#define CORE_CLUSTER_ROLE_BATCH_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

struct batch_range {
    uint64_t begin, end;
};

enum {
    PLAN_RANGES_MAX = 4,
    PLAN_BATCHES_MAX = 64, /* the most that a worker prefetches (core/data/source.h) */
    STRETCH_BATCHES_MAX = 1 << 28,
};

struct batch_plan {
    struct batch_range at[PLAN_RANGES_MAX]; /* none is empty */
    int count;
    uint64_t last;     /* 1 + the batch of the last push; 0: none, or not known */
    uint64_t lost;     /* 1 + the committed batch that was given to another worker; 0: none */
    uint64_t again;    /* 1 + a batch that precedes `at` and was used already; 0: none */
    bool is_committed; /* the first batch is */
    bool is_told;      /* the worker knows this plan */
};

struct batch_queue {
    uint64_t front;           /* batches from here on have never been planned */
    struct batch_range *back; /* [back_count] before the front, in no plan and not used; sorted, not
                                 adjacent */
    int back_count, back_capacity;
    struct batch_plan *plans; /* [workers] */
    bool has_end; /* the number of batches is known: `end`, for data that arrived during training */
    uint64_t end;
    int workers; /* 0: the queue is closed */
    int ahead;   /* batches of a plan, at most; of stretches: one, and a part of the next */
    int stretch; /* batches of a stretch, which begins at a multiple of this; 0: none */
};

/* Nothing has been used. ahead: 1 .. PLAN_BATCHES_MAX, and no stretches. false: no memory. */
bool batch_queue_open(struct batch_queue *, int workers, int ahead);
/* From now on plans are one stretch, and the next before that is used up. At most
 * STRETCH_BATCHES_MAX. */
void batch_queue_hand_out_stretches(struct batch_queue *, int stretch);
void batch_queue_free(struct batch_queue *); /* a zeroed one is fine */

uint64_t batch_queue_open_batches(const struct batch_queue *); /* before the front, not used yet */
/* The first batch that is not used yet. */
uint64_t batch_queue_oldest(const struct batch_queue *);
/* The batch after the last used one: all from it on are open. */
uint64_t batch_queue_reached(const struct batch_queue *);
/* How many rows of the stream from `begin` to `end` lie before the front and were used. batch: rows
 * of one. */
uint64_t batch_queue_used(const struct batch_queue *, uint64_t batch, uint64_t begin, uint64_t end);

/* Fills up the worker's plan if half of it or less is left, with no more than `room` batches from
 * the front on. false: the plan is empty and nothing is left for it. */
bool batch_queue_plan(struct batch_queue *, int worker, uint64_t room);
/* A push of the worker has come: returns its batch. The plan must not be empty. */
uint64_t batch_queue_take(struct batch_queue *, int worker);
void batch_queue_put_back(struct batch_queue *, uint64_t batch); /* taken, but dropped */
bool batch_queue_has_next(const struct batch_queue *, int worker);
/* Returns its plan to the queue, except a committed batch. */
void batch_queue_give_back(struct batch_queue *, int worker);
/* Returns all of it, because the worker's ticket is another worker's now. */
void batch_queue_lose(struct batch_queue *, int worker);

/* There are `end` batches and no more; later calls have no effect. All plans go back to the queue,
 * except committed batches. */
void batch_queue_set_end(struct batch_queue *, uint64_t end);
/* Is any batch before the end not used? */
bool batch_queue_has_rest(const struct batch_queue *);

/* Other ps have a push of the batch that the worker lost: it pushes that again, though another
 * worker may have used the batch meanwhile. */
void batch_queue_reclaim(struct batch_queue *, int worker);

/* For a replay of recorded batches: makes this one the worker's whole plan. */
void batch_queue_assign(struct batch_queue *, int worker, uint64_t batch);
/* Adds this one after it, unless another worker has begun it. */
void batch_queue_assign_next(struct batch_queue *, int worker, uint64_t batch);

/* A plan as numbers: the batch of the worker's last push, if known, and the next ones. ret_first:
 * 0: they begin with the last push, 1: with the next. Returns how many numbers. */
enum { PLAN_NUMBERS_MAX = 2 * (PLAN_RANGES_MAX + 2) };
int batch_queue_tell(struct batch_queue *, int worker, uint64_t ret[PLAN_NUMBERS_MAX],
                     int *ret_first);

/* The queue as numbers: in SETUP and in checkpoints. A worker that is gone keeps its committed
 * batch: other ps may have its push. */
enum { QUEUE_NUMBERS_MAX = 1 << 16 };
int batch_queue_count(const struct batch_queue *); /* how many numbers */
void batch_queue_numbers(const struct batch_queue *, int64_t *ret);
/* Reads them into a queue that was just opened, perhaps with another number of workers. false: not
 * valid. */
bool batch_queue_read(struct batch_queue *, const int64_t *numbers, int count);

/* For tests: NULL, or which invariant is broken. */
const char *batch_queue_check(const struct batch_queue *);

#endif
