/* batch_queue.h - which worker computes which batch of asynchronous training: ps/0 hands them out
 * from one queue, so that each is used once, whoever works.
 *
 * Batch b of the stream is its rows b B .. b B + B - 1. A worker has a plan: the batches of its
 * next pushes, so that it can read them ahead; where batches that lie together are read at once,
 * whole stretches of them. The first one of it is committed while a ticket is out for it; the
 * others can be planned anew at any time, as the worker begins none before ps/0 has answered. A
 * push takes the first one. The others of a worker that is evicted go back to the queue; the
 * committed one stays with its ticket (ps_role.h, "Who decides").
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
    PLAN_BATCHES_MAX = 64, /* as many as a worker reads ahead at most (core/data/source.h) */
    STRETCH_BATCHES_MAX = 1 << 28,
};

struct batch_plan {
    struct batch_range at[PLAN_RANGES_MAX]; /* none is empty */
    int count;
    uint64_t last;     /* 1 + the batch of the last push; 0: there was none, or it is not known */
    uint64_t lost;     /* 1 + the one that was committed when it was given to others; 0: none was */
    uint64_t again;    /* 1 + one that comes before `at` and was used already; 0: none */
    bool is_committed; /* the first one */
    bool is_told;      /* to the worker, as it is */
};

struct batch_queue {
    uint64_t front;           /* nothing was planned of what lies from here on */
    struct batch_range *back; /* [back_count] of what lies before, in no plan and not used; in order
                                 and apart */
    int back_count, back_capacity;
    struct batch_plan *plans; /* [workers] */
    bool has_end; /* of data that came while they were used: no batch from `end` on is whole */
    uint64_t end;
    int workers; /* 0: it is none */
    int ahead;   /* batches of a plan, at most; of stretches: a part of a second one more */
    int stretch; /* batches that lie together, from a multiple of it on; 0: any do */
};

/* Nothing has been used. ahead: 1 .. PLAN_BATCHES_MAX, and no stretches. false: no memory. */
bool batch_queue_open(struct batch_queue *, int workers, int ahead);
/* From now on: one stretch, and the next one before it is used. At most STRETCH_BATCHES_MAX. */
void batch_queue_hand_out_stretches(struct batch_queue *, int stretch);
void batch_queue_free(struct batch_queue *); /* a zeroed one is fine */

uint64_t batch_queue_open_batches(const struct batch_queue *); /* before the front, not used yet */
/* The first batch that is not used. */
uint64_t batch_queue_oldest(const struct batch_queue *);
/* The one behind the last that is used: what follows it is open. */
uint64_t batch_queue_reached(const struct batch_queue *);
/* Rows of the stream from `begin` to `end` that lie before the front and were used. */
uint64_t batch_queue_used(const struct batch_queue *, uint64_t batch, uint64_t begin, uint64_t end);

/* Sees to it that there is something in the worker's plan, which is to have no more than `room`
 * batches from the front on. false: there is nothing left. */
bool batch_queue_plan(struct batch_queue *, int worker, uint64_t room);
/* A push of the worker has come: of which batch. There is one in its plan. */
uint64_t batch_queue_take(struct batch_queue *, int worker);
void batch_queue_put_back(struct batch_queue *, uint64_t batch); /* which was taken, in vain */
bool batch_queue_has_next(const struct batch_queue *, int worker);
/* What is in its plan; but what is committed stays there. */
void batch_queue_give_back(struct batch_queue *, int worker);
/* All of it, of a worker whose ticket is another one's. */
void batch_queue_lose(struct batch_queue *, int worker);

/* No more will come than these; said again it says nothing new. Who has others in its plan leaves
 * them. */
void batch_queue_set_end(struct batch_queue *, uint64_t end);
/* Is there, before that, anything that is not used? */
bool batch_queue_has_rest(const struct batch_queue *);

/* Other ps have a push of what it lost: it brings that, though others may have used it meanwhile.
 */
void batch_queue_reclaim(struct batch_queue *, int worker);

/* Of a run that is to use the same batches in the same order again: this one is the worker's next,
 * and all that is in its plan. */
void batch_queue_assign(struct batch_queue *, int worker, uint64_t batch);
/* And then this one, where nobody has begun with it. */
void batch_queue_assign_next(struct batch_queue *, int worker, uint64_t batch);

/* A plan as numbers: of the worker's last push, where it is known, and of the next ones. ret_first:
 * 0: of the last, 1: of the one behind it. Returns how many numbers. */
enum { PLAN_NUMBERS_MAX = 2 * (PLAN_RANGES_MAX + 2) };
int batch_queue_tell(struct batch_queue *, int worker, uint64_t ret[PLAN_NUMBERS_MAX],
                     int *ret_first);

/* The whole as numbers: in SETUP and in checkpoints. A worker that is gone keeps what a ticket was
 * out for: other ps may have its push. */
enum { QUEUE_NUMBERS_MAX = 1 << 16 };
int batch_queue_count(const struct batch_queue *); /* of numbers */
void batch_queue_numbers(const struct batch_queue *, int64_t *ret);
/* To one that was just opened, perhaps of other workers. false: they are no queue. */
bool batch_queue_read(struct batch_queue *, const int64_t *numbers, int count);

/* For tests: NULL, or what of it cannot be. */
const char *batch_queue_check(const struct batch_queue *);

#endif
