/* parts.c - see parts.h. */
#include "core/cluster/role/parts.h"

#include <assert.h>

enum {
    PARTS_MANY = 16, /* of a block of medium size */
    PART_FLOATS_MIN = 4 << 10,
    PART_FLOATS_MAX = 64 << 10,
    PART_ALIGN = 16, /* LAYOUT_ALIGN */
};

static int64_t share_of(int64_t block, int64_t count)
{
    return (block + count * PART_ALIGN - 1) / (count * PART_ALIGN) * PART_ALIGN;
}

struct parts parts_of(int64_t block)
{
    const int64_t fine = share_of(block, PARTS_MANY), least = share_of(block, PARTS_MAX);
    int64_t part = fine < PART_FLOATS_MAX ? fine : PART_FLOATS_MAX;
    if (part < PART_FLOATS_MIN) part = PART_FLOATS_MIN;
    return (struct parts){block, part > least ? part : least};
}

struct parts parts_front(struct parts block, int64_t floats)
{
    return (struct parts){floats, block.part};
}

/* The set of the first `count` parts. */
static uint64_t first(int64_t count)
{
    return count < PARTS_MAX ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* How many parts end at or before `end`; round_up: also one that contains it. */
static int64_t count_to(const struct parts *p, int64_t end, bool round_up)
{
    if (end >= p->block) return (p->block + p->part - 1) / p->part;
    return (end + (round_up ? p->part - 1 : 0)) / p->part;
}

uint64_t parts_all(const struct parts *p)
{
    return first(count_to(p, p->block, true));
}

uint64_t parts_before(const struct parts *p, int64_t end)
{
    return first(count_to(p, end, false));
}

uint64_t parts_touched(const struct parts *p, struct range r)
{
    if (range_is_empty(r)) return 0;
    return first(count_to(p, r.end, true)) & ~first(count_to(p, r.begin, false));
}

uint64_t parts_in(const struct parts *p, struct range r)
{
    const bool is_inside = r.begin >= 0 && r.end <= p->block;
    if (!is_inside || range_is_empty(r) || r.begin % p->part) return 0;
    return r.end % p->part && r.end < p->block ? 0 : parts_touched(p, r);
}

uint64_t parts_last(uint64_t set)
{
    return UINT64_C(1) << (PARTS_MAX - 1 - __builtin_clzll(set));
}

static struct range range_of(const struct parts *p, int64_t begin, int64_t end)
{
    return (struct range){begin * p->part, end * p->part < p->block ? end * p->part : p->block};
}

struct range parts_take_last(const struct parts *p, uint64_t *set)
{
    assert(*set);
    const int64_t end = PARTS_MAX - __builtin_clzll(*set);
    const uint64_t gaps = ~*set & first(end);
    const int64_t begin = gaps ? PARTS_MAX - __builtin_clzll(gaps) : 0;
    *set &= first(begin);
    return range_of(p, begin, end);
}

struct range parts_take_front(const struct parts *p, uint64_t *set)
{
    const int64_t end = ~*set ? __builtin_ctzll(~*set) : PARTS_MAX;
    *set &= ~first(end);
    return range_of(p, 0, end);
}
