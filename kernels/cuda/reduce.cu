/* reduce.cu - a vector to one number.
 *
 * Blocks, whose number follows from the length alone, add up their elements in double and then by a
 * tree; one last block does the same with what they left. No atomics: the order is always the same.
 */
#include "kernels/cuda/product/packs.cuh"

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

static __global__ void sum_partials(const double *partials, unsigned count, double *to)
{
    __shared__ double lane[BLOCK];
    double sum = 0;
    for (unsigned i = threadIdx.x; i < count; i += BLOCK) sum += partials[i];
    sum = block_sum(lane, sum);
    if (threadIdx.x == 0) *to = sum;
}

void cuda_sum_partials(struct device *d, unsigned blocks, int result)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    launch(d, {"sum_partials", 1, 1}, sum_partials, state->partials, blocks,
           state->results + result);
}

template <typename Term>
static double reduce(struct device *d, const float *x, int64_t n, const Term &term)
{
    if (n <= 0) return 0;
    sum_into(d, "sum_terms", sum_body<1, Term>{{x}, term, n, false}, 0);
    return cuda_results(d, 1)[0];
}

double cuda_sum(struct device *d, const float *x, int64_t n)
{
    return reduce(d, x, n, plain_term{});
}

static void queue_sum(struct device *d, const struct summed &of, int result)
{
    if (of.is_square)
        sum_into(d, "sum_squares", sum_body<1, square_term>{{of.x}, {}, of.n, false}, result);
    else
        sum_into(d, "sum_abs", sum_body<1, abs_term>{{of.x}, {}, of.n, false}, result);
}

/* One copy brings what was queued for many. A vector without elements has no place in it. */
static void sum_some(struct device *d, const struct summed *of, int count, double *ret_sums)
{
    int queued = 0, taken = 0;
    for (int i = 0; i < count; i++)
        if (of[i].n > 0) queue_sum(d, of[i], queued++);
    const double *results = queued > 0 ? cuda_results(d, queued) : NULL;
    for (int i = 0; i < count; i++) ret_sums[i] = of[i].n > 0 ? results[taken++] : 0;
}

void cuda_sums(struct device *d, const struct summed *of, int count, double *ret_sums)
{
    for (int first = 0; first < count; first += RESULTS_MAX) {
        const int left = count - first;
        sum_some(d, of + first, left < RESULTS_MAX ? left : RESULTS_MAX, ret_sums + first);
    }
}

/* On a device that has failed nothing is known to be. */
bool cuda_all_finite(struct device *d, const float *x, int64_t n)
{
    const struct cuda_state *state = (const struct cuda_state *)d->state;
    return reduce(d, x, n, not_finite_term{}) == 0 && !state->failure;
}
