/* key_index.h - the index of a growing table: key to row number, or how often the key was seen.
 *
 * Cache lines of 64 bytes, one for each equal part (span) of the range of keys, so that a lookup
 * reads one line from memory. A line has six places of 80 bits: the key minus the first one of the
 * span, in as many bits as needed; the rest is the state and the period. Keys are uniformly
 * distributed, 4.4 to 4.75 per line, so that one in sixteen does not fit into its line and goes to
 * the crowd (crowd.h), as does a state too large for its bits. Lines and crowd are in the order of
 * keys: iteration is ascending and can continue from any key, whatever was added meanwhile.
 *
 * A full index is rebuilt in memory a tenth larger, and the old memory is freed on the way: at most
 * INDEX_ROW_BYTES per key, for many keys. Entries are removed only by that.
 */
#ifndef CORE_TRAIN_VARIABLES_GROWING_KEY_INDEX_H
#define CORE_TRAIN_VARIABLES_GROWING_KEY_INDEX_H

#include "core/train/variables/growing/crowd.h"

enum { INDEX_ROW_BYTES = 16, LINE_KEYS = 6, PERIOD_BITS = 8 };

/* The number of the key's row; or, with ENTRY_SEEN set, how often the key was seen without a row. A
 * key never seen has no entry. */
static const uint32_t ENTRY_SEEN = UINT32_C(1) << 31;

struct entry {
    int64_t key;
    uint32_t state;
    uint8_t period; /* low bits of the period of the last use */
};

struct key_line {
    _Alignas(64) uint64_t low[LINE_KEYS]; /* 1 + offset of the key in the span; low `bits` bits of
                                             the state; 0: free */
    uint16_t high[LINE_KEYS];             /* the other bits of the state; the period */
    uint32_t crowded;                     /* keys of this span that are in the crowd */
};

struct key_index {
    int64_t start, length; /* of the range of keys */
    int64_t line_count;
    int64_t count;       /* of entries */
    uint64_t width;      /* keys per span */
    uint64_t reciprocal; /* 2^64 / width */
    int bits;
    struct key_line *lines;
    struct crowd crowd;
};

/* Where an entry is; valid until the next one is added */
struct key_place {
    struct key_line *line; /* NULL: in the crowd */
    int slot;
    struct crowded *crowded;
};

/* ERR_MEMORY. length: at least 2^50. */
err key_index_open(int64_t start, int64_t length, struct key_index *ret);
void key_index_close(struct key_index *); /* a zeroed one is fine */
size_t key_index_bytes(const struct key_index *);

/* false: no entry. */
static inline bool key_index_find(const struct key_index *, int64_t key,
                                  struct key_place *ret_place, struct entry *ret);
/* A lookup in steps, some time apart, each of which reads what the one before has prefetched */
struct key_sought {
    struct key_line *line;
    uint64_t wanted; /* 1 + offset of the key, shifted as in a line */
};
static inline struct key_sought key_index_seek(const struct key_index *, int64_t key);
enum key_found { KEY_NOT_THERE, KEY_THERE, KEY_CROWDED };
/* KEY_CROWDED: the key may be in the crowd; prefetches that. */
static inline enum key_found key_index_look(const struct key_index *, int64_t key,
                                            const struct key_sought *, struct key_place *ret_place,
                                            struct entry *ret);
bool key_index_find_crowded(const struct key_index *, int64_t key, struct key_place *ret_place,
                            struct entry *ret);
/* The entry of the lowest key at or above `key`; false: there is none. */
bool key_index_from(const struct key_index *, int64_t key, struct entry *ret);
typedef void key_seen(void *context, const struct key_place *, const struct entry *);
/* Calls key_seen for all entries, in no order; it may set its entry to ENTRY_SEEN. */
void key_index_each(struct key_index *, key_seen *, void *context);

bool key_index_has_room(const struct key_index *, int64_t more);
bool key_index_is_full(const struct key_index *); /* one more entry does not fit */
/* Makes room. drops: drops entries of keys seen 0 times, and may shrink memory. ERR_MEMORY: the
 * index is unchanged, or unusable. */
err key_index_make_room(struct key_index *, bool drops);
/* Makes room, unless there is enough, for `more` keys that will be added in ascending order:
 * without it, neighbouring keys would fill a few lines and the crowd of a small index, and the time
 * would be quadratic in their number. */
err key_index_reserve(struct key_index *, int64_t more, bool drops);
/* Adds the entry of a key that has none; the index must not be full. ERR_MEMORY: it was not added.
 */
err key_index_add(struct key_index *, const struct entry *, struct key_place *ret_place);
/* Sets state and period of an existing entry. ERR_MEMORY: nothing has changed. */
err key_index_set(struct key_index *, const struct key_place *, const struct entry *);

/* The key's line, and the key's offset from line * width: less than 1.5 * width, because the
 * reciprocal is rounded down and the range of keys uses at most half of 64 bits */
static inline int64_t key_index_line(const struct key_index *x, int64_t key, uint64_t *ret_rest)
{
    const uint64_t from_start = (uint64_t)(key - x->start);
    const uint64_t line = (uint64_t)((unsigned __int128)from_start * x->reciprocal >> 64);
    *ret_rest = from_start - line * x->width;
    return (int64_t)line;
}

/* The state of a place; in the line ENTRY_SEEN is stored as its lowest bit */
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

/* The place of the key in its line; -1: not found. Without a branch, also in the compiled code,
 * because it would be unpredictable. */
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
