/* batch_ring.h - batches that one thread makes and another one takes, in slots of which one is in
 * the taker's hands.
 *
 * Counters under a lock. A slot is filled without it: nobody looks at it until the batch is counted
 * as made, nor at any that was filled before a seek. Batches have indices; the ring begins at the
 * one that was sought last.
 */
#ifndef CORE_DATA_BATCH_RING_H
#define CORE_DATA_BATCH_RING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/data/convert.h"

enum { BATCH_WAIT_S_MAX = 600 }; /* for one: far above any disk, below "it hangs" */

struct batch_ring {
    struct column **slots; /* [slot_count] as the graph reads them; before there are threads */
    int slot_count;
    struct block memory; /* of all slots */

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t made_more;
    uint64_t first;              /* index of the first batch since the last seek */
    uint64_t made, taken, freed; /* batches since then: freed <= taken <= made <= freed + slots */
    bool is_at_end;              /* there will be no batch behind those that were made */
    err failure;                 /* nor because of this */
    char failed[ERROR_TEXT_MAX];
};

void batch_ring_init(struct batch_ring *);
err batch_ring_open_slots(struct batch_ring *, const struct made_columns *, int slot_count);
void batch_ring_free(struct batch_ring *);

/* The others hold the lock. */
uint64_t batch_ring_next(const struct batch_ring *); /* index of the one that is made next */
bool batch_ring_has_room(const struct batch_ring *); /* for it */
int batch_ring_place(const struct batch_ring *, uint64_t index); /* of its slot */
uint64_t batch_ring_ready(const struct batch_ring *);            /* made, and not taken */
void batch_ring_add(struct batch_ring *);                        /* the next one is made */
void batch_ring_fail(struct batch_ring *, err); /* the first failure counts, with its text */
void batch_ring_seek(struct batch_ring *, uint64_t index); /* what is there is of another place */
/* From the n-th batch on it is another one. true: it was taken. */
bool batch_ring_cut(struct batch_ring *, uint64_t n);

/* As many of these as can lie ready */
uint64_t batch_ring_most(const struct batch_ring *, int count);
/* false: they are not ready within ms, or will never be. The clock is one that nobody sets back. */
bool batch_ring_wait(struct batch_ring *, uint64_t wanted, uint64_t ms);
/* Waits for the next one and takes it. ERR_STOPPED: there is none; ERR_TIMEOUT; what has failed. */
err batch_ring_take(struct batch_ring *, const char *name, uint64_t *ret_index);

#endif
