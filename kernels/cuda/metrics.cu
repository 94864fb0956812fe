/* metrics.cu - counts correct predictions. Counts are transferred as doubles, which hold them
 * exactly. */
#include "kernels/cuda/rows.cuh"

/* The first thread of a row returns 1 if the row counts */
struct top_row {
    enum { IS_SUM = true, BLOCKS = 3 };
    const float *logits;   /* [rows, classes] */
    const int32_t *labels; /* [rows] */
    int64_t k;
    bool first_wins;

    template <typename Row> __device__ double operator()(const Row &row) const
    {
        float held[HELD];
        int64_t before = 0; /* in the ranking */
        int not_finite = 0;
        const bool ties_count = first_wins && k == 1, has_row = row.columns > 0;
        const int32_t label = has_row ? labels[row.row] : -1; /* negative: none */
        const float own = label >= 0 ? logits[row.row * row.columns + label] : 0.0f;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            row.read(held, logits, at);
            row.each(at, [&](int i, int64_t column) {
                before += held[i] > own || (ties_count && column < label && held[i] == own);
                not_finite += (mathf_bits(held[i]) & 0x7f800000) == 0x7f800000;
            });
        }
        before = row.group.sum((long long)before);
        not_finite = row.group.sum(not_finite);
        return row.group.rank == 0 && label >= 0 && not_finite == 0 && before < k;
    }
};

int64_t cuda_count_in_top(struct device *d, const float *logits, const int32_t *labels,
                          int64_t rows, int64_t classes, int64_t k, bool first_wins)
{
    if (rows == 0) return 0;
    const unsigned blocks = each_row(d, "count_in_top", top_row{logits, labels, k, first_wins},
                                     {rows, classes}, is_packed(logits));
    cuda_sum_partials(d, blocks, 0);
    return (int64_t)cuda_results(d, 1)[0];
}

struct threshold_term {
    float threshold;
    __device__ double operator()(const float *x) const
    {
        return (x[0] > threshold) == (x[1] > 0.5f);
    }
};

int64_t cuda_count_threshold(struct device *d, const float *prediction, const float *target,
                             float threshold, int64_t n)
{
    if (n == 0) return 0;
    const struct sum_body<2, threshold_term> terms = {
        {prediction, target}, {threshold}, n, false
    };
    sum_into(d, "count_threshold", terms, 0);
    return (int64_t)cuda_results(d, 1)[0];
}
