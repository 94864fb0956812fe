/* key_index.c - see key_index.h. */
#include "core/train/variables/growing/key_index.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

enum {
    HOMES_LEAST = 1024,
    RELEASED = 1 << 18, /* places whose memory is given back at once; a multiple of a page */
    HUGE_BYTES = 4 << 20,
};
static const double LOAD_LEAST = 0.82, LOAD_MOST = 0.9; /* of homes: 13 bytes become 15.9 */
static const int64_t LENGTH_LEAST = INT64_C(1) << 50;

/* As many places as homes, and behind them as many as could all point to the last of these: only
 * those that are used take memory. */
static err map(struct key_index *x, int64_t homes)
{
    x->homes = homes;
    x->end = x->count = 0;
    x->share = (uint64_t)(((unsigned __int128)(uint64_t)homes << 63) / (uint64_t)x->length);
    x->bytes = 2 * (size_t)homes * sizeof *x->at;
    x->at = mmap(NULL, x->bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x->at == MAP_FAILED) {
        x->at = NULL;
        return fail(ERR_MEMORY, "no memory for an index of %lld keys", (long long)homes);
    }
    if (x->bytes >= HUGE_BYTES) madvise(x->at, x->bytes / 2, MADV_HUGEPAGE);
    return OK;
}

err key_index_open(int64_t start, int64_t length, struct key_index *ret)
{
    assert(length >= LENGTH_LEAST);
    *ret = (struct key_index){.start = start, .length = length};
    return map(ret, HOMES_LEAST);
}

void key_index_close(struct key_index *x)
{
    if (x->at) munmap(x->at, x->bytes);
    *x = (struct key_index){0};
}

size_t key_index_bytes(const struct key_index *x)
{
    const int64_t places = x->end > x->homes ? x->end : x->homes;
    return (size_t)places * sizeof *x->at;
}

/* The first place from the key's home on that is free, or of a key that is not below */
static int64_t place_of(const struct key_index *x, int64_t key)
{
    int64_t place = key_index_home(x, key);
    while (x->at[place].mark && x->at[place].mark <= key) place++;
    return place;
}

struct entry *key_index_find(const struct key_index *x, int64_t key)
{
    struct entry *entry = &x->at[place_of(x, key)];
    return entry->mark == key + 1 ? entry : NULL;
}

struct entry *key_index_from(const struct key_index *x, int64_t key)
{
    int64_t place = place_of(x, key);
    while (place < x->end && !x->at[place].mark) place++;
    return place < x->end ? &x->at[place] : NULL;
}

bool key_index_is_full(const struct key_index *x)
{
    return (double)(x->count + 1) > LOAD_MOST * (double)x->homes;
}

struct entry *key_index_add(struct key_index *x, int64_t key)
{
    const int64_t place = place_of(x, key);
    int64_t free = place;
    assert(!key_index_is_full(x));
    while (x->at[free].mark) free++;
    memmove(&x->at[place + 1], &x->at[place], (size_t)(free - place) * sizeof *x->at);
    x->at[place] = (struct entry){.mark = key + 1, .state = ENTRY_SEEN};
    if (free >= x->end) x->end = free + 1;
    x->count++;
    return &x->at[place];
}

static bool is_kept(const struct entry *entry, bool drops)
{
    return entry->mark && !(drops && entry->state == ENTRY_SEEN);
}

static int64_t count_kept(const struct key_index *x, bool drops)
{
    int64_t count = 0;
    for (int64_t i = 0; i < x->end; i++) count += is_kept(&x->at[i], drops);
    return count;
}

/* Gives back what is before `done`, of which it was told before. */
static void release(struct key_index *x, int64_t done)
{
    if (done % RELEASED == 0 && done)
        madvise(&x->at[done - RELEASED], RELEASED * sizeof *x->at, MADV_DONTNEED);
}

err key_index_make_room(struct key_index *x, bool drops)
{
    const int64_t kept = drops ? count_kept(x, true) : x->count;
    struct key_index to = *x;
    TRY(map(&to, (int64_t)((double)(kept + 1) / LOAD_LEAST) + HOMES_LEAST));
    for (int64_t i = 0; i < x->end; i++) {
        release(x, i);
        if (!is_kept(&x->at[i], drops)) continue;
        const int64_t home = key_index_home(&to, x->at[i].mark - 1);
        if (home > to.end) to.end = home;
        to.at[to.end++] = x->at[i];
        to.count++;
    }
    key_index_close(x);
    *x = to;
    return OK;
}
