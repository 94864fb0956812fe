/* chunk.h - processes a row in chunks of sixteen elements, whatever its length.
 *
 * Rows are often ten wide, so the last, partial chunk is the common case: it is padded with a
 * neutral value and then processed like a whole one, in a loop of constant length. Lanes are
 * combined in a fixed order.
 */
#ifndef KERNELS_CPU_CHUNK_H
#define KERNELS_CPU_CHUNK_H

#include "kernels/elements.h"

enum { CHUNK = 16 };

ELEMENT int chunk_count(int64_t left)
{
    return left < CHUNK ? (int)left : CHUNK;
}

/* The conditional copies compile to masked loads and stores where the processor has them. */
ELEMENT void chunk_load(float *restrict chunk, const float *restrict x, int count, float filling)
{
    if (count == CHUNK)
        memcpy(chunk, x, CHUNK * sizeof(float));
    else
        for (int i = 0; i < CHUNK; i++) chunk[i] = i < count ? x[i] : filling;
}

ELEMENT void chunk_store(float *restrict y, const float *restrict chunk, int count)
{
    if (count == CHUNK) {
        memcpy(y, chunk, CHUNK * sizeof(float));
        return;
    }
    for (int i = 0; i < CHUNK; i++)
        if (i < count) y[i] = chunk[i];
}

ELEMENT float chunk_max(const float *chunk)
{
    float a[CHUNK / 2], b[CHUNK / 4], c[CHUNK / 8];
    for (int i = 0; i < CHUNK / 2; i++) a[i] = chunk[i] > chunk[i + 8] ? chunk[i] : chunk[i + 8];
    for (int i = 0; i < CHUNK / 4; i++) b[i] = a[i] > a[i + 4] ? a[i] : a[i + 4];
    for (int i = 0; i < CHUNK / 8; i++) c[i] = b[i] > b[i + 2] ? b[i] : b[i + 2];
    return c[0] > c[1] ? c[0] : c[1];
}

ELEMENT double chunk_sum(const double *chunk)
{
    double a[CHUNK / 2], b[CHUNK / 4];
    for (int i = 0; i < CHUNK / 2; i++) a[i] = chunk[i] + chunk[i + 8];
    for (int i = 0; i < CHUNK / 4; i++) b[i] = a[i] + a[i + 4];
    return (b[0] + b[2]) + (b[1] + b[3]);
}

/* The maximum of a row; ignores NaN. */
ELEMENT float row_max(const float *x, int64_t columns)
{
    float top[CHUNK], chunk[CHUNK];
    for (int i = 0; i < CHUNK; i++) top[i] = -INFINITY;
    for (int64_t at = 0; at < columns; at += CHUNK) {
        chunk_load(chunk, x + at, chunk_count(columns - at), -INFINITY);
        for (int i = 0; i < CHUNK; i++) top[i] = chunk[i] > top[i] ? chunk[i] : top[i];
    }
    return chunk_max(top);
}

/* y = e^(x - top); returns its sum. y may be x, or NULL for the sum only */
ELEMENT float row_exp(float *y, const float *x, float top, int64_t columns)
{
    double sum[CHUNK] = {0};
    float chunk[CHUNK];
    for (int64_t at = 0; at < columns; at += CHUNK) {
        int count = chunk_count(columns - at);
        chunk_load(chunk, x + at, count, -INFINITY);
        for (int i = 0; i < CHUNK; i++) chunk[i] = mathf_exp(chunk[i] - top);
        for (int i = 0; i < CHUNK; i++) sum[i] += i < count ? chunk[i] : 0.0f;
        if (y) chunk_store(y + at, chunk, count);
    }
    return (float)chunk_sum(sum);
}

#endif
