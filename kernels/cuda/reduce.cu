/* reduce.cu - reduces a vector to one number.
 *
 * Blocks, whose number depends only on the length, sum their elements in double and then in a tree;
 * one last block sums their results in the same way. No atomics: the order is always the same.
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
static void queue(struct device *d, const char *name, const struct summed &of, int result)
{
    sum_into(d, name, sum_body<1, Term>{{of.x}, {}, of.n, false}, result);
}

static void queue_sum(struct device *d, const struct summed &of, int result)
{
    switch (of.term) {
    case SUM_PLAIN:
        queue<plain_term>(d, "sum", of, result);
        break;
    case SUM_ABS:
        queue<abs_term>(d, "sum_abs", of, result);
        break;
    case SUM_SQUARE:
        queue<square_term>(d, "sum_squares", of, result);
        break;
    case SUM_NOT_FINITE:
        queue<not_finite_term>(d, "not_finite", of, result);
        break;
    }
}

/* Copies the results of many vectors at once. Empty vectors take part in none of this. */
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

/* false on a device that has failed. */
bool cuda_all_finite(struct device *d, const float *x, int64_t n)
{
    const struct cuda_state *state = (const struct cuda_state *)d->state;
    const struct summed all = {x, n, SUM_NOT_FINITE};
    double count;
    cuda_sums(d, &all, 1, &count);
    return count == 0 && !state->failure;
}
