/* test_rounded.c - numbers in half the bytes of a float, against rounding in double. */
#include "tests/kernels/support.h"

#include <math.h>
#include <string.h>

#include "core/base/random.h"

static const enum number numbers[] = {NUMBER_BF16, NUMBER_FP16};
enum { NUMBERS = 2, SOURCES = 3, DRAWN = 1 << 16 };

/* As a format is described: digits of the mantissa, the least exponent, the largest number */
struct format {
    int digits, least;
    double largest;
};

static struct format format_of(enum number as)
{
    if (as == NUMBER_FP16) return (struct format){10, -14, 65504.0};
    return (struct format){7, -126, ldexp(255.0, 120)};
}

/* rint() rounds to the nearest, of two to the even one. */
static double want_rounded(enum number as, double x)
{
    const struct format f = format_of(as);
    if (!isfinite(x) || x == 0) return x;
    const int exponent = ilogb(x) > f.least ? ilogb(x) : f.least;
    const double rounded = ldexp(rint(ldexp(x, f.digits - exponent)), exponent - f.digits);
    return fabs(rounded) > f.largest ? copysign(f.largest, x) : rounded;
}

/* The value of 16 bits, read digit by digit */
static double value_of(enum number as, uint16_t bits)
{
    const struct format f = format_of(as);
    const int exponent = (bits & 0x7fff) >> f.digits, bias = 1 - f.least;
    const double digits = bits & ((1 << f.digits) - 1), sign = bits & 0x8000 ? -1 : 1;
    if (exponent == (0x7fff >> f.digits)) return digits > 0 ? NAN : sign * INFINITY;
    const double lead = exponent > 0 ? ldexp(1, f.digits) : 0;
    return sign * ldexp(lead + digits, (exponent > 0 ? exponent : 1) - bias - f.digits);
}

static bool is_same(double a, double b)
{
    return isnan(a) ? isnan(b) : a == b && signbit(a) == signbit(b);
}

static void expect_rounded(enum number as, uint16_t got, float x)
{
    const double want = want_rounded(as, (double)x + 0.0); /* -0 and an error of 0 are 0 */
    if (!is_same(value_of(as, got), want))
        fail_msg("%a became %a, not %a", (double)x, value_of(as, got), want);
}

static float from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* All exponents, and digits around every tie: 0, 1, or all ones behind those that are kept */
static void fill_with_edges(float *x, int64_t n, int digits)
{
    const uint32_t low = (1u << (23 - digits)) - 1, half = (low + 1) / 2;
    const uint32_t tails[] = {0, 1, half - 1, half, half + 1, low};
    for (int64_t i = 0; i < n; i++) {
        const uint32_t drawn = (uint32_t)random_u64(3, (uint64_t)i);
        x[i] = from_bits((drawn & ~low) | tails[i % 6]);
    }
    const float special[] = {0.0f,         -0.0f,       NAN,          -NAN,
                             INFINITY,     -INFINITY,   65504.0f,     65519.996f,
                             65520.0f,     -65536.0f,   0x1p-14f,     0x1p-24f,
                             0x1p-25f,     -0x1.8p-25f, 0x1p-149f,    0x1.fffffep127f,
                             -0x1.ffp127f, 0x1.fep127f, 0x1.ffcp-15f, from_bits(0x7f800001)};
    for (size_t i = 0; i < sizeof special / sizeof *special; i++) x[i] = special[i];
}

static void round_edges(struct device *d)
{
    const int64_t n = is_feasible(d, DRAWN) ? DRAWN : DRAWN / 64;
    float *x = new_floats(d, n), *error = new_floats(d, n);
    uint16_t *y = (uint16_t *)new_floats(d, n);
    for (int k = 0; k < NUMBERS; k++) {
        fill_with_edges(x, n, format_of(numbers[k]).digits);
        memset(error, 0, (size_t)n * sizeof *error);
        d->kernels->round_off(d, y, error, x, numbers[k], n);
        assert_int_equal(d->kernels->synchronize(d), OK);
        for (int64_t i = 0; i < n; i++) {
            expect_rounded(numbers[k], y[i], x[i]);
            const float left = isfinite(x[i]) ? (float)(x[i] - value_of(numbers[k], y[i])) : 0;
            if (error[i] != left) fail_msg("%a leaves %a", (double)x[i], (double)error[i]);
        }
    }
    free_floats(d, (float *)y);
    free_floats(d, error);
    free_floats(d, x);
}

static void every_kind_of_number_is_rounded_to_the_nearest_and_even(void **state)
{
    on_every_device(round_edges);
}

/* What is left out comes with the next: after any number of them, less than one step is missing. */
static void round_again(struct device *d)
{
    enum { TIMES = 50 };
    for (int i = 0; i < LENGTHS; i++) {
        const int64_t n = lengths[i];
        if (!is_feasible(d, n * TIMES)) continue;
        float *x = random_floats(d, n, -1, 1, 11), *error = new_floats(d, n);
        float *sum = new_floats(d, n);
        uint16_t *y = (uint16_t *)new_floats(d, n);
        for (int k = 0; k < NUMBERS; k++) {
            memset(error, 0, (size_t)n * sizeof *error);
            memset(sum, 0, (size_t)n * sizeof *sum);
            for (int time = 0; time < TIMES; time++) {
                d->kernels->round_off(d, y, error, x, numbers[k], n);
                assert_int_equal(d->kernels->synchronize(d), OK);
                for (int64_t j = 0; j < n; j++) sum[j] += (float)value_of(numbers[k], y[j]);
            }
            const struct tolerance one_step = {1e-5, numbers[k] == NUMBER_BF16 ? 0x1p-8 : 0x1p-11};
            for (int64_t j = 0; j < n; j++)
                assert_near(sum[j], (double)TIMES * x[j], one_step, "sum", j);
        }
        free_floats(d, (float *)y);
        free_floats(d, sum);
        free_floats(d, error);
        free_floats(d, x);
    }
}

static void what_is_left_out_comes_with_the_next(void **state)
{
    on_every_device(round_again);
}

/* Every 16 bits there are, beside others */
static void sum_all(struct device *d)
{
    const int64_t n = is_feasible(d, 1 << 16) ? 1 << 16 : 1 << 10;
    uint16_t *at[SOURCES];
    float *y = new_floats(d, n);
    for (int s = 0; s < SOURCES; s++) {
        at[s] = (uint16_t *)new_floats(d, n);
        for (int64_t i = 0; i < n; i++)
            at[s][i] = (uint16_t)(s == 0 ? i * ((1 << 16) / n) : random_u64(s, (uint64_t)i));
    }
    const uint16_t *const sources[] = {at[0], at[1], at[2]};
    for (int k = 0; k < NUMBERS; k++) {
        for (int count = 1; count <= SOURCES; count += 2) {
            d->kernels->sum_rounded(d, y, sources, count, numbers[k], 0.25f, n);
            assert_int_equal(d->kernels->synchronize(d), OK);
            for (int64_t i = 0; i < n; i++) {
                float sum = (float)value_of(numbers[k], at[0][i]);
                for (int s = 1; s < count; s++) sum += (float)value_of(numbers[k], at[s][i]);
                if (!is_same(y[i], 0.25f * sum)) fail_msg("%lld: %a", (long long)i, (double)y[i]);
            }
        }
    }
    for (int s = 0; s < SOURCES; s++) free_floats(d, (float *)at[s]);
    free_floats(d, y);
}

static void sums_are_those_of_the_floats_in_the_order_given(void **state)
{
    on_every_device(sum_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_number_is_rounded_to_the_nearest_and_even),
        cmocka_unit_test(what_is_left_out_comes_with_the_next),
        cmocka_unit_test(sums_are_those_of_the_floats_in_the_order_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
