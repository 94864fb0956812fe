/* key_index.h - what a growing table knows of its keys.
 *
 * Open addressing in the order of the keys: an entry lies where its key's share of the range points
 * to, or behind it, and no entry lies before one of a smaller key. So a walk is ascending and can
 * go on at a key, whatever was added meanwhile. An index that gets full is made once more in larger
 * memory, a tenth larger, and the old is given back on the way: INDEX_ROW_BYTES for each of many
 * entries, at most. Nothing is ever taken out but then.
 */
#ifndef CORE_TRAIN_VARIABLES_GROWING_KEY_INDEX_H
#define CORE_TRAIN_VARIABLES_GROWING_KEY_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

enum { INDEX_ROW_BYTES = 16 };

/* Number of its row; or, with ENTRY_SEEN, how often it was seen before it had one. Not seen at all
 * is as good as no entry. */
static const uint32_t ENTRY_SEEN = UINT32_C(1) << 31;

struct __attribute__((packed)) entry {
    int64_t mark; /* 1 + key; 0: free */
    uint32_t state;
    uint8_t period; /* of the last use: the lowest bits of its number */
};

struct key_index {
    int64_t start, length; /* of the range of keys */
    int64_t homes;         /* places that keys point to */
    int64_t end;           /* all entries are before it */
    int64_t count;         /* of entries */
    uint64_t share;        /* homes / length, times 2^63 */
    struct entry *at;
    size_t bytes;
};

/* ERR_MEMORY. length: 2^50 at least. */
err key_index_open(int64_t start, int64_t length, struct key_index *ret);
void key_index_close(struct key_index *); /* a zeroed one is fine */
size_t key_index_bytes(const struct key_index *);

/* A prefetch of what key_index_find will look at. */
static inline __attribute__((always_inline)) void key_index_fetch(const struct key_index *,
                                                                  int64_t key);
struct entry *key_index_find(const struct key_index *, int64_t key); /* NULL: there is none */
/* The entry of the lowest key that is not below; NULL: there is none. */
struct entry *key_index_from(const struct key_index *, int64_t key);

bool key_index_is_full(const struct key_index *);
/* Makes room. drops: those that are not seen at all go, and memory may shrink. ERR_MEMORY: it is as
 * it was. */
err key_index_make_room(struct key_index *, bool drops);
/* Of a key that has none, not seen at all; the index is not full. Earlier pointers are void. */
struct entry *key_index_add(struct key_index *, int64_t key);

static inline int64_t key_index_home(const struct key_index *x, int64_t key)
{
    return (int64_t)((unsigned __int128)(uint64_t)(key - x->start) * x->share >> 63);
}

static inline void key_index_fetch(const struct key_index *x, int64_t key)
{
    const struct entry *home = &x->at[key_index_home(x, key)];
    __builtin_prefetch(home);
    __builtin_prefetch(home + 3); /* most lie before it */
}

#endif
