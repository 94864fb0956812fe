/* buckets.c - see buckets.h. */
#include "core/train/session/buckets.h"

#include <stdlib.h>
#include <string.h>

static int by_offset(const void *a, const void *b)
{
    const struct slice *x = *(const struct slice *const *)a, *y = *(const struct slice *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

void buckets_open(const struct layout *layout, int64_t least, struct arena *arena,
                  struct buckets *ret)
{
    const size_t ps_count = (size_t)layout->ps_count, all = (size_t)layout->slice_count;
    struct buckets p = {
        .layout = layout,
        .least = least,
        .slices = arena_array(arena, ps_count, sizeof *p.slices),
        .slice_count = arena_array(arena, ps_count, sizeof *p.slice_count),
        .is_finished = arena_array(arena, (size_t)layout->variable_count, sizeof *p.is_finished),
        .finished = arena_array(arena, ps_count, sizeof *p.finished),
        .sent = arena_array(arena, ps_count, sizeof *p.sent),
    };
    for (size_t i = 0; i < all; i++) p.slice_count[layout->slices[i].ps]++;
    for (size_t ps = 0; ps < ps_count; ps++) {
        p.slices[ps] = arena_array(arena, (size_t)p.slice_count[ps], sizeof **p.slices);
        p.slice_count[ps] = 0;
    }
    for (size_t i = 0; i < all; i++) {
        const struct slice *slice = &layout->slices[i];
        p.slices[slice->ps][p.slice_count[slice->ps]++] = slice;
    }
    for (size_t ps = 0; ps < ps_count; ps++)
        qsort(p.slices[ps], (size_t)p.slice_count[ps], sizeof **p.slices, by_offset);
    *ret = p;
}

void buckets_begin(struct buckets *p)
{
    const size_t ps_count = (size_t)p->layout->ps_count;
    memset(p->is_finished, 0, (size_t)p->layout->variable_count * sizeof *p->is_finished);
    memset(p->finished, 0, ps_count * sizeof *p->finished);
    memset(p->sent, 0, ps_count * sizeof *p->sent);
}

void buckets_finish(struct buckets *p, int variable)
{
    p->is_finished[variable] = true;
    for (int ps = 0; ps < p->layout->ps_count; ps++)
        while (p->finished[ps] < p->slice_count[ps] &&
               p->is_finished[p->slices[ps][p->finished[ps]]->variable])
            p->finished[ps]++;
}

/* Where the first slice begins that is not finished: the gap before it is complete too. */
static int64_t front(const struct buckets *p, int ps)
{
    if (p->finished[ps] == p->slice_count[ps]) return p->layout->block_floats[ps];
    return p->slices[ps][p->finished[ps]]->offset;
}

bool buckets_next(struct buckets *p, struct bucket *ret)
{
    for (int ps = 0; ps < p->layout->ps_count; ps++) {
        const int64_t end = front(p, ps), grown = end - p->sent[ps];
        const bool is_end = end == p->layout->block_floats[ps];
        if (grown == 0 || (grown < p->least && !is_end)) continue;
        *ret = (struct bucket){ps, p->sent[ps], grown};
        p->sent[ps] = end;
        return true;
    }
    return false;
}
