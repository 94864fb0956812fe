/* The copy of the loops that this machine runs makes the bits of the plain one. */
#include "core/data/loops.h"
#include "tests/core/data/support.h"

extern const struct loops loops_plain;

enum { COUNT = 1000 };

static void scaling_is_the_same_at_every_length_and_alignment(void **state)
{
    uint8_t bytes[COUNT];
    float floats[COUNT], one[COUNT], other[COUNT];
    for (int i = 0; i < COUNT; i++) {
        bytes[i] = (uint8_t)(i * 11);
        floats[i] = (float)i * 0.37f - 100;
    }
    for (int n = 0; n < 100; n++) {
        for (int from = 0; from < 20; from++) {
            loops_plain.scale_bytes(one, bytes + from, 0.0039f, -0.3f, n);
            loops_best()->scale_bytes(other, bytes + from, 0.0039f, -0.3f, n);
            assert_memory_equal(one, other, (size_t)n * sizeof *one);
            loops_plain.scale_floats(one, floats + from, 0.0039, -0.3, n);
            loops_best()->scale_floats(other, floats + from, 0.0039, -0.3, n);
            assert_memory_equal(one, other, (size_t)n * sizeof *one);
        }
    }
}

static void uniform_numbers_are_the_same(void **state)
{
    float one[COUNT], other[COUNT];
    loops_plain.fill_uniform(one, 12345, COUNT);
    loops_best()->fill_uniform(other, 12345, COUNT);
    assert_memory_equal(one, other, sizeof one);
}

static void drawing_is_the_same(void **state)
{
    float one[DIGIT_FLOATS], other[DIGIT_FLOATS];
    uint8_t image[DIGIT_PIXELS], same[DIGIT_PIXELS];
    const struct pen pen = {1.3f, 200, 99, 50, {12.2f, 9.1f}, 3.5f};
    for (int i = 0; i < DIGIT_FLOATS; i++) one[i] = other[i] = 500;
    for (int i = 0; i < 30; i++) {
        struct piece p = {.from = {(float)i, 25.3f - (float)i}, .along = {3.1f, (float)i * 0.2f}};
        p.per_square = 1 / (p.along.x * p.along.x + p.along.y * p.along.y);
        p.last_row = DIGIT_SIDE - 1;
        loops_plain.approach(one, &p);
        loops_best()->approach(other, &p);
        assert_memory_equal(one, other, sizeof one);
    }
    loops_plain.shade(image, one, &pen);
    loops_best()->shade(same, other, &pen);
    assert_memory_equal(image, same, sizeof image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scaling_is_the_same_at_every_length_and_alignment),
        cmocka_unit_test(uniform_numbers_are_the_same),
        cmocka_unit_test(drawing_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
