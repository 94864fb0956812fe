/* crowd.h - keys in ascending order: those for which a line of the index has no room (key_index.h).
 *
 * Open addressing that keeps the order of the keys: a key lies where its share of the range of keys
 * points to (its home), or behind that, and never before a smaller key. So a walk is ascending and
 * can continue at a key, whatever was added meanwhile, and any number of neighbours finds a place.
 * A crowd that gets full is built again in memory that is a tenth larger, while the old memory is
 * given back piece by piece. */
#ifndef CORE_TRAIN_VARIABLES_GROWING_CROWD_H
#define CORE_TRAIN_VARIABLES_GROWING_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* For __builtin_prefetch: with many prefetches under way the first cache has no room for them. */
enum { SECOND_CACHE = 2 };

struct __attribute__((packed)) crowded {
    int64_t mark; /* 1 + key; 0: free */
    uint32_t state;
    uint8_t period;
};

struct crowd {
    int64_t start, length; /* of the range of keys */
    int64_t homes;         /* places that keys may have as their home */
    int64_t end;           /* all keys are before this place */
    int64_t count;
    uint64_t share; /* homes / length, times 2^63 */
    struct crowded *at;
    size_t bytes;
};

/* With room for `count` keys. ERR_MEMORY. length: 2^50 at least. */
err crowd_open(int64_t start, int64_t length, int64_t count, struct crowd *ret);
void crowd_close(struct crowd *); /* a zeroed one is fine */
size_t crowd_bytes(const struct crowd *);

static inline void crowd_fetch(const struct crowd *, int64_t key); /* what crowd_find looks at */
struct crowded *crowd_find(const struct crowd *, int64_t key);     /* NULL: it is not there */
/* The entry of the lowest key at or above `key`; NULL: there is none. */
struct crowded *crowd_from(const struct crowd *, int64_t key);
/* Adds a key that is not there, with zeros. ERR_MEMORY: nothing has changed. Earlier pointers are
 * void. */
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
