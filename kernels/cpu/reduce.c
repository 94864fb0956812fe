/* reduce.c - reduces a vector to one number.
 *
 * A vector is cut into slices that depend only on its length; each slice is summed into 16 doubles,
 * lane by lane, then those and the slices are added in order. So the result does not depend on the
 * number of threads or the width of registers.
 */
#include "kernels/cpu/isa.h"
#include "kernels/mathf.h"

enum { SUM_LANES = 16, SLICES_MAX = 64, SLICE_MIN = 4096 };

/* The lanes occupy as many registers as needed. */
enum { REGISTER_LANES = LANES / 2, REGISTERS = SUM_LANES / REGISTER_LANES };
typedef double sums __attribute__((vector_size(4 * ISA_LANES)));
typedef float terms __attribute__((vector_size(2 * ISA_LANES)));
typedef uint32_t terms_bits __attribute__((vector_size(2 * ISA_LANES)));

/* Slice i of x begins at i * slice_length; its sum goes to partial[i]. */
struct sliced_sum {
    const float *x;
    int64_t n, slice_length;
    double *partial;
};

/* The exponent of infinity and NaN is all ones. */
static inline __attribute__((always_inline)) sums not_finite(terms v)
{
    const terms_bits is_not = ((terms_bits)v & 0x7f800000) == 0x7f800000;
    return __builtin_convertvector(is_not & 1, sums);
}

/* The square of a float is exact in a double. */
static inline __attribute__((always_inline)) sums take(enum summed_term term, const float *x)
{
    terms v;
    memcpy(&v, x, sizeof v);
    if (term == SUM_ABS) v = (terms)((terms_bits)v & 0x7fffffff);
    if (term == SUM_NOT_FINITE) return not_finite(v);
    sums wide = __builtin_convertvector(v, sums);
    return term == SUM_SQUARE ? wide * wide : wide;
}

static inline __attribute__((always_inline)) double sum_slice(enum summed_term term, const float *x,
                                                              int64_t n)
{
    sums total[REGISTERS];
    for (int r = 0; r < REGISTERS; r++) total[r] = (sums){0};
    const int64_t whole = n / SUM_LANES * SUM_LANES;
    for (int64_t i = 0; i < whole; i += SUM_LANES)
        for (int r = 0; r < REGISTERS; r++) total[r] += take(term, x + i + r * REGISTER_LANES);
    if (whole < n) {
        float rest[SUM_LANES] = {0};
        memcpy(rest, x + whole, (size_t)(n - whole) * sizeof(float));
        for (int r = 0; r < REGISTERS; r++) total[r] += take(term, rest + r * REGISTER_LANES);
    }
    double lane[SUM_LANES], sum = 0;
    memcpy(lane, total, sizeof lane);
    for (int i = 0; i < SUM_LANES; i++) sum += lane[i];
    return sum;
}

static inline __attribute__((always_inline)) void
sum_slices(enum summed_term term, const void *arguments, int64_t begin, int64_t end)
{
    const struct sliced_sum r = *(const struct sliced_sum *)arguments;
    for (int64_t slice = begin; slice < end; slice++) {
        int64_t at = slice * r.slice_length, left = r.n - at;
        r.partial[slice] = sum_slice(term, r.x + at, left < r.slice_length ? left : r.slice_length);
    }
}

static void plain_slices(const void *arguments, int64_t begin, int64_t end)
{
    sum_slices(SUM_PLAIN, arguments, begin, end);
}

static void abs_slices(const void *arguments, int64_t begin, int64_t end)
{
    sum_slices(SUM_ABS, arguments, begin, end);
}

static void square_slices(const void *arguments, int64_t begin, int64_t end)
{
    sum_slices(SUM_SQUARE, arguments, begin, end);
}

static void not_finite_slices(const void *arguments, int64_t begin, int64_t end)
{
    sum_slices(SUM_NOT_FINITE, arguments, begin, end);
}

static double reduce(struct device *d, const float *x, int64_t n, range_body *body)
{
    double partial[SLICES_MAX];
    int64_t length = (n / SLICES_MAX + SUM_LANES) / SUM_LANES * SUM_LANES;
    if (length < SLICE_MIN) length = SLICE_MIN;
    int64_t slices = (n + length - 1) / length;
    int64_t grain = n < 2 * SPREAD_GRAIN ? slices + 1 : 1;
    spread(d, slices, grain, body, &(struct sliced_sum){x, n, length, partial});

    double sum = 0;
    for (int64_t slice = 0; slice < slices; slice++) sum += partial[slice];
    return sum;
}

void ISA(sums)(struct device *d, const struct summed *of, int count, double *ret_sums)
{
    static range_body *const slices[] = {[SUM_PLAIN] = plain_slices,
                                         [SUM_ABS] = abs_slices,
                                         [SUM_SQUARE] = square_slices,
                                         [SUM_NOT_FINITE] = not_finite_slices};
    for (int i = 0; i < count; i++) ret_sums[i] = reduce(d, of[i].x, of[i].n, slices[of[i].term]);
}

/* Counts those that are not finite, in blocks, so that the inner loop has no exit and is
 * vectorised. */
bool ISA(all_finite)(struct device *d, const float *x, int64_t n)
{
    for (int64_t at = 0; at < n; at += SLICE_MIN) {
        int64_t end = at + SLICE_MIN < n ? at + SLICE_MIN : n;
        int bad = 0;
        for (int64_t i = at; i < end; i++) bad += (mathf_bits(x[i]) & 0x7f800000) == 0x7f800000;
        if (bad) return false;
    }
    return true;
}
