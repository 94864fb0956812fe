/* Numbers that are read eight digits at a time, beside strtod. */
#include "tests/core/data/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/data/columns/decimal.h"

enum { TEXTS = 200000, LENGTHS = 19, DIGITS_MAX = 15 };

/* Digits mostly, so that many are numbers; bytes that stand beside digits and far from them */
static char draw_byte(uint64_t key, int place)
{
    static const char bytes[] = "00112233445566778899012345678.-/:\xb0\xff";
    return bytes[random_u64(key, (uint64_t)place) % sizeof bytes]; /* the NUL, too */
}

static bool is_plain(const char *text, size_t length)
{
    size_t digits = 0, points = 0;
    const size_t begin = length > 0 && text[0] == '-';
    for (size_t i = begin; i < length; i++) {
        digits += text[i] >= '0' && text[i] <= '9';
        points += text[i] == '.';
    }
    return begin + digits + points == length && digits > 0 && digits <= DIGITS_MAX && points < 2;
}

/* In memory of its own, so that a sanitizer sees who reads on. */
static void compare(uint64_t key)
{
    const size_t length = random_u64(key, 0) % LENGTHS;
    char *text = malloc(length), copy[LENGTHS] = "";
    double got = 0;
    assert_true(text || length == 0);
    for (size_t i = 0; i < length; i++) text[i] = copy[i] = draw_byte(key, 1 + (int)i);
    const bool is_number = decimal_plain(text, length, &got);
    assert_int_equal(is_number, is_plain(copy, length));
    const double wanted = strtod(copy, NULL);
    if (is_number) assert_memory_equal(&got, &wanted, sizeof got);
    free(text);
}

static void plain_numbers_are_those_of_strtod(void **state)
{
    for (uint64_t i = 0; i < TEXTS; i++) compare(random_u64(1, i));
}

static void bytes_are_found_where_they_stand(void **state)
{
    for (size_t length = 0; length <= DECIMAL_BYTES; length++) {
        char text[DECIMAL_BYTES] = "aaaaaaaa";
        assert_int_equal(decimal_find(decimal_load(text, length), ':'), DECIMAL_BYTES);
        for (size_t i = length; i-- > 0;) {
            text[i] = ':';
            assert_int_equal(decimal_find(decimal_load(text, length), ':'), i);
        }
    }
}

/* Digits of a whole number, exact by hand, in a spelling that is drawn: zeros, a point, an
 * exponent. */
static void check_spelling(uint64_t key)
{
    const uint64_t number = random_u64(key, 0) >> random_u64(key, 1) % 64;
    const int behind = (int)(random_u64(key, 2) % 25), zeros = (int)(random_u64(key, 3) % 4);
    char digits[64], text[128];
    bool is_negative;
    uint64_t got;
    snprintf(digits, sizeof digits, "%0*" PRIu64 "%.*s", 22 + zeros, number, zeros, "000");
    const int before = (int)strlen(digits) - behind;
    if (before < 0) return;
    snprintf(text, sizeof text, "-%.*s.%se%+d", before, digits, digits + before, behind - zeros);
    assert_true(decimal_whole(text, strlen(text), &is_negative, &got));
    assert_true(is_negative);
    assert_true(got == number);
    snprintf(text, sizeof text, "%.*s.%s5E%d", before, digits, digits + before, behind - zeros);
    assert_false(decimal_whole(text, strlen(text), &is_negative, &got));
}

static void whole_numbers_are_exact_in_any_spelling(void **state)
{
    static const struct {
        const char *text;
        uint64_t number;
    } good[] = {{"0", 0},
                {"0.000", 0},
                {"0e-30", 0},
                {"1e3", 1000},
                {"+7.0", 7},
                {"123456789012.0", 123456789012},
                {".5e1", 5},
                {"1200e-2", 12},
                {"18446744073709551615", UINT64_MAX},
                {"9.e0", 9},
                {"1e19", UINT64_C(10000000000000000000)},
                {"9007199254740993.0", UINT64_C(9007199254740993)}};
    static const char *const bad[] = {
        "",    "-",     ".",    "1.5", "1e-1",    "18446744073709551616", "1e20",  "1e", "e3",
        "1e+", "1.2.3", "0x10", "12 ", "1e99999", "9007199254740993.5",   "1e3.0", "inf"};
    bool is_negative;
    uint64_t got;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(decimal_whole(good[i].text, strlen(good[i].text), &is_negative, &got));
        assert_true(got == good[i].number && !is_negative);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(decimal_whole(bad[i], strlen(bad[i]), &is_negative, &got));
    for (uint64_t i = 0; i < TEXTS; i++) check_spelling(random_u64(2, i));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_numbers_are_those_of_strtod),
        cmocka_unit_test(whole_numbers_are_exact_in_any_spelling),
        cmocka_unit_test(bytes_are_found_where_they_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
