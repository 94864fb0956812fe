/* Numbers that are read eight digits at a time, beside strtod. */
#include "tests/data/support.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_numbers_are_those_of_strtod),
        cmocka_unit_test(bytes_are_found_where_they_stand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
