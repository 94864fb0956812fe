/* What a ps answers to visitors: variables of all kinds, limits, nonsense. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>

#include "core/cluster/role/verdict.h"
#include "core/cluster/visit/shared.h"
#include "tests/core/cluster/visit/visited.h"

#include <cmocka.h> /* after error.h: it has a macro named fail */

/* ---- nonsense ---- */

static void what_is_no_ask_is_answered_with_what_is_wrong(void **state)
{
    static const char *const rows[][2] = {
        {"", "the request is not JSON"},
        {"{\"do\": \"get\"", "the request is not JSON"},
        {"{\"do\": \"get\", \"do\": \"set\"}", "the request is not JSON"},
        {"[1]", "the request: Expected object, got array"},
        {"{}", "the request: Object item not found: do"},
        {"{\"do\": 3}", "the request: Expected string, got integer"},
        {"{\"do\": \"get\", \"nam\": \"w\"}", "the request: 1 object item(s) left unpacked: nam"},
        {"{\"do\": \"drop\", \"name\": \"w\"}",
         "the request: do: expected list, get, set, add, scale, status, stop, save, "
         "leave, absent, profile, setting or log"},
        {"{\"do\": \"get\"}", "the request: name: missing"},
        {"{\"do\": \"get\", \"name\": \"\\u00e4\"}",
         "the request: name: a character that no name has"},
        {"{\"do\": \"get\", \"name\": \"w\", \"index\": 3}",
         "the request: index: expected a list of at most 6 integers"},
        {"{\"do\": \"get\", \"name\": \"w\", \"index\": [1, 2, 3, 4, 5, 6, 7]}",
         "the request: index: expected a list of at most 6 integers"},
        {"{\"do\": \"get\", \"name\": \"w\", \"index\": [0.5, 0]}",
         "the request: index: expected integers"},
        {"{\"do\": \"get\", \"name\": \"w\", \"since\": -1}",
         "the request: since, every_ms, limit_ms and from are not negative"},
        {"{\"do\": \"set\", \"name\": \"w\"}", "the request: shape: missing"},
        {"{\"do\": \"set\", \"name\": \"w\", \"shape\": 3}",
         "the request: shape: expected a list of at most 6 integers"},
        {"{\"do\": \"set\", \"name\": \"w\", \"shape\": [2, 0]}",
         "the request: shape: no numbers, or more than 65536"},
        {"{\"do\": \"set\", \"name\": \"w\", \"shape\": [256, 257]}",
         "the request: shape: no numbers, or more than 65536"},
        {"{\"do\": \"set\", \"name\": \"w\", \"shape\": [2]}",
         "the request: value: 0 numbers where the shape has 2"},
        {"{\"do\": \"leave\"}", "the request: worker: expected the index of one"},
        {"{\"do\": \"log\", \"worker\": -2}", "the request: worker: expected the index of one"},
        {"{\"do\": \"log\", \"last\": -1}", "the request: last: expected how many lines"},
        {"{\"do\": \"profile\"}", "the request: steps: expected 1 to 100"},
        {"{\"do\": \"profile\", \"steps\": 101}", "the request: steps: expected 1 to 100"},
    };
    struct ps ps;
    serving_ps(&ps);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_error(&ps, rows[i][0], rows[i][1], 2);
    close_ps(&ps);
}

static void no_body_at_all_is_no_ask(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    const struct message m = {.type = MESSAGE_ASK, .ask.number = 9};
    visits_ask(ps.visits, 1, &m, 0);
    assert_string_equal(json_string_value(json_object_get(ps.answer[1], "error")),
                        "the request is not JSON");
    assert_int_equal(ps.sequence[1], 9);
    close_ps(&ps);
}

static void assert_body_error(struct ps *ps, const void *body, size_t bytes, const char *error)
{
    const struct message m = {.type = MESSAGE_ASK, .body = body, .body_bytes = (uint32_t)bytes};
    visits_ask(ps->visits, 1, &m, 0);
    assert_string_equal(json_string_value(json_object_get(ps->answer[1], "error")), error);
}

static void numbers_that_are_none_are_refused(void **state)
{
    static const char text[] = "{\"do\": \"set\", \"name\": \"w\", \"shape\": [1]}";
    char body[sizeof text + 16] = {0};
    const double nan = NAN;
    struct ps ps;
    serving_ps(&ps);
    memcpy(body, text, sizeof text); /* with the zero byte behind it */
    memcpy(body + sizeof text, &nan, sizeof nan);
    assert_body_error(&ps, body, sizeof text + 7, "the last number is cut off");
    assert_body_error(&ps, body, sizeof text + 8, "the request: value: not a finite number");
    assert_body_error(&ps, body, sizeof text + 16,
                      "the request: value: 2 numbers where the shape has 1");
    close_ps(&ps);
}

static void the_text_of_an_ask_has_a_limit(void **state)
{
    static char text[VISIT_TEXT_MAX + 2];
    struct ps ps;
    serving_ps(&ps);
    memset(text, ' ', sizeof text - 1);
    assert_error(&ps, text, "the request has more than 4096 bytes of text", 2);
    close_ps(&ps);
}

static void what_is_typed_is_numbers_in_lists_of_equal_lengths(void **state)
{
    static const char *const rows[][2] = {
        {"\"1\"", "value: expected a number, or lists of numbers of one length"},
        {"[]", "value: an empty list"},
        {"[[1, 2], [3]]", "value: lists of unequal lengths"},
        {"[1, [2]]", "value: expected a number, or lists of numbers of one length"},
        {"[[[[[[[1]]]]]]]", "value: lists in lists, more than 6 deep"},
    };
    struct value value;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_t *json = json_loads(rows[i][0], JSON_DECODE_ANY, NULL);
        assert_int_equal(value_read(json, &value), ERR_INPUT);
        assert_string_equal(error_text(), rows[i][1]);
        json_decref(json);
    }
    json_t *many = json_array();
    for (int i = 0; i <= VISIT_ELEMENTS_MAX; i++) json_array_append_new(many, json_integer(0));
    assert_int_equal(value_read(many, &value), ERR_INPUT);
    assert_string_equal(error_text(), "value: more than 65536 numbers");
    json_decref(many);
}

/* Both directions, of as many numbers as there may be. */
static void a_whole_value_comes_back_as_it_was_sent(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    json_t *values = json_array();
    for (int i = 0; i < VISIT_ELEMENTS_MAX; i++) json_array_append_new(values, json_real(i * 0.1));
    json_t *json = json_pack("{ss ss sO sb}", "do", "set", "name", "x", "value", values, "make", 1);
    char *text = json_dumps(json, 0);
    json_t *parts = json_object_get(ask(&ps, text), "parts");
    assert_int_equal(json_array_size(parts), 1);
    assert_true(json_equal(json_object_get(json_array_get(parts, 0), "values"), values));
    free(text);
    json_decref(json);
    json_decref(values);
    close_ps(&ps);
}

static void an_unknown_name_is_answered_with_the_nearest(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    ask(&ps, "{\"do\": \"set\", \"name\": \"counter\", \"value\": 1, \"make\": true}");
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"bug\"}",
                 "{\"kind\":\"none\",\"near\":\"big\"}");
    assert_asked(&ps, "{\"do\": \"add\", \"name\": \"conter\", \"value\": 1}",
                 "{\"kind\":\"none\",\"near\":\"counter\"}");
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"something-else\"}", "{\"kind\":\"none\"}");
    close_ps(&ps);
}

/* ---- shared variables ---- */

static void a_shared_variable_is_made_on_a_ps_that_nobody_has_set_up(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    assert_asked(&ps, "{\"do\": \"set\", \"name\": \"n\", \"value\": 0.1}", "{\"kind\":\"none\"}");
    assert_asked(&ps, "{\"do\": \"set\", \"name\": \"n\", \"value\": 0.1, \"make\": true}",
                 "{\"kind\":\"shared\",\"shape\":[],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":1,\"values\":[0.1]}]}");
    assert_asked(&ps, "{\"do\": \"add\", \"name\": \"n\", \"value\": 0.2}",
                 "{\"kind\":\"shared\",\"shape\":[],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":1,\"values\":[0.30000000000000004]}]}");
    close_ps(&ps);
}

static void lists_are_shared_too_and_may_change_their_shape(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    ask(&ps, "{\"do\": \"set\", \"name\": \"l\", \"value\": [[1, 2], [3, 4]], \"make\": true}");
    assert_asked(&ps, "{\"do\": \"add\", \"name\": \"l\", \"value\": 1, \"index\": [1, 0]}",
                 "{\"kind\":\"shared\",\"shape\":[2,2],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":2,\"values\":[4.0]}]}");
    assert_asked(&ps, "{\"do\": \"add\", \"name\": \"l\", \"value\": [[10, 20], [30, 40]]}",
                 "{\"kind\":\"shared\",\"shape\":[2,2],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":2,\"values\":[11.0,22.0,34.0,44.0]}]}");
    assert_asked(&ps, "{\"do\": \"set\", \"name\": \"l\", \"value\": 5}",
                 "{\"kind\":\"shared\",\"shape\":[2,2],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":2,\"values\":[5.0,5.0,5.0,5.0]}]}");
    assert_error(&ps, "{\"do\": \"add\", \"name\": \"l\", \"value\": [1, 2, 3]}",
                 "l has shape [2, 2], the value [3]", 2);
    assert_asked(&ps, "{\"do\": \"set\", \"name\": \"l\", \"value\": [1, 2, 3]}",
                 "{\"kind\":\"shared\",\"shape\":[3],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":3,\"values\":[1.0,2.0,3.0]}]}");
    close_ps(&ps);
}

static void shared_variables_keep_to_numbers_that_are_finite(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    ask(&ps, "{\"do\": \"set\", \"name\": \"n\", \"value\": 1.5e308, \"make\": true}");
    assert_error(&ps, "{\"do\": \"add\", \"name\": \"n\", \"value\": 1.5e308}",
                 "n: the result is not a finite double", 2);
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"n\"}",
                 "{\"kind\":\"shared\",\"shape\":[],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":1,\"values\":[1.5e308]}]}");
    close_ps(&ps);
}

static void names_of_shared_variables_have_no_brackets_and_a_limit(void **state)
{
    char text[TEXT_MAX], name[VISIT_NAME_MAX + 1];
    struct ps ps;
    empty_ps(&ps);
    assert_error(&ps, "{\"do\": \"set\", \"name\": \"a[1]\", \"value\": 1, \"make\": true}",
                 "\"a[1]\": a name has letters, digits and any of \"_.-/:\"", 2);
    assert_error(&ps, "{\"do\": \"set\", \"name\": \"\", \"value\": 1, \"make\": true}",
                 "a name has 1 to 255 characters", 2);
    memset(name, 'a', VISIT_NAME_MAX);
    name[VISIT_NAME_MAX] = '\0';
    snprintf(text, sizeof text, "{\"do\": \"set\", \"name\": \"%s\", \"value\": 1, \"make\": true}",
             name);
    assert_error(&ps, text, "the request: name: longer than 255 characters", 2);
    snprintf(text, sizeof text, "{\"do\": \"set\", \"name\": \"%s\", \"value\": 1, \"make\": true}",
             name + 1);
    assert_null(json_object_get(ask(&ps, text), "error"));
    close_ps(&ps);
}

static void a_ps_keeps_so_many_shared_variables_and_no_more(void **state)
{
    char text[TEXT_MAX];
    struct ps ps;
    empty_ps(&ps);
    for (int i = 0; i < SHARED_VARIABLES_MAX; i++) {
        snprintf(text, sizeof text,
                 "{\"do\": \"set\", \"name\": \"n%d\", \"value\": %d, \"make\": true}", i, i);
        assert_null(json_object_get(ask(&ps, text), "error"));
    }
    assert_error(&ps, "{\"do\": \"set\", \"name\": \"one\", \"value\": 1, \"make\": true}",
                 "one: this ps keeps 4096 shared variables, which is the limit", 1);
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"n1234\"}",
                 "{\"kind\":\"shared\",\"shape\":[],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":1,\"values\":[1234.0]}]}");
    close_ps(&ps);
}

static void shared_variables_have_a_limit_of_numbers_together(void **state)
{
    struct shared_variables shared = {0};
    struct shared_variable *variable;
    char name[32];
    int whole = SHARED_ELEMENTS_MAX / VISIT_ELEMENTS_MAX;
    for (int i = 0; i <= whole; i++) {
        struct value value = {.shape = {1, {VISIT_ELEMENTS_MAX}}, .count = VISIT_ELEMENTS_MAX};
        value.at = calloc(VISIT_ELEMENTS_MAX, sizeof *value.at);
        assert_non_null(value.at);
        snprintf(name, sizeof name, "n%d", i);
        err e = shared_set(&shared, name, &value, &variable);
        assert_int_equal(e, i < whole ? OK : ERR_MEMORY);
        if (!e) assert_null(value.at); /* taken */
        value_free(&value);
    }
    assert_string_equal(error_text(),
                        "n64: this ps would keep more than 4194304 numbers, which is the limit");
    assert_int_equal(shared.elements, SHARED_ELEMENTS_MAX);
    struct value one = {.count = 1, .at = calloc(1, sizeof(double))};
    assert_int_equal(shared_set(&shared, "n0", &one, &variable), OK);
    assert_int_equal(shared.elements, SHARED_ELEMENTS_MAX - VISIT_ELEMENTS_MAX + 1);
    shared_free(&shared);
}

static void the_home_of_a_name_is_a_ps_of_the_cluster(void **state)
{
    int used[3] = {0};
    for (int i = 0; i < 300; i++) {
        char name[32];
        snprintf(name, sizeof name, "name%d", i);
        int home = shared_home(name, 3);
        assert_in_range(home, 0, 2);
        assert_int_equal(shared_home(name, 3), home);
        used[home]++;
    }
    for (int ps = 0; ps < 3; ps++) assert_true(used[ps] > 50);
    assert_int_equal(shared_home("x", 1), 0);
}

/* ---- trained variables ---- */

static void the_parts_of_a_trained_variable_are_told_with_their_places(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"w\"}",
                 "{\"kind\":\"trained\",\"shape\":[5,2],\"axis\":0,\"parts\":["
                 "{\"start\":0,\"length\":3,\"values\":[0.0,1.0,2.0,3.0,4.0,5.0]},"
                 "{\"start\":4,\"length\":1,\"values\":[16.0,17.0]}]}");
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"v\"}",
                 "{\"kind\":\"trained\",\"shape\":[2,4],\"axis\":1,\"parts\":["
                 "{\"start\":1,\"length\":2,\"values\":[32.0,33.0,34.0,35.0]}]}");
    close_ps(&ps);
}

static void a_list_goes_to_its_places_in_every_part(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    ask(&ps, "{\"do\": \"set\", \"name\": \"w\", \"value\": "
             "[[100, 101], [102, 103], [104, 105], [106, 107], [108, 109]]}");
    for (int i = 0; i < 6; i++) assert_float_equal(ps.values[i], 100 + i, 0);
    assert_float_equal(ps.values[16], 108, 0);
    assert_float_equal(ps.values[17], 109, 0);
    ask(&ps, "{\"do\": \"add\", \"name\": \"v\", \"value\": [[1, 2, 3, 4], [5, 6, 7, 8]]}");
    static const float expected[] = {34, 36, 40, 42};
    for (int i = 0; i < 4; i++) assert_float_equal(ps.values[32 + i], expected[i], 0);
    assert_float_equal(ps.values[6], 6, 0); /* beside the slices nothing changes */
    assert_float_equal(ps.values[36], 36, 0);
    close_ps(&ps);
}

static void one_element_is_changed_where_it_lies(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    assert_asked(&ps, "{\"do\": \"add\", \"name\": \"w\", \"index\": [2, 1], \"value\": 0.5}",
                 "{\"kind\":\"trained\",\"shape\":[5,2],\"axis\":0,\"parts\":["
                 "{\"start\":0,\"length\":3,\"values\":[5.5]}]}");
    assert_asked(&ps, "{\"do\": \"set\", \"name\": \"v\", \"index\": [1, 2], \"value\": -1}",
                 "{\"kind\":\"trained\",\"shape\":[2,4],\"axis\":1,\"parts\":["
                 "{\"start\":1,\"length\":2,\"values\":[-1.0]}]}");
    assert_float_equal(ps.values[35], -1, 0);
    /* it lies on another ps */
    assert_asked(&ps, "{\"do\": \"set\", \"name\": \"w\", \"index\": [3, 0], \"value\": -1}",
                 "{\"kind\":\"trained\",\"shape\":[5,2],\"axis\":0,\"parts\":[]}");
    for (int i = 0; i < 48; i++)
        if (i != 5 && i != 35) assert_float_equal(ps.values[i], i, 0);
    close_ps(&ps);
}

static void what_does_not_fit_the_shape_changes_nothing(void **state)
{
    static const char *const rows[][2] = {
        {"{\"do\": \"get\", \"name\": \"w\", \"index\": [1]}",
         "w has shape [5, 2], and the index 1 number"},
        {"{\"do\": \"get\", \"name\": \"w\", \"index\": [5, 0]}",
         "w has shape [5, 2]: index 5 is not from 0 to 4"},
        {"{\"do\": \"add\", \"name\": \"w\", \"index\": [0, -1], \"value\": 1}",
         "w has shape [5, 2]: index -1 is not from 0 to 1"},
        {"{\"do\": \"set\", \"name\": \"w\", \"index\": [0, 0], \"value\": [1]}",
         "w: one element takes one number, got shape [1]"},
        {"{\"do\": \"set\", \"name\": \"w\", \"value\": [[1, 2], [3, 4]]}",
         "w has shape [5, 2], the value [2, 2]"},
        {"{\"do\": \"set\", \"name\": \"b\", \"value\": [1]}", "b has shape [], the value [1]"},
        {"{\"do\": \"set\", \"name\": \"w\", \"value\": [[1,1],[1,1],[1,1],[1,1],[1e39,1]]}",
         "w: the result is not a finite float32"},
        {"{\"do\": \"add\", \"name\": \"v\", \"value\": 1e39}",
         "v: the result is not a finite float32"},
        {"{\"do\": \"set\", \"name\": \"global_step\", \"value\": 3}",
         "global_step is counted by the job and cannot be changed"},
    };
    struct ps ps;
    serving_ps(&ps);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_error(&ps, rows[i][0], rows[i][1], 2);
    for (int i = 0; i < 48; i++) assert_float_equal(ps.values[i], i, 0);
    close_ps(&ps);
}

static void numbers_that_json_lacks_are_told_as_words(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    ps.values[32] = NAN, ps.values[33] = INFINITY, ps.values[34] = -INFINITY;
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"v\"}",
                 "{\"kind\":\"trained\",\"shape\":[2,4],\"axis\":1,\"parts\":["
                 "{\"start\":1,\"length\":2,\"values\":[\"nan\",\"inf\",\"-inf\",35.0]}]}");
    close_ps(&ps);
}

static void a_large_variable_is_described(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    ask(&ps, "{\"do\": \"set\", \"name\": \"big\", \"value\": 1}");
    ask(&ps, "{\"do\": \"set\", \"name\": \"big\", \"index\": [0], \"value\": -3}");
    ps.values[64 + 1] = NAN;
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"big\"}",
                 "{\"kind\":\"trained\",\"shape\":[65537],\"axis\":0,\"summary\":{"
                 "\"finite\":65536,\"minimum\":-3.0,\"maximum\":1.0,\"sum\":65532.0,"
                 "\"sum_squares\":65544.0,"
                 "\"first\":[-3.0,\"nan\",1.0,1.0,1.0,1.0,1.0,1.0]}}");
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"big\", \"index\": [65536]}",
                 "{\"kind\":\"trained\",\"shape\":[65537],\"axis\":0,\"parts\":["
                 "{\"start\":0,\"length\":65537,\"values\":[1.0]}]}");
    close_ps(&ps);
}

static void a_large_variable_is_described_in_pieces(void **state)
{
    static const struct slice whole = {"huge", {1, {1 << 20}}, 0, 0, 1 << 20, 0, 1 << 20};
    struct ps ps;
    empty_ps(&ps);
    float *values = calloc(1 << 20, sizeof *values);
    assert_non_null(values);
    const struct visit_view view = {&whole, 1, values, true, false};
    visits_show(ps.visits, &view);
    const struct message m = {.type = MESSAGE_ASK,
                              .body = "{\"do\": \"get\", \"name\": \"huge\"}",
                              .body_bytes =
                                  (uint32_t)strlen("{\"do\": \"get\", \"name\": \"huge\"}")};
    visits_ask(ps.visits, 0, &m, 0);
    assert_true(visits_work(ps.visits, 0));
    assert_null(ps.answer[0]);
    visits_show(ps.visits, &view); /* another generation: from the beginning */
    int pieces = 0;
    while (!ps.answer[0]) {
        assert_true(visits_work(ps.visits, 0));
        assert_true(++pieces < WORK_MAX);
    }
    assert_true(pieces > 2);
    json_t *summary = json_object_get(ps.answer[0], "summary");
    assert_int_equal(json_integer_value(json_object_get(summary, "finite")), 1 << 20);
    free(values);
    close_ps(&ps);
}

static void the_trained_variable_is_meant_where_a_shared_one_has_its_name(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    ask(&ps, "{\"do\": \"set\", \"name\": \"b\", \"value\": 7, \"make\": true}");
    show(&ps, true, false);
    ps.values[48] = 3;
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"b\"}",
                 "{\"kind\":\"trained\",\"shape\":[],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":1,\"values\":[3.0]}]}");
    visits_show(ps.visits, NULL);
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"b\"}",
                 "{\"kind\":\"shared\",\"shape\":[],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":1,\"values\":[7.0]}]}");
    close_ps(&ps);
}

static void values_that_the_chief_has_not_brought_are_not_shown(void **state)
{
    struct ps ps;
    empty_ps(&ps);
    show(&ps, false, false);
    assert_error(&ps, "{\"do\": \"get\", \"name\": \"w\"}",
                 "w has no values yet: the chief has not filled it", 128);
    assert_error(&ps, "{\"do\": \"set\", \"name\": \"w\", \"value\": 1}",
                 "w has no values yet: the chief has not filled it", 128);
    assert_float_equal(ps.values[1], 1, 0);
    show(&ps, true, false);
    assert_null(json_object_get(ask(&ps, "{\"do\": \"get\", \"name\": \"w\"}"), "error"));
    close_ps(&ps);
}

static void the_global_step_can_be_read(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    visits_changed(ps.visits, 41);
    assert_asked(&ps, "{\"do\": \"get\", \"name\": \"global_step\"}",
                 "{\"kind\":\"step\",\"shape\":[],\"axis\":0,\"parts\":[{\"start\":0,"
                 "\"length\":1,\"values\":[41.0]}]}");
    close_ps(&ps);
}

/* ---- lists and visitors ---- */

static void everything_is_listed_once(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    ask(&ps, "{\"do\": \"set\", \"name\": \"n\", \"value\": 1, \"make\": true}");
    assert_asked(&ps, "{\"do\": \"list\"}",
                 "{\"variables\":[{\"name\":\"global_step\",\"kind\":\"step\",\"shape\":[]},"
                 "{\"name\":\"w\",\"kind\":\"trained\",\"shape\":[5,2]},"
                 "{\"name\":\"v\",\"kind\":\"trained\",\"shape\":[2,4]},"
                 "{\"name\":\"b\",\"kind\":\"trained\",\"shape\":[]},"
                 "{\"name\":\"big\",\"kind\":\"trained\",\"shape\":[65537]},"
                 "{\"name\":\"n\",\"kind\":\"shared\",\"shape\":[]}]}");
    close_ps(&ps);
}

static void a_long_list_comes_in_pages(void **state)
{
    char text[TEXT_MAX];
    struct ps ps;
    empty_ps(&ps);
    int made = 2 * VISIT_PAGE_MAX + 5;
    for (int i = 0; i < made; i++) {
        snprintf(text, sizeof text,
                 "{\"do\": \"set\", \"name\": \"n%d\", \"value\": %d, \"make\": true}", i, i);
        ask(&ps, text);
    }
    int listed = 0, pages = 0;
    json_int_t from = 0;
    do {
        snprintf(text, sizeof text, "{\"do\": \"list\", \"from\": %lld}", (long long)from);
        json_t *answer = ask(&ps, text);
        listed += (int)json_array_size(json_object_get(answer, "variables"));
        from = json_integer_value(json_object_get(answer, "next"));
        pages++;
    } while (from && pages < 10);
    assert_int_equal(listed, made + 1); /* the step */
    assert_int_equal(pages, 3);
    assert_asked(&ps, "{\"do\": \"list\", \"from\": 1000000}", "{\"variables\":[]}");
    close_ps(&ps);
}

static void visitors_have_a_limit_and_their_places_come_free(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    for (int i = 2; i < VISITORS_MAX; i++) assert_int_equal(visits_enter(ps.visits, true, 0), i);
    assert_int_equal(visits_enter(ps.visits, true, 0), -1);
    visits_leave(ps.visits, 5);
    assert_int_equal(visits_enter(ps.visits, true, 0), 5);
    assert_non_null(ask_at(&ps, 5, 0, "{\"do\": \"get\", \"name\": \"w\"}"));
    close_ps(&ps);
}

/* Of all that can be asked: what changes nothing is answered as of others. */
static void who_may_only_look_changes_nothing(void **state)
{
    static const char *const looks[] = {
        "{\"do\": \"list\"}",
        "{\"do\": \"get\", \"name\": \"w\"}",
        "{\"do\": \"status\"}",
        "{\"do\": \"log\"}",
        "{\"do\": \"log\", \"worker\": 1}",
        "{\"do\": \"profile\", \"steps\": 2}",
        "{\"do\": \"setting\"}",
    };
    static const char *const orders[] = {
        "{\"do\": \"set\", \"name\": \"w\", \"index\": [0, 0], \"value\": 7}",
        "{\"do\": \"set\", \"name\": \"own\", \"value\": 7, \"make\": true}",
        "{\"do\": \"add\", \"name\": \"w\", \"index\": [0, 0], \"value\": 7}",
        "{\"do\": \"scale\", \"ps\": 2}",
        "{\"do\": \"stop\"}",
        "{\"do\": \"save\"}",
        "{\"do\": \"leave\", \"worker\": 1}",
        "{\"do\": \"absent\", \"worker\": 1, \"why\": \"gone\"}",
        "{\"do\": \"setting\", \"name\": \"train.last_step\", \"to\": \"5\"}",
    };
    struct ps ps;
    serving_ps(&ps);
    const int reader = visits_enter(ps.visits, false, 0);
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
        ask_at(&ps, reader, 0, looks[i]);
        const json_t *code = json_object_get(ps.answer[reader], "code");
        assert_true(json_integer_value(code) != EXIT_INPUT);
    }
    const uint64_t asked = ps.request_id;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        const json_t *answer = ask_at(&ps, reader, 0, orders[i]);
        assert_int_equal(json_integer_value(json_object_get(answer, "code")), EXIT_INPUT);
        assert_non_null(
            strstr(json_string_value(json_object_get(answer, "error")), "changes nothing"));
    }
    assert_int_equal(ps.request_id, asked);
    assert_true(ps.values[0] == 0);
    close_ps(&ps);
}

static void who_says_nothing_for_longest_may_lose_his_place(void **state)
{
    struct ps ps;
    serving_ps(&ps);
    ask_at(&ps, 0, 1000, "{\"do\": \"list\"}");
    ask_at(&ps, 1, 900, "{\"do\": \"get\", \"name\": \"w\", \"since\": 1000000}");
    visits_leave(ps.visits, 2);
    assert_int_equal(visits_silent(ps.visits, 900 + VISIT_SPARED_MS - 1), -1);
    assert_int_equal(visits_silent(ps.visits, 900 + VISIT_SPARED_MS), 1);
    assert_int_equal(visits_silent(ps.visits, 1000 + VISIT_SPARED_MS), 1);
    visits_leave(ps.visits, 1);
    assert_int_equal(visits_silent(ps.visits, 1000 + VISIT_SPARED_MS), 0);
    close_ps(&ps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_ask_is_answered_with_what_is_wrong),
        cmocka_unit_test(no_body_at_all_is_no_ask),
        cmocka_unit_test(numbers_that_are_none_are_refused),
        cmocka_unit_test(the_text_of_an_ask_has_a_limit),
        cmocka_unit_test(what_is_typed_is_numbers_in_lists_of_equal_lengths),
        cmocka_unit_test(a_whole_value_comes_back_as_it_was_sent),
        cmocka_unit_test(an_unknown_name_is_answered_with_the_nearest),
        cmocka_unit_test(a_shared_variable_is_made_on_a_ps_that_nobody_has_set_up),
        cmocka_unit_test(lists_are_shared_too_and_may_change_their_shape),
        cmocka_unit_test(shared_variables_keep_to_numbers_that_are_finite),
        cmocka_unit_test(names_of_shared_variables_have_no_brackets_and_a_limit),
        cmocka_unit_test(a_ps_keeps_so_many_shared_variables_and_no_more),
        cmocka_unit_test(shared_variables_have_a_limit_of_numbers_together),
        cmocka_unit_test(the_home_of_a_name_is_a_ps_of_the_cluster),
        cmocka_unit_test(the_parts_of_a_trained_variable_are_told_with_their_places),
        cmocka_unit_test(a_list_goes_to_its_places_in_every_part),
        cmocka_unit_test(one_element_is_changed_where_it_lies),
        cmocka_unit_test(what_does_not_fit_the_shape_changes_nothing),
        cmocka_unit_test(numbers_that_json_lacks_are_told_as_words),
        cmocka_unit_test(a_large_variable_is_described),
        cmocka_unit_test(a_large_variable_is_described_in_pieces),
        cmocka_unit_test(the_trained_variable_is_meant_where_a_shared_one_has_its_name),
        cmocka_unit_test(values_that_the_chief_has_not_brought_are_not_shown),
        cmocka_unit_test(the_global_step_can_be_read),
        cmocka_unit_test(everything_is_listed_once),
        cmocka_unit_test(a_long_list_comes_in_pages),
        cmocka_unit_test(visitors_have_a_limit_and_their_places_come_free),
        cmocka_unit_test(who_may_only_look_changes_nothing),
        cmocka_unit_test(who_says_nothing_for_longest_may_lose_his_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
