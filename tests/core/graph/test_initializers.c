/* test_initializers.c - moments, bounds, right angles, and values that depend on nothing else. */
#include "tests/core/graph/bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"

enum { KEY = 12345 };

/* The caller frees them. */
static float *some_values_of(const char *name, const char *attributes, const struct initial *of)
{
    struct arena arena = {0};
    const struct kind *kind = kinds_find(&initializer_kinds, name);
    if (!kind) fail_msg("no initializer %s", name);
    const struct initializer *initializer = kind->descriptor;
    json_t *json = object_from(attributes);
    void *parsed = attributes_from(kind->object, json, &arena);
    json_decref(json);
    float *values = malloc((size_t)of->count * sizeof *values);
    assert_non_null(values);
    if (initializer->fill(parsed, of, values)) fail_msg("%s: %s", name, error_text());
    arena_free(&arena);
    return values;
}

/* count values of the shape */
static float *values_of(const char *name, const char *attributes, const struct shape *shape,
                        uint64_t key)
{
    const struct initial all = {.shape = shape, .key = key, .count = shape_count(shape)};
    return some_values_of(name, attributes, &all);
}

struct moments {
    double mean, stddev, largest; /* largest: |value| */
};

static struct moments moments_of(const float *values, int64_t count)
{
    double sum = 0, squares = 0, largest = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += values[i];
        squares += (double)values[i] * values[i];
        largest = fmax(largest, fabs((double)values[i]));
    }
    const double mean = sum / (double)count;
    return (struct moments){mean, sqrt(squares / (double)count - mean * mean), largest};
}

struct expected {
    const char *name, *attributes;
    double mean, stddev;
    double limit; /* no |value| above it, and some near it; 0: none */
};

/* Of a convolution kernel [3, 5, 40, 60]: 15 * 40 inputs, 15 * 60 outputs. A normal distribution
 * that is cut at 2 has 0.8796 of its stddev. */
static const struct expected EXPECTED[] = {
    {"zeros", "{}", 0, 0, 0},
    {"ones", "{}", 1, 0, 1},
    {"constant", "{\"value\": 0.25}", 0.25, 0, 0.25},
    {"random_normal", "{\"mean\": 1, \"stddev\": 0.5}", 1, 0.5, 0},
    {"truncated_normal", "{\"stddev\": 0.1}", 0, 0.087963, 0.2},
    {"random_uniform", "{\"minval\": -2, \"maxval\": 2}", 0, 1.154701, 2},
    {"random_uniform", "{}", 0.5, 0.288675, 1},
    {"glorot_uniform", "{}", 0, 0.0365148, 0.0632456}, /* variance 2 / 1500 */
    {"glorot_normal", "{}", 0, 0.0365148, 0.0830236},  /* limit 2 / 0.8796 stddev */
    {"he_uniform", "{}", 0, 0.0577350, 0.1},           /* variance 2 / 600 */
    {"he_normal", "{}", 0, 0.0577350, 0.131272},
    {"lecun_uniform", "{}", 0, 0.0408248, 0.0707107}, /* variance 1 / 600 */
    {"lecun_normal", "{}", 0, 0.0408248, 0.0928233},
    {"variance_scaling", "{\"scale\": 9, \"mode\": \"fan_out\", \"distribution\": \"uniform\"}", 0,
     0.1, 0.173205}, /* variance 9 / 900 */
    {"variance_scaling", "{\"scale\": 9, \"mode\": \"fan_out\", \"distribution\": \"normal\"}", 0,
     0.1, 0.227369},
    {"variance_scaling", "{\"distribution\": \"untruncated_normal\"}", 0, 0.0408248, 0},
};

static void every_distribution_has_its_moments_and_bounds(void **state)
{
    const struct shape shape = {4, {3, 5, 40, 60}};
    const int64_t count = shape_count(&shape);
    for (size_t i = 0; i < sizeof EXPECTED / sizeof *EXPECTED; i++) {
        const struct expected *e = &EXPECTED[i];
        float *values = values_of(e->name, e->attributes, &shape, KEY);
        const struct moments m = moments_of(values, count);
        free(values);
        const double error = 5 * e->stddev / sqrt((double)count) + 1e-7; /* of five sigma */
        print_message("%s %s: mean %g stddev %g largest %g\n", e->name, e->attributes, m.mean,
                      m.stddev, m.largest);
        assert_near(m.mean, e->mean, error);
        assert_near(m.stddev, e->stddev, 0.015 * e->stddev + 1e-6);
        if (e->limit > 0) assert_true(m.largest <= e->limit * (1 + 1e-5));
        if (e->limit > 0) assert_true(m.largest >= e->limit * 0.98);
    }
}

static void fans_of_vectors_and_matrices_are_those_of_tensorflow(void **state)
{
    const struct shape matrix = {2, {100, 500}}, vector = {1, {5000}};
    float *values = values_of("glorot_uniform", "{}", &matrix, KEY);
    assert_near(moments_of(values, 50000).largest, sqrt(6.0 / 600), 1e-4);
    free(values);
    values = values_of("lecun_uniform", "{}", &matrix, KEY);
    assert_near(moments_of(values, 50000).largest, sqrt(3.0 / 100), 1e-4);
    free(values);
    values = values_of("glorot_uniform", "{}", &vector, KEY);
    assert_near(moments_of(values, 5000).largest, sqrt(6.0 / 10000), 1e-4);
    free(values);
}

/* rows (or columns) . rows = gain^2 on the diagonal, 0 elsewhere */
static void check_orthogonal(const float *q, int64_t rows, int64_t columns, double gain)
{
    const bool is_wide = rows < columns;
    const int64_t n = is_wide ? rows : columns, length = is_wide ? columns : rows;
    const int64_t vector = is_wide ? columns : 1, element = is_wide ? 1 : columns;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j <= i; j++) {
            double product = 0;
            for (int64_t k = 0; k < length; k++)
                product += (double)q[i * vector + k * element] * q[j * vector + k * element];
            assert_near(product, i == j ? gain * gain : 0, 1e-5);
        }
}

static void orthogonal_is_orthogonal(void **state)
{
    static const struct shape shapes[] = {{2, {20, 20}},      {2, {50, 7}}, {2, {7, 50}},
                                          {4, {3, 3, 4, 10}}, {2, {1, 5}},  {2, {1, 1}}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t columns = shapes[i].dim[shapes[i].rank - 1];
        float *q = values_of("orthogonal", "{\"gain\": 1.5}", &shapes[i], KEY);
        check_orthogonal(q, shape_count(&shapes[i]) / columns, columns, 1.5);
        free(q);
    }
}

/* Q with the signs of R's diagonal is unique: R = Q' A has a positive diagonal and zeros below. */
static void orthogonal_is_the_q_of_its_normal_matrix(void **state)
{
    enum { N = 12 };
    const struct shape shape = {2, {N, N}};
    float *q = values_of("orthogonal", "{}", &shape, KEY);
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) {
            double r = 0;
            for (int k = 0; k < N; k++) r += (double)q[k * N + i] * random_normal(KEY, k * N + j);
            if (i == j) assert_true(r > 0);
            if (j < i) assert_near(r, 0, 1e-5);
        }
    free(q);
}

static void orthogonal_refuses_what_is_no_matrix(void **state)
{
    const struct initializer *o = kinds_find(&initializer_kinds, "orthogonal")->descriptor;
    struct {
        double gain;
    } attributes = {1};
    float value;
    const struct shape vector = {1, {5}};
    assert_int_equal(o->fill(&attributes, &(struct initial){&vector, KEY, 0, 5}, &value),
                     ERR_INPUT);
    assert_non_null(strstr(error_text(), "at least 2 dimensions"));
    const struct shape huge = {2, {100000, 100000}};
    const struct initial of_huge = {&huge, KEY, 0, shape_count(&huge)};
    assert_int_equal(o->fill(&attributes, &of_huge, &value), ERR_INPUT);
    assert_non_null(strstr(error_text(), "must be at most 16384"));
}

static void a_range_that_ends_before_it_begins_is_refused(void **state)
{
    const struct initializer *u = kinds_find(&initializer_kinds, "random_uniform")->descriptor;
    struct {
        double minval, maxval;
    } attributes = {1, 0};
    float value;
    const struct shape shape = {1, {1}};
    assert_int_equal(u->fill(&attributes, &(struct initial){&shape, KEY, 0, 1}, &value), ERR_INPUT);
}

/* Element i is the same in a longer variable of the same distribution: only key and index count. */
static void a_value_depends_on_key_and_index_only(void **state)
{
    static const char *const names[] = {"random_normal", "truncated_normal", "random_uniform"};
    const struct shape small = {1, {100}}, large = {2, {10, 500}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        float *a = values_of(names[i], "{}", &small, KEY),
              *b = values_of(names[i], "{}", &large, KEY);
        float *c = values_of(names[i], "{}", &small, KEY + 1);
        assert_memory_equal(a, b, 100 * sizeof(float));
        assert_memory_not_equal(a, c, 100 * sizeof(float));
        free(a);
        free(b);
        free(c);
    }
    float *values = values_of("random_normal", "{}", &small, KEY);
    for (int i = 99; i >= 0; i--) assert_true(values[i] == random_normal(KEY, (uint64_t)i));
    free(values);
}

static void some_elements_are_those_of_the_whole(void **state)
{
    const struct shape shape = {2, {30, 7}};
    const struct kind *kind;
    for (int i = 0; (kind = initializer_kinds.at(i)); i++) {
        const struct initializer *initializer = kind->descriptor;
        const bool is_orthogonal = strcmp(kind->object->name, "orthogonal") == 0;
        assert_int_equal(initializer->is_whole, is_orthogonal);
        if (initializer->is_whole) continue;
        float *whole = values_of(kind->object->name, "{}", &shape, KEY);
        for (int64_t first = 0; first < 210; first += 23) {
            const struct initial of = {&shape, KEY, first, 210 - first < 30 ? 210 - first : 30};
            float *some = some_values_of(kind->object->name, "{}", &of);
            assert_memory_equal(some, whole + first, (size_t)of.count * sizeof *some);
            free(some);
        }
        free(whole);
    }
}

static void every_initializer_is_repeatable(void **state)
{
    const struct shape shape = {3, {3, 6, 5}};
    const struct kind *kind;
    for (int i = 0; (kind = initializer_kinds.at(i)); i++) {
        float *a = values_of(kind->object->name, "{}", &shape, KEY);
        float *b = values_of(kind->object->name, "{}", &shape, KEY);
        assert_memory_equal(a, b, 90 * sizeof(float));
        free(a);
        free(b);
    }
}

static void a_bare_number_is_a_constant(void **state)
{
    assert_string_equal(initializer_kinds.number_kind, "constant");
    const struct kind *kind = kinds_find(&initializer_kinds, initializer_kinds.number_kind);
    assert_string_equal(kind->object->fields[0].name, initializer_kinds.number_field);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_distribution_has_its_moments_and_bounds),
        cmocka_unit_test(fans_of_vectors_and_matrices_are_those_of_tensorflow),
        cmocka_unit_test(orthogonal_is_orthogonal),
        cmocka_unit_test(orthogonal_is_the_q_of_its_normal_matrix),
        cmocka_unit_test(orthogonal_refuses_what_is_no_matrix),
        cmocka_unit_test(a_range_that_ends_before_it_begins_is_refused),
        cmocka_unit_test(a_value_depends_on_key_and_index_only),
        cmocka_unit_test(some_elements_are_those_of_the_whole),
        cmocka_unit_test(every_initializer_is_repeatable),
        cmocka_unit_test(a_bare_number_is_a_constant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
