/* key_index.c - see key_index.h. */
#include "core/train/variables/growing/key_index.h"

#include <sys/mman.h>

enum {
    LINES_LEAST = 256,
    RELEASED = 1 << 16, /* lines whose memory is freed together; a multiple of a page */
    HUGE_BYTES = 4 << 20,
    CROWDED_PART = 16, /* one key in this many goes to the crowd */
};
static const double LOAD_LEAST = 4.36, LOAD_MOST = 4.75; /* keys of a line */

static size_t bytes_of(const struct key_index *x)
{
    return (size_t)x->line_count * sizeof *x->lines;
}

static void unmap(struct key_index *x)
{
    if (x->lines) munmap(x->lines, bytes_of(x));
    x->lines = NULL;
}

/* The crowd has room for the likely number of keys: only used room takes memory. */
static err map(struct key_index *x, int64_t count)
{
    x->line_count = (int64_t)((double)count / LOAD_LEAST) + LINES_LEAST;
    x->width = (uint64_t)(x->length / x->line_count + 1);
    x->reciprocal = (uint64_t)(((unsigned __int128)1 << 64) / x->width);
    x->bits = __builtin_clzll(2 * x->width);
    x->count = 0;
    x->crowd = (struct crowd){0};
    x->lines = mmap(NULL, bytes_of(x), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x->lines == MAP_FAILED) {
        x->lines = NULL;
        return fail(ERR_MEMORY, "no memory for an index of %lld keys", (long long)count);
    }
    if (bytes_of(x) >= HUGE_BYTES) madvise(x->lines, bytes_of(x), MADV_HUGEPAGE);
    const err e = crowd_open(x->start, x->length, count / CROWDED_PART, &x->crowd);
    if (e) unmap(x);
    return e;
}

err key_index_open(int64_t start, int64_t length, struct key_index *ret)
{
    *ret = (struct key_index){.start = start, .length = length};
    return map(ret, 0);
}

void key_index_close(struct key_index *x)
{
    unmap(x);
    crowd_close(&x->crowd);
    *x = (struct key_index){0};
}

size_t key_index_bytes(const struct key_index *x)
{
    return bytes_of(x) + crowd_bytes(&x->crowd);
}

bool key_index_has_room(const struct key_index *x, int64_t more)
{
    return (double)x->count + (double)more <= LOAD_MOST * (double)x->line_count;
}

bool key_index_is_full(const struct key_index *x)
{
    return !key_index_has_room(x, 1);
}

/* ---- entries ---- */

static struct entry entry_of_crowd(const struct crowded *crowded)
{
    return (struct entry){crowded->mark - 1, crowded->state, crowded->period};
}

bool key_index_find_crowded(const struct key_index *x, int64_t key, struct key_place *ret_place,
                            struct entry *ret)
{
    struct crowded *crowded = crowd_find(&x->crowd, key);
    if (!crowded) return false;
    *ret_place = (struct key_place){.crowded = crowded};
    *ret = entry_of_crowd(crowded);
    return true;
}

static struct entry entry_at(const struct key_index *x, int64_t line, int i)
{
    const struct key_line *of = &x->lines[line];
    const uint64_t first = (uint64_t)line * x->width, rest = (of->low[i] >> x->bits) - 1;
    return (struct entry){x->start + (int64_t)(first + rest), key_line_state(x, of, i),
                          (uint8_t)of->high[i]};
}

/* false: the state does not fit into the bits of the line. */
static bool set_slot(const struct key_index *x, struct key_line *line, int i, uint64_t rest,
                     const struct entry *entry)
{
    const uint64_t number = entry->state & ~ENTRY_SEEN, is_seen = !!(entry->state & ENTRY_SEEN);
    const uint64_t code = number << 1 | is_seen;
    if (code >> (x->bits + 16 - PERIOD_BITS)) return false;
    line->low[i] = (rest + 1) << x->bits | (code & ((UINT64_C(1) << x->bits) - 1));
    line->high[i] = (uint16_t)(code >> x->bits << PERIOD_BITS | entry->period);
    return true;
}

static err add_crowded(struct key_index *x, struct key_line *line, const struct entry *entry,
                       struct key_place *ret)
{
    struct crowded *crowded;
    TRY(crowd_add(&x->crowd, entry->key, &crowded));
    crowded->state = entry->state;
    crowded->period = entry->period;
    line->crowded++;
    *ret = (struct key_place){.crowded = crowded};
    return OK;
}

err key_index_add(struct key_index *x, const struct entry *entry, struct key_place *ret)
{
    uint64_t rest;
    struct key_line *line = &x->lines[key_index_line(x, entry->key, &rest)];
    for (int i = 0; i < LINE_KEYS; i++) {
        if (line->low[i]) continue;
        if (!set_slot(x, line, i, rest, entry)) break;
        *ret = (struct key_place){line, i, NULL};
        x->count++;
        return OK;
    }
    TRY(add_crowded(x, line, entry, ret));
    x->count++;
    return OK;
}

err key_index_set(struct key_index *x, const struct key_place *at, const struct entry *entry)
{
    struct key_place place;
    if (!at->line) {
        at->crowded->state = entry->state;
        at->crowded->period = entry->period;
        return OK;
    }
    const uint64_t rest = (at->line->low[at->slot] >> x->bits) - 1;
    if (set_slot(x, at->line, at->slot, rest, entry)) return OK;
    TRY(add_crowded(x, at->line, entry, &place));
    at->line->low[at->slot] = 0;
    at->line->high[at->slot] = 0;
    return OK;
}

/* ---- all of them ---- */

/* The lowest entry of a line whose rest is at least `rest`; false: there is none. */
static bool lowest(const struct key_index *x, int64_t line, uint64_t rest, struct entry *ret)
{
    const struct key_line *of = &x->lines[line];
    int found = -1;
    for (int i = 0; i < LINE_KEYS; i++) {
        if (of->low[i] >> x->bits <= rest) continue;
        if (found < 0 || of->low[i] < of->low[found]) found = i;
    }
    if (found >= 0) *ret = entry_at(x, line, found);
    return found >= 0;
}

bool key_index_from(const struct key_index *x, int64_t key, struct entry *ret)
{
    uint64_t rest;
    if (key - x->start >= x->length) return false;
    int64_t line = key_index_line(x, key, &rest);
    const struct crowded *crowded = crowd_from(&x->crowd, key);
    bool is_found = lowest(x, line, rest, ret);
    while (!is_found && ++line < x->line_count) is_found = lowest(x, line, 0, ret);
    if (crowded && (!is_found || crowded->mark <= ret->key)) *ret = entry_of_crowd(crowded);
    return is_found || crowded;
}

static void each_of_line(struct key_index *x, int64_t line, key_seen *seen, void *context)
{
    for (int i = 0; i < LINE_KEYS; i++) {
        if (!x->lines[line].low[i]) continue;
        const struct entry entry = entry_at(x, line, i);
        seen(context, &(struct key_place){&x->lines[line], i, NULL}, &entry);
    }
}

static void each_of_crowd(struct key_index *x, key_seen *seen, void *context)
{
    for (int64_t i = 0; i < x->crowd.end; i++) {
        if (!x->crowd.at[i].mark) continue;
        const struct entry entry = entry_of_crowd(&x->crowd.at[i]);
        seen(context, &(struct key_place){.crowded = &x->crowd.at[i]}, &entry);
    }
}

void key_index_each(struct key_index *x, key_seen *seen, void *context)
{
    for (int64_t i = 0; i < x->line_count; i++) each_of_line(x, i, seen, context);
    each_of_crowd(x, seen, context);
}

/* ---- room ---- */

static void count_seen(void *context, const struct key_place *place, const struct entry *entry)
{
    *(int64_t *)context += entry->state != ENTRY_SEEN;
}

struct key_move {
    struct key_index to;
    bool drops;
    err result;
};

static void move_one(void *context, const struct key_place *place, const struct entry *entry)
{
    struct key_move *m = context;
    struct key_place to;
    if (m->result || (m->drops && entry->state == ENTRY_SEEN)) return;
    m->result = key_index_add(&m->to, entry, &to);
}

/* Frees the memory of lines before `done` that an earlier call did not. */
static void release(struct key_index *x, int64_t done)
{
    if (done % RELEASED == 0 && done)
        madvise(&x->lines[done - RELEASED], RELEASED * sizeof *x->lines, MADV_DONTNEED);
}

/* Rebuilds the index with room for `more` entries in addition to those kept */
static err move_all(struct key_index *x, int64_t more, bool drops)
{
    struct key_move move = {.to = *x, .drops = drops};
    int64_t kept = drops ? 0 : x->count;
    if (drops) key_index_each(x, count_seen, &kept);
    TRY(map(&move.to, kept + more));
    for (int64_t i = 0; i < x->line_count; i++) {
        release(x, i);
        each_of_line(x, i, move_one, &move);
    }
    each_of_crowd(x, move_one, &move);
    key_index_close(x);
    *x = move.to;
    return move.result;
}

err key_index_make_room(struct key_index *x, bool drops)
{
    return move_all(x, 1, drops);
}

err key_index_reserve(struct key_index *x, int64_t more, bool drops)
{
    return key_index_has_room(x, more) ? OK : move_all(x, more, drops);
}
