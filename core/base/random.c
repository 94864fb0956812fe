/* random.c - see random.h. */
#include "core/base/random.h"

#include <math.h>

enum { REDRAWS_MAX = 64, FEISTEL_ROUNDS = 6 };

static const uint64_t golden = 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio, odd */

uint64_t random_key(uint64_t seed, const char *name)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, 64 bits */
    for (const char *c = name; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return random_mix(hash + random_mix(seed + golden));
}

float random_normal(uint64_t key, uint64_t index)
{
    const uint64_t draw = random_u64(key, index);
    /* (0, 1]: half a step above zero, so that the logarithm is finite; 32 bits reach 6.7 sigma */
    const float radius_draw = ((float)(draw >> 32) + 0.5f) * 0x1p-32f;
    const float angle_draw = (float)((draw & 0xffffffffu) >> 8) * 0x1p-24f; /* [0, 1), exact */
    return sqrtf(-2.0f * logf(radius_draw)) * cosf((float)(2 * M_PI) * angle_draw);
}

float random_truncated_normal(uint64_t key, uint64_t index)
{
    for (uint64_t redraw = 0; redraw <= REDRAWS_MAX; redraw++) {
        const float z = random_normal(key + redraw * golden, index);
        if (fabsf(z) < 2.0f) return z;
    }
    return 0.0f;
}

/* A number below `size` from a round key and the other half. */
static uint64_t below(uint64_t round_key, uint64_t other, uint64_t size)
{
    return (uint64_t)(((unsigned __int128)random_mix(round_key + other * golden) * size) >> 64);
}

/* A Feistel network whose halves are the digits of x = left * columns + right, left < rows, right <
 * columns: each round adds a function of one digit to the other, modulo its range, so every round
 * is a bijection. */
static uint64_t feistel(uint64_t key, uint64_t rows, uint64_t columns, uint64_t x)
{
    uint64_t left = x / columns, right = x % columns;
    for (uint64_t round = 0; round < FEISTEL_ROUNDS; round += 2) {
        left += below(key + round, right, rows);
        if (left >= rows) left -= rows;
        right += below(key + round + 1, left, columns);
        if (right >= columns) right -= columns;
    }
    return left * columns + right;
}

/* Cycle walking: applies the bijection until the result is below size. That ends, since a cycle
 * returns to position, which is below size. Two members of [0, size) never reach the same next one,
 * so this is a permutation. The domain is the smallest rectangle near a square, so a second step is
 * rarely needed. */
uint64_t random_permute(uint64_t key, uint64_t size, uint64_t position)
{
    const uint64_t rows = (uint64_t)ceil(sqrt((double)size));
    const uint64_t columns = size / rows + (size % rows != 0);
    const uint64_t mixed_key = random_mix(key + golden);
    uint64_t x = position;
    do x = feistel(mixed_key, rows, columns, x);
    while (x >= size);
    return x;
}
