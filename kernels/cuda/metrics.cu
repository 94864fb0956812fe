/* metrics.cu - how many predictions are right. Counts travel as doubles, which hold them exactly.
 */
#include "kernels/cuda/rows.cuh"

struct top_count {
    const float *logits;   /* [rows, classes] */
    const int32_t *labels; /* [rows] */
    int64_t rows, classes, k;
    bool first_wins;
};

ON_GPU bool is_in_top(const struct top_count &t, int64_t row)
{
    const float *x = t.logits + row * t.classes;
    const int32_t label = t.labels[row];
    const float own = x[label];
    const bool ties_count = t.first_wins && t.k == 1;
    int64_t before = 0; /* in the ranking */
    int not_finite = 0;
    for (int64_t i = lane_index(); i < t.classes; i += WARP) {
        before += x[i] > own || (ties_count && i < label && x[i] == own);
        not_finite += (mathf_bits(x[i]) & 0x7f800000) == 0x7f800000;
    }
    before = warp_sum((long long)before);
    return warp_sum(not_finite) == 0 && before < t.k;
}

static __global__ void count_top(struct top_count t, double *partials)
{
    __shared__ double lane[BLOCK];
    double count = 0;
    for (int64_t row = grid_warp(); row < t.rows; row += grid_warps()) {
        bool counts = is_in_top(t, row);
        if (lane_index() == 0) count += counts;
    }
    count = block_sum(lane, count);
    if (threadIdx.x == 0) partials[blockIdx.x] = count;
}

static int64_t count_in_top(struct device *d, const float *logits, const int32_t *labels,
                            int64_t rows, int64_t classes, int64_t k, bool first_wins)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    struct top_count t = {logits, labels, rows, classes, k, first_wins};
    if (rows == 0) return 0;
    const unsigned blocks = row_blocks(rows);
    launch(d, {"count_in_top", blocks, 1}, count_top, t, state->partials);
    return (int64_t)cuda_sum_partials(d, blocks);
}

struct threshold_count {
    const float *prediction, *target;
    float threshold;
    int64_t n;
};

static __global__ void count_over(struct threshold_count t, double *partials)
{
    __shared__ double lane[BLOCK];
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    double count = 0;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < t.n; i += step)
        count += (t.prediction[i] > t.threshold) == (t.target[i] > 0.5f);
    count = block_sum(lane, count);
    if (threadIdx.x == 0) partials[blockIdx.x] = count;
}

static int64_t count_threshold(struct device *d, const float *prediction, const float *target,
                               float threshold, int64_t n)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    struct threshold_count t = {prediction, target, threshold, n};
    if (n == 0) return 0;
    const unsigned blocks = reduction_blocks(n);
    launch(d, {"count_threshold", blocks, 1}, count_over, t, state->partials);
    return (int64_t)cuda_sum_partials(d, blocks);
}

void cuda_metrics_fill(struct kernels *table)
{
    table->count_in_top = count_in_top;
    table->count_threshold = count_threshold;
}
