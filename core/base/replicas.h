/* replicas.h - which ps hold the same (train.ps_replicas).
 *
 * Of P ps the first homes have the variables between them; each of the others follows one of them:
 * it is described, filled and pushed to like that one, and so holds what that one has acknowledged.
 * ps/0, which decides for all, has no follower. Where nothing is held twice all ps are homes.
 */
#ifndef CORE_BASE_REPLICAS_H
#define CORE_BASE_REPLICAS_H

#include <stdbool.h>
#include <stdint.h>

enum { REPLICAS_PS_MAX = 63 }; /* a set of ps is a number then */

/* Of a set of ps, bit by bit */
static inline bool replicas_have(uint64_t set, int ps)
{
    return ps <= REPLICAS_PS_MAX && set >> ps & 1;
}

/* Every other ps than ps/0 is one of two. */
static inline bool replicas_fit(int ps_count)
{
    return ps_count % 2 == 1 && ps_count >= 3 && ps_count <= REPLICAS_PS_MAX;
}

static inline int replicas_homes(int ps_count, bool are_held_twice)
{
    return are_held_twice ? (ps_count + 1) / 2 : ps_count;
}

/* Of this many homes: how many ps there are. */
static inline int replicas_all(int homes, bool are_held_twice)
{
    return are_held_twice ? 2 * homes - 1 : homes;
}

/* Whose part this ps holds: its own, or that of the one that it follows. */
static inline int replicas_home(int homes, int ps)
{
    return ps < homes ? ps : ps - homes + 1;
}

/* The other one that holds the same; -1: none does. */
static inline int replicas_other(int homes, int ps_count, int ps)
{
    if (ps == 0 || homes == ps_count) return -1;
    return ps < homes ? ps + homes - 1 : ps - homes + 1;
}

/* The largest set of which each is one of two, be it both of them; 0: nothing is held twice. */
static inline uint64_t replicas_most(int homes, int ps_count)
{
    return homes == ps_count ? 0 : (UINT64_C(1) << ps_count) - 2;
}

/* Of a set that a job is to do without those it can: each of them is held by the other one. */
static inline uint64_t replicas_spared(uint64_t set, int homes, int ps_count)
{
    uint64_t ret = 0;
    for (int ps = 1; ps < ps_count && ps <= REPLICAS_PS_MAX; ps++) {
        const int other = replicas_other(homes, ps_count, ps);
        if (other > 0 && replicas_have(set, ps) && !replicas_have(set, other))
            ret |= UINT64_C(1) << ps;
    }
    return ret;
}

#endif
