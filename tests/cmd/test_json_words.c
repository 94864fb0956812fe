/* test_json_words.c - what is written as JSON is read back by a reader of JSON as it was. */
#include "cmd/json_words.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

enum { BYTES_MAX = 256 };
#define NO_TEXT "\xef\xbf\xbd" /* U+FFFD */

static const char *written_text(const char *text, char ret[BYTES_MAX])
{
    FILE *out = fmemopen(ret, BYTES_MAX, "w");
    assert_non_null(out);
    json_write_text(out, text);
    fclose(out);
    return ret;
}

static const char *written_number(float number, char ret[BYTES_MAX])
{
    FILE *out = fmemopen(ret, BYTES_MAX, "w");
    assert_non_null(out);
    json_write_number(out, number);
    fclose(out);
    return ret;
}

static void texts_are_read_back(void **state)
{
    static const struct {
        const char *text, *written, *read; /* read NULL: the text */
    } table[] = {
        {"", "\"\"", NULL},
        {"plain text", "\"plain text\"", NULL},
        {"\"a\" \\ 'b' /", "\"\\\"a\\\" \\\\ 'b' /\"", NULL},
        {"\"", "\"\\\"\"", NULL},
        {"\\", "\"\\\\\"", NULL},
        {"a\tb\nc\r\x01\x1f\x7f", "\"a\\u0009b\\u000ac\\u000d\\u0001\\u001f\x7f\"", NULL},
        {"São Paulo, Rīga", "\"São Paulo, Rīga\"", NULL},
        {"\xe2\x82\xac\xf0\x9f\x98\x80\xc2\x80", "\"\xe2\x82\xac\xf0\x9f\x98\x80\xc2\x80\"", NULL},
        {"\xf4\x8f\xbf\xbf", "\"\xf4\x8f\xbf\xbf\"", NULL},
        /* no UTF-8: alone, cut, too long a form, half of a pair, beyond the last */
        {"a\xff", "\"a\\ufffd\"", "a" NO_TEXT},
        {"\x80z", "\"\\ufffdz\"", NO_TEXT "z"},
        {"\xc3", "\"\\ufffd\"", NO_TEXT},
        {"\xf0\x9f\x98", "\"\\ufffd\\ufffd\\ufffd\"", NO_TEXT NO_TEXT NO_TEXT},
        {"\xe2\x82\"", "\"\\ufffd\\ufffd\\\"\"", NO_TEXT NO_TEXT "\""},
        {"\xc0\xaf", "\"\\ufffd\\ufffd\"", NO_TEXT NO_TEXT},
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"", NO_TEXT NO_TEXT NO_TEXT},
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"", NO_TEXT NO_TEXT NO_TEXT NO_TEXT},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[BYTES_MAX];
        assert_string_equal(written_text(table[i].text, text), table[i].written);
        json_t *read = json_loads(text, JSON_DECODE_ANY, NULL);
        assert_true(json_is_string(read));
        assert_string_equal(json_string_value(read), table[i].read ? table[i].read : table[i].text);
        json_decref(read);
    }
}

static void numbers_are_read_back_to_the_bit(void **state)
{
    static const struct {
        float number;
        const char *written;
    } table[] = {
        {0, "0.0"},
        {-0.0f, "-0.0"},
        {1, "1.0"},
        {-17, "-17.0"},
        {0.5f, "0.5"},
        {0.1f, "0.100000001"},
        {16777216, "16777216.0"},
        {1e9f, "1e+09"},
        {1e22f, "9.99999978e+21"},
        {1.5e-7f, "1.50000005e-07"},
        {3.40282347e38f, "3.40282347e+38"},
        {-1.17549435e-38f, "-1.17549435e-38"},
        {1.40129846e-45f, "1.40129846e-45"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[BYTES_MAX];
        assert_string_equal(written_number(table[i].number, text), table[i].written);
        json_t *read = json_loads(text, JSON_DECODE_ANY, NULL);
        assert_true(json_is_real(read));
        const float number = (float)json_real_value(read);
        assert_memory_equal(&number, &table[i].number, sizeof number);
        json_decref(read);
    }
}

static void what_is_no_number_is_null(void **state)
{
    const float table[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[BYTES_MAX];
        json_t *read = json_loads(written_number(table[i], text), JSON_DECODE_ANY, NULL);
        assert_true(json_is_null(read));
    }
}

/* A class of no word beside others that have one is a text, as they are. */
static void classes_are_words_or_numbers(void **state)
{
    static const char *words[] = {"no", "\"yes\""};
    const struct strings none = {0}, two = {words, 2};
    const struct {
        const struct strings *words;
        int64_t class;
        bool as_text;
        const char *written;
    } table[] = {
        {&none, 7, false, "7"},     {&none, 7, true, "\"7\""},
        {&two, 0, false, "\"no\""}, {&two, 1, true, "\"\\\"yes\\\"\""},
        {&two, 2, false, "\"2\""},  {&two, 2, true, "\"2\""},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        char text[BYTES_MAX];
        FILE *out = fmemopen(text, sizeof text, "w");
        assert_non_null(out);
        json_write_class(out, table[i].words, table[i].class, table[i].as_text);
        fclose(out);
        assert_string_equal(text, table[i].written);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_read_back),
        cmocka_unit_test(numbers_are_read_back_to_the_bit),
        cmocka_unit_test(what_is_no_number_is_null),
        cmocka_unit_test(classes_are_words_or_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
