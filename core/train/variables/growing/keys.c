/* keys.c - see keys.h. A permutation of all 63-bit numbers; as the largest is no id, an id mapped
 * to it is permuted once more. */
#include "core/train/variables/growing/keys.h"

static const uint64_t MASK = UINT64_MAX >> 1;
static const uint64_t FACTOR = 0xbf58476d1ce4e5b9u, ITS_INVERSE = 0x96de1b173f119089u;
enum { SHIFT = 32 }; /* more than half of the bits: x ^ x >> SHIFT undoes itself */

static uint64_t spread(uint64_t x)
{
    x = (x ^ x >> SHIFT) * FACTOR & MASK;
    x = (x ^ x >> SHIFT) * FACTOR & MASK;
    return x ^ x >> SHIFT;
}

static uint64_t gather(uint64_t x)
{
    x = (x ^ x >> SHIFT) * ITS_INVERSE & MASK;
    x = (x ^ x >> SHIFT) * ITS_INVERSE & MASK;
    return x ^ x >> SHIFT;
}

int64_t key_of_id(int64_t id)
{
    const uint64_t key = spread((uint64_t)id);
    return (int64_t)(key == MASK ? spread(key) : key);
}

int64_t id_of_key(int64_t key)
{
    const uint64_t id = gather((uint64_t)key);
    return (int64_t)(id == MASK ? gather(id) : id);
}
