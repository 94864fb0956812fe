/* spread.h - running mean and standard deviation by Welford's algorithm, which is accurate also if
 * the mean is far from 0. */
#ifndef CORE_DATA_STATS_SPREAD_H
#define CORE_DATA_STATS_SPREAD_H

#include <math.h>
#include <stdint.h>

struct spread {
    double mean, squares; /* squares: sum of squared distances from the mean */
};

/* count: of numbers, including this one */
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
