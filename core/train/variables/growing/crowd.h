/* crowd.h - overflow of the key index: keys that do not fit into their line (key_index.h), in
 * ascending order.
 *
 * Open addressing that keeps keys in order: a key lies at its home, which is proportional to its
 * position in the range of keys, or after it, and never before a smaller key. So iteration is
 * ascending and can continue from any key, whatever was added meanwhile, and any number of
 * neighbouring keys fits. A full crowd is rebuilt in memory a tenth larger, while the old memory is
 * freed piece by piece.
 */
#ifndef CORE_TRAIN_VARIABLES_GROWING_CROWD_H
#define CORE_TRAIN_VARIABLES_GROWING_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* For __builtin_prefetch: the L1 cache has too few entries for many prefetches in flight. */
enum { SECOND_CACHE = 2 };

struct __attribute__((packed)) crowded {
    int64_t mark; /* 1 + key; 0: free */
    uint32_t state;
    uint8_t period;
};

struct crowd {
    int64_t start, length; /* of the range of keys */
    int64_t homes;         /* number of possible homes */
    int64_t end;           /* all keys are before this place */
    int64_t count;
    uint64_t share; /* homes / length, times 2^63 */
    struct crowded *at;
    size_t bytes;
};

/* With room for `count` keys. ERR_MEMORY. length: at least 2^50. */
err crowd_open(int64_t start, int64_t length, int64_t count, struct crowd *ret);
void crowd_close(struct crowd *); /* a zeroed one is fine */
size_t crowd_bytes(const struct crowd *);

static inline void crowd_fetch(const struct crowd *, int64_t key); /* prefetches for crowd_find */
struct crowded *crowd_find(const struct crowd *, int64_t key);     /* NULL: not found */
/* The entry of the lowest key at or above `key`; NULL: there is none. */
struct crowded *crowd_from(const struct crowd *, int64_t key);
/* Adds a key that is not there yet, with state and period 0. ERR_MEMORY: nothing has changed.
 * Invalidates earlier pointers. */
err crowd_add(struct crowd *, int64_t key, struct crowded **ret);

static inline int64_t crowd_home(const struct crowd *x, int64_t key)
{
    return (int64_t)((unsigned __int128)(uint64_t)(key - x->start) * x->share >> 63);
}

static inline void crowd_fetch(const struct crowd *x, int64_t key)
{
    const struct crowded *home = &x->at[crowd_home(x, key)];
    __builtin_prefetch(home, 0, SECOND_CACHE);
    __builtin_prefetch(home + 3, 0, SECOND_CACHE); /* most keys lie before this place */
}

#endif
