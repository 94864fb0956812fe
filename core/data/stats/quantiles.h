/* quantiles.h - quantiles of a stream of numbers in bounded memory.
 *
 * Numbers lie in levels; one of level i stands for 2^i that came. A level that is full is sorted,
 * and every other one of its numbers goes up, the first of them and the second in turn. So the rank
 * of any number is wrong by at most 2^i for every two times that level i was full: `error` is the
 * sum. The first QUANTILES_EXACT numbers are all kept.
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
    bool keeps_second;   /* the next time that it is full */
};

struct quantiles { /* zeroed: none */
    struct quantile_level levels[QUANTILE_LEVELS_MAX];
    int64_t count;
    int64_t error; /* ranks: how far off a quantile may be, of `count` */
};

err quantiles_add(struct quantiles *, double); /* ERR_MEMORY */

/* Of each of these fractions, 0 to 1 and rising, the number of the rank fraction * (count - 1),
 * rounded. At least one number has come. ERR_MEMORY. */
err quantiles_find(const struct quantiles *, const double *fractions, int count, double *ret);
void quantiles_free(struct quantiles *);

#endif
