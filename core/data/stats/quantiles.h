/* quantiles.h - quantiles of a stream of numbers in bounded memory.
 *
 * Numbers are kept in levels; one in level i represents 2^i input numbers. A full level is sorted,
 * and every other number moves to the next level, alternately those at even and at odd indices. So
 * the rank of any number is off by at most 2^i for every two times that level i was full: `error`
 * is the sum. The first QUANTILES_EXACT numbers are all kept.
 */
#ifndef CORE_DATA_STATS_QUANTILES_H
#define CORE_DATA_STATS_QUANTILES_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum { QUANTILES_EXACT = 4096, QUANTILE_LEVELS_MAX = 50 };

struct quantile_level {
    double *at;
    int count, capacity; /* up to QUANTILES_EXACT */
    bool keeps_second;   /* the next time it is full, odd indices move up */
};

struct quantiles { /* zeroed: empty */
    struct quantile_level levels[QUANTILE_LEVELS_MAX];
    int64_t count;
    int64_t error; /* in ranks, out of `count`: how far off a quantile may be */
};

err quantiles_add(struct quantiles *, double); /* ERR_MEMORY */

/* For each fraction, 0 to 1 and ascending, finds the number with rank fraction * (count - 1),
 * rounded. At least one number must have been added. ERR_MEMORY. */
err quantiles_find(const struct quantiles *, const double *fractions, int count, double *ret);
void quantiles_free(struct quantiles *);

#endif
