/* gemm_bf16.c - products of floats that are first rounded to bfloat16, to nearest even. Copies a to
 * [m, k], the layout that the library reads best. */
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/chunk.h"
#include "kernels/cpu/isa.h"

bool ISA(bf16_can)(const struct device *d, const struct gemm *g)
{
    const struct cpu_state *state = d->state;
    if (!state->bf16) return false;
    /* in double, because products may overflow; a number of a is used n times, one of b m times */
    const double m = (double)g->m, n = (double)g->n, work = m * n * (double)g->k;
    return g->k >= BF16_TERMS && work >= BF16_WORK_MIN && m * n >= BF16_USES_MIN * (m + n);
}

/* to [rows, to_step] = from [rows, columns]; the rest of a row is 0 */
struct bf16_rounding {
    const float *from;
    uint16_t *to;
    int64_t rows, columns, to_step;
};

/* The rounded x in the upper 16 bits, as the processor's instruction rounds; the lower half is
 * undefined. NaN stays NaN. */
ELEMENT uint32_t rounded_bits(float x)
{
    const uint32_t bits = mathf_bits(x), nearest = bits + 0x7fff + ((bits >> 16) & 1);
    return (bits & 0x7fffffff) > 0x7f800000 ? bits | 0x400000 : nearest;
}

static void round_row(uint16_t *restrict to, const float *restrict from, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] = (uint16_t)(rounded_bits(from[i]) >> 16);
}

static void round_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct bf16_rounding *r = arguments;
    for (int64_t row = begin; row < end; row++) {
        uint16_t *to = r->to + row * r->to_step;
        round_row(to, r->from + row * r->columns, r->columns);
        for (int64_t i = r->columns; i < r->to_step; i++) to[i] = 0;
    }
}

static void round_all(struct device *d, const struct bf16_rounding *r)
{
    spread(d, r->rows, SPREAD_GRAIN / (r->columns + 1) + 1, round_rows, r);
}

enum { BLOCK = CHUNK }; /* columns of `from`, and pairs of its rows */
typedef uint32_t words __attribute__((vector_size(4 * BLOCK)));

/* Shuffles of two rows that exchange blocks of this many words across the diagonal: the new first
 * row, and the new second one */
#define EIGHTS 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23
#define OTHER_EIGHTS 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31
#define FOURS 0, 1, 2, 3, 16, 17, 18, 19, 8, 9, 10, 11, 24, 25, 26, 27
#define OTHER_FOURS 4, 5, 6, 7, 20, 21, 22, 23, 12, 13, 14, 15, 28, 29, 30, 31
#define TWOS 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29
#define OTHER_TWOS 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31
#define ONES 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30
#define OTHER_ONES 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31

/* Does so for every two rows whose distance is the width of their blocks */
#define EXCHANGE(rows, distance, first, second)                                                    \
    do {                                                                                           \
        for (int i = 0; i < BLOCK; i++) {                                                          \
            if (i & (distance)) continue;                                                          \
            const words low = (rows)[i], high = (rows)[i + (distance)];                            \
            (rows)[i] = __builtin_shufflevector(low, high, first);                                 \
            (rows)[i + (distance)] = __builtin_shufflevector(low, high, second);                   \
        }                                                                                          \
    } while (0)

/* Transposes. */
ELEMENT void turn_words(words rows[BLOCK])
{
    EXCHANGE(rows, 8, EIGHTS, OTHER_EIGHTS);
    EXCHANGE(rows, 4, FOURS, OTHER_FOURS);
    EXCHANGE(rows, 2, TWOS, OTHER_TWOS);
    EXCHANGE(rows, 1, ONES, OTHER_ONES);
}

/* Two rows (NULL: zeros) become one of words: the first row is the lower half. */
ELEMENT words round_pair(const float *first, const float *second, int columns)
{
    float low[BLOCK] = {0}, high[BLOCK] = {0};
    uint32_t both[BLOCK];
    words ret;
    if (first) chunk_load(low, first, columns, 0.0f);
    if (second) chunk_load(high, second, columns, 0.0f);
#pragma omp simd
    for (int i = 0; i < BLOCK; i++)
        both[i] = rounded_bits(low[i]) >> 16 | (rounded_bits(high[i]) & 0xffff0000);
    memcpy(&ret, both, sizeof ret);
    return ret;
}

/* to [columns, to_step] from `column` on, to_step a multiple of 2 BLOCK */
static void turn_block(const struct bf16_rounding *r, int64_t row, int64_t column)
{
    words block[BLOCK];
    const int columns = chunk_count(r->columns - column);
    for (int i = 0; i < BLOCK; i++) {
        const int64_t at = row + 2 * i;
        const float *first = at < r->rows ? r->from + at * r->columns + column : NULL;
        block[i] = round_pair(first, at + 1 < r->rows ? first + r->columns : NULL, columns);
    }
    turn_words(block);
    for (int j = 0; j < columns; j++)
        memcpy(r->to + (column + j) * r->to_step + row, &block[j], sizeof block[j]);
}

/* begin, end: blocks of columns */
static void turn_columns(const void *arguments, int64_t begin, int64_t end)
{
    const struct bf16_rounding *r = arguments;
    for (int64_t block = begin; block < end; block++)
        for (int64_t row = 0; row < r->to_step; row += 2 * BLOCK) turn_block(r, row, block * BLOCK);
}

static void turn_all(struct device *d, const struct bf16_rounding *r)
{
    const int64_t blocks = (r->columns + BLOCK - 1) / BLOCK;
    spread(d, blocks, SPREAD_GRAIN / (BLOCK * r->rows + 1) + 1, turn_columns, r);
}

static void round_a(struct device *d, const struct gemm *g, uint16_t *to, int64_t k)
{
    if (g->transpose_a)
        turn_all(d, &(struct bf16_rounding){g->a, to, g->k, g->m, k});
    else
        round_all(d, &(struct bf16_rounding){g->a, to, g->m, g->k, k});
}

static void round_b(struct device *d, const struct gemm *g, uint16_t *to, int64_t k)
{
    if (g->transpose_b) {
        round_all(d, &(struct bf16_rounding){g->b, to, g->n, g->k, k});
        return;
    }
    round_all(d, &(struct bf16_rounding){g->b, to, g->k, g->n, g->n});
    memset(to + g->k * g->n, 0, (size_t)((k - g->k) * g->n) * sizeof *to);
}

void ISA(bf16_run)(struct device *d, const struct gemm *g)
{
    struct cpu_state *state = d->state;
    const struct bf16_shape shape = {.m = g->m,
                                     .n = g->n,
                                     .k = (g->k + BF16_TERMS - 1) / BF16_TERMS * BF16_TERMS,
                                     .transpose_b = g->transpose_b,
                                     .add = g->add};
    uint16_t *a, *b;
    if (!bf16_operands(state->bf16, &shape, &a, &b)) {
        cpu_note(d, dnnl_out_of_memory, "a product in bf16");
        return;
    }
    round_a(d, g, a, shape.k);
    round_b(d, g, b, shape.k);
    bf16_multiply(d, &shape, g->c);
}
