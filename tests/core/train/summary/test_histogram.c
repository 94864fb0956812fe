/* test_histogram.c - buckets against a plain search, pairs against TensorFlow's, and the time
 * against a binary search. */
#include "core/train/summary/histogram.h"
#include "tests/core/train/summary/reader.h"

#include <float.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/random.h"

enum { ZERO_BUCKET = 775, VALUES_MAX = 1000, MANY = 1000000 };

static struct histogram h;

static void limits_are_those_of_tensorflow(void **state)
{
    assert_true(histogram_limit(0) == -DBL_MAX);
    assert_true(histogram_limit(HISTOGRAM_BUCKETS - 1) == DBL_MAX);
    assert_true(histogram_limit(ZERO_BUCKET) == 0);
    double limit = 1e-12;
    for (int i = 1; limit < 1e20; i++, limit *= 1.1) {
        assert_true(histogram_limit(ZERO_BUCKET + i) == limit);
        assert_true(histogram_limit(ZERO_BUCKET - i) == -limit);
    }
    assert_true(histogram_limit(HISTOGRAM_BUCKETS - 2) * 1.1 >= 1e20);
}

static int plain_search(double value)
{
    for (int i = 0; i < HISTOGRAM_BUCKETS - 1; i++)
        if (histogram_limit(i) > value) return i;
    return HISTOGRAM_BUCKETS - 1;
}

static void check_bucket(double value)
{
    histogram_clear(&h);
    histogram_add(&h, value);
    const int bucket = plain_search(value);
    if (h.buckets[bucket] != 1) fail_msg("%.17g is not in bucket %d", value, bucket);
}

static void values_at_and_beside_each_limit_are_in_their_buckets(void **state)
{
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        const double limit = histogram_limit(i);
        check_bucket(limit);
        check_bucket(nextafter(limit, 0));
        if (fabs(limit) < DBL_MAX) check_bucket(nextafter(limit, -INFINITY));
        if (fabs(limit) < DBL_MAX) check_bucket(nextafter(limit, INFINITY));
    }
    check_bucket(-0.0);
    check_bucket(DBL_TRUE_MIN);
    check_bucket(-DBL_TRUE_MIN);
    check_bucket(1e300);
}

static void values_of_any_size_are_in_their_buckets(void **state)
{
    for (uint64_t i = 0; i < 20000; i++) {
        const double power = 60 * (double)random_normal(1, i);
        check_bucket((random_u64(2, i) & 1 ? 1 : -1) * exp2(power));
    }
}

static void what_is_not_finite_is_counted_apart(void **state)
{
    const float values[] = {1.0f, NAN, INFINITY, -2.0f, -INFINITY};
    histogram_clear(&h);
    histogram_add_all(&h, values, 5);
    histogram_add(&h, NAN);
    assert_int_equal(h.not_finite, 4);
    assert_true(h.count == 2 && h.sum == -1 && h.sum_squares == 5);
    assert_true(h.minimum == -2 && h.maximum == 1);
}

static void an_empty_histogram_is_one_pair(void **state)
{
    static double limits[HISTOGRAM_BUCKETS + 1], counts[HISTOGRAM_BUCKETS + 1];
    histogram_clear(&h);
    assert_int_equal(histogram_pairs(&h, limits, counts), 1);
    assert_true(limits[0] == DBL_MAX && counts[0] == 0);
    assert_true(h.minimum == DBL_MAX && h.maximum == -DBL_MAX);
}

/* Buckets on either side of a full one, and no empty one between two full ones. */
static void runs_of_empty_buckets_become_one_pair(void **state)
{
    static double limits[HISTOGRAM_BUCKETS + 1], counts[HISTOGRAM_BUCKETS + 1];
    const float values[] = {1e-12f * 1.05f, 1e-12f * 1.15f, 1.0f};
    histogram_clear(&h);
    histogram_add_all(&h, values, 3);
    assert_int_equal(histogram_pairs(&h, limits, counts), 6);
    const double expected[] = {0, 1, 1, 0, 1, 0};
    for (int i = 0; i < 6; i++) assert_true(counts[i] == expected[i]);
    assert_true(limits[0] == histogram_limit(ZERO_BUCKET + 1));
    assert_true(limits[4] > 1.0 && limits[3] <= 1.0 && limits[5] == DBL_MAX);
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static void check_pairs(const json_t *histo)
{
    static double limits[HISTOGRAM_BUCKETS + 1], counts[HISTOGRAM_BUCKETS + 1];
    const json_t *wanted_limits = json_object_get(histo, "bucket_limit");
    const json_t *wanted_counts = json_object_get(histo, "bucket");
    const int pairs = histogram_pairs(&h, limits, counts);
    assert_int_equal(pairs, json_array_size(wanted_limits));
    for (int i = 0; i < pairs; i++) {
        const double limit = json_number_value(json_array_get(wanted_limits, (size_t)i));
        assert_true(fabs(limits[i] - limit) <= 1e-8 * fabs(limit)); /* nine digits are there */
        assert_true(counts[i] == json_number_value(json_array_get(wanted_counts, (size_t)i)));
    }
}

static void add_fixture(const json_t *array)
{
    static float values[VALUES_MAX];
    const json_t *data = json_object_get(array, "data");
    const size_t count = json_array_size(data);
    assert_in_range(count, 1, VALUES_MAX);
    for (size_t i = 0; i < count; i++)
        values[i] = (float)json_number_value(json_array_get(data, i));
    histogram_add_all(&h, values, (int64_t)count);
}

static void the_same_values_give_the_histograms_of_tensorflow(void **state)
{
    json_t *expected = json_load_file(EVENTS_FIXTURE "/expected.json", 0, NULL);
    assert_non_null(expected);
    size_t i, histograms = 0;
    json_t *event;
    json_array_foreach(json_object_get(expected, "events"), i, event)
    {
        const json_t *histo = json_object_get(event, "histo");
        if (!histo) continue;
        histogram_clear(&h);
        add_fixture(json_array_get(json_object_get(expected, "histogram_inputs"), histograms++));
        assert_true(h.count == number(histo, "num"));
        assert_float_equal(h.minimum, number(histo, "min"), 1e-7);
        assert_float_equal(h.maximum, number(histo, "max"), 1e-7);
        assert_float_equal(h.sum, number(histo, "sum"), 1e-6);
        assert_float_equal(h.sum_squares, number(histo, "sum_squares"), 1e-4);
        check_pairs(histo);
    }
    assert_int_equal(histograms, 3);
    json_decref(expected);
}

static double processor_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}

static int binary_search(double value)
{
    int low = 0, high = HISTOGRAM_BUCKETS - 1; /* the bucket is in [low, high] */
    while (low < high) {
        const int middle = (low + high) / 2;
        if (histogram_limit(middle) > value)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/* What the same values cost by a binary search of each, in ms. */
static double searched_ms(const float *values, double ret_buckets[HISTOGRAM_BUCKETS])
{
    memset(ret_buckets, 0, HISTOGRAM_BUCKETS * sizeof *ret_buckets);
    const double begin = processor_ms();
    for (int i = 0; i < MANY; i++) ret_buckets[binary_search(values[i])]++;
    return processor_ms() - begin;
}

/* The best of several: other processes share the caches. */
static void a_million_values_are_quicker_than_by_binary_search(void **state)
{
    float *values = malloc(MANY * sizeof *values);
    assert_non_null(values);
    for (uint64_t i = 0; i < MANY; i++) values[i] = 0.05f * random_normal(1, i);
    static double buckets[HISTOGRAM_BUCKETS];
    double best_ms = INFINITY, search_ms = INFINITY;
    for (int i = 0; i < 5; i++) {
        histogram_clear(&h);
        const double begin = processor_ms();
        histogram_add_all(&h, values, MANY);
        best_ms = fmin(best_ms, processor_ms() - begin);
        search_ms = fmin(search_ms, searched_ms(values, buckets));
    }
    print_message("%d values: %.2f ms, by binary search %.2f ms\n", MANY, best_ms, search_ms);
    assert_true(h.count == MANY);
    assert_memory_equal(h.buckets, buckets, sizeof buckets);
    assert_true(best_ms < search_ms);
    free(values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_are_those_of_tensorflow),
        cmocka_unit_test(values_at_and_beside_each_limit_are_in_their_buckets),
        cmocka_unit_test(values_of_any_size_are_in_their_buckets),
        cmocka_unit_test(what_is_not_finite_is_counted_apart),
        cmocka_unit_test(an_empty_histogram_is_one_pair),
        cmocka_unit_test(runs_of_empty_buckets_become_one_pair),
        cmocka_unit_test(the_same_values_give_the_histograms_of_tensorflow),
        cmocka_unit_test(a_million_values_are_quicker_than_by_binary_search),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
