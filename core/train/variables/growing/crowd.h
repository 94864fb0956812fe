/* crowd.h - keys in their order: those for which a line of the index has no room (key_index.h).
 *
 * Open addressing in the order of the keys: one lies where its key's share of the range points to,
 * or behind it, and none lies before a smaller one. So a walk is ascending and can go on at a key,
 * whatever was added meanwhile, and any number of neighbours finds a place. A crowd that gets full
 * is made once more in larger memory, a tenth larger, and the old is given back on the way.
 */
#ifndef CORE_TRAIN_VARIABLES_GROWING_CROWD_H
#define CORE_TRAIN_VARIABLES_GROWING_CROWD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

/* Of a prefetch: where many are on their way, the first cache has no room for them. */
enum { SECOND_CACHE = 2 };

struct __attribute__((packed)) crowded {
    int64_t mark; /* 1 + key; 0: free */
    uint32_t state;
    uint8_t period;
};

struct crowd {
    int64_t start, length; /* of the range of keys */
    int64_t homes;         /* places that keys point to */
    int64_t end;           /* all keys are before it */
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
/* The lowest key that is not below; NULL: there is none. */
struct crowded *crowd_from(const struct crowd *, int64_t key);
/* A key that is not there, with zeros. ERR_MEMORY: all is as it was. Earlier pointers are void. */
err crowd_add(struct crowd *, int64_t key, struct crowded **ret);

static inline int64_t crowd_home(const struct crowd *x, int64_t key)
{
    return (int64_t)((unsigned __int128)(uint64_t)(key - x->start) * x->share >> 63);
}

static inline void crowd_fetch(const struct crowd *x, int64_t key)
{
    const struct crowded *home = &x->at[crowd_home(x, key)];
    __builtin_prefetch(home, 0, SECOND_CACHE);
    __builtin_prefetch(home + 3, 0, SECOND_CACHE); /* most lie before it */
}

#endif
