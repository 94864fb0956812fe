/* ring.h - message headers from one task to another through memory that both map.
 *
 * One side puts, the other takes. A slot holds the n-th header once its `turn` is n + 1, so that
 * the taker reads nothing but the slot that it waits for. `consumed` tells the putter what it may
 * overwrite.
 *
 * The peer is not trusted: it can write anything at any time. So each side keeps its own count in
 * private memory, the putter checks `consumed`, and a header is copied out by atomic loads before
 * it is read. A turn that comes too early is just another header to be checked.
 *
 * Sleeping: the taker sets `taker_sleeps` and looks once more before it blocks; the putter looks at
 * `taker_sleeps` after it has put. All four are sequentially consistent, so that one of the two
 * sees the other. `putter_waits` and `consumed` work the same way round.
 */
#ifndef NET_SHM_RING_H
#define NET_SHM_RING_H

#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"
#include "net/message.h"

enum { RING_SLOTS = 256, RING_HEADER_WORDS = MESSAGE_HEADER_BYTES / 8 };

struct ring_slot {
    alignas(128) _Atomic uint64_t turn;
    _Atomic uint64_t words[RING_HEADER_WORDS];
};

struct ring {                               /* zeroed when new */
    alignas(128) _Atomic uint64_t consumed; /* written by the taker */
    alignas(128) _Atomic uint32_t taker_sleeps;
    alignas(128) _Atomic uint32_t putter_waits; /* for room */
    struct ring_slot slots[RING_SLOTS];
};

struct ring_putter {
    struct ring *ring;
    uint64_t produced;
    uint64_t consumed_seen; /* last value read of `consumed` */
};

struct ring_taker {
    struct ring *ring;
    uint64_t consumed;
};

/* ret_put false: the ring is full. ERR_PROTOCOL: the taker's index is impossible. */
err ring_put(struct ring_putter *, const unsigned char *header, bool *ret_put);
bool ring_has_room(struct ring_putter *); /* also true if the next put fails with an error */

bool ring_take(struct ring_taker *, unsigned char *ret_header); /* false: empty */
bool ring_is_empty(const struct ring_taker *);

#endif
