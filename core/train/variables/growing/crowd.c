/* crowd.c - see crowd.h. */
#include "core/train/variables/growing/crowd.h"

#include <assert.h>
#include <string.h>
#include <sys/mman.h>

enum {
    HOMES_LEAST = 1024,
    RELEASED = 1 << 18, /* places whose memory is freed together; a multiple of a page */
    HUGE_BYTES = 4 << 20,
};
/* Keys per home: at these loads an entry of 13 bytes takes at most 20, and a search visits two or
 * three places. */
static const double LOAD_LEAST = 0.65, LOAD_MOST = 0.71;
static const int64_t LENGTH_LEAST = INT64_C(1) << 50;

/* As many places as homes, and after the last home as many again, in case all keys belong to it:
 * only used ones take memory. */
static err map(struct crowd *x, int64_t homes)
{
    x->homes = homes;
    x->end = x->count = 0;
    x->share = (uint64_t)(((unsigned __int128)(uint64_t)homes << 63) / (uint64_t)x->length);
    x->bytes = 2 * (size_t)homes * sizeof *x->at;
    x->at = mmap(NULL, x->bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (x->at == MAP_FAILED) {
        x->at = NULL;
        return fail(ERR_MEMORY, "no memory for %lld keys", (long long)homes);
    }
    if (x->bytes >= HUGE_BYTES) madvise(x->at, x->bytes / 2, MADV_HUGEPAGE);
    return OK;
}

static int64_t homes_for(int64_t count)
{
    return (int64_t)((double)(count + 1) / LOAD_LEAST) + HOMES_LEAST;
}

err crowd_open(int64_t start, int64_t length, int64_t count, struct crowd *ret)
{
    assert(length >= LENGTH_LEAST);
    *ret = (struct crowd){.start = start, .length = length};
    return map(ret, homes_for(count));
}

void crowd_close(struct crowd *x)
{
    if (x->at) munmap(x->at, x->bytes);
    *x = (struct crowd){0};
}

size_t crowd_bytes(const struct crowd *x)
{
    const int64_t places = x->end > x->homes ? x->end : x->homes;
    return (size_t)places * sizeof *x->at;
}

/* The first place at or after the key's home that is free or holds a key that is not smaller */
static int64_t place_of(const struct crowd *x, int64_t key)
{
    int64_t place = crowd_home(x, key);
    while (x->at[place].mark && x->at[place].mark <= key) place++;
    return place;
}

struct crowded *crowd_find(const struct crowd *x, int64_t key)
{
    struct crowded *found = &x->at[place_of(x, key)];
    return found->mark == key + 1 ? found : NULL;
}

struct crowded *crowd_from(const struct crowd *x, int64_t key)
{
    int64_t place = place_of(x, key);
    while (place < x->end && !x->at[place].mark) place++;
    return place < x->end ? &x->at[place] : NULL;
}

/* Frees the memory of places before `done` that an earlier call did not. */
static void release(struct crowd *x, int64_t done)
{
    if (done % RELEASED == 0 && done)
        madvise(&x->at[done - RELEASED], RELEASED * sizeof *x->at, MADV_DONTNEED);
}

static err grow(struct crowd *x)
{
    struct crowd to = *x;
    TRY(map(&to, homes_for(x->count)));
    for (int64_t i = 0; i < x->end; i++) {
        release(x, i);
        if (!x->at[i].mark) continue;
        const int64_t home = crowd_home(&to, x->at[i].mark - 1);
        if (home > to.end) to.end = home;
        to.at[to.end++] = x->at[i];
        to.count++;
    }
    crowd_close(x);
    *x = to;
    return OK;
}

err crowd_add(struct crowd *x, int64_t key, struct crowded **ret)
{
    if ((double)(x->count + 1) > LOAD_MOST * (double)x->homes) TRY(grow(x));
    const int64_t place = place_of(x, key);
    int64_t free = place;
    while (x->at[free].mark) free++;
    memmove(&x->at[place + 1], &x->at[place], (size_t)(free - place) * sizeof *x->at);
    x->at[place] = (struct crowded){.mark = key + 1};
    if (free >= x->end) x->end = free + 1;
    x->count++;
    *ret = &x->at[place];
    return OK;
}
