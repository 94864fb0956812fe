/* number_text.c writes what printf writes, of every kind of float. */
#include "core/base/number_text.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/random.h"

enum { RANDOM_FLOATS = 80000 };

static void check(float number)
{
    char wanted[NUMBER_TEXT_BYTES], got[NUMBER_TEXT_BYTES];
    snprintf(wanted, sizeof wanted, "%.9g", (double)number);
    const size_t length = number_text(number, got);
    assert_string_equal(got, wanted);
    assert_int_equal(length, strlen(wanted));
}

static void test_all_bits(void **state)
{
    (void)state;
    for (int i = 0; i < RANDOM_FLOATS; i++) {
        const uint32_t bits = (uint32_t)random_u64(7, (uint64_t)i);
        float number;
        memcpy(&number, &bits, sizeof number);
        check(number);
        check((float)(bits >> 8) * 0x1p-24f); /* as probabilities are */
        check((float)(int32_t)bits / 1000);
    }
}

/* Whole numbers, powers of ten and of two and what is next to them, halves, the largest, the least
 */
static void test_edges(void **state)
{
    (void)state;
    for (int power = -46; power < 39; power++) {
        const float at = (float)pow(10, power);
        check(at);
        check(nextafterf(at, INFINITY));
        check(nextafterf(at, 0));
    }
    for (int power = -149; power < 128; power++) {
        check(ldexpf(1, power));
        check(-nextafterf(ldexpf(1, power), 0));
    }
    for (int i = -2000; i < 2000; i++) {
        check((float)i);
        check((float)i / 16);
        check(16777216 + (float)i);
        check(999999936 + 64 * (float)i);
    }
    const float others[] = {0,        -0.0F,     FLT_MAX, -FLT_MAX, FLT_MIN, FLT_TRUE_MIN,
                            INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) check(others[i]);
}

static void test_whole_numbers(void **state)
{
    (void)state;
    const int64_t numbers[] = {0,         1,        -1, 9, 10, -10, 99, 100, 12345678901234567,
                               INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char wanted[NUMBER_TEXT_BYTES], got[NUMBER_TEXT_BYTES];
        snprintf(wanted, sizeof wanted, "%lld", (long long)numbers[i]);
        assert_int_equal(whole_text(numbers[i], got), strlen(wanted));
        assert_string_equal(got, wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_bits),
                                       cmocka_unit_test(test_edges),
                                       cmocka_unit_test(test_whole_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
