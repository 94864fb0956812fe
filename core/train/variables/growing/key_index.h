/* key_index.h - what a growing table knows of its keys.
 *
 * Lines of 64 bytes, one for each stretch of the range of keys: to look a key up takes one line
 * from memory. A line has six places, which keep the key as what it is beyond its stretch's first,
 * in as many bits as that takes; the rest of 80 bits is the state and the period. Keys are spread
 * as if by chance, 4.4 to 4.75 to a line, so that one of sixteen finds no place there and goes to
 * the crowd (crowd.h), as does what is too large for its bits. The order of the lines and of the
 * crowd is that of the keys: a walk is ascending and can go on at a key, whatever was added
 * meanwhile.
 *
 * An index that gets full is made once more in larger memory, a tenth larger, and the old is given
 * back on the way: INDEX_ROW_BYTES for each of many keys, at most. Nothing is ever taken out but
 * then.
 */
#ifndef CORE_TRAIN_VARIABLES_GROWING_KEY_INDEX_H
#define CORE_TRAIN_VARIABLES_GROWING_KEY_INDEX_H

#include "core/train/variables/growing/crowd.h"

enum { INDEX_ROW_BYTES = 16, LINE_KEYS = 6, PERIOD_BITS = 8 };

/* The number of the key's row; or, with ENTRY_SEEN, how often the key was seen without a row. Never
 * seen is the same as no entry. */
static const uint32_t ENTRY_SEEN = UINT32_C(1) << 31;

struct entry {
    int64_t key;
    uint32_t state;
    uint8_t period; /* the lowest bits of the number of the period of the last use */
};

struct key_line {
    _Alignas(64) uint64_t low[LINE_KEYS]; /* 1 + rest of the key; `bits` of the state; 0: free */
    uint16_t high[LINE_KEYS];             /* the other bits of the state; the period */
    uint32_t crowded;                     /* keys of this line's stretch that are in the crowd */
};

struct key_index {
    int64_t start, length; /* of the range of keys */
    int64_t line_count;
    int64_t count;       /* of entries */
    uint64_t width;      /* keys of a stretch */
    uint64_t reciprocal; /* 2^64 / width */
    int bits;
    struct key_line *lines;
    struct crowd crowd;
};

/* Where an entry is; valid until one is added */
struct key_place {
    struct key_line *line; /* NULL: in the crowd */
    int slot;
    struct crowded *crowded;
};

/* ERR_MEMORY. length: 2^50 at least. */
err key_index_open(int64_t start, int64_t length, struct key_index *ret);
void key_index_close(struct key_index *); /* a zeroed one is fine */
size_t key_index_bytes(const struct key_index *);

/* false: there is no entry. */
static inline bool key_index_find(const struct key_index *, int64_t key,
                                  struct key_place *ret_place, struct entry *ret);
/* A key that is being looked up in steps, some time apart, each of which finds in the caches what
 * the one before has prefetched */
struct key_sought {
    struct key_line *line;
    uint64_t wanted; /* 1 + rest of the key, where a line has it */
};
static inline struct key_sought key_index_seek(const struct key_index *, int64_t key);
enum key_found { KEY_NOT_THERE, KEY_THERE, KEY_CROWDED };
/* KEY_CROWDED: the key may be in the crowd, which is prefetched. */
static inline enum key_found key_index_look(const struct key_index *, int64_t key,
                                            const struct key_sought *, struct key_place *ret_place,
                                            struct entry *ret);
bool key_index_find_crowded(const struct key_index *, int64_t key, struct key_place *ret_place,
                            struct entry *ret);
/* The entry of the lowest key at or above `key`; false: there is none. */
bool key_index_from(const struct key_index *, int64_t key, struct entry *ret);
typedef void key_seen(void *context, const struct key_place *, const struct entry *);
/* Calls for all entries, in no order; the callee may set its entry to ENTRY_SEEN. */
void key_index_each(struct key_index *, key_seen *, void *context);

bool key_index_has_room(const struct key_index *, int64_t more);
bool key_index_is_full(const struct key_index *); /* no room for one more entry */
/* Makes room. drops: entries that were never seen are dropped, and memory may shrink. ERR_MEMORY:
 * the index is as it was, or unusable. */
err key_index_make_room(struct key_index *, bool drops);
/* Makes room, unless there is enough, for `more` keys that are about to come in ascending order: as
 * the first of them are neighbours, an index that only grows on the way would have them all in a
 * few lines and one crowd, and the time would be quadratic in their number. */
err key_index_reserve(struct key_index *, int64_t more, bool drops);
/* Adds the entry of a key that has none; the index is not full. ERR_MEMORY: it was not added. */
err key_index_add(struct key_index *, const struct entry *, struct key_place *ret_place);
/* Sets state and period of a key that is there. ERR_MEMORY: nothing has changed. */
err key_index_set(struct key_index *, const struct key_place *, const struct entry *);

/* The key's line, and the key's offset from line times width: less than one and a half widths, as
 * the reciprocal is rounded down and the range of keys is at most half of its 64 bits */
static inline int64_t key_index_line(const struct key_index *x, int64_t key, uint64_t *ret_rest)
{
    const uint64_t from_start = (uint64_t)(key - x->start);
    const uint64_t line = (uint64_t)((unsigned __int128)from_start * x->reciprocal >> 64);
    *ret_rest = from_start - line * x->width;
    return (int64_t)line;
}

/* The state of a place as one number: ENTRY_SEEN is the lowest bit there */
static inline uint32_t key_line_state(const struct key_index *x, const struct key_line *line, int i)
{
    const uint64_t low = line->low[i] & ((UINT64_C(1) << x->bits) - 1);
    const uint32_t code = (uint32_t)((uint64_t)(line->high[i] >> PERIOD_BITS) << x->bits | low);
    return code >> 1 | code << 31;
}

static inline struct key_sought key_index_seek(const struct key_index *x, int64_t key)
{
    uint64_t rest;
    struct key_line *line = &x->lines[key_index_line(x, key, &rest)];
    __builtin_prefetch(line, 0, SECOND_CACHE);
    return (struct key_sought){line, (rest + 1) << x->bits};
}

/* The place of the key in its line; -1: it is not there. Without a branch, also of the compiler's:
 * which place it is, is unpredictable. */
static inline int key_sought_slot(const struct key_index *x, const struct key_sought *sought)
{
    const uint64_t end = UINT64_C(1) << x->bits;
    unsigned slots = 0;
    for (int i = 0; i < LINE_KEYS; i++)
        slots |= (unsigned)((sought->line->low[i] ^ sought->wanted) < end) << i;
    return slots ? __builtin_ctz(slots) : -1;
}

static inline enum key_found key_index_look(const struct key_index *x, int64_t key,
                                            const struct key_sought *sought,
                                            struct key_place *ret_place, struct entry *ret)
{
    struct key_line *line = sought->line;
    const int i = key_sought_slot(x, sought);
    if (i >= 0) {
        *ret_place = (struct key_place){line, i, NULL};
        *ret = (struct entry){key, key_line_state(x, line, i), (uint8_t)line->high[i]};
        return KEY_THERE;
    }
    if (!line->crowded) return KEY_NOT_THERE;
    crowd_fetch(&x->crowd, key);
    return KEY_CROWDED;
}

static inline bool key_index_find(const struct key_index *x, int64_t key,
                                  struct key_place *ret_place, struct entry *ret)
{
    const struct key_sought sought = key_index_seek(x, key);
    const enum key_found found = key_index_look(x, key, &sought, ret_place, ret);
    return found == KEY_CROWDED ? key_index_find_crowded(x, key, ret_place, ret)
                                : found == KEY_THERE;
}

#endif
