/* Scalars, lists and objects from JSON: what is taken, what is refused, and with which words. */
#include "tests/core/base/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void absent_keys_take_their_defaults(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 3}");
    assert_int_equal(p.result, OK);
    assert_true(p.value.flag);
    assert_int_equal(p.value.units, 3);
    assert_true(p.value.rate == 0.5);
    assert_null(p.value.text);
    assert_int_equal(p.value.color, GREEN);
    assert_int_equal(p.value.sizes.count, 2);
    assert_int_equal(p.value.sizes.at[1], 2);
    assert_int_equal(p.value.weights.count, 0);
    assert_int_equal(p.value.words.count, 0);
    assert_int_equal(p.value.origin.x, 1);
    assert_int_equal(p.value.origin.y, 7);
    assert_int_equal(p.value.points.count, 0);
    assert_null(p.value.layer.kind.kind);
    assert_int_equal(p.value.layers.count, 0);
    assert_null(p.value.json);
    parsed_fini(&p);
}

static void every_type_is_read(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"flag\": false, \"units\": 16777216, \"rate\": 3, \"text\": \"h\\u00e9\","
                    " \"color\": \"blue\", \"sizes\": [9, 8, 7], \"weights\": [0.5, 2],"
                    " \"words\": [\"a\", \"\"], \"origin\": {\"x\": -4, \"y\": 0},"
                    " \"points\": [{\"x\": 1}, {\"x\": 2, \"y\": 3}], \"json\": {\"any\": [1]}}");
    assert_int_equal(p.result, OK);
    assert_false(p.value.flag);
    assert_int_equal(p.value.units, 16777216);
    assert_true(p.value.rate == 3.0);
    assert_string_equal(p.value.text, "h\xc3\xa9");
    assert_int_equal(p.value.color, BLUE);
    assert_int_equal(p.value.sizes.count, 3);
    assert_int_equal(p.value.sizes.at[2], 7);
    assert_int_equal(p.value.weights.count, 2);
    assert_true(p.value.weights.at[1] == 2.0);
    assert_int_equal(p.value.words.count, 2);
    assert_string_equal(p.value.words.at[0], "a");
    assert_int_equal(p.value.origin.x, -4);
    assert_int_equal(p.value.points.count, 2);
    const struct point *points = p.value.points.at;
    assert_int_equal(points[0].y, 7);
    assert_int_equal(points[1].y, 3);
    assert_ptr_equal(p.value.json, json_object_get(p.json, "json"));
    parsed_fini(&p);
}

static void whole_reals_are_integers(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 1e6, \"sizes\": [2.0]}");
    assert_int_equal(p.result, OK);
    assert_int_equal(p.value.units, 1000000);
    assert_int_equal(p.value.sizes.at[0], 2);
    parsed_fini(&p);
    assert_refused("{\"units\": 1.5}", "units: expected an integer from 1 to 16777216, got 1.5");
    assert_refused("{\"units\": 1, \"origin\": {\"x\": 1e300}}",
                   "origin.x: expected an integer, got 1.0000000000000001e+300");
    assert_refused("{\"units\": 1, \"origin\": {\"x\": 9223372036854775808.0}}",
                   "origin.x: expected an integer, got 9.2233720368547758e+18");
}

static void one_integer_stands_for_a_list_of_one(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 1, \"sizes\": 4}");
    assert_int_equal(p.result, OK);
    assert_int_equal(p.value.sizes.count, 1);
    assert_int_equal(p.value.sizes.at[0], 4);
    parsed_fini(&p);
    assert_refused("{\"units\": 1, \"sizes\": 10}",
                   "sizes: expected an integer from 1 to 9, got 10");
}

static void null_is_absent_only_where_that_is_the_default(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 1, \"text\": null, \"layer\": null, \"json\": null}");
    assert_int_equal(p.result, OK);
    assert_null(p.value.text);
    assert_null(p.value.layer.kind.kind);
    assert_null(p.value.json);
    parsed_fini(&p);
    assert_refused("{\"units\": 1, \"flag\": null}", "flag: expected true or false, got null");
    assert_refused("{\"units\": 1, \"words\": [\"a\", null]}",
                   "words[1]: expected a string, got null");
}

static void numbers_out_of_range_are_refused(void **state)
{
    assert_refused("{\"units\": 0}", "units: expected an integer from 1 to 16777216, got 0");
    assert_refused("{\"units\": 16777217}",
                   "units: expected an integer from 1 to 16777216, got 16777217");
    assert_refused("{\"units\": 1, \"rate\": -0.5}",
                   "rate: expected a number of at least 0, got -0.5");
    assert_refused("{\"units\": 1, \"sizes\": [1, 10]}",
                   "sizes[1]: expected an integer from 1 to 9, got 10");
}

static void wrong_types_are_refused_with_the_path(void **state)
{
    assert_refused("[]", "expected an object, got a list of 0");
    assert_refused("3", "expected an object, got 3");
    assert_refused("{\"units\": \"ten\"}",
                   "units: expected an integer from 1 to 16777216, got \"ten\"");
    assert_refused("{\"units\": 1, \"flag\": 1}", "flag: expected true or false, got 1");
    assert_refused("{\"units\": 1, \"flag\": \"w\"}",
                   "flag: expected true or false, got \"w\" (flag: a switch)");
    assert_refused("{\"units\": 1, \"text\": [\"a\", \"b\"]}",
                   "text: expected a string, got a list of 2 (text: what to say)");
    assert_refused("{\"units\": 1, \"rate\": \"fast\"}",
                   "rate: expected a number of at least 0, got \"fast\"");
    assert_refused("{\"units\": 1, \"text\": 5}", "text: expected a string, got 5");
    assert_refused("{\"units\": 1, \"words\": \"a\"}",
                   "words: expected a list of strings, got \"a\"");
    assert_refused("{\"units\": 1, \"weights\": 2}", "weights: expected a list of numbers, got 2");
    assert_refused("{\"units\": 1, \"weights\": [1, true]}",
                   "weights[1]: expected a number, got true");
    assert_refused("{\"units\": 1, \"origin\": 5}", "origin: expected an object, got 5");
    assert_refused("{\"units\": 1, \"points\": {}}",
                   "points: expected a list of objects, got an object");
    assert_refused("{\"units\": 1, \"points\": [{\"x\": 1}, {\"x\": \"left\"}]}",
                   "points[1].x: expected an integer, got \"left\"");
}

static void what_stands_in_quotes_is_told_as_that(void **state)
{
    assert_refused("{\"units\": \"16\"}",
                   "units: expected an integer from 1 to 16777216, got \"16\", a number in quotes");
    assert_refused("{\"units\": 1, \"rate\": \"1e-3\"}",
                   "rate: expected a number of at least 0, got \"1e-3\", a number in quotes");
    assert_refused("{\"units\": 1, \"flag\": \"true\"}",
                   "flag: expected true or false, got \"true\", true in quotes (flag: a switch)");
    assert_refused("{\"units\": 1, \"weights\": [1, \"2\"]}",
                   "weights[1]: expected a number, got \"2\", a number in quotes");
    assert_refused("{\"units\": 1, \"weights\": \"[1, 2]\"}",
                   "weights: expected a list of numbers, got \"[1, 2]\", a list in quotes");
    assert_refused("{\"units\": 1, \"origin\": \"{}\"}",
                   "origin: expected an object, got \"{}\", an object in quotes");
}

static void lists_of_wrong_length_are_refused(void **state)
{
    assert_refused("{\"units\": 1, \"sizes\": []}",
                   "sizes: expected a list of 1 to 3 integers from 1 to 9, got a list of 0");
    assert_refused("{\"units\": 1, \"sizes\": [1, 2, 3, 4]}",
                   "sizes: expected a list of 1 to 3 integers from 1 to 9, got a list of 4");
}

static void lists_have_a_limit_even_where_none_is_named(void **state)
{
    json_t *words = json_array();
    for (int i = 0; i <= FIELD_LIST_MAX; i++) json_array_append_new(words, json_string("w"));
    json_t *json = json_pack("{s:i, s:o}", "units", 1, "words", words);
    struct everything value;
    struct arena arena = {0};
    assert_int_equal(fields_parse(&everything_object, json, "", &arena, &value), ERR_INPUT);
    assert_string_equal(error_text(), "words: expected a list of strings, got a list of 65537");
    json_array_remove(words, 0);
    assert_int_equal(fields_parse(&everything_object, json, "", &arena, &value), OK);
    assert_int_equal(value.words.count, FIELD_LIST_MAX);
    arena_free(&arena);
    json_decref(json);
}

static void unknown_choices_name_the_known_and_the_nearest(void **state)
{
    assert_refused("{\"units\": 1, \"color\": \"gren\"}",
                   "color: expected one of red, green, blue, got \"gren\" (did you mean "
                   "\"green\"?)");
    assert_refused("{\"units\": 1, \"color\": \"ultraviolet\"}",
                   "color: expected one of red, green, blue, got \"ultraviolet\"");
    assert_refused("{\"units\": 1, \"color\": 2}",
                   "color: expected one of red, green, blue, got 2");
}

static void unknown_keys_name_the_nearest_and_the_known(void **state)
{
    assert_refused("{\"units\": 1, \"origin\": {\"x\": 1, \"yy\": 2}}",
                   "origin: unknown key \"yy\"; point knows x, y");
    assert_refused("{\"unit\": 1}",
                   "unknown key \"unit\" (did you mean \"units\"?); everything knows flag, units, "
                   "rate, text, color, sizes, weights, words, origin, points, optimizer, layer, "
                   "layers, json");
    assert_refused("{\"units\": 1, \"nothing_like_it\": 0}",
                   "unknown key \"nothing_like_it\"; everything knows flag, units, rate, text, "
                   "color, sizes, weights, words, origin, points, optimizer, layer, layers, json");
    assert_refused("{\"units\": 1, \"points\": [{\"x\": 1, \"\": 2}]}",
                   "points[0]: unknown key \"\"; point knows x, y");
}

static void missing_required_keys_are_named(void **state)
{
    assert_refused("{}", "required key \"units\" is missing: expected an integer from 1 to "
                         "16777216");
    assert_refused("{\"units\": 1, \"points\": [{}]}",
                   "points[0]: required key \"x\" is missing: expected an integer");
}

/* What a file says is quoted, cut, and without control characters. */
static void odd_text_is_quoted_safely(void **state)
{
    assert_refused("{\"units\": \"\\u001b[2J\\n\"}",
                   "units: expected an integer from 1 to 16777216, got \"\\x1b[2J\\x0a\"");
    char text[400] = "{\"units\": \"", wanted[400] = "units: expected an integer from 1 to "
                                                     "16777216, got \"";
    for (int i = 0; i < 100; i++) strcat(text, "\xc3\xa9");
    for (int i = 0; i < 30; i++) strcat(wanted, "\xc3\xa9");
    assert_refused(strcat(text, "\"}"), strcat(wanted, "...\""));
}

static void the_callers_path_stands_first(void **state)
{
    json_t *json = json_pack("{s:s}", "x", "a");
    struct point point;
    struct arena arena = {0};
    assert_int_equal(fields_parse(&point_object, json, "data.train", &arena, &point), ERR_INPUT);
    assert_string_equal(error_text(), "data.train.x: expected an integer, got \"a\"");
    arena_free(&arena);
    json_decref(json);
}

static void a_failure_leaves_the_result_alone(void **state)
{
    json_t *json = json_pack("{s:i, s:s}", "x", 5, "y", "a");
    struct point point = {11, 12};
    struct arena arena = {0};
    assert_int_equal(fields_parse(&point_object, json, "", &arena, &point), ERR_INPUT);
    assert_int_equal(point.x, 11);
    assert_int_equal(point.y, 12);
    arena_free(&arena);
    json_decref(json);
}

/* jansson refuses 1e999 by itself; a huge integer bound for a FLOAT is fine. */
static void numbers_beyond_every_type_never_get_in(void **state)
{
    assert_null(json_loads("[1e999]", 0, NULL));
    assert_null(json_loads("[99999999999999999999]", 0, NULL));
    struct parsed p;
    parsed_init(&p, "{\"units\": 1, \"rate\": 9223372036854775807}");
    assert_int_equal(p.result, OK);
    assert_true(p.value.rate == 0x1p63);
    parsed_fini(&p);
}

static void defaults_need_every_field_to_have_one(void **state)
{
    struct arena arena = {0};
    struct everything value;
    struct adam adam = {0};
    assert_int_equal(fields_defaults(&everything_object, &arena, &value), ERR_INPUT);
    assert_int_equal(fields_defaults(optimizer_table.at(0)->object, &arena, &adam), OK);
    assert_true(adam.learning_rate == 0.001);
    assert_true(adam.epsilon == 1e-8);
    arena_free(&arena);
}

struct scalars {
    bool flag;
    int64_t number;
    double rate;
    int color;
    const char *text;
};

static void write_and_parse(const struct scalars *from, struct arena *arena, struct scalars *ret)
{
    static const char *const colors[] = {"red", "green", NULL};
    static const struct field fields[] = {
        {.name = "flag", .type = FIELD_BOOL, .offset = offsetof(struct scalars, flag)},
        {.name = "number", .type = FIELD_INT, .offset = offsetof(struct scalars, number)},
        {.name = "rate", .type = FIELD_FLOAT, .offset = offsetof(struct scalars, rate)},
        {.name = "color",
         .type = FIELD_ENUM,
         .offset = offsetof(struct scalars, color),
         .choices = colors},
        {.name = "text",
         .type = FIELD_STRING,
         .offset = offsetof(struct scalars, text),
         .fallback = "null"},
        {0},
    };
    static const struct object object = {"scalars", "", fields, sizeof(struct scalars)};
    json_t *json = fields_write(&object, from);
    char *text = json_dumps(json, 0);
    json_t *again = json_loads(text, 0, NULL);
    assert_int_equal(fields_parse(&object, again, "", arena, ret), OK);
    if (ret->text) ret->text = arena_string(arena, ret->text);
    json_decref(again);
    free(text);
    json_decref(json);
}

/* Numbers that text cannot hold exactly, and those at the ends of their range. */
static void what_is_written_is_parsed_again_to_the_bit(void **state)
{
    static const struct scalars cases[] = {
        {true, INT64_MAX, 0.1, 1, "h\xc3\xa9 \"\n"},
        {false, INT64_MIN, -1e-308, 0, NULL},
        {false, -1, 1.0 / 3, 1, ""},
        {true, 0, 3, 0, "3"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct arena arena = {0};
        struct scalars read;
        write_and_parse(&cases[i], &arena, &read);
        assert_int_equal(read.flag, cases[i].flag);
        assert_true(read.number == cases[i].number);
        assert_memory_equal(&read.rate, &cases[i].rate, sizeof read.rate);
        assert_int_equal(read.color, cases[i].color);
        assert_int_equal(read.text == NULL, cases[i].text == NULL);
        if (read.text) assert_string_equal(read.text, cases[i].text);
        arena_free(&arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(absent_keys_take_their_defaults),
        cmocka_unit_test(every_type_is_read),
        cmocka_unit_test(whole_reals_are_integers),
        cmocka_unit_test(one_integer_stands_for_a_list_of_one),
        cmocka_unit_test(null_is_absent_only_where_that_is_the_default),
        cmocka_unit_test(numbers_out_of_range_are_refused),
        cmocka_unit_test(wrong_types_are_refused_with_the_path),
        cmocka_unit_test(what_stands_in_quotes_is_told_as_that),
        cmocka_unit_test(lists_of_wrong_length_are_refused),
        cmocka_unit_test(lists_have_a_limit_even_where_none_is_named),
        cmocka_unit_test(unknown_choices_name_the_known_and_the_nearest),
        cmocka_unit_test(unknown_keys_name_the_nearest_and_the_known),
        cmocka_unit_test(missing_required_keys_are_named),
        cmocka_unit_test(odd_text_is_quoted_safely),
        cmocka_unit_test(the_callers_path_stands_first),
        cmocka_unit_test(a_failure_leaves_the_result_alone),
        cmocka_unit_test(numbers_beyond_every_type_never_get_in),
        cmocka_unit_test(defaults_need_every_field_to_have_one),
        cmocka_unit_test(what_is_written_is_parsed_again_to_the_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
