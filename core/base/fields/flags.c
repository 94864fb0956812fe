/* flags.c - parses the command line by a table of fields. */
#include "core/base/fields/fields_inside.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* The position in argv. */
struct cursor {
    const struct object *object;
    int argc;
    char **argv;
    int next;
    bool is_past_flags; /* after "--" */
};

struct argument {
    const struct field *field;    /* NULL: not a flag */
    const struct field *shortcut; /* the stands_for flag that was given; NULL: none */
    const char *text;             /* the flag's value, or the argument itself */
};

static err fail_unknown(const struct object *object, const char *name, size_t length)
{
    const char *names[NAMES_MAX];
    int count = 0;
    assert(fields_count(object) <= NAMES_MAX);
    for (const struct field *field = object->fields; field->name; field++)
        if (field->help) names[count++] = field->name; /* others are not for users */

    struct text word = {.length = 0}, quoted = {.length = 0};
    text_add(&word, "%.*s", (int)length, name);
    text_add_quoted(&quoted, word.at);
    const char *nearest = nearest_name(word.at, names, count);
    if (!nearest) return fail(ERR_INPUT, "unknown flag %s: no flag has a similar name", quoted.at);
    return fail(ERR_INPUT, "unknown flag %s (did you mean --%s?)", quoted.at, nearest);
}

/* A boolean takes the next argument only if that cannot be anything else. */
static const char *bool_value(struct cursor *cursor)
{
    const char *next = cursor->next < cursor->argc ? cursor->argv[cursor->next] : "";
    if (strcmp(next, "true") != 0 && strcmp(next, "false") != 0) return "true";
    cursor->next++;
    return next;
}

/* The value that stands in the next argument. An argument that begins with -- is never taken: a
 * forgotten value is more likely, and --name=--value is still possible. */
static err next_value(struct cursor *cursor, const struct field *field, const char **ret)
{
    if (field->type == FIELD_BOOL) {
        *ret = bool_value(cursor);
        return OK;
    }
    const char *next = cursor->next < cursor->argc ? cursor->argv[cursor->next] : NULL;
    if (!next || strncmp(next, "--", 2) == 0) {
        struct text text = {.length = 0};
        text_add_expected(&text, field);
        return fail(ERR_INPUT, "--%s: the value is missing: expected %s", field->name, text.at);
    }
    cursor->next++;
    *ret = next;
    return OK;
}

static const struct field *field_of_letter(const struct object *object, char letter)
{
    for (int i = 0; i < fields_count(object); i++)
        if (object->fields[i].letter == letter) return &object->fields[i];
    return NULL;
}

/* "-1" and "-" are not flags. */
static bool is_letter_flag(const char *text)
{
    return text[0] == '-' && isalpha((unsigned char)text[1]);
}

/* "-oDIR" is refused, because "-optimizer=adam" would name a folder. */
static err fail_letter(const struct object *object, const char *text)
{
    const size_t length = strcspn(text + 1, "=");
    struct text quoted = {.length = 0};
    text_add_quoted(&quoted, text);
    if (object_field_n(object, text + 1, length))
        return fail(ERR_INPUT, "unknown flag %s (did you mean -%.*s?)", quoted.at, (int)length + 1,
                    text);
    if (field_of_letter(object, text[1]))
        return fail(ERR_INPUT, "unknown flag %s: -%c and its value are two words", quoted.at,
                    text[1]);
    return fail(ERR_INPUT, "unknown flag %s: flags begin with --, files with ./", quoted.at);
}

static void set_field(struct argument *argument, const struct object *object,
                      const struct field *field)
{
    argument->shortcut = field->stands_for ? field : NULL;
    argument->field = field->stands_for ? object_field(object, "set") : field;
}

/* "--name=value", "--name value". */
static err read_long(struct cursor *cursor, const char *name, struct argument *ret)
{
    const size_t length = strcspn(name, "=");
    const struct field *field = object_field_n(cursor->object, name, length);
    if (!field) return fail_unknown(cursor->object, name, length);
    if (name[length] == '=')
        ret->text = name + length + 1;
    else
        TRY(next_value(cursor, field, &ret->text));
    set_field(ret, cursor->object, field);
    return OK;
}

/* Past the end: ret->text NULL. */
static err next_argument(struct cursor *cursor, struct argument *ret)
{
    *ret = (struct argument){0};
    if (cursor->next >= cursor->argc) return OK;
    const char *text = cursor->argv[cursor->next++];
    if (!cursor->is_past_flags && strcmp(text, "--") == 0) {
        cursor->is_past_flags = true;
        return next_argument(cursor, ret);
    }
    ret->text = text;
    if (cursor->is_past_flags) return OK;
    if (strncmp(text, "--", 2) == 0) return read_long(cursor, text + 2, ret);
    if (!is_letter_flag(text)) return OK;
    const struct field *field = text[2] ? NULL : field_of_letter(cursor->object, text[1]);
    if (!field) return fail_letter(cursor->object, text);
    TRY(next_value(cursor, field, &ret->text));
    set_field(ret, cursor->object, field);
    return OK;
}

/* Values of string flags are not parsed as JSON. New reference. */
static json_t *json_from_flag(const struct field *field, const char *text)
{
    if (field->type == FIELD_STRING || field->type == FIELD_ENUM)
        return json_stringn_nocheck(text, strlen(text));
    if (field->type != FIELD_STRINGS) return json_from_text(text);
    json_t *list = json_array();
    json_array_append_new(list, json_stringn_nocheck(text, strlen(text)));
    return list;
}

/* name: of the flag or environment variable, for messages. */
static err parse_flag(const struct field *field, const char *name, json_t *json,
                      struct arena *arena, void *ret)
{
    const struct place place = place_member(NULL, name);
    return field_parse(&(struct field_input){arena, field, json, &place},
                       (uint8_t *)ret + field->offset);
}

/* The values of the flags that are given, by field; and everything else. */
struct given_flags {
    json_t *values[NAMES_MAX];
    const char **rest;
    int rest_max, rest_count;
};

static err keep_rest(struct given_flags *given, const char *text)
{
    if (given->rest_count == given->rest_max) {
        struct text quoted = {.length = 0};
        text_add_quoted(&quoted, text);
        return given->rest_max ? fail(ERR_INPUT, "unexpected argument %s: %d at most", quoted.at,
                                      given->rest_max)
                               : fail(ERR_INPUT, "unexpected argument %s", quoted.at);
    }
    given->rest[given->rest_count++] = text;
    return OK;
}

/* "train.last_step=200"; strings are quoted, so that a folder may be called 5. New reference. */
static json_t *json_from_shortcut(const struct argument *argument)
{
    const struct field *shortcut = argument->shortcut;
    json_t *value = json_from_flag(shortcut, argument->text);
    char *text = value ? json_dumps(value, JSON_ENCODE_ANY) : NULL;
    const char *said = text ? text : argument->text; /* text NULL: not UTF-8 */
    const size_t bytes = strlen(shortcut->stands_for) + 1 + strlen(said) + 1;
    char *assignment = malloc(bytes);
    if (assignment) snprintf(assignment, bytes, "%s=%s", shortcut->stands_for, said);
    json_t *list = json_array();
    if (assignment) json_array_append_new(list, json_stringn_nocheck(assignment, bytes - 1));
    free(assignment);
    free(text);
    json_decref(value);
    return list;
}

static err keep_value(struct given_flags *given, int index, const struct argument *argument)
{
    json_t *json = argument->shortcut ? json_from_shortcut(argument)
                                      : json_from_flag(argument->field, argument->text);
    json_t **kept = &given->values[index];
    if (!json) return fail(ERR_MEMORY, "no memory for --%s", argument->field->name);
    if (*kept && argument->field->type == FIELD_STRINGS) {
        json_array_extend(*kept, json);
        json_decref(json);
        return OK;
    }
    json_decref(*kept); /* the last one wins */
    *kept = json;
    return OK;
}

static err read_all(struct cursor *cursor, struct given_flags *given)
{
    struct argument argument;
    TRY(next_argument(cursor, &argument));
    while (argument.text) {
        const struct field *field = argument.field;
        if (field)
            TRY(keep_value(given, (int)(field - cursor->object->fields), &argument));
        else
            TRY(keep_rest(given, argument.text));
        TRY(next_argument(cursor, &argument));
    }
    return OK;
}

static bool is_set(const char *variable)
{
    const char *text = variable ? getenv(variable) : NULL;
    return text && *text;
}

static bool is_said(const struct object *object, json_t *const *values, const char *variable)
{
    for (int i = 0; i < fields_count(object); i++) {
        const char *of_flag = object->fields[i].environment;
        if (values[i] && of_flag && strcmp(of_flag, variable) == 0) return true;
    }
    return is_set(variable);
}

/* Other programs use variables of the same names: Jenkins sets JOB_NAME. */
static bool is_meant(const struct object *object, json_t *const *values, const struct field *field)
{
    if (!is_set(field->environment)) return false;
    const char *const *beside = field->environment_beside;
    if (!beside) return true;
    for (; *beside; beside++)
        if (is_said(object, values, *beside)) return true;
    return false;
}

/* From the environment (text), or the default (NULL). */
static err parse_absent(const struct field *field, const char *text, struct arena *arena, void *ret)
{
    if (!text && !field->fallback)
        return fail(ERR_INPUT, "--%s is required%s%s%s", field->name,
                    field->environment ? " (or the environment variable " : "",
                    field->environment ? field->environment : "", field->environment ? ")" : "");

    json_t *json = text ? json_from_flag(field, text) : field_fallback(field);
    const char *name = text ? arena_format(arena, "%s in the environment", field->environment)
                            : arena_format(arena, "--%s", field->name);
    err e = json ? parse_flag(field, name, json, arena, ret) : fail(ERR_MEMORY, "no memory");
    json_decref(json);
    return e;
}

static err parse_all(const struct object *object, json_t *const *values, struct arena *arena,
                     void *ret)
{
    const int count = fields_count(object);
    for (int i = 0; i < count; i++) {
        const struct field *field = &object->fields[i];
        assert(field->type != FIELD_JSON); /* its json_t would have no owner */
        if (field->stands_for) continue;
        const bool is_asked = !values[i] && is_meant(object, values, field);
        if (!values[i])
            TRY(parse_absent(field, is_asked ? getenv(field->environment) : NULL, arena, ret));
        else
            TRY(parse_flag(field, arena_format(arena, "--%s", field->name), values[i], arena, ret));
    }
    return OK;
}

err flags_parse(const struct object *object, int argc, char **argv, struct arena *arena, void *ret,
                const char **ret_rest, int rest_max, int *ret_rest_count)
{
    assert(fields_count(object) <= NAMES_MAX);
    struct cursor cursor = {.object = object, .argc = argc, .argv = argv, .next = 1};
    struct given_flags given = {.rest = ret_rest, .rest_max = rest_max};
    void *filled = arena_new(arena, object->size);
    err e = read_all(&cursor, &given);
    if (!e) e = parse_all(object, given.values, arena, filled);
    for (int i = 0; i < fields_count(object); i++) json_decref(given.values[i]);
    TRY(e);
    memcpy(ret, filled, object->size);
    *ret_rest_count = given.rest_count;
    return OK;
}

bool flags_given(const struct object *object, int argc, char **argv, const char *name)
{
    struct cursor cursor = {.object = object, .argc = argc, .argv = argv, .next = 1};
    struct argument argument;
    while (next_argument(&cursor, &argument) == OK && argument.text)
        if (argument.field && strcmp(argument.field->name, name) == 0) return true;
    return false;
}

bool flags_take_value(const struct object *object, const char *word)
{
    const struct field *field = object_field(object, word + strlen("--"));
    return field && field->type != FIELD_BOOL;
}

bool flags_has(const struct object *object, const char *word)
{
    const size_t dashes = strlen("--");
    if (strncmp(word, "--", dashes) != 0) return false;
    return object_field_n(object, word + dashes, strcspn(word + dashes, "="));
}
