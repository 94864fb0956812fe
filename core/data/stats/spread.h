/* spread.h - mean and deviation of numbers that come one by one, by Welford's sums: a mean that is
 * far from 0 costs no digits. */
#ifndef CORE_DATA_STATS_SPREAD_H
#define CORE_DATA_STATS_SPREAD_H

#include <math.h>
#include <stdint.h>

struct spread {
    double mean, squares; /* squares: of the distances from the mean, summed */
};

/* count: of the numbers, with this one */
static inline void spread_add(struct spread *m, double number, int64_t count)
{
    const double from_mean = number - m->mean;
    m->mean += from_mean / (double)count;
    m->squares += from_mean * (number - m->mean);
}

static inline double spread_deviation(const struct spread *m, int64_t count)
{
    return sqrt(m->squares / (double)count);
}

#endif
