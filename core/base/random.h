/* random.h - random numbers without state.
 *
 * A number depends on a key and an index only, never on how many were drawn before, so that the
 * initial value of a variable is the same whatever its placement, its partition or the number of
 * tasks, and any position of a data stream can be reached at once. The mixing function is the
 * finaliser of splitmix64 (Steele, Lea, Flood 2014), applied twice.
 */
#ifndef CORE_BASE_RANDOM_H
#define CORE_BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t random_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static inline uint64_t random_u64(uint64_t key, uint64_t index)
{
    return random_mix(random_mix(index * 0x9e3779b97f4a7c15u + key) + key);
}

/* [0, 1), 24 bits: every value is exact in a float. */
static inline float random_uniform(uint64_t key, uint64_t index)
{
    return (float)(random_u64(key, index) >> 40) * 0x1p-24f;
}

/* A key for everything drawn under a name: seed and text mixed (FNV-1a, then random_mix). */
uint64_t random_key(uint64_t seed, const char *name);

/* N(0, 1) by Box-Muller from the two halves of one draw. */
float random_normal(uint64_t key, uint64_t index);

/* N(0, 1) redrawn while |z| >= 2; at most 64 redraws, then 0. */
float random_truncated_normal(uint64_t key, uint64_t index);

/* The image of position under the random permutation of 0 .. size-1 that the key selects: a Feistel
 * network with cycle walking, O(1) in time and memory. size >= 1, position < size. */
uint64_t random_permute(uint64_t key, uint64_t size, uint64_t position);

#endif
