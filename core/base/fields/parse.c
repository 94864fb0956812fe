/* parse.c - from JSON to structs, by the tables: scalars and lists. */
#include "core/base/fields/fields_inside.h"

#include <math.h>
#include <string.h>

/* Every message of the parser goes through here, so that each begins with its path. */
err fail_at(const struct place *place, const struct text *message)
{
    struct text text = {.length = 0};
    text_add_place(&text, place);
    return fail(ERR_INPUT, "%s%s%s", text.at, text.length ? ": " : "", message->at);
}

/* A name instead of a bool, a list instead of a single value: the key was probably mistaken for
 * another. */
static bool is_mistaken(const struct field_input *in)
{
    if (!in->field->help) return false;
    return in->field->type == FIELD_BOOL
               ? json_is_string(in->json)
               : in->field->type == FIELD_STRING && json_is_array(in->json);
}

err fail_expected(const struct field_input *in)
{
    struct text text = {.length = 0};
    text_add(&text, "expected ");
    text_add_expected(&text, in->field);
    text_add(&text, ", got ");
    text_add_found(&text, in->json);
    if (is_mistaken(in)) text_add(&text, " (%s: %s)", in->field->name, in->field->help);
    return fail_at(in->place, &text);
}

err fields_fail_expected(const char *field, const char *expected, const json_t *got)
{
    struct text text = {.length = 0};
    text_add(&text, "%s: expected %s, got ", field, expected);
    text_add_found(&text, got);
    return fail(ERR_INPUT, "%s", text.at);
}

/* Scalars */

static err parse_bool(const struct field_input *in, void *ret)
{
    if (!json_is_boolean(in->json)) return fail_expected(in);
    *(bool *)ret = json_is_true(in->json);
    return OK;
}

/* As doubles: the limits of tables are far below 2^53, where an int64_t is exact. */
static bool in_range(const struct field *field, double number)
{
    if (field_has_min(field) && number < field->min) return false;
    return !field_has_max(field) || number <= field->max;
}

/* 1e6 is an integer too: JSON has one type of number, and people write steps like this. */
static bool read_integer(const json_t *json, int64_t *ret)
{
    if (json_is_integer(json)) {
        *ret = json_integer_value(json);
        return true;
    }
    if (!json_is_real(json)) return false;
    const double real = json_real_value(json);
    if (real != floor(real) || fabs(real) >= 0x1p63) return false;
    *ret = (int64_t)real;
    return true;
}

static err parse_int(const struct field_input *in, void *ret)
{
    int64_t number = 0;
    const char *word = json_string_value(in->json);
    const bool is_zero = word && in->field->zero && strcmp(word, in->field->zero) == 0;
    if (!is_zero && !read_integer(in->json, &number)) return fail_expected(in);
    if (!in_range(in->field, (double)number)) return fail_expected(in);
    *(int64_t *)ret = number;
    return OK;
}

static err parse_float(const struct field_input *in, void *ret)
{
    if (!json_is_number(in->json)) return fail_expected(in);
    const double number = json_number_value(in->json);
    if (!isfinite(number) || !in_range(in->field, number)) return fail_expected(in);
    *(double *)ret = number;
    return OK;
}

static err parse_seconds(const struct field_input *in, void *ret)
{
    double seconds = 0;
    TRY(parse_float(in, &seconds));
    *(uint64_t *)ret = (uint64_t)llround(seconds * 1000);
    return OK;
}

static err parse_string(const struct field_input *in, void *ret)
{
    if (!json_is_string(in->json)) return fail_expected(in);
    *(const char **)ret = arena_string(in->arena, json_string_value(in->json));
    return OK;
}

static err parse_enum(const struct field_input *in, void *ret)
{
    const char *word = json_string_value(in->json);
    const int count = field_choices_count(in->field);
    for (int i = 0; word && i < count; i++) {
        if (strcmp(in->field->choices[i], word) != 0) continue;
        *(int *)ret = i;
        return OK;
    }
    if (!word) return fail_expected(in);

    struct text text = {.length = 0};
    text_add(&text, "expected ");
    text_add_expected(&text, in->field);
    text_add(&text, ", got ");
    text_add_quoted(&text, word);
    text_add_near(&text, word, in->field->choices, count);
    return fail_at(in->place, &text);
}

/* Borrowed: it lives as long as the tree that was given to fields_parse. */
static err parse_json(const struct field_input *in, void *ret)
{
    *(json_t **)ret = in->json;
    return OK;
}

/* Lists */

struct member_type {
    enum field_type type; /* for messages */
    size_t size;          /* bytes */
    err (*parse)(const struct field_input *, void *ret);
};

/* Every member is checked by the list's own field, under a path with its index. */
static err parse_list(const struct field_input *in, struct member_type member, struct objects *ret)
{
    if (!json_is_array(in->json)) return fail_expected(in);
    const size_t count = json_array_size(in->json);
    if (count < (size_t)in->field->count_min || count > (size_t)field_count_max(in->field))
        return fail_expected(in);

    uint8_t *at = arena_array(in->arena, count, member.size);
    for (size_t i = 0; i < count; i++) {
        const struct place place = place_element(in->place, (int)i);
        struct field field = *in->field;
        field.type = member.type;
        field.fallback = NULL; /* it is the list's, not its members' */
        const struct field_input element = {in->arena, &field, json_array_get(in->json, i), &place};
        TRY(member.parse(&element, at + i * member.size));
    }
    *ret = (struct objects){.at = at, .count = (int)count};
    return OK;
}

/* One integer stands for a list of one. */
static err parse_ints(const struct field_input *in, void *ret)
{
    struct objects list = {0};
    if (json_is_number(in->json) && in->field->count_min <= 1) {
        struct field field = *in->field;
        field.type = FIELD_INT;
        const struct field_input one = {in->arena, &field, in->json, in->place};
        list = (struct objects){arena_new(in->arena, sizeof(int64_t)), 1};
        TRY(parse_int(&one, list.at));
    } else {
        TRY(parse_list(in, (struct member_type){FIELD_INT, sizeof(int64_t), parse_int}, &list));
    }
    *(struct ints *)ret = (struct ints){list.at, list.count};
    return OK;
}

static err parse_floats(const struct field_input *in, void *ret)
{
    struct objects list = {0};
    TRY(parse_list(in, (struct member_type){FIELD_FLOAT, sizeof(double), parse_float}, &list));
    *(struct floats *)ret = (struct floats){list.at, list.count};
    return OK;
}

static err parse_strings(const struct field_input *in, void *ret)
{
    struct objects list = {0};
    TRY(parse_list(in, (struct member_type){FIELD_STRING, sizeof(char *), parse_string}, &list));
    *(struct strings *)ret = (struct strings){list.at, list.count};
    return OK;
}

static err parse_files(const struct field_input *in, void *ret)
{
    struct strings *files = ret;
    if (json_is_array(in->json) && json_array_size(in->json) > 0) return parse_strings(in, ret);
    if (!json_is_string(in->json)) return fail_expected(in);
    *files = (struct strings){arena_new(in->arena, sizeof *files->at), 1};
    return parse_string(in, files->at);
}

static err parse_objects(const struct field_input *in, void *ret)
{
    const size_t size = in->field->object->size;
    return parse_list(in, (struct member_type){FIELD_OBJECT, size, field_parse_object}, ret);
}

static err parse_variants(const struct field_input *in, void *ret)
{
    const struct object *common = in->field->object;
    const size_t size = common ? common->size : sizeof(struct variant);
    return parse_list(in, (struct member_type){FIELD_VARIANT, size, field_parse_variant}, ret);
}

err field_parse(const struct field_input *in, void *ret)
{
    static err (*const parsers[])(const struct field_input *, void *ret) = {
        [FIELD_BOOL] = parse_bool,
        [FIELD_INT] = parse_int,
        [FIELD_FLOAT] = parse_float,
        [FIELD_SECONDS] = parse_seconds,
        [FIELD_STRING] = parse_string,
        [FIELD_ENUM] = parse_enum,
        [FIELD_INTS] = parse_ints,
        [FIELD_FLOATS] = parse_floats,
        [FIELD_STRINGS] = parse_strings,
        [FIELD_FILES] = parse_files,
        [FIELD_OBJECT] = field_parse_object,
        [FIELD_OBJECTS] = parse_objects,
        [FIELD_VARIANT] = field_parse_variant,
        [FIELD_VARIANTS] = parse_variants,
        [FIELD_JSON] = parse_json,
    };
    const bool is_absent = json_is_null(in->json) && field_is_null_by_default(in->field);
    if (is_absent && in->field->type != FIELD_VARIANT) return OK;
    return parsers[in->field->type](in, ret);
}
