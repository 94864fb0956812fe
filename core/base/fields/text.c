/* text.c - texts of messages: paths, what a field expects, what was found. */
#include "core/base/fields/fields_inside.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "core/base/text.h"

enum { QUOTED_MAX = 60, NAMES_BYTES_MAX = 320 };

void text_add(struct text *text, const char *format, ...)
{
    const size_t space = sizeof text->at - text->length;
    va_list arguments;
    va_start(arguments, format);
    int wanted = vsnprintf(text->at + text->length, space, format, arguments);
    va_end(arguments);
    if (wanted <= 0) return;
    text->length += (size_t)wanted < space ? (size_t)wanted : space - 1;
}

void text_add_quoted(struct text *text, const char *bytes)
{
    size_t kept = strlen(bytes);
    bool cut = kept > QUOTED_MAX;
    if (cut) kept = text_begin_of_character(bytes, QUOTED_MAX);

    text_add(text, "\"");
    for (size_t i = 0; i < kept; i++) {
        unsigned char c = (unsigned char)bytes[i];
        text_add(text, c < 0x20 || c == 0x7f ? "\\x%02x" : "%c", c);
    }
    text_add(text, cut ? "...\"" : "\"");
}

/* 16777216, 0.001, 1e-07 */
static void add_number(struct text *text, double number)
{
    bool is_plain = number == floor(number) && fabs(number) <= 0x1p53;
    text_add(text, is_plain ? "%.0f" : "%g", number);
}

void text_add_bounds(struct text *text, const struct field *field)
{
    const bool has_min = field_has_min(field), has_max = field_has_max(field);
    if (has_min) {
        text_add(text, has_max ? "from " : "at least ");
        add_number(text, field->min);
    }
    if (has_max) {
        text_add(text, has_min ? " to " : "at most ");
        add_number(text, field->max);
    }
    if (field->zero) text_add(text, ", or %s", field->zero);
}

/* "an integer" + " from 1 to 10", "a number" + " of at least 0" */
static void add_range(struct text *text, const struct field *field)
{
    const bool has_min = field_has_min(field), has_max = field_has_max(field);
    if (has_min || has_max) text_add(text, has_min && has_max ? " " : " of ");
    text_add_bounds(text, field);
}

void text_add_names(struct text *text, const char *const *names, int count)
{
    const size_t end = text->length + NAMES_BYTES_MAX;
    for (int i = 0; i < count; i++) {
        if (text->length + strlen(names[i]) > end) {
            text_add(text, ", ... (%d more)", count - i);
            return;
        }
        text_add(text, "%s%s", i ? ", " : "", names[i]);
    }
}

void text_add_near(struct text *text, const char *word, const char *const *names, int count)
{
    text_add(text, "%s", suggest(word, names, count).text);
}

/* The root's name is "" where the caller gave no path. The depth of a chain is limited. */
void text_add_place(struct text *text, const struct place *place)
{
    if (place->up) text_add_place(text, place->up);
    if (!place->name) {
        text_add(text, "[%d]", place->index);
    } else if (*place->name) {
        text_add(text, "%s%s", text->length > 0 ? "." : "", place->name);
    }
}

static void add_list_of(struct text *text, const struct field *field, const char *members)
{
    const int max = field_count_max(field);
    text_add(text, "a list of ");
    if (field->count_min == max) {
        text_add(text, "%d ", max);
    } else if (max < FIELD_LIST_MAX) {
        text_add(text, "%d to %d ", field->count_min, max);
    } else if (field->count_min > 0) {
        text_add(text, "at least %d ", field->count_min);
    }
    text_add(text, "%s", members);
}

static void add_expected_variant(struct text *text, const struct kinds *kinds)
{
    const char *names[KINDS_MAX];
    int count = kinds_names(kinds, names);
    text_add(text, "an object with \"%s\"%s, or one of ", kinds->key,
             kinds->number_kind ? ", a number" : "");
    text_add_names(text, names, count);
}

static void add_expected_list(struct text *text, const struct field *field)
{
    switch (field->type) {
    case FIELD_INTS:
        add_list_of(text, field, "integers");
        break;
    case FIELD_FLOATS:
        add_list_of(text, field, "numbers");
        break;
    case FIELD_STRINGS:
        add_list_of(text, field, "strings");
        break;
    case FIELD_OBJECTS:
        add_list_of(text, field, "objects");
        break;
    default:
        add_list_of(text, field, field->kinds->noun);
        text_add(text, "s");
        break;
    }
    if (field->type == FIELD_INTS || field->type == FIELD_FLOATS) add_range(text, field);
}

void text_add_expected(struct text *text, const struct field *field)
{
    switch (field->type) {
    case FIELD_BOOL:
        text_add(text, "true or false");
        break;
    case FIELD_INT:
        text_add(text, "an integer");
        add_range(text, field);
        break;
    case FIELD_FLOAT:
    case FIELD_SECONDS:
        text_add(text, "a number");
        add_range(text, field);
        break;
    case FIELD_STRING:
        text_add(text, "a string");
        break;
    case FIELD_ENUM:
        text_add(text, "one of ");
        text_add_names(text, field->choices, field_choices_count(field));
        break;
    case FIELD_OBJECT:
        text_add(text, "an object");
        break;
    case FIELD_VARIANT:
        add_expected_variant(text, field->kinds);
        break;
    case FIELD_FILES:
        text_add(text, "a file, or a list of files");
        break;
    case FIELD_JSON:
        text_add(text, "a value");
        break;
    default:
        add_expected_list(text, field);
        break;
    }
}

json_type text_in_quotes(const char *string)
{
    json_t *inner = json_from_text(string);
    const json_type type = inner ? json_typeof(inner) : JSON_STRING;
    json_decref(inner);
    return type;
}

/* A number in quotes, as it may come from shells, YAML or table cells. */
static void add_in_quotes(struct text *text, const char *string)
{
    static const char *const names[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_INTEGER] = "a number",
        [JSON_REAL] = "a number",    [JSON_TRUE] = "true",    [JSON_FALSE] = "false",
        [JSON_NULL] = "null",        [JSON_STRING] = NULL,
    };
    const char *name = names[text_in_quotes(string)];
    text_add_quoted(text, string);
    if (name) text_add(text, ", %s in quotes", name);
}

void text_add_found(struct text *text, const json_t *json)
{
    switch (json_typeof(json)) {
    case JSON_OBJECT:
        text_add(text, "an object");
        break;
    case JSON_ARRAY:
        text_add(text, "a list of %zu", json_array_size(json));
        break;
    case JSON_STRING:
        add_in_quotes(text, json_string_value(json));
        break;
    case JSON_INTEGER:
        text_add(text, "%" JSON_INTEGER_FORMAT, json_integer_value(json));
        break;
    case JSON_REAL:
        text_add(text, "%.17g", json_real_value(json));
        break;
    case JSON_TRUE:
        text_add(text, "true");
        break;
    case JSON_FALSE:
        text_add(text, "false");
        break;
    default:
        text_add(text, "null");
        break;
    }
}
