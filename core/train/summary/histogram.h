/* histogram.h - counts of values in TensorFlow's 1551 exponential buckets. */
#ifndef CORE_TRAIN_SUMMARY_HISTOGRAM_H
#define CORE_TRAIN_SUMMARY_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

enum { HISTOGRAM_BUCKETS = 1551 };

struct histogram {
    double minimum, maximum, count, sum, sum_squares; /* of the finite values */
    double buckets[HISTOGRAM_BUCKETS];
    uint64_t not_finite; /* values left out */
};

void histogram_clear(struct histogram *);
void histogram_add(struct histogram *, double value);
void histogram_add_all(struct histogram *, const float *values, int64_t count);
double histogram_limit(int bucket); /* upper bound, exclusive */

/* Empty buckets collapsed as TensorFlow writes them; returns how many pairs (at most
 * HISTOGRAM_BUCKETS + 1). */
int histogram_pairs(const struct histogram *, double ret_limits[HISTOGRAM_BUCKETS + 1],
                    double ret_counts[HISTOGRAM_BUCKETS + 1]);

#endif
