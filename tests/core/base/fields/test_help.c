/* Help and JSON Schema of the tables of this folder. */
#include "tests/core/base/tables.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The whole output of a help function; the caller frees it. */
static char *written(void (*write)(FILE *))
{
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    write(out);
    assert_int_equal(fclose(out), 0);
    return text;
}

static void write_fields(FILE *out)
{
    fields_help(out, &everything_object, 2);
}

static void write_flags(FILE *out)
{
    flags_help(out, &everything_object);
}

static void write_kinds(FILE *out)
{
    kinds_help(out, &optimizer_table);
}

static void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part)) fail_msg("no \"%s\" in:\n%s", part, text);
}

static void assert_lines_fit(const char *text)
{
    for (const char *line = text; *line;) {
        const size_t length = strcspn(line, "\n");
        assert_in_range(length, 1, 100);
        assert_true(line[length - 1] != ' ');
        line += length + 1;
    }
}

static void a_table_shows_type_range_choices_and_default(void **state)
{
    char *text = written(write_fields);
    assert_lines_fit(text);
    assert_contains(text, "  flag       boolean    a switch (default true)\n");
    assert_contains(text, "  units      integer    how many (from 1 to 16777216; required)\n");
    assert_contains(text, "  rate       number     how fast (at least 0; default 0.5)\n");
    assert_contains(text, "  text       string     what to say (optional)\n");
    assert_contains(text, "how it looks (one of: red, green, blue; default green)\n");
    assert_contains(text, "how large (from 1 to 9; 1 to 3 values; default [1, 2])\n");
    free(text);
}

static void nested_tables_are_indented_and_kinds_are_named(void **state)
{
    char *text = written(write_fields);
    assert_contains(text, "  origin     object     where it begins (default {\"x\": 1})\n"
                          "    x  integer  to the right (required)\n"
                          "    y  integer  upwards (default 7)\n");
    assert_contains(text,
                    "  optimizer  optimizer  how it learns (one of: adam, constant, none; see "
                    "dtrain help optimizer adam;\n"
                    "                        default adam)\n");
    assert_contains(text, "    name    string   of the layer (optional)\n");
    free(text);
}

static void flags_are_shown_as_they_are_typed(void **state)
{
    char *text = written(write_flags);
    assert_lines_fit(text);
    assert_contains(text, "  --flag                 a switch (default true)\n");
    assert_contains(text, "  --units=integer        how many (from 1 to 16777216; required)\n");
    free(text);
}

static void kinds_are_one_line_each(void **state)
{
    char *text = written(write_kinds);
    assert_string_equal(text, "  adam      Adam of Kingma and Ba\n"
                              "  constant  A step of fixed size\n"
                              "  none      No steps at all\n");
    free(text);
}

static void long_names_do_not_push_the_text_out(void **state)
{
    static const struct field fields[] = {
        {.name = "a_name_that_is_far_longer_than_any_name_that_a_person_would_like_to_type",
         .type = FIELD_INT,
         .fallback = "0",
         .environment = "LONG",
         .help = "words that stand in the next line"},
        {0}};
    const struct object object = {.name = "long", .fields = fields, .size = 8};
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    flags_help(out, &object);
    assert_int_equal(fclose(out), 0);
    assert_lines_fit(text);
    assert_contains(text,
                    "integer\n                                                words that stand "
                    "in the next line (default 0;\n");
    assert_contains(text, "environment LONG)\n");
    free(text);
}

/* A member of nested objects: "properties", "units", ... NULL ends. Borrowed. */
static json_t *at(json_t *json, ...)
{
    va_list keys;
    va_start(keys, json);
    for (const char *key; (key = va_arg(keys, const char *));) {
        json = json_object_get(json, key);
        if (!json) fail_msg("no member %s", key);
    }
    va_end(keys);
    return json;
}

static void assert_json(json_t *json, const char *expected)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    assert_string_equal(text, expected);
    free(text);
}

static void the_schema_is_closed_and_says_what_is_required(void **state)
{
    json_t *schema = fields_schema(&everything_object);
    assert_json(at(schema, "$schema", NULL), "\"https://json-schema.org/draft/2020-12/schema\"");
    assert_json(at(schema, "additionalProperties", NULL), "false");
    assert_json(at(schema, "required", NULL), "[\"units\"]");
    assert_json(at(schema, "properties", "origin", "required", NULL), "[\"x\"]");
    json_decref(schema);
}

static void the_schema_has_types_limits_defaults_and_descriptions(void **state)
{
    json_t *schema = fields_schema(&everything_object);
    json_t *properties = at(schema, "properties", NULL);
    assert_json(at(properties, "units", NULL),
                "{\"description\":\"how many\",\"maximum\":16777216,\"minimum\":1,"
                "\"type\":\"integer\"}");
    assert_json(at(properties, "rate", NULL), "{\"default\":0.5,\"description\":\"how fast\","
                                              "\"minimum\":0,\"type\":\"number\"}");
    assert_json(at(properties, "color", NULL),
                "{\"default\":\"green\",\"description\":\"how it looks\","
                "\"enum\":[\"red\",\"green\",\"blue\"]}");
    assert_json(at(properties, "text", NULL),
                "{\"anyOf\":[{\"type\":\"string\"},{\"type\":\"null\"}],\"default\":null,"
                "\"description\":\"what to say\"}");
    assert_json(at(properties, "sizes", "anyOf", NULL),
                "[{\"items\":{\"maximum\":9,\"minimum\":1,\"type\":\"integer\"},\"maxItems\":3,"
                "\"minItems\":1,\"type\":\"array\"},{\"maximum\":9,\"minimum\":1,"
                "\"type\":\"integer\"}]");
    assert_json(at(properties, "optimizer", "$ref", NULL), "\"#/$defs/optimizer\"");
    json_decref(schema);
}

static void the_schema_of_a_variant_has_kinds_names_and_numbers(void **state)
{
    json_t *schema = fields_schema(&everything_object);
    json_t *ways = at(schema, "$defs", "optimizer", "anyOf", NULL);
    assert_int_equal(json_array_size(ways), 5);
    assert_json(at(json_array_get(ways, 0), "properties", "type", NULL), "{\"const\":\"adam\"}");
    assert_json(at(json_array_get(ways, 1), "required", NULL), "[\"type\",\"value\"]");
    assert_json(json_array_get(ways, 3), "{\"enum\":[\"adam\",\"none\"]}");
    assert_json(json_array_get(ways, 4), "{\"maximum\":10,\"minimum\":0,\"type\":\"number\"}");

    json_t *layers = at(schema, "$defs", "op", "anyOf", NULL);
    assert_int_equal(json_array_size(layers), 4); /* no bare number */
    assert_non_null(at(json_array_get(layers, 0), "properties", "inputs", NULL));
    json_decref(schema);
}

/* Every "$ref" leads somewhere: the same kinds with and without a common part are two. */
static void the_same_kinds_with_another_common_part_are_another_definition(void **state)
{
    static const struct object common = {.name = "common", .size = sizeof(struct variant)};
    const struct kinds spaced = {.key = "type", .noun = "data format", .at = optimizer_table.at};
    const struct field fields[] = {
        {.name = "a", .type = FIELD_VARIANT, .kinds = &spaced},
        {.name = "b", .type = FIELD_VARIANT, .kinds = &spaced, .object = &common},
        {.name = "c", .type = FIELD_VARIANTS, .kinds = &spaced},
        {0}};
    const struct object object = {.name = "three", .fields = fields, .size = 64};
    json_t *schema = fields_schema(&object);
    assert_json(at(schema, "properties", "a", "$ref", NULL), "\"#/$defs/data_format\"");
    assert_json(at(schema, "properties", "b", "$ref", NULL), "\"#/$defs/data_format_2\"");
    assert_json(at(schema, "properties", "c", "items", "$ref", NULL), "\"#/$defs/data_format\"");
    assert_non_null(at(schema, "$defs", "data_format", "anyOf", NULL));
    assert_non_null(at(schema, "$defs", "data_format_2", "anyOf", NULL));
    assert_int_equal(json_object_size(at(schema, "$defs", NULL)), 2);
    json_decref(schema);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_table_shows_type_range_choices_and_default),
        cmocka_unit_test(nested_tables_are_indented_and_kinds_are_named),
        cmocka_unit_test(flags_are_shown_as_they_are_typed),
        cmocka_unit_test(kinds_are_one_line_each),
        cmocka_unit_test(long_names_do_not_push_the_text_out),
        cmocka_unit_test(the_schema_is_closed_and_says_what_is_required),
        cmocka_unit_test(the_schema_has_types_limits_defaults_and_descriptions),
        cmocka_unit_test(the_schema_of_a_variant_has_kinds_names_and_numbers),
        cmocka_unit_test(the_same_kinds_with_another_common_part_are_another_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
