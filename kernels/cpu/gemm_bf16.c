/* gemm_bf16.c - products of floats that are rounded to bfloat16 on the way: to the nearest, of two
 * the even one. a comes to the library as it is best read, [m, k], whatever it was. */
#include "kernels/cpu/bf16.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/turn.h"

bool ISA(bf16_can)(const struct device *d, const struct gemm *g)
{
    const struct cpu_state *state = d->state;
    if (!state->bf16) return false;
    /* in doubles, as the products may not fit; of a number of a, n uses, of one of b, m */
    const double m = (double)g->m, n = (double)g->n, work = m * n * (double)g->k;
    return g->k >= BF16_TERMS && work >= BF16_WORK_MIN && m * n >= BF16_USES_MIN * (m + n);
}

/* to [rows, to_step] = from [rows, columns]; what is left of a row is 0 */
struct rounding {
    const float *from;
    uint16_t *to;
    int64_t rows, columns, to_step;
};

static void round_row(uint16_t *restrict to, const float *restrict from, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; i++) to[i] = element_to_bf16(from[i]);
}

static void round_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct rounding *r = arguments;
    for (int64_t row = begin; row < end; row++) {
        uint16_t *to = r->to + row * r->to_step;
        round_row(to, r->from + row * r->columns, r->columns);
        for (int64_t i = r->columns; i < r->to_step; i++) to[i] = 0;
    }
}

static void round_all(struct device *d, const struct rounding *r)
{
    spread(d, r->rows, SPREAD_GRAIN / (r->columns + 1) + 1, round_rows, r);
}

/* Two rows of a block, from one column on, become one row of words: the first is the lower half. */
enum { BLOCK = 16 }; /* columns of `from`, and pairs of its rows */

static void round_pair(uint32_t words[BLOCK], const float *first, const float *second, int columns)
{
    float low[BLOCK] = {0}, high[BLOCK] = {0};
    if (first) memcpy(low, first, (size_t)columns * sizeof *low);
    if (second) memcpy(high, second, (size_t)columns * sizeof *high);
#pragma omp simd
    for (int i = 0; i < BLOCK; i++)
        words[i] = element_to_bf16(low[i]) | (uint32_t)element_to_bf16(high[i]) << 16;
}

/* to [columns, to_step] from `column` on, to_step a multiple of 2 BLOCK */
static void turn_block(const struct rounding *r, int64_t row, int64_t column)
{
    uint32_t words[BLOCK * BLOCK];
    float moved[BLOCK * BLOCK], turned[BLOCK * BLOCK]; /* their bits alone */
    const int columns = r->columns - column < BLOCK ? (int)(r->columns - column) : BLOCK;
    for (int i = 0; i < BLOCK; i++) {
        const int64_t at = row + 2 * i;
        const float *first = at < r->rows ? r->from + at * r->columns + column : NULL;
        round_pair(words + i * BLOCK, first, at + 1 < r->rows ? first + r->columns : NULL, columns);
    }
    memcpy(moved, words, sizeof moved);
    turn(&(struct matrix){turned, moved, BLOCK, BLOCK}, BLOCK, BLOCK);
    for (int j = 0; j < columns; j++)
        memcpy(r->to + (column + j) * r->to_step + row, turned + j * BLOCK, BLOCK * sizeof *turned);
}

/* begin, end: blocks of columns */
static void turn_columns(const void *arguments, int64_t begin, int64_t end)
{
    const struct rounding *r = arguments;
    for (int64_t block = begin; block < end; block++)
        for (int64_t row = 0; row < r->to_step; row += 2 * BLOCK) turn_block(r, row, block * BLOCK);
}

static void turn_all(struct device *d, const struct rounding *r)
{
    const int64_t blocks = (r->columns + BLOCK - 1) / BLOCK;
    spread(d, blocks, SPREAD_GRAIN / (BLOCK * r->rows + 1) + 1, turn_columns, r);
}

static void round_a(struct device *d, const struct gemm *g, uint16_t *to, int64_t k)
{
    if (g->transpose_a)
        turn_all(d, &(struct rounding){g->a, to, g->k, g->m, k});
    else
        round_all(d, &(struct rounding){g->a, to, g->m, g->k, k});
}

static void round_b(struct device *d, const struct gemm *g, uint16_t *to, int64_t k)
{
    if (g->transpose_b) {
        round_all(d, &(struct rounding){g->b, to, g->n, g->k, k});
        return;
    }
    round_all(d, &(struct rounding){g->b, to, g->k, g->n, g->n});
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
