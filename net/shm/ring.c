/* ring.c - see ring.h, also for which fields are trusted. */
#include "net/shm/ring.h"

#include <string.h>

/* How many headers the taker has not taken yet; its cache line (`consumed`) is read only when the
 * ring looks full. */
static uint64_t pending(struct ring_putter *putter)
{
    if (putter->produced - putter->consumed_seen >= RING_SLOTS)
        putter->consumed_seen = atomic_load(&putter->ring->consumed);
    return putter->produced - putter->consumed_seen;
}

bool ring_has_room(struct ring_putter *putter)
{
    return pending(putter) != RING_SLOTS;
}

err ring_put(struct ring_putter *putter, const unsigned char *header, bool *ret_put)
{
    const uint64_t waiting = pending(putter);
    if (waiting > RING_SLOTS)
        return fail(ERR_PROTOCOL, "wrote an impossible index into the shared ring");
    *ret_put = waiting < RING_SLOTS;
    if (!*ret_put) return OK;
    struct ring_slot *slot = &putter->ring->slots[putter->produced % RING_SLOTS];
    uint64_t words[RING_HEADER_WORDS];
    memcpy(words, header, sizeof words);
    for (int i = 0; i < RING_HEADER_WORDS; i++)
        atomic_store_explicit(&slot->words[i], words[i], memory_order_relaxed);
    atomic_store(&slot->turn, ++putter->produced);
    return OK;
}

bool ring_is_empty(const struct ring_taker *taker)
{
    return atomic_load(&taker->ring->slots[taker->consumed % RING_SLOTS].turn) !=
           taker->consumed + 1;
}

bool ring_take(struct ring_taker *taker, unsigned char *ret_header)
{
    if (ring_is_empty(taker)) return false;
    const struct ring_slot *slot = &taker->ring->slots[taker->consumed % RING_SLOTS];
    uint64_t words[RING_HEADER_WORDS];
    for (int i = 0; i < RING_HEADER_WORDS; i++)
        words[i] = atomic_load_explicit(&slot->words[i], memory_order_relaxed);
    memcpy(ret_header, words, sizeof words);
    atomic_store(&taker->ring->consumed, ++taker->consumed);
    return true;
}
