/* What a terminal may be shown of text that somebody else wrote. */
#include "core/base/printable.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void assert_shown(const char *text, const char *expected)
{
    char shown[256];
    assert_true(printable_copy(shown, sizeof shown, text));
    assert_string_equal(shown, expected);
}

static void text_stays_as_it_is(void **state)
{
    assert_shown("", "");
    assert_shown("a/b.json \\x1b \"q\"", "a/b.json \\x1b \"q\"");
    assert_shown("one\ntwo", "one\ntwo");
    assert_shown("Stra\xc3\x9f"
                 "e \xe2\x82\xac \xf0\x9f\x98\x80",
                 "Stra\xc3\x9f"
                 "e \xe2\x82\xac "
                 "\xf0\x9f\x98\x80");
}

static void control_characters_are_spelled_out(void **state)
{
    assert_shown("\x1b[2J", "\\x1b[2J");
    assert_shown("a\rb\tc\x7f\x01", "a\\x0db\\x09c\\x7f\\x01");
    assert_shown("\xc2\x9b"
                 "2J",
                 "\\xc2\\x9b2J"); /* the same as ESC [ in one character */
}

/* They would make "a b" and "a" look like what they are not. */
static void characters_that_nobody_sees_are_spelled_out(void **state)
{
    assert_shown("\xef\xbb\xbfy", "\\xef\\xbb\\xbfy"); /* a byte order mark */
    assert_shown("a\xc2\xa0", "a\\xc2\\xa0");          /* a blank that does not break */
    assert_shown("a\xe2\x80\x8b", "a\\xe2\\x80\\x8b"); /* of no width */
    assert_shown("a\xe2\x80\xae", "a\\xe2\\x80\\xae"); /* what follows runs backwards */
    assert_shown("\xf3\xa0\x81\xa1", "\\xf3\\xa0\\x81\\xa1");
    assert_shown("a b \xc2\xa1 \xe2\x82\xac \xf0\x9f\x98\x80",
                 "a b \xc2\xa1 \xe2\x82\xac \xf0\x9f\x98\x80");
}

static void bytes_that_are_no_utf8_are_spelled_out(void **state)
{
    assert_shown("\x9b"
                 "2J",
                 "\\x9b2J");
    assert_shown("caf\xe9", "caf\\xe9");
    assert_shown("\xc0\x9b", "\\xc0\\x9b"); /* longer than need be */
    assert_shown("\xe0\x82\x9b", "\\xe0\\x82\\x9b");
    assert_shown("\xed\xa0\x80", "\\xed\\xa0\\x80"); /* half of a pair */
    assert_shown("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
    assert_shown("\xe2\x82", "\\xe2\\x82");
    assert_shown("\xe2\x82"
                 "a",
                 "\\xe2\\x82"
                 "a");
}

static void no_character_is_cut(void **state)
{
    static const char text[] = "a\xe2\x82\xac\x1b"
                               "b";
    static const char *const fitting[] = {"", "", "a", "a", "a", "a\xe2\x82\xac"};
    for (size_t size = 1; size <= 5; size++) {
        char shown[16];
        assert_false(printable_copy(shown, size, text));
        assert_string_equal(shown, fitting[size]);
    }
    char shown[16];
    assert_true(printable_copy(shown, 10, text));
    assert_string_equal(shown, "a\xe2\x82\xac\\x1b"
                               "b");
}

static void the_rest_of_a_character_is_asked_for(void **state)
{
    static const char euro[] = "\xe2\x82\xac";
    assert_int_equal(printable_bytes(euro, 0), PRINTABLE_BEGUN);
    assert_int_equal(printable_bytes(euro, 1), PRINTABLE_BEGUN);
    assert_int_equal(printable_bytes(euro, 2), PRINTABLE_BEGUN);
    assert_int_equal(printable_bytes(euro, 3), 3);
    assert_int_equal(printable_bytes("\xe2"
                                     "a",
                                     2),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_stays_as_it_is),
        cmocka_unit_test(control_characters_are_spelled_out),
        cmocka_unit_test(characters_that_nobody_sees_are_spelled_out),
        cmocka_unit_test(bytes_that_are_no_utf8_are_spelled_out),
        cmocka_unit_test(no_character_is_cut),
        cmocka_unit_test(the_rest_of_a_character_is_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
