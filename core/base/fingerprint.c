/* fingerprint.c - see fingerprint.h. The published algorithm: short texts by length, long ones in
 * blocks of 64 bytes that are mixed into a state of seven words.
 */
#include "core/base/fingerprint.h"

#include <endian.h>
#include <string.h>

/* Primes between 2^63 and 2^64, as published */
static const uint64_t PRIME_0 = UINT64_C(0xc3a5c85c97cb3127);
static const uint64_t PRIME_1 = UINT64_C(0xb492b66fbe98f273);
static const uint64_t PRIME_2 = UINT64_C(0x9ae16a3b2f90404f);

enum { BLOCK_BYTES = 64 };

/* Little endian, on every machine */
static uint64_t load_8(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return le64toh(word);
}

static uint64_t load_4(const uint8_t *at)
{
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return le32toh(word);
}

static uint64_t turn(uint64_t word, int bits)
{
    return word >> bits | word << (64 - bits);
}

static uint64_t fold(uint64_t word)
{
    return word ^ word >> 47;
}

static uint64_t join(uint64_t a, uint64_t b, uint64_t factor)
{
    const uint64_t once = fold((a ^ b) * factor);
    return fold((b ^ once) * factor) * factor;
}

static uint64_t of_16_at_most(const uint8_t *at, size_t count)
{
    const uint64_t factor = PRIME_2 + 2 * count;
    if (count >= 8) {
        const uint64_t a = load_8(at) + PRIME_2, b = load_8(at + count - 8);
        return join(turn(b, 37) * factor + a, (turn(a, 25) + b) * factor, factor);
    }
    if (count >= 4) return join(count + (load_4(at) << 3), load_4(at + count - 4), factor);
    if (count == 0) return PRIME_2;
    const uint64_t low = at[0] + ((uint64_t)at[count / 2] << 8);
    const uint64_t high = count + ((uint64_t)at[count - 1] << 2);
    return fold(low * PRIME_2 ^ high * PRIME_0) * PRIME_2;
}

static uint64_t of_32_at_most(const uint8_t *at, size_t count)
{
    const uint64_t factor = PRIME_2 + 2 * count;
    const uint64_t a = load_8(at) * PRIME_1, b = load_8(at + 8);
    const uint64_t c = load_8(at + count - 8) * factor, d = load_8(at + count - 16) * PRIME_2;
    return join(turn(a + b, 43) + turn(c, 30) + d, a + turn(b + PRIME_2, 18) + c, factor);
}

static uint64_t of_64_at_most(const uint8_t *at, size_t count)
{
    const uint8_t *end = at + count;
    const uint64_t factor = PRIME_2 + 2 * count;
    const uint64_t a = load_8(at) * PRIME_2, b = load_8(at + 8);
    const uint64_t c = load_8(end - 8) * factor, d = load_8(end - 16) * PRIME_2;
    const uint64_t y = turn(a + b, 43) + turn(c, 30) + d;
    const uint64_t z = join(y, a + turn(b + PRIME_2, 18) + c, factor);
    const uint64_t e = load_8(at + 16) * factor, f = load_8(at + 24);
    const uint64_t g = (y + load_8(end - 32)) * factor, h = (z + load_8(end - 24)) * factor;
    return join(turn(e + f, 43) + turn(g, 30) + h, e + turn(f + a, 18) + g, factor);
}

struct two {
    uint64_t first, second;
};

/* 32 bytes and two seeds become two words. */
static struct two mix_32(const uint8_t *at, uint64_t a, uint64_t b)
{
    const uint64_t sum = a + load_8(at), last = load_8(at + 24);
    const uint64_t middle = sum + load_8(at + 8) + load_8(at + 16);
    b = turn(b + sum + last, 21) + turn(middle, 44);
    return (struct two){middle + last, b + sum};
}

struct state {
    uint64_t x, y, z;
    struct two v, w;
};

/* near: by how much v.first and w.second count */
static void mix_block(struct state *s, const uint8_t *at, uint64_t factor, uint64_t near)
{
    s->x = turn(s->x + s->y + s->v.first + load_8(at + 8), 37) * factor;
    s->y = turn(s->y + s->v.second + load_8(at + 48), 42) * factor;
    s->x ^= s->w.second * near;
    s->y += s->v.first * near + load_8(at + 40);
    s->z = turn(s->z + s->w.first, 33) * factor;
    s->v = mix_32(at, s->v.second * factor, s->x + s->w.first);
    s->w = mix_32(at + 32, s->z + s->w.second, s->y + load_8(at + 16));
    const uint64_t z = s->z;
    s->z = s->x;
    s->x = z;
}

/* All blocks but the last, which is the last 64 bytes wherever they begin. */
static uint64_t of_more(const uint8_t *at, size_t count)
{
    const uint64_t seed = 81;
    struct state s = {.x = seed * PRIME_2 + load_8(at), .y = seed * PRIME_1 + 113};
    s.z = fold(s.y * PRIME_2 + 113) * PRIME_2;
    const size_t blocks = (count - 1) / BLOCK_BYTES, rest = (count - 1) % BLOCK_BYTES;
    for (size_t i = 0; i < blocks; i++) mix_block(&s, at + i * BLOCK_BYTES, PRIME_1, 1);

    const uint64_t factor = PRIME_1 + ((s.z & 0xff) << 1);
    s.w.first += rest;
    s.v.first += s.w.first;
    s.w.first += s.v.first;
    mix_block(&s, at + count - BLOCK_BYTES, factor, 9);
    return join(join(s.v.first, s.w.first, factor) + fold(s.y) * PRIME_0 + s.z,
                join(s.v.second, s.w.second, factor) + s.x, factor);
}

uint64_t fingerprint(const void *bytes, size_t count)
{
    if (count <= 16) return of_16_at_most(bytes, count);
    if (count <= 32) return of_32_at_most(bytes, count);
    return count <= 64 ? of_64_at_most(bytes, count) : of_more(bytes, count);
}

uint64_t fingerprint_join(uint64_t first, uint64_t second)
{
    static const uint64_t factor = UINT64_C(0xc6a4a7935bd1e995);
    const uint64_t both = (first ^ factor ^ fold(second * factor) * factor) * factor;
    return fold(fold(both) * factor);
}
