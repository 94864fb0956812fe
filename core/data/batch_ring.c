/* batch_ring.c - see batch_ring.h. */
#include "core/data/batch_ring.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "core/data/storage.h"

void batch_ring_init(struct batch_ring *r)
{
    *r = (struct batch_ring){.lock = PTHREAD_MUTEX_INITIALIZER,
                             .made_more = PTHREAD_COND_INITIALIZER};
}

err batch_ring_open_slots(struct batch_ring *r, const struct made_columns *columns, int slot_count)
{
    r->slot_count = slot_count;
    return conversion_slots(columns, slot_count, &r->slots, &r->memory);
}

void batch_ring_free(struct batch_ring *r)
{
    pthread_cond_destroy(&r->made_more);
    pthread_mutex_destroy(&r->lock);
    block_drop(&r->memory);
    free(r->slots);
}

uint64_t batch_ring_next(const struct batch_ring *r)
{
    return r->first + r->made;
}

bool batch_ring_has_room(const struct batch_ring *r)
{
    return r->made - r->freed < (uint64_t)r->slot_count;
}

int batch_ring_place(const struct batch_ring *r, uint64_t index)
{
    return (int)((index - r->first) % (uint64_t)r->slot_count);
}

uint64_t batch_ring_ready(const struct batch_ring *r)
{
    return r->made - r->taken;
}

void batch_ring_add(struct batch_ring *r)
{
    r->made++;
    pthread_cond_signal(&r->made_more);
}

void batch_ring_fail(struct batch_ring *r, err e)
{
    if (!r->failure) snprintf(r->failed, sizeof r->failed, "%s", error_text());
    if (!r->failure) r->failure = e;
    pthread_cond_signal(&r->made_more);
}

void batch_ring_seek(struct batch_ring *r, uint64_t index)
{
    r->first = index;
    r->made = r->taken = r->freed = 0;
    r->is_at_end = false;
}

bool batch_ring_cut(struct batch_ring *r, uint64_t n)
{
    if (n < r->taken) return true;
    if (n < r->made) r->made = n;
    return false;
}

uint64_t batch_ring_most(const struct batch_ring *r, int count)
{
    return (uint64_t)(count < r->slot_count ? count : r->slot_count - 1);
}

bool batch_ring_wait(struct batch_ring *r, uint64_t wanted, uint64_t ms)
{
    const struct timespec until = clock_in_ms(ms);
    int status = 0;
    while (batch_ring_ready(r) < wanted && !status && !r->failure && !r->is_at_end)
        status = pthread_cond_clockwait(&r->made_more, &r->lock, CLOCK_MONOTONIC, &until);
    return batch_ring_ready(r) >= wanted;
}

err batch_ring_take(struct batch_ring *r, const char *name, uint64_t *ret_index)
{
    if (batch_ring_wait(r, 1, BATCH_WAIT_S_MAX * UINT64_C(1000))) {
        *ret_index = r->first + r->taken++;
        return OK;
    }
    if (r->failure) return fail(r->failure, "%s", r->failed);
    if (r->is_at_end) return fail(ERR_STOPPED, "%s: all rows are read", name);
    return fail(ERR_TIMEOUT, "%s: no batch for %d s", name, (int)BATCH_WAIT_S_MAX);
}
