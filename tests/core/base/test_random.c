/* Random numbers: the same in any order, and as random as they claim.
 *
 * The limits of the statistics are wide (about 5 sigma, or chi-square at 1e-6) and the draws are
 * fixed, so these tests fail only when the generator changes for the worse.
 */
#include "core/base/random.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

enum { DRAWS = 1 << 18, BINS = 64 };

/* Chi-square of counts that should all be `expected`; its mean is bins - 1. */
static double chi_square(const int *counts, int bins, double expected)
{
    double sum = 0;
    for (int i = 0; i < bins; i++) sum += (counts[i] - expected) * (counts[i] - expected);
    return sum / expected;
}

/* Mean and five deviations of the chi-square distribution. */
static double chi_square_limit(int bins)
{
    return bins - 1 + 5 * sqrt(2.0 * (bins - 1));
}

static void draws_do_not_depend_on_their_order(void **state)
{
    float forwards[1000];
    for (int i = 0; i < 1000; i++) forwards[i] = random_normal(5, (uint64_t)i);
    for (int i = 999; i >= 0; i--) assert_true(random_normal(5, (uint64_t)i) == forwards[i]);
}

static void the_mixing_function_is_splitmix64s(void **state)
{
    /* first outputs of splitmix64 from seed 1234567 (Vigna's reference code) */
    static const uint64_t golden = 0x9e3779b97f4a7c15u;
    assert_true(random_mix(1234567 + golden) == 6457827717110365317u);
    assert_true(random_mix(1234567 + 2 * golden) == 3203168211198807973u);
}

static void keys_differ_by_seed_and_by_name(void **state)
{
    static const char *const names[] = {"", "a", "b", "ab", "ba", "dense/kernel", "dense/bias"};
    uint64_t keys[7 * 50];
    int count = 0;
    for (uint64_t seed = 0; seed < 50; seed++)
        for (int i = 0; i < 7; i++) keys[count++] = random_key(seed, names[i]);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++) assert_true(keys[i] != keys[j]);
    assert_true(random_key(3, "ab") == keys[3 * 7 + 3]);
}

static void uniform_draws_fill_their_interval_evenly(void **state)
{
    for (uint64_t key = 0; key < 8; key++) {
        int counts[BINS] = {0};
        double sum = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            const float x = random_uniform(key, i);
            assert_true(x >= 0.0f && x < 1.0f);
            counts[(int)(x * BINS)]++;
            sum += x;
        }
        assert_true(chi_square(counts, BINS, (double)DRAWS / BINS) < chi_square_limit(BINS));
        assert_true(fabs(sum / DRAWS - 0.5) < 5 * sqrt(1.0 / 12 / DRAWS));
    }
}

/* Neighbours and neighbouring keys: pairs fill the square evenly. */
static void successive_draws_and_keys_are_independent(void **state)
{
    int of_index[BINS] = {0}, of_key[BINS] = {0};
    for (uint64_t i = 0; i < DRAWS; i++) {
        const int x = (int)(random_uniform(9, i) * 8);
        of_index[x * 8 + (int)(random_uniform(9, i + 1) * 8)]++;
        of_key[x * 8 + (int)(random_uniform(10, i) * 8)]++;
    }
    assert_true(chi_square(of_index, BINS, (double)DRAWS / BINS) < chi_square_limit(BINS));
    assert_true(chi_square(of_key, BINS, (double)DRAWS / BINS) < chi_square_limit(BINS));
}

static double normal_probability(double below)
{
    return 0.5 * erfc(-below / sqrt(2));
}

/* Bins between -4 and 4 deviations, the outermost open to infinity. */
static void normal_draws_have_the_normal_distribution(void **state)
{
    enum { NORMAL_BINS = 32 };
    int counts[NORMAL_BINS] = {0};
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const float z = random_normal(77, i);
        assert_true(isfinite(z));
        int bin = (int)floorf((z + 4) * NORMAL_BINS / 8);
        bin = bin < 0 ? 0 : bin >= NORMAL_BINS ? NORMAL_BINS - 1 : bin;
        counts[bin]++;
        sum += z;
        squares += (double)z * z;
    }
    double chi = 0;
    for (int bin = 0; bin < NORMAL_BINS; bin++) {
        const double low = bin == 0 ? 0 : normal_probability(bin * 8.0 / NORMAL_BINS - 4);
        const double high =
            bin == NORMAL_BINS - 1 ? 1 : normal_probability((bin + 1) * 8.0 / NORMAL_BINS - 4);
        const double expected = (high - low) * DRAWS;
        chi += (counts[bin] - expected) * (counts[bin] - expected) / expected;
    }
    assert_true(chi < chi_square_limit(NORMAL_BINS));
    assert_true(fabs(sum / DRAWS) < 5 / sqrt(DRAWS));
    assert_true(fabs(squares / DRAWS - 1) < 5 * sqrt(2.0 / DRAWS));
}

static void truncated_draws_stay_within_two_deviations(void **state)
{
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < DRAWS; i++) {
        const float z = random_truncated_normal(78, i);
        assert_true(fabsf(z) < 2.0f);
        sum += z;
        squares += (double)z * z;
    }
    /* variance of a normal cut at 2 deviations: 1 - 4 phi(2) / (2 Phi(2) - 1) = 0.77374 */
    assert_true(fabs(sum / DRAWS) < 5 * sqrt(0.77374 / DRAWS));
    assert_true(fabs(squares / DRAWS - 0.77374) < 0.01);
}

/* What is not redrawn is the very draw of random_normal. */
static void truncation_changes_only_what_is_far_out(void **state)
{
    int redrawn = 0;
    for (uint64_t i = 0; i < 10000; i++) {
        const float z = random_normal(79, i);
        if (fabsf(z) < 2.0f)
            assert_true(random_truncated_normal(79, i) == z);
        else
            redrawn++;
    }
    assert_in_range(redrawn, 350, 560); /* 4.55 % */
}

static void assert_permutation(uint64_t key, uint64_t size)
{
    uint8_t *seen = calloc(size, 1);
    assert_non_null(seen);
    for (uint64_t i = 0; i < size; i++) {
        const uint64_t image = random_permute(key, size, i);
        assert_true(image < size);
        assert_int_equal(seen[image], 0);
        seen[image] = 1;
    }
    free(seen);
}

static void permutations_of_every_size_are_bijective(void **state)
{
    for (uint64_t size = 1; size <= 300; size++)
        for (uint64_t key = 0; key < 3; key++) assert_permutation(key, size);
    assert_permutation(4, 60000);
    assert_permutation(5, 65536);
    assert_permutation(6, 65537);
}

static void permutations_of_enormous_sizes_stay_in_range_and_differ(void **state)
{
    static const uint64_t sizes[] = {UINT64_MAX, (UINT64_C(1) << 63) + 1, UINT64_C(1) << 62,
                                     UINT64_C(1) << 33};
    for (int s = 0; s < 4; s++) {
        uint64_t before = sizes[s];
        for (uint64_t i = 0; i < 100; i++) {
            const uint64_t image = random_permute(8, sizes[s], sizes[s] - 1 - i);
            assert_true(image < sizes[s]);
            assert_true(image != before);
            before = image;
        }
    }
}

/* Over many keys every position goes everywhere equally often. */
static void permutations_send_each_position_everywhere(void **state)
{
    enum { SIZE = 10, KEYS = 20000 };
    for (uint64_t position = 0; position < SIZE; position += 3) {
        int counts[SIZE] = {0};
        for (uint64_t key = 0; key < KEYS; key++) counts[random_permute(key, SIZE, position)]++;
        assert_true(chi_square(counts, SIZE, (double)KEYS / SIZE) < chi_square_limit(SIZE));
    }
}

/* Within one permutation: where a position goes says nothing of where its neighbour goes. */
static void permutations_scatter_neighbours(void **state)
{
    enum { SIZE = 60000 };
    int counts[BINS] = {0};
    int fixed = 0, neighbours = 0;
    for (uint64_t i = 0; i + 1 < SIZE; i++) {
        const uint64_t a = random_permute(11, SIZE, i), b = random_permute(11, SIZE, i + 1);
        counts[a * 8 / SIZE * 8 + b * 8 / SIZE]++;
        fixed += a == i;
        neighbours += b == a + 1 || a == b + 1;
    }
    assert_true(chi_square(counts, BINS, (double)(SIZE - 1) / BINS) < chi_square_limit(BINS));
    assert_true(fixed < 10);      /* one on average */
    assert_true(neighbours < 15); /* two on average */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws_do_not_depend_on_their_order),
        cmocka_unit_test(the_mixing_function_is_splitmix64s),
        cmocka_unit_test(keys_differ_by_seed_and_by_name),
        cmocka_unit_test(uniform_draws_fill_their_interval_evenly),
        cmocka_unit_test(successive_draws_and_keys_are_independent),
        cmocka_unit_test(normal_draws_have_the_normal_distribution),
        cmocka_unit_test(truncated_draws_stay_within_two_deviations),
        cmocka_unit_test(truncation_changes_only_what_is_far_out),
        cmocka_unit_test(permutations_of_every_size_are_bijective),
        cmocka_unit_test(permutations_of_enormous_sizes_stay_in_range_and_differ),
        cmocka_unit_test(permutations_send_each_position_everywhere),
        cmocka_unit_test(permutations_scatter_neighbours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
