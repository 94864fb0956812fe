/* chunk.h - sixteen neighbours of a row at a time, whatever its length.
 *
 * Rows are often ten wide, so the last chunk is the common case: it is filled up with a value that
 * changes nothing and then treated as a whole one, in a loop of constant length. Lanes are combined
 * in a fixed order.
 */
#ifndef KERNELS_CPU_CHUNK_H
#define KERNELS_CPU_CHUNK_H

#include "kernels/elements.h"

enum { CHUNK = 16 };

ELEMENT int chunk_count(int64_t left)
{
    return left < CHUNK ? (int)left : CHUNK;
}

ELEMENT void chunk_load(float *restrict chunk, const float *restrict x, int count, float filling)
{
    if (count == CHUNK) {
        memcpy(chunk, x, CHUNK * sizeof(float));
        return;
    }
    for (int i = 0; i < CHUNK; i++) chunk[i] = filling;
    memcpy(chunk, x, (size_t)count * sizeof(float));
}

ELEMENT void chunk_store(float *restrict y, const float *restrict chunk, int count)
{
    if (count == CHUNK)
        memcpy(y, chunk, CHUNK * sizeof(float));
    else
        memcpy(y, chunk, (size_t)count * sizeof(float));
}

ELEMENT float chunk_max(const float *chunk)
{
    float top[CHUNK];
    memcpy(top, chunk, sizeof top);
    for (int width = CHUNK / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) top[i] = top[i] > top[i + width] ? top[i] : top[i + width];
    return top[0];
}

ELEMENT double chunk_sum(const double *chunk)
{
    double sum[CHUNK];
    memcpy(sum, chunk, sizeof sum);
    for (int width = CHUNK / 2; width > 0; width /= 2)
        for (int i = 0; i < width; i++) sum[i] += sum[i + width];
    return sum[0];
}

/* The largest of a row; NaN does not count. */
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

/* y = e^(x - top), and the sum of that; y may be x, or NULL for the sum alone */
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
