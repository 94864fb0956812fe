/* Answers of several ps joined to one variable and made into text, and answers that are none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/var/variable_view.h"

#include <cmocka.h> /* after error.h: it has a macro named fail */

enum { ANSWERS_MAX = 3 };

struct row {
    const char *answers[ANSWERS_MAX];
    const char *expected; /* the text, or the error */
};

static json_t *parse(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    assert_non_null(json);
    return json;
}

static err join(const struct row *row, const struct selection *selection,
                struct variable_view *seen)
{
    err e = OK;
    for (int i = 0; i < ANSWERS_MAX && row->answers[i] && !e; i++) {
        json_t *answer = parse(row->answers[i]);
        if (i == 0) e = variable_view_open(answer, selection, seen);
        if (!e) e = variable_view_add(seen, answer);
        json_decref(answer);
    }
    return e ? e : variable_view_check(seen);
}

static void check_selected(const struct row *row, const struct selection *selection, err expected)
{
    struct variable_view seen = {0};
    assert_int_equal(join(row, selection, &seen), expected);
    if (expected) {
        assert_string_equal(error_text(), row->expected);
    } else {
        char *text = variable_view_text(&seen);
        assert_string_equal(text, row->expected);
        free(text);
    }
    variable_view_close(&seen);
}

static void check(const struct row *row, bool is_element, err expected)
{
    check_selected(row, &(struct selection){.index_count = is_element}, expected);
}

#define COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define TRAINED(shape, axis, rest)                                                                 \
    "{\"kind\": \"trained\", \"shape\": " shape ", \"axis\": " axis ", " rest "}"
#define PART(start, length, values)                                                                \
    "{\"start\": " start ", \"length\": " length ", \"values\": " values "}"

static void parts_are_put_where_they_belong(void **state)
{
    static const struct row rows[] = {
        {{TRAINED("[]", "0", "\"parts\": [" PART("0", "1", "[0.1]") "]")}, "0.1"},
        {{"{\"kind\": \"shared\", \"shape\": [], \"axis\": 0, \"parts\": [" PART(
             "0", "1", "[0.30000000000000004]") "]}"},
         "0.30000000000000004"},
        {{TRAINED("[3, 2]", "0", "\"parts\": [" PART("2", "1", "[5, 6]") "]"),
          TRAINED("[3, 2]", "0", "\"parts\": [" PART("0", "2", "[1, 2, 3, 4]") "]")},
         "[[1, 2], [3, 4], [5, 6]]"},
        {{TRAINED("[2, 3]", "1", "\"parts\": [" PART("0", "1", "[1, 4]") "]"),
          TRAINED("[2, 3]", "1", "\"parts\": [" PART("1", "2", "[2, 3, 5, \"nan\"]") "]")},
         "[[1, 2, 3], [4, 5, nan]]"},
        {{TRAINED("[1, 2, 1]", "0", "\"parts\": [" PART("0", "1", "[\"inf\", \"-inf\"]") "]")},
         "[[[inf], [-inf]]]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) check(&rows[i], false, OK);
}

/* Of a float32 as few digits as give it again. */
static void numbers_are_as_short_as_they_can_be(void **state)
{
    static const struct row rows[] = {
        {{TRAINED("[3]", "0",
                  "\"parts\": [" PART(
                      "0", "3", "[0.10000000149011612, 16777216, 1.1754943508222875e-38]") "]")},
         "[0.1, 16777216, 1.1754944e-38]"},
        {{"{\"kind\": \"shared\", \"shape\": [2], \"axis\": 0, \"parts\": [" PART(
             "0", "2", "[0.1, 1e300]") "]}"},
         "[0.1, 1e+300]"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) check(&rows[i], false, OK);
}

static void one_element_comes_from_the_ps_that_has_it(void **state)
{
    static const struct row row = {
        {TRAINED("[3, 2]", "0", "\"parts\": []"),
         TRAINED("[3, 2]", "0", "\"parts\": [" PART("0", "2", "[7.5]") "]")},
        "7.5"};
    check(&row, true, OK);
}

#define TABLE(first, rows, parts)                                                                  \
    "{\"kind\": \"table\", \"shape\": [900000, 2], \"axis\": 0, \"first_row\": " first             \
    ", \"rows\": " rows ", \"parts\": [" parts "]}"

static void rows_of_a_table_come_from_the_ps_that_have_them(void **state)
{
    static const struct row one = {
        {TABLE("7", "1", ""), TABLE("7", "1", PART("7", "1", "[0.1, 2]"))}, "[0.1, 2]"};
    static const struct row several = {{TABLE("7", "3", PART("9", "1", "[5, 6]")),
                                        TABLE("7", "3", PART("7", "2", "[1, 2, 3, 4]"))},
                                       "[[1, 2], [3, 4], [5, 6]]"};
    static const struct row missing = {{TABLE("7", "3", PART("7", "2", "[1, 2, 3, 4]"))},
                                       "2 of 6 elements are missing: a ps lacks its part"};
    static const struct row bad[] = {
        {{TABLE("899999", "2", "")}, "an answer without rows"},
        {{TABLE("-1", "2", "")}, "an answer without rows"},
        {{TABLE("1", "0", "")}, "an answer without rows"},
        {{"{\"kind\": \"table\", \"shape\": [9, 2], \"axis\": 0, \"parts\": []}"},
         "an answer without rows"},
        {{TABLE("7", "1", PART("6", "1", "[1, 2]"))}, "an answer with an invalid part"},
        {{TABLE("7", "1", PART("8", "1", "[1, 2]"))}, "an answer with an invalid part"},
        {{TABLE("7", "1", PART("-9223372036854775808", "1", "[1, 2]"))},
         "an answer with an invalid part"},
    };
    const struct selection row = {.index_count = 1, .index = {7}};
    const struct selection range = {.index_count = 1, .index = {7}, .rows = 3};
    check_selected(&one, &row, OK);
    check_selected(&several, &range, OK);
    check_selected(&missing, &range, ERR_PEER);
    for (size_t i = 0; i < COUNT(bad); i++) check_selected(&bad[i], &row, ERR_PROTOCOL);
}

static void a_large_one_is_a_line_of_all_its_parts(void **state)
{
    static const struct row row = {
        {TRAINED("[100000]", "0",
                 "\"summary\": {\"finite\": 2, \"minimum\": -1, \"maximum\": 1, \"sum\": 0, "
                 "\"sum_squares\": 2, \"first\": []}"),
         TRAINED("[100000]", "0",
                 "\"summary\": {\"finite\": 2, \"minimum\": 1, \"maximum\": 3, \"sum\": 4, "
                 "\"sum_squares\": 10, \"first\": [1, \"nan\", 3]}")},
        "[100000], 100000 elements, 99996 not finite, minimum -1, maximum 3, mean 1, deviation "
        "1.41421, first 1 nan 3 ..."};
    check(&row, false, OK);
}

static void a_part_that_no_ps_has_is_missed(void **state)
{
    static const struct row row = {
        {TRAINED("[3, 2]", "0", "\"parts\": [" PART("0", "2", "[1, 2, 3, 4]") "]")},
        "2 of 6 elements are missing: a ps lacks its part"};
    check(&row, false, ERR_PEER);
}

static void answers_that_no_ps_gives_are_refused(void **state)
{
    static const struct row rows[] = {
        {{"{}"}, "an answer without a shape"},
        {{"{\"kind\": \"trained\", \"shape\": 3}"}, "an answer without a shape"},
        {{TRAINED("[1, 1, 1, 1, 1, 1, 1]", "0", "\"parts\": []")}, "an answer without a shape"},
        {{TRAINED("[-2]", "0", "\"parts\": []")},
         "an answer: shape [-2]: every dimension must be at least 1"},
        {{TRAINED("[1099511627776, 2]", "0", "\"parts\": []")},
         "an answer: shape [1099511627776, 2] has more than 2^40 elements"},
        {{TRAINED("[2]", "0", "\"pairs\": []")}, "an answer without values"},
        {{TRAINED("[2]", "1", "\"parts\": []")}, "an answer without values"},
        {{TRAINED("[2]", "-1", "\"parts\": []")}, "an answer without values"},
        {{TRAINED("[100000]", "0", "\"parts\": []")}, "an answer without values"},
        {{TRAINED("[2]", "0", "\"parts\": [5]")}, "an answer with an invalid part"},
        {{TRAINED("[2]", "0", "\"parts\": [" PART("1", "2", "[1, 2]") "]")},
         "an answer with an invalid part"},
        {{TRAINED("[2]", "0", "\"parts\": [" PART("-1", "2", "[1, 2]") "]")},
         "an answer with an invalid part"},
        {{TRAINED("[2]", "0", "\"parts\": [" PART("0", "0", "[]") "]")},
         "an answer with an invalid part"},
        {{TRAINED("[2]", "0", "\"parts\": [" PART("0", "9223372036854775807", "[1, 2]") "]")},
         "an answer with an invalid part"},
        {{TRAINED("[2]", "0", "\"parts\": [" PART("0", "2", "[1, 2, 3]") "]")},
         "an answer with 3 values where a part has 2"},
    };
    for (size_t i = 0; i < COUNT(rows); i++) check(&rows[i], false, ERR_PROTOCOL);
}

static void answers_of_other_shapes_are_not_joined(void **state)
{
    static const struct row row = {
        {TRAINED("[2]", "0", "\"parts\": []"), TRAINED("[3]", "0", "\"parts\": []")},
        "two ps know variables of this name with other shapes"};
    check(&row, false, ERR_PEER);
}

static void the_kind_of_anything_is_known_or_none(void **state)
{
    static const char *const texts[] = {"{\"kind\": \"trained\"}",
                                        "{\"kind\": \"table\"}",
                                        "{\"kind\": \"shared\"}",
                                        "{\"kind\": \"step\"}",
                                        "{\"kind\": \"none\"}",
                                        "{\"kind\": 5}",
                                        "[]"};
    static const enum target_kind kinds[] = {TARGET_TRAINED, TARGET_TABLE, TARGET_SHARED,
                                             TARGET_STEP,    TARGET_NONE,  TARGET_NONE,
                                             TARGET_NONE};
    for (size_t i = 0; i < COUNT(texts); i++) {
        json_t *json = parse(texts[i]);
        assert_int_equal(variable_view_kind(json), kinds[i]);
        json_decref(json);
    }
    assert_int_equal(variable_view_kind(NULL), TARGET_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_are_put_where_they_belong),
        cmocka_unit_test(numbers_are_as_short_as_they_can_be),
        cmocka_unit_test(one_element_comes_from_the_ps_that_has_it),
        cmocka_unit_test(rows_of_a_table_come_from_the_ps_that_have_them),
        cmocka_unit_test(a_large_one_is_a_line_of_all_its_parts),
        cmocka_unit_test(a_part_that_no_ps_has_is_missed),
        cmocka_unit_test(answers_that_no_ps_gives_are_refused),
        cmocka_unit_test(answers_of_other_shapes_are_not_joined),
        cmocka_unit_test(the_kind_of_anything_is_known_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
