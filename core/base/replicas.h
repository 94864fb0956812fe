/* replicas.h - which ps hold the same values (train.ps_replicas).
 *
 * The first ps are homes, on which the variables are placed; each of the others is the follower of
 * one: it gets the same SETUP, INIT and pushes, and so holds all that its home has acknowledged.
 * ps/0, which decides for all, has no follower. Without replicas all ps are homes.
 */
#ifndef CORE_BASE_REPLICAS_H
#define CORE_BASE_REPLICAS_H

#include <stdbool.h>
#include <stdint.h>

enum { REPLICAS_PS_MAX = 63 }; /* so that a set of ps is a uint64_t */

/* Whether the set (bit i: ps/i) has this ps */
static inline bool replicas_have(uint64_t set, int ps)
{
    return ps <= REPLICAS_PS_MAX && set >> ps & 1;
}

/* Whether this many ps can be replicas: all except ps/0 in pairs. */
static inline bool replicas_fit(int ps_count)
{
    return ps_count % 2 == 1 && ps_count >= 3 && ps_count <= REPLICAS_PS_MAX;
}

static inline int replicas_homes(int ps_count, bool are_held_twice)
{
    return are_held_twice ? (ps_count + 1) / 2 : ps_count;
}

/* The number of ps, from that of homes. */
static inline int replicas_all(int homes, bool are_held_twice)
{
    return are_held_twice ? 2 * homes - 1 : homes;
}

/* The home whose values this ps holds: itself, or the one that it follows. */
static inline int replicas_home(int homes, int ps)
{
    return ps < homes ? ps : ps - homes + 1;
}

/* The other ps that holds the same; -1: none does. */
static inline int replicas_other(int homes, int ps_count, int ps)
{
    if (ps == 0 || homes == ps_count) return -1;
    return ps < homes ? ps + homes - 1 : ps - homes + 1;
}

/* The set of all ps that are one of two; 0: nothing is held twice. */
static inline uint64_t replicas_most(int homes, int ps_count)
{
    return homes == ps_count ? 0 : (UINT64_C(1) << ps_count) - 2;
}

/* Those of a set of lost ps that a job can do without: the other one that holds the same is not in
 * the set. */
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
