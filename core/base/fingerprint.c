/* fingerprint.c - see fingerprint.h. The published algorithm: short texts by length, long ones in
 * blocks of 64 bytes that are mixed into a state of seven words.
 */
#include "core/base/fingerprint.h"

static const uint64_t FARM_PRIME_1 = UINT64_C(0xb492b66fbe98f273);

enum { BLOCK_BYTES = 64 };

static uint64_t of_32_at_most(const uint8_t *at, size_t count)
{
    const uint64_t factor = FARM_PRIME_2 + 2 * count;
    const uint64_t a = farm_load_8(at) * FARM_PRIME_1, b = farm_load_8(at + 8);
    const uint64_t c = farm_load_8(at + count - 8) * factor;
    const uint64_t d = farm_load_8(at + count - 16) * FARM_PRIME_2;
    return farm_mix(farm_turn(a + b, 43) + farm_turn(c, 30) + d,
                    a + farm_turn(b + FARM_PRIME_2, 18) + c, factor);
}

static uint64_t of_64_at_most(const uint8_t *at, size_t count)
{
    const uint8_t *end = at + count;
    const uint64_t factor = FARM_PRIME_2 + 2 * count;
    const uint64_t a = farm_load_8(at) * FARM_PRIME_2, b = farm_load_8(at + 8);
    const uint64_t c = farm_load_8(end - 8) * factor, d = farm_load_8(end - 16) * FARM_PRIME_2;
    const uint64_t y = farm_turn(a + b, 43) + farm_turn(c, 30) + d;
    const uint64_t z = farm_mix(y, a + farm_turn(b + FARM_PRIME_2, 18) + c, factor);
    const uint64_t e = farm_load_8(at + 16) * factor, f = farm_load_8(at + 24);
    const uint64_t g = (y + farm_load_8(end - 32)) * factor;
    const uint64_t h = (z + farm_load_8(end - 24)) * factor;
    return farm_mix(farm_turn(e + f, 43) + farm_turn(g, 30) + h, e + farm_turn(f + a, 18) + g,
                    factor);
}

struct two {
    uint64_t first, second;
};

/* 32 bytes and two seeds become two words. */
static struct two mix_32(const uint8_t *at, uint64_t a, uint64_t b)
{
    const uint64_t sum = a + farm_load_8(at), last = farm_load_8(at + 24);
    const uint64_t middle = sum + farm_load_8(at + 8) + farm_load_8(at + 16);
    b = farm_turn(b + sum + last, 21) + farm_turn(middle, 44);
    return (struct two){middle + last, b + sum};
}

struct hash_state {
    uint64_t x, y, z;
    struct two v, w;
};

/* near: the factor of v.first and w.second */
static void mix_block(struct hash_state *s, const uint8_t *at, uint64_t factor, uint64_t near)
{
    s->x = farm_turn(s->x + s->y + s->v.first + farm_load_8(at + 8), 37) * factor;
    s->y = farm_turn(s->y + s->v.second + farm_load_8(at + 48), 42) * factor;
    s->x ^= s->w.second * near;
    s->y += s->v.first * near + farm_load_8(at + 40);
    s->z = farm_turn(s->z + s->w.first, 33) * factor;
    s->v = mix_32(at, s->v.second * factor, s->x + s->w.first);
    s->w = mix_32(at + 32, s->z + s->w.second, s->y + farm_load_8(at + 16));
    const uint64_t z = s->z;
    s->z = s->x;
    s->x = z;
}

/* All blocks, where the last one is always the last 64 bytes and may overlap the one before. */
static uint64_t of_more(const uint8_t *at, size_t count)
{
    const uint64_t seed = 81;
    struct hash_state s = {.x = seed * FARM_PRIME_2 + farm_load_8(at),
                           .y = seed * FARM_PRIME_1 + 113};
    s.z = farm_fold(s.y * FARM_PRIME_2 + 113) * FARM_PRIME_2;
    const size_t blocks = (count - 1) / BLOCK_BYTES, rest = (count - 1) % BLOCK_BYTES;
    for (size_t i = 0; i < blocks; i++) mix_block(&s, at + i * BLOCK_BYTES, FARM_PRIME_1, 1);

    const uint64_t factor = FARM_PRIME_1 + ((s.z & 0xff) << 1);
    s.w.first += rest;
    s.v.first += s.w.first;
    s.w.first += s.v.first;
    mix_block(&s, at + count - BLOCK_BYTES, factor, 9);
    return farm_mix(farm_mix(s.v.first, s.w.first, factor) + farm_fold(s.y) * FARM_PRIME_0 + s.z,
                    farm_mix(s.v.second, s.w.second, factor) + s.x, factor);
}

uint64_t farm_of_long(const void *bytes, size_t count)
{
    if (count <= 32) return of_32_at_most(bytes, count);
    return count <= 64 ? of_64_at_most(bytes, count) : of_more(bytes, count);
}
