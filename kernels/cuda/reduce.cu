/* reduce.cu - a vector to one number.
 *
 * Blocks, whose number follows from the length alone, add up their elements in double and then by a
 * tree; one last block does the same with what they left. No atomics: the order is always the same.
 */
#include "kernels/cuda/packs.cuh"

struct plain_term {
    __device__ double operator()(const float *x) const
    {
        return x[0];
    }
};

struct abs_term {
    __device__ double operator()(const float *x) const
    {
        return mathf_abs(x[0]);
    }
};

struct square_term {
    __device__ double operator()(const float *x) const
    {
        return (double)x[0] * x[0]; /* exact */
    }
};

struct not_finite_term {
    __device__ double operator()(const float *x) const
    {
        return (mathf_bits(x[0]) & 0x7f800000) == 0x7f800000;
    }
};

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

template <typename Term>
static double reduce(struct device *d, const float *x, int64_t n, const Term &term)
{
    if (n <= 0) return 0;
    return sum_of(d, "sum_terms", sum_body<1, Term>{{x}, term, n, false});
}

static double sum(struct device *d, const float *x, int64_t n)
{
    return reduce(d, x, n, plain_term{});
}

static double sum_abs(struct device *d, const float *x, int64_t n)
{
    return reduce(d, x, n, abs_term{});
}

static double sum_squares(struct device *d, const float *x, int64_t n)
{
    return reduce(d, x, n, square_term{});
}

/* On a device that has failed nothing is known to be. */
static bool all_finite(struct device *d, const float *x, int64_t n)
{
    const struct cuda_state *state = (const struct cuda_state *)d->state;
    return reduce(d, x, n, not_finite_term{}) == 0 && !state->failure;
}

void cuda_reduce_fill(struct kernels *table)
{
    table->sum = sum;
    table->sum_abs = sum_abs;
    table->sum_squares = sum_squares;
    table->all_finite = all_finite;
}
