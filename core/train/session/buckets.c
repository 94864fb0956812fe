/* buckets.c - see buckets.h. */
#include "core/train/session/buckets.h"

#include <stdlib.h>
#include <string.h>

static int by_offset(const void *a, const void *b)
{
    const struct slice *x = *(const struct slice *const *)a, *y = *(const struct slice *const *)b;
    return (x->offset > y->offset) - (x->offset < y->offset);
}

static bool moves(const struct layout *layout, const struct slice *slice)
{
    return !layout->variables[slice->variable].is_frozen;
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
        .complete = arena_array(arena, (size_t)layout->variable_count, sizeof *p.complete),
        .finished = arena_array(arena, ps_count, sizeof *p.finished),
        .sent = arena_array(arena, ps_count, sizeof *p.sent),
    };
    for (size_t i = 0; i < all; i++)
        p.slice_count[layout->slices[i].ps] += moves(layout, &layout->slices[i]);
    for (size_t ps = 0; ps < ps_count; ps++) {
        p.slices[ps] = arena_array(arena, (size_t)p.slice_count[ps], sizeof **p.slices);
        p.slice_count[ps] = 0;
    }
    for (size_t i = 0; i < all; i++) {
        const struct slice *slice = &layout->slices[i];
        if (moves(layout, slice)) p.slices[slice->ps][p.slice_count[slice->ps]++] = slice;
    }
    for (size_t ps = 0; ps < ps_count; ps++)
        qsort(p.slices[ps], (size_t)p.slice_count[ps], sizeof **p.slices, by_offset);
    *ret = p;
}

void buckets_begin(struct buckets *p)
{
    const size_t ps_count = (size_t)p->layout->ps_count;
    memset(p->complete, 0, (size_t)p->layout->variable_count * sizeof *p->complete);
    memset(p->finished, 0, ps_count * sizeof *p->finished);
    memset(p->sent, 0, ps_count * sizeof *p->sent);
}

/* Complete floats at the front of a slice. A slice cut along another axis than the first consists
 * of many stretches of its variable. */
static int64_t complete_of(const struct buckets *p, const struct slice *slice)
{
    const int64_t complete = p->complete[slice->variable];
    if (complete == shape_count(&slice->shape)) return slice->count;
    if (slice->axis > 0) return 0;
    const int64_t before = slice->start * shape_count_from(&slice->shape, 1);
    if (complete <= before) return 0;
    return complete - before < slice->count ? complete - before : slice->count;
}

void buckets_finish(struct buckets *p, int variable, int64_t floats)
{
    p->complete[variable] = floats;
    for (int ps = 0; ps < p->layout->ps_count; ps++)
        while (p->finished[ps] < p->slice_count[ps]) {
            const struct slice *slice = p->slices[ps][p->finished[ps]];
            if (complete_of(p, slice) < slice->count) break;
            p->finished[ps]++;
        }
}

/* Where the complete floats of a block end: within the first slice that is not finished, or at its
 * beginning, since the gap before it is complete too. */
static int64_t front(const struct buckets *p, int ps)
{
    if (p->finished[ps] == p->slice_count[ps]) return p->layout->moved_floats[ps];
    const struct slice *slice = p->slices[ps][p->finished[ps]];
    return slice->offset + complete_of(p, slice);
}

bool buckets_next(struct buckets *p, int *ret_ps, struct range *ret)
{
    for (int ps = 0; ps < p->layout->ps_count; ps++) {
        const int64_t end = front(p, ps), grown = end - p->sent[ps];
        const bool is_end = end == p->layout->moved_floats[ps];
        if (grown == 0 || (grown < p->least && !is_end)) continue;
        *ret_ps = ps;
        *ret = (struct range){p->sent[ps], end};
        p->sent[ps] = end;
        return true;
    }
    return false;
}
