/* layer_norm.c - normalizes each row to mean 0 and variance 1. Sums are in double, in an order that
 * depends only on the length. */
#include "kernels/cpu/chunk.h"
#include "kernels/cpu/isa.h"

static int64_t rows_grain(const struct layer_norm *v)
{
    return SPREAD_GRAIN / 8 / (v->columns + CHUNK) + 1;
}

/* The sum of (x - less)^power over a row; power: 1 or 2 */
ELEMENT double row_power_sum(const float *x, float less, bool is_square, int64_t columns)
{
    double sum[CHUNK] = {0};
    float chunk[CHUNK];
    for (int64_t at = 0; at < columns; at += CHUNK) {
        chunk_load(chunk, x + at, chunk_count(columns - at), less);
        for (int i = 0; i < CHUNK; i++) chunk[i] -= less;
        for (int i = 0; i < CHUNK; i++) sum[i] += is_square ? chunk[i] * chunk[i] : chunk[i];
    }
    return chunk_sum(sum);
}

static void normalize_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct layer_norm v = *(const struct layer_norm *)arguments;
    for (int64_t row = begin; row < end; row++) {
        const float *x = v.x + row * v.columns;
        float *hat = v.normal + row * v.columns, *y = v.y + row * v.columns;
        const float mean = (float)(row_power_sum(x, 0, false, v.columns) / (double)v.columns);
        const double variance = row_power_sum(x, mean, true, v.columns) / (double)v.columns;
        const float inverse = 1.0f / sqrtf((float)variance + v.epsilon);
        v.inverse[row] = inverse;
#pragma omp simd
        for (int64_t i = 0; i < v.columns; i++) {
            hat[i] = (x[i] - mean) * inverse;
            y[i] = hat[i] * v.gamma[i] + v.beta[i];
        }
    }
}

void ISA(layer_norm)(struct device *d, const struct layer_norm *v)
{
    spread(d, v->rows, rows_grain(v), normalize_rows, v);
}

/* The sums over a row of dy gamma, and of dy gamma hat, where hat is the normalized row */
ELEMENT void row_sums(const float *dy, const float *gamma, const float *hat, int64_t columns,
                      float *ret_sum, float *ret_product)
{
    double sum[CHUNK] = {0}, product[CHUNK] = {0};
    float slope[CHUNK], factor[CHUNK], normal[CHUNK];
    for (int64_t at = 0; at < columns; at += CHUNK) {
        const int count = chunk_count(columns - at);
        chunk_load(slope, dy + at, count, 0.0f);
        chunk_load(factor, gamma + at, count, 0.0f);
        chunk_load(normal, hat + at, count, 0.0f);
        for (int i = 0; i < CHUNK; i++) slope[i] *= factor[i];
        for (int i = 0; i < CHUNK; i++) sum[i] += slope[i];
        for (int i = 0; i < CHUNK; i++) product[i] += slope[i] * normal[i];
    }
    *ret_sum = (float)(chunk_sum(sum) / (double)columns);
    *ret_product = (float)(chunk_sum(product) / (double)columns);
}

static void normalize_rows_back(const void *arguments, int64_t begin, int64_t end)
{
    const struct layer_norm v = *(const struct layer_norm *)arguments;
    for (int64_t row = begin; row < end; row++) {
        const float *dy = v.dy + row * v.columns, *hat = v.normal + row * v.columns;
        float *dx = v.dx + row * v.columns, mean, product;
        row_sums(dy, v.gamma, hat, v.columns, &mean, &product);
#pragma omp simd
        for (int64_t i = 0; i < v.columns; i++) {
            const float g = (dy[i] * v.gamma[i] - mean - hat[i] * product) * v.inverse[row];
            dx[i] = v.add ? dx[i] + g : g;
        }
    }
}

void ISA(layer_norm_back)(struct device *d, const struct layer_norm *v)
{
    spread(d, v->rows, rows_grain(v), normalize_rows_back, v);
}
