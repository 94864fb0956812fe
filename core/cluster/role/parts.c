/* parts.c - see parts.h. */
#include "core/cluster/role/parts.h"

#include <assert.h>

enum {
    PARTS_MANY = 16, /* of a block that is neither small nor large */
    PART_BYTES_MIN = 16 << 10,
    PART_BYTES_MAX = 256 << 10,
    PART_ALIGN = 64, /* LAYOUT_BYTES */
};

static uint64_t share_of(uint64_t block, uint64_t count)
{
    return (block + count * PART_ALIGN - 1) / (count * PART_ALIGN) * PART_ALIGN;
}

struct parts parts_of(uint64_t block)
{
    const uint64_t fine = share_of(block, PARTS_MANY), least = share_of(block, PARTS_MAX);
    uint64_t part = fine < PART_BYTES_MAX ? fine : PART_BYTES_MAX;
    if (part < PART_BYTES_MIN) part = PART_BYTES_MIN;
    return (struct parts){block, part > least ? part : least};
}

/* The first `count` of 64. */
static uint64_t first(uint64_t count)
{
    return count < PARTS_MAX ? (UINT64_C(1) << count) - 1 : UINT64_MAX;
}

/* How many parts reach as far as byte `end`; round_up: those that end behind it, too. */
static uint64_t count_to(const struct parts *p, uint64_t end, bool round_up)
{
    if (end >= p->block) return (p->block + p->part - 1) / p->part;
    return (end + (round_up ? p->part - 1 : 0)) / p->part;
}

uint64_t parts_all(const struct parts *p)
{
    return first(count_to(p, p->block, true));
}

uint64_t parts_before(const struct parts *p, uint64_t end)
{
    return first(count_to(p, end, false));
}

uint64_t parts_touched(const struct parts *p, struct stretch s)
{
    if (!s.length) return 0;
    return first(count_to(p, s.offset + s.length, true)) & ~first(count_to(p, s.offset, false));
}

uint64_t parts_in(const struct parts *p, struct stretch s)
{
    const bool is_inside = s.length <= p->block && s.offset <= p->block - s.length;
    if (!is_inside || !s.length || s.offset % p->part) return 0;
    const uint64_t end = s.offset + s.length;
    return end % p->part && end < p->block ? 0 : parts_touched(p, s);
}

uint64_t parts_last(uint64_t set)
{
    return UINT64_C(1) << (PARTS_MAX - 1 - __builtin_clzll(set));
}

static struct stretch stretch_of(const struct parts *p, uint64_t begin, uint64_t end)
{
    const uint64_t offset = begin * p->part;
    return (struct stretch){offset, (end * p->part < p->block ? end * p->part : p->block) - offset};
}

struct stretch parts_take_last(const struct parts *p, uint64_t *set)
{
    assert(*set);
    const uint64_t end = PARTS_MAX - (uint64_t)__builtin_clzll(*set);
    const uint64_t gaps = ~*set & first(end);
    const uint64_t begin = gaps ? PARTS_MAX - (uint64_t)__builtin_clzll(gaps) : 0;
    *set &= first(begin);
    return stretch_of(p, begin, end);
}

struct stretch parts_take_front(const struct parts *p, uint64_t *set)
{
    const uint64_t end = ~*set ? (uint64_t)__builtin_ctzll(~*set) : PARTS_MAX;
    *set &= ~first(end);
    return stretch_of(p, 0, end);
}
