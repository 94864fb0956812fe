/* tables.c - see tables.h. */
#include "tests/core/base/tables.h"

#include <stdarg.h>
#include <setjmp.h>
#include <cmocka.h>

static const char *const colors[] = {"red", "green", "blue", NULL};

static const struct field point_fields[] = {
    {.name = "x", .type = FIELD_INT, .offset = offsetof(struct point, x), .help = "to the right"},
    {.name = "y",
     .type = FIELD_INT,
     .offset = offsetof(struct point, y),
     .fallback = "7",
     .help = "upwards"},
    {0},
};

const struct object point_object = {
    .name = "point",
    .summary = "A place",
    .fields = point_fields,
    .size = sizeof(struct point),
};

static const struct field adam_fields[] = {
    {.name = "learning_rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct adam, learning_rate),
     .fallback = "0.001",
     .min = 0,
     .max = 1e6,
     .help = "step size"},
    {.name = "epsilon",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct adam, epsilon),
     .fallback = "1e-8",
     .help = "added to the root"},
    {0},
};

static const struct field step_size_fields[] = {
    {.name = "value",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct step_size, value),
     .min = 0,
     .max = 10,
     .help = "the step"},
    {0},
};

static const struct object adam_object = {
    .name = "adam",
    .summary = "Adam of Kingma and Ba",
    .fields = adam_fields,
    .size = sizeof(struct adam),
};
static const struct object step_size_object = {
    .name = "constant",
    .summary = "A step of fixed size",
    .fields = step_size_fields,
    .size = sizeof(struct step_size),
};
static const struct object none_object = {.name = "none", .summary = "No steps at all"};

static const struct kind *optimizer_at(int index)
{
    static const struct kind kinds[] = {
        {&adam_object, &adam_fields}, {&step_size_object, &step_size_fields}, {&none_object, NULL}};
    return index < 3 ? &kinds[index] : NULL;
}

const struct kinds optimizer_table = {
    .key = "type",
    .noun = "optimizer",
    .at = optimizer_at,
    .number_kind = "constant",
    .number_field = "value",
};

static const struct field layer_fields[] = {
    {.name = "name",
     .type = FIELD_STRING,
     .offset = offsetof(struct layer, name),
     .fallback = "null",
     .help = "of the layer"},
    {.name = "inputs",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct layer, inputs),
     .fallback = "[]",
     .help = "names of earlier layers"},
    {0},
};
static const struct object layer_object = {
    .name = "layer", .summary = "A layer", .fields = layer_fields, .size = sizeof(struct layer)};

const struct kinds layer_table = {.key = "op", .noun = "op", .at = optimizer_at};

static const struct field everything_fields[] = {
    {.name = "flag",
     .type = FIELD_BOOL,
     .offset = offsetof(struct everything, flag),
     .fallback = "true",
     .help = "a switch"},
    {.name = "units",
     .type = FIELD_INT,
     .offset = offsetof(struct everything, units),
     .min = 1,
     .max = 16777216,
     .help = "how many"},
    {.name = "rate",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct everything, rate),
     .fallback = "0.5",
     .min = 0,
     .max = -1,
     .help = "how fast"},
    {.name = "text",
     .type = FIELD_STRING,
     .offset = offsetof(struct everything, text),
     .fallback = "null",
     .help = "what to say"},
    {.name = "color",
     .type = FIELD_ENUM,
     .offset = offsetof(struct everything, color),
     .fallback = "\"green\"",
     .choices = colors,
     .help = "how it looks"},
    {.name = "sizes",
     .type = FIELD_INTS,
     .offset = offsetof(struct everything, sizes),
     .fallback = "[1, 2]",
     .min = 1,
     .max = 9,
     .count_min = 1,
     .count_max = 3,
     .help = "how large"},
    {.name = "weights",
     .type = FIELD_FLOATS,
     .offset = offsetof(struct everything, weights),
     .fallback = "[]",
     .help = "how heavy"},
    {.name = "words",
     .type = FIELD_STRINGS,
     .offset = offsetof(struct everything, words),
     .fallback = "[]",
     .help = "what to say first"},
    {.name = "origin",
     .type = FIELD_OBJECT,
     .offset = offsetof(struct everything, origin),
     .fallback = "{\"x\": 1}",
     .object = &point_object,
     .help = "where it begins"},
    {.name = "points",
     .type = FIELD_OBJECTS,
     .offset = offsetof(struct everything, points),
     .fallback = "[]",
     .object = &point_object,
     .help = "where it goes"},
    {.name = "optimizer",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct everything, optimizer),
     .fallback = "adam",
     .kinds = &optimizer_table,
     .help = "how it learns"},
    {.name = "layer",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct everything, layer),
     .fallback = "null",
     .object = &layer_object,
     .kinds = &layer_table,
     .help = "a single layer"},
    {.name = "layers",
     .type = FIELD_VARIANTS,
     .offset = offsetof(struct everything, layers),
     .fallback = "[]",
     .object = &layer_object,
     .kinds = &layer_table,
     .help = "many layers"},
    {.name = "json",
     .type = FIELD_JSON,
     .offset = offsetof(struct everything, json),
     .fallback = "null",
     .help = "anything"},
    {0},
};

const struct object everything_object = {
    .name = "everything",
    .summary = "Every type of field",
    .fields = everything_fields,
    .size = sizeof(struct everything),
};

void parsed_init(struct parsed *parsed, const char *text)
{
    *parsed = (struct parsed){.json = json_loads(text, JSON_DECODE_ANY, NULL)};
    assert_non_null(parsed->json);
    parsed->result =
        fields_parse(&everything_object, parsed->json, "", &parsed->arena, &parsed->value);
}

void parsed_fini(struct parsed *parsed)
{
    json_decref(parsed->json);
    arena_free(&parsed->arena);
}

void assert_refused(const char *text, const char *message)
{
    struct parsed parsed;
    parsed_init(&parsed, text);
    assert_int_equal(parsed.result, ERR_INPUT);
    assert_string_equal(error_text(), message);
    parsed_fini(&parsed);
}
