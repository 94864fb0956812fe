/* loops.c - the arithmetic of core/data: see loops.h. Plain loops, written so that the compiler
 * turns them into vectors; LOOPS_TABLE is the name of this copy's table (meson.build).
 */
#include "core/data/loops.h"

static void scale_bytes(float *restrict y, const uint8_t *restrict x, float scale, float offset,
                        int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = scale * (float)x[i] + offset;
}

static void scale_floats(float *restrict y, const float *restrict x, double scale, double offset,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(scale * (double)x[i] + offset);
}

/* The 32-bit finaliser of murmur3 (Appleby): 32 bits are what vectors multiply fast. */
static inline uint32_t mix(uint32_t x)
{
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

static inline uint32_t hash(uint32_t key, uint32_t index)
{
    return mix(index * 0x9e3779b9u + key);
}

static void fill_uniform(float *y, uint32_t key, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) y[i] = (float)(int32_t)(hash(key, i) >> 8) * 0x1p-24f;
}

/* In this form the compiler uses vector min and max instructions. */
static inline float clamp(float x, float low, float high)
{
    x = x < low ? low : x;
    return x > high ? high : x;
}

/* Rows are DIGIT_PITCH wide, though only DIGIT_SIDE are drawn, so that only whole vectors occur. */
static void approach(float squares[DIGIT_FLOATS], const struct piece *piece)
{
    struct piece p = *piece;
    for (int y = p.first_row; y <= p.last_row; y++) {
        float dy = (float)y - p.from.y;
        for (int x = 0; x < DIGIT_PITCH; x++) {
            float dx = (float)x - p.from.x;
            float t = clamp((dx * p.along.x + dy * p.along.y) * p.per_square, 0, 1);
            float away_x = dx - t * p.along.x, away_y = dy - t * p.along.y;
            float square = away_x * away_x + away_y * away_y, before = squares[y * DIGIT_PITCH + x];
            squares[y * DIGIT_PITCH + x] = square < before ? square : before;
        }
    }
}

/* Noise in [-1, 1): the sum of two uniform numbers, so small values are more likely. */
static inline float noise(uint32_t key, int pixel)
{
    uint32_t bits = hash(key, (uint32_t)pixel);
    return (float)(int32_t)((bits & 0xffff) + (bits >> 16)) * 0x1p-16f - 1;
}

static void shade(uint8_t image[DIGIT_PIXELS], const float squares[DIGIT_FLOATS],
                  const struct pen *pen)
{
    struct pen p = *pen;
    float level[DIGIT_PITCH];
    for (int y = 0; y < DIGIT_SIDE; y++) {
        float gap_y = (float)y - p.gap.y;
        for (int x = 0; x < DIGIT_PITCH; x++) {
            int i = y * DIGIT_PITCH + x;
            float cover = clamp(p.radius + 0.5f - __builtin_sqrtf(squares[i]), 0, 1);
            float gap_x = (float)x - p.gap.x;
            cover = gap_x * gap_x + gap_y * gap_y < p.gap_radius * p.gap_radius ? 0 : cover;
            level[x] = clamp(cover * p.ink + noise(p.noise_key, i) * p.noise, 0, 255);
        }
        for (int x = 0; x < DIGIT_SIDE; x++) image[y * DIGIT_SIDE + x] = (uint8_t)(int32_t)level[x];
    }
}

extern const struct loops LOOPS_TABLE;
const struct loops LOOPS_TABLE = {scale_bytes, scale_floats, fill_uniform, approach, shade};
