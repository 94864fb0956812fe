/* test_json_foreign.c - JSON of others: what is right is read, and what would be too much in memory
 * is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json_foreign.h"

#include <cmocka.h> /* after error.h: it has a macro named fail */

static void what_is_right_is_read(void **state)
{
    json_t *json;
    const char text[] = "{\"a\": [1, \"]\\\"[{,\"]} and more";
    assert_int_equal(json_read_foreign(text, strlen(text) - strlen(" and more"), 0, &json), OK);
    assert_string_equal(json_string_value(json_array_get(json_object_get(json, "a"), 1)), "]\"[{,");
    json_decref(json);
    assert_int_equal(json_read_foreign(text, strlen(text), 0, &json), ERR_INPUT);
    assert_null(json);
    assert_int_equal(json_read_foreign(NULL, 0, 0, &json), ERR_INPUT);
    assert_int_equal(json_read_foreign("\"\\", 2, 0, &json), ERR_INPUT);
}

/* "[" piece "," piece ... last "]" */
static char *repeated(const char *piece, size_t count, size_t *ret_bytes)
{
    const size_t bytes = strlen(piece) + 1;
    char *text = malloc(bytes * count + 2);
    assert_non_null(text);
    text[0] = '[';
    for (size_t i = 0; i < count; i++) {
        memcpy(text + 1 + i * bytes, piece, bytes - 1);
        text[i * bytes + bytes] = ',';
    }
    text[count * bytes] = ']';
    *ret_bytes = count * bytes + 1;
    return text;
}

static err read_repeated(const char *piece, size_t count)
{
    size_t bytes;
    json_t *json;
    char *text = repeated(piece, count, &bytes);
    const err e = json_read_foreign(text, bytes, 0, &json);
    if (!e) assert_int_equal(json_array_size(json), count);
    json_decref(json);
    free(text);
    return e;
}

static void so_many_values_are_read_and_no_more(void **state)
{
    assert_int_equal(read_repeated("{}", FOREIGN_LISTS_MAX - 1), OK);
    assert_int_equal(read_repeated("{}", FOREIGN_LISTS_MAX), ERR_INPUT);
    assert_non_null(strstr(error_text(), "lists and objects"));
    assert_int_equal(read_repeated("0", FOREIGN_VALUES_MAX + 1), OK);
    assert_int_equal(read_repeated("0", FOREIGN_VALUES_MAX + 2), ERR_INPUT);
    assert_int_equal(read_repeated("\"[[[[{{{{,,,,\"", FOREIGN_LISTS_MAX), OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_right_is_read),
        cmocka_unit_test(so_many_values_are_read_and_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
