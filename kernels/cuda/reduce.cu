/* reduce.cu - a vector to one number.
 *
 * Blocks, whose number follows from the length alone, add up their elements in double and then by a
 * tree; one last block does the same with what they left. No atomics: the order is always the same.
 */
#include "kernels/cuda/launch.cuh"

enum term { TERM_PLAIN, TERM_ABS, TERM_SQUARE, TERM_NOT_FINITE };

ON_GPU double take(enum term term, float x)
{
    switch (term) {
    case TERM_ABS:
        return mathf_abs(x);
    case TERM_SQUARE:
        return (double)x * x; /* exact */
    case TERM_NOT_FINITE:
        return (mathf_bits(x) & 0x7f800000) == 0x7f800000;
    default:
        return x;
    }
}

static __global__ void sum_terms(const float *x, int64_t n, enum term term, double *partials)
{
    __shared__ double lane[BLOCK];
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    double sum = 0;
#pragma unroll 4 /* so many loads are under way at once */
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step)
        sum += take(term, x[i]);
    sum = block_sum(lane, sum);
    if (threadIdx.x == 0) partials[blockIdx.x] = sum;
}

static __global__ void sum_partials(double *partials, unsigned count)
{
    __shared__ double lane[BLOCK];
    double sum = 0;
    for (unsigned i = threadIdx.x; i < count; i += BLOCK) sum += partials[i];
    sum = block_sum(lane, sum);
    if (threadIdx.x == 0) partials[0] = sum; /* all have been read */
}

double cuda_sum_partials(struct device *d, unsigned blocks)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    if (blocks > 1) launch(d, {"sum_partials", 1, 1}, sum_partials, state->partials, blocks);
    return cuda_result(d);
}

static double reduce(struct device *d, const float *x, int64_t n, enum term term)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    if (n <= 0) return 0;
    const unsigned blocks = reduction_blocks(n);
    launch(d, {"sum_terms", blocks, 1}, sum_terms, x, n, term, state->partials);
    return cuda_sum_partials(d, blocks);
}

static double sum(struct device *d, const float *x, int64_t n)
{
    return reduce(d, x, n, TERM_PLAIN);
}

static double sum_abs(struct device *d, const float *x, int64_t n)
{
    return reduce(d, x, n, TERM_ABS);
}

static double sum_squares(struct device *d, const float *x, int64_t n)
{
    return reduce(d, x, n, TERM_SQUARE);
}

/* On a device that has failed nothing is known to be. */
static bool all_finite(struct device *d, const float *x, int64_t n)
{
    const struct cuda_state *state = (const struct cuda_state *)d->state;
    return reduce(d, x, n, TERM_NOT_FINITE) == 0 && !state->failure;
}

void cuda_reduce_fill(struct kernels *table)
{
    table->sum = sum;
    table->sum_abs = sum_abs;
    table->sum_squares = sum_squares;
    table->all_finite = all_finite;
}
