/* Variants: an object, a bare name or a bare number that says which kind it is. */
#include "tests/core/base/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static void an_object_gives_the_kind_and_its_attributes(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 1, \"optimizer\": {\"epsilon\": 0.5, \"type\": \"adam\"}}");
    assert_int_equal(p.result, OK);
    assert_ptr_equal(p.value.optimizer.kind, optimizer_table.at(0));
    const struct adam *adam = p.value.optimizer.attributes;
    assert_true(adam->epsilon == 0.5);
    assert_true(adam->learning_rate == 0.001);
    parsed_fini(&p);
}

static void a_bare_name_means_all_defaults(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 1, \"optimizer\": \"adam\"}");
    assert_int_equal(p.result, OK);
    assert_string_equal(p.value.optimizer.kind->object->name, "adam");
    assert_true(((const struct adam *)p.value.optimizer.attributes)->epsilon == 1e-8);
    parsed_fini(&p);
    assert_refused("{\"units\": 1, \"optimizer\": \"constant\"}",
                   "optimizer: required key \"value\" is missing: expected a number from 0 to 10");
}

static void a_bare_number_means_the_number_kind(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 1, \"optimizer\": 2.5}");
    assert_int_equal(p.result, OK);
    assert_string_equal(p.value.optimizer.kind->object->name, "constant");
    assert_true(((const struct step_size *)p.value.optimizer.attributes)->value == 2.5);
    parsed_fini(&p);
    assert_refused("{\"units\": 1, \"optimizer\": 11}",
                   "optimizer: expected a number from 0 to 10, got 11");
    assert_refused(
        "{\"units\": 1, \"optimizer\": \"0.5\"}",
        "optimizer: expected an object with \"type\", a number, or one of adam, constant, "
        "none, got \"0.5\", a number in quotes");
    assert_refused("{\"units\": 1, \"layer\": 11}",
                   "layer: expected an object with \"op\", or one of adam, constant, none, got 11");
}

static void absent_means_the_default_kind(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 1}");
    assert_int_equal(p.result, OK);
    assert_string_equal(p.value.optimizer.kind->object->name, "adam");
    parsed_fini(&p);
}

static void common_and_own_keys_stand_in_one_object(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 1, \"layers\": [\"none\","
                    " {\"op\": \"adam\", \"name\": \"second\", \"inputs\": [\"a\", \"b\"],"
                    "  \"learning_rate\": 3}]}");
    assert_int_equal(p.result, OK);
    assert_int_equal(p.value.layers.count, 2);
    const struct layer *layers = p.value.layers.at;
    assert_string_equal(layers[0].kind.kind->object->name, "none");
    assert_null(layers[0].name);
    assert_int_equal(layers[0].inputs.count, 0);
    assert_string_equal(layers[1].kind.kind->object->name, "adam");
    assert_string_equal(layers[1].name, "second");
    assert_int_equal(layers[1].inputs.count, 2);
    assert_string_equal(layers[1].inputs.at[1], "b");
    assert_true(((const struct adam *)layers[1].kind.attributes)->learning_rate == 3);
    parsed_fini(&p);
}

static void absence_keeps_the_defaults_of_the_common_part(void **state)
{
    struct parsed p;
    parsed_init(&p, "{\"units\": 1, \"layer\": null}");
    assert_int_equal(p.result, OK);
    assert_null(p.value.layer.kind.kind);
    assert_null(p.value.layer.kind.attributes);
    assert_null(p.value.layer.name);
    parsed_fini(&p);
    assert_refused("{\"units\": 1, \"layers\": [null]}",
                   "layers[0]: expected an object with \"op\", or one of adam, constant, none, got "
                   "null");
}

static void unknown_kinds_name_the_nearest_and_the_known(void **state)
{
    assert_refused("{\"units\": 1, \"optimizer\": \"adma\"}",
                   "optimizer: unknown optimizer \"adma\" (did you mean \"adam\"?); known are "
                   "adam, constant, none");
    assert_refused("{\"units\": 1, \"layers\": [\"none\", {\"op\": \"dense\"}]}",
                   "layers[1]: unknown op \"dense\"; known are adam, constant, none");
}

static void unknown_keys_of_a_kind_name_what_it_knows(void **state)
{
    assert_refused("{\"units\": 1, \"layers\": [{\"op\": \"adam\", \"inputz\": []}]}",
                   "layers[0]: unknown key \"inputz\" (did you mean \"inputs\"?); adam knows op, "
                   "learning_rate, epsilon, name, inputs");
    assert_refused("{\"units\": 1, \"optimizer\": {\"type\": \"adam\", \"value\": 1}}",
                   "optimizer: unknown key \"value\"; adam knows type, learning_rate, epsilon");
}

static void the_key_must_be_there_and_a_string(void **state)
{
    assert_refused("{\"units\": 1, \"optimizer\": {\"epsilon\": 1}}",
                   "optimizer: \"type\" is missing: expected one of adam, constant, none");
    assert_refused("{\"units\": 1, \"optimizer\": {\"type\": 3}}",
                   "optimizer: \"type\" is no string: expected one of adam, constant, none");
    assert_refused("{\"units\": 1, \"optimizer\": [1]}",
                   "optimizer: expected an object with \"type\", a number, or one of adam, "
                   "constant, none, got a list of 1");
}

static void attributes_are_checked_under_their_path(void **state)
{
    assert_refused("{\"units\": 1, \"layers\": [\"none\", {\"op\": \"adam\", \"learning_rate\": "
                   "-1}]}",
                   "layers[1].learning_rate: expected a number from 0 to 1000000, got -1");
}

/* A kind that contains a variant of the same kinds. */
struct wrapper {
    struct variant inner;
};
static const struct kind *wrapper_at(int index);
static const struct kinds wrappers = {.key = "type", .noun = "wrapper", .at = wrapper_at};
static const struct field wrapper_fields[] = {
    {.name = "inner",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct wrapper, inner),
     .fallback = "null",
     .kinds = &wrappers,
     .help = "what is inside"},
    {0},
};
static const struct object wrapper_object = {.name = "wrapper",
                                             .summary = "Holds another",
                                             .fields = wrapper_fields,
                                             .size = sizeof(struct wrapper)};
static const struct kind *wrapper_at(int index)
{
    static const struct kind kind = {&wrapper_object, NULL};
    return index == 0 ? &kind : NULL;
}

static json_t *nested(int depth)
{
    json_t *json = json_null();
    for (int i = 0; i < depth; i++)
        json = json_pack("{s:s, s:o}", "type", "wrapper", "inner", json);
    json_object_del(json, "type");
    return json;
}

static void nesting_has_a_limit(void **state)
{
    struct arena arena = {0};
    struct wrapper wrapper;
    json_t *allowed = nested(FIELD_DEPTH_MAX), *deep = nested(FIELD_DEPTH_MAX + 1);
    assert_int_equal(fields_parse(&wrapper_object, allowed, "", &arena, &wrapper), OK);
    assert_int_equal(fields_parse(&wrapper_object, deep, "", &arena, &wrapper), ERR_INPUT);
    assert_non_null(strstr(error_text(), "inner.inner: nested deeper than 32 objects"));
    json_decref(allowed);
    json_decref(deep);
    arena_free(&arena);
}

static void tables_that_contain_themselves_have_a_schema_and_help(void **state)
{
    json_t *schema = fields_schema(&wrapper_object);
    assert_int_equal(json_object_size(json_object_get(schema, "$defs")), 1);
    json_decref(schema);
    FILE *sink = fopen("/dev/null", "w");
    assert_non_null(sink);
    fields_help(sink, &wrapper_object, 0);
    assert_int_equal(ferror(sink), 0);
    fclose(sink);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_gives_the_kind_and_its_attributes),
        cmocka_unit_test(a_bare_name_means_all_defaults),
        cmocka_unit_test(a_bare_number_means_the_number_kind),
        cmocka_unit_test(absent_means_the_default_kind),
        cmocka_unit_test(common_and_own_keys_stand_in_one_object),
        cmocka_unit_test(absence_keeps_the_defaults_of_the_common_part),
        cmocka_unit_test(unknown_kinds_name_the_nearest_and_the_known),
        cmocka_unit_test(unknown_keys_of_a_kind_name_what_it_knows),
        cmocka_unit_test(the_key_must_be_there_and_a_string),
        cmocka_unit_test(attributes_are_checked_under_their_path),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(tables_that_contain_themselves_have_a_schema_and_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
