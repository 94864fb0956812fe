/* metrics.c - counts correct predictions.
 *
 * Counts are integers, so threads may add theirs in any order.
 */
#include "kernels/cpu/isa.h"
#include "kernels/mathf.h"

enum { COUNT_GRAIN = SPREAD_GRAIN };

struct top_count {
    const float *logits;   /* [rows, classes] */
    const int32_t *labels; /* [rows] */
    int64_t classes, k;
    bool first_wins;
    int64_t *total; /* added to by all threads */
};

/* Loops without an early exit, so that they are vectorised; the last one runs over half a row on
 * average, and only for argmax. */
static bool is_in_top(const struct top_count *t, const float *x, int32_t label)
{
    const float own = x[label];
    int64_t larger = 0, not_finite = 0, equal_before = 0;
    for (int64_t i = 0; i < t->classes; i++) {
        larger += x[i] > own;
        not_finite += (mathf_bits(x[i]) & 0x7f800000) == 0x7f800000;
    }
    if (t->first_wins && t->k == 1)
        for (int32_t i = 0; i < label; i++) equal_before += x[i] == own;
    return !not_finite && larger + equal_before < t->k;
}

static void count_top_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct top_count t = *(const struct top_count *)arguments;
    int64_t count = 0;
    for (int64_t row = begin; row < end; row++)
        count += t.labels[row] >= 0 && is_in_top(&t, t.logits + row * t.classes, t.labels[row]);
    __atomic_fetch_add(t.total, count, __ATOMIC_RELAXED);
}

int64_t ISA(count_in_top)(struct device *d, const float *logits, const int32_t *labels,
                          int64_t rows, int64_t classes, int64_t k, bool first_wins)
{
    int64_t total = 0;
    spread(d, rows, COUNT_GRAIN / (classes + 1) + 1, count_top_rows,
           &(struct top_count){logits, labels, classes, k, first_wins, &total});
    return total;
}

struct threshold_count {
    const float *prediction, *target;
    float threshold;
    int64_t *total;
};

static void count_threshold_range(const void *arguments, int64_t begin, int64_t end)
{
    const struct threshold_count t = *(const struct threshold_count *)arguments;
    int64_t count = 0;
    for (int64_t i = begin; i < end; i++)
        count += (t.prediction[i] > t.threshold) == (t.target[i] > 0.5f);
    __atomic_fetch_add(t.total, count, __ATOMIC_RELAXED);
}

int64_t ISA(count_threshold)(struct device *d, const float *prediction, const float *target,
                             float threshold, int64_t n)
{
    int64_t total = 0;
    spread(d, n, COUNT_GRAIN, count_threshold_range,
           &(struct threshold_count){prediction, target, threshold, &total});
    return total;
}
