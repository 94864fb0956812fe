/* batch_ring.h - a ring of batches from a producer thread to a consumer, who holds one slot at a
 * time.
 *
 * A lock guards the counters. Slots are filled without it: the consumer does not touch one until
 * its batch is counted as made; a seek discards what was filled before. Batches have indices; the
 * ring starts at the index of the last seek.
 */
#ifndef CORE_DATA_BATCH_RING_H
#define CORE_DATA_BATCH_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/data/convert.h"

enum { BATCH_WAIT_S_MAX = 600 }; /* for one batch: far longer than any disk takes */

struct batch_ring {
    struct column **slots; /* [slot_count], columns as the graph reads them; set before threads
                              start */
    int slot_count;
    struct block memory; /* of all slots */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t made_more;
    uint64_t first;              /* index of the first batch since the last seek */
    uint64_t made, taken, freed; /* counts of batches since then: freed <= taken <= made <= freed
                                    + slots */
    bool is_at_end;              /* no batches follow those made */
    err failure;                 /* likewise, because of this error */
    char failed[ERROR_TEXT_MAX];
};

void batch_ring_init(struct batch_ring *);
err batch_ring_open_slots(struct batch_ring *, const struct made_columns *, int slot_count);
void batch_ring_free(struct batch_ring *);

/* Callers of the following hold the lock. */
uint64_t batch_ring_next(const struct batch_ring *); /* index of the batch to be made next */
bool batch_ring_has_room(const struct batch_ring *); /* a free slot for it */
int batch_ring_place(const struct batch_ring *, uint64_t index); /* which slot it has */
uint64_t batch_ring_ready(const struct batch_ring *);            /* how many are made and not
                                                                    taken */
void batch_ring_add(struct batch_ring *);                        /* the next batch is made */
void batch_ring_fail(struct batch_ring *, err); /* keeps the first failure and its text */
void batch_ring_seek(struct batch_ring *, uint64_t index); /* discards all batches */
/* Discards the batches from the n-th since the seek on. true: it was already taken. */
bool batch_ring_cut(struct batch_ring *, uint64_t n);

/* `count`, or fewer if not so many can be ready at once */
uint64_t batch_ring_most(const struct batch_ring *, int count);
/* Waits until `wanted` batches are ready. false: not within ms, or never. By a monotonic clock. */
bool batch_ring_wait(struct batch_ring *, uint64_t wanted, uint64_t ms);
/* Waits for the next batch and takes it. ERR_STOPPED: the end; ERR_TIMEOUT; or the producer's
 * failure. */
err batch_ring_take(struct batch_ring *, const char *name, uint64_t *ret_index);

#endif
