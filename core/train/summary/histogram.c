/* histogram.c - see histogram.h.
 *
 * The limits are made as TensorFlow makes them, by repeated multiplication, so that they are the
 * same doubles: -DBL_MAX, 774 negative ones, 0, 774 positive ones from 1e-12 up, DBL_MAX.
 */
#include "core/train/summary/histogram.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <threads.h>

/* The bucket whose limit is 0; limits are symmetric about it. */
enum { MIDDLE = HISTOGRAM_BUCKETS / 2 };

static const double FIRST_LIMIT = 1e-12, GROWTH = 1.1;

/* Written once, before the first use of any thread. */
static double limits[HISTOGRAM_BUCKETS];
static once_flag limits_made = ONCE_FLAG_INIT;

static void make_limits(void)
{
    double limit = FIRST_LIMIT;
    for (int i = MIDDLE + 1; i < HISTOGRAM_BUCKETS - 1; i++, limit *= GROWTH) limits[i] = limit;
    limits[HISTOGRAM_BUCKETS - 1] = DBL_MAX;
    for (int i = 0; i < MIDDLE; i++) limits[i] = -limits[HISTOGRAM_BUCKETS - 1 - i];
}

/* log2 of a positive number, too small by 0 to 0.087: exponent and mantissa, read as one integer,
 * are log2 with straight lines between the powers of two. */
static double rough_log2(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return (double)bits * 0x1p-52 - 1023.0;
}

/* How many of the positive limits a magnitude has passed; a guess, at most 1 too low. */
static int guess_passed(double magnitude)
{
    const double first_log2 = -39.863137138648355, limits_per_octave = 7.272540897341713;
    const double passed = (rough_log2(magnitude) - first_log2) * limits_per_octave + 1.0;
    return passed < 0 ? 0 : passed > MIDDLE - 1 ? MIDDLE - 1 : (int)passed;
}

/* The first bucket whose limit is above the value; the last one takes DBL_MAX itself. The guess is
 * corrected without a branch, which the values of a model would make unpredictable. */
static int bucket_of(double value)
{
    const int passed = guess_passed(fabs(value));
    const int guess = value < 0 ? MIDDLE - passed : MIDDLE + 1 + passed; /* from 1 to the last */
    const int too_high = limits[guess - 1] > value;
    const int too_low = (limits[guess] <= value) & (guess < HISTOGRAM_BUCKETS - 1);
    return guess - too_high + too_low;
}

static inline void add(struct histogram *h, double value)
{
    if (!isfinite(value)) {
        h->not_finite++;
        return;
    }
    h->buckets[bucket_of(value)]++;
    h->minimum = value < h->minimum ? value : h->minimum;
    h->maximum = value > h->maximum ? value : h->maximum;
    h->count++;
    h->sum += value;
    h->sum_squares += value * value;
}

void histogram_clear(struct histogram *h)
{
    *h = (struct histogram){.minimum = DBL_MAX, .maximum = -DBL_MAX};
}

void histogram_add(struct histogram *h, double value)
{
    call_once(&limits_made, make_limits);
    add(h, value);
}

void histogram_add_all(struct histogram *h, const float *values, int64_t count)
{
    call_once(&limits_made, make_limits);
    for (int64_t i = 0; i < count; i++) add(h, (double)values[i]);
}

double histogram_limit(int bucket)
{
    assert(bucket >= 0 && bucket < HISTOGRAM_BUCKETS);
    call_once(&limits_made, make_limits);
    return limits[bucket];
}

/* A run of empty buckets becomes one pair, with the limit of the last of them. */
int histogram_pairs(const struct histogram *h, double ret_limits[HISTOGRAM_BUCKETS + 1],
                    double ret_counts[HISTOGRAM_BUCKETS + 1])
{
    call_once(&limits_made, make_limits);
    int pairs = 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const bool goes_on = i > 0 && h->buckets[i - 1] == 0 && h->buckets[i] == 0;
        if (goes_on) pairs--;
        ret_limits[pairs] = limits[i];
        ret_counts[pairs++] = h->buckets[i];
    }
    return pairs;
}
