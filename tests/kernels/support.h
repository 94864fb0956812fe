/* support.h - what the tests of the kernels share: devices, filled memory, comparison. */
#ifndef TESTS_KERNELS_SUPPORT_H
#define TESTS_KERNELS_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kernels/kernels.h" /* before cmocka, which makes a macro of fail */

#include <cmocka.h>

#ifdef __SANITIZE_ADDRESS__ /* which looks at memory; numbers are for the other builds */
enum { KERNELS_ARE_SLOW = true };
#else
enum { KERNELS_ARE_SLOW = false };
#endif

/* Runs body on every instruction set of this machine, with one thread and with two (where a
 * sanitizer is slow, two with one set: how they share does not depend on it); where
 * KERNELS_IN_BF16 is in the environment, with products and convolutions in bfloat16. */
void on_every_device(void (*body)(struct device *));

/* Lengths around the widths of registers, and one that is shared between threads */
extern const int64_t lengths[];
enum {
    LENGTHS = 9,
    LENGTH_MAX = KERNELS_ARE_SLOW ? 70001 : 150001, /* twice SPREAD_GRAIN at least */
};

/* Whether so many rows are worth their time: an emulated GPU takes a thousand times as long. */
bool is_feasible(const struct device *, int64_t rows);

/* Memory of n floats from the device, aligned as the contract says; freed by free_floats(). The
 * numbers are uniform in [low, high) and depend on seed alone. */
float *new_floats(struct device *, int64_t n);
float *random_floats(struct device *, int64_t n, float low, float high, uint64_t seed);
float *copy_floats(struct device *, const float *, int64_t n);
void free_floats(struct device *, float *);

/* |got - want| <= absolute + relative |want|, or both NaN; names what and where otherwise. */
struct tolerance {
    double relative, absolute;
};
void assert_near(double got, double want, struct tolerance, const char *what, int64_t index);
void assert_same_bits(const float *a, const float *b, int64_t n, const char *what);
/* Of a product of that shape, of more than 11 rows: one that is not a number spoils its own
 * results. */
void assert_spoilt_row_is_alone(struct device *, int64_t m, int64_t n, int64_t k);

static const struct tolerance exact = {0, 0}, close_by = {1e-6, 1e-7}, summed = {1e-5, 1e-6};

#endif
