/* json_cells.c - see json_cells.h. */
#include "core/data/formats/json_cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/columns/decimal.h"

enum { DIGITS_OF_BYTE = 5 }; /* "1e19" has 20 */

/* ---- the text ---- */

/* The library skips a NUL after a number, where traversal would stop, so NULs are refused. */
json_t *json_cells_load(const char *text, size_t bytes, json_error_t *ret_error)
{
    const char *zero = bytes ? memchr(text, 0, bytes) : NULL;
    if (!zero)
        return json_loadb(text ? text : "", bytes, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL,
                          ret_error);
    *ret_error = (json_error_t){.line = 1, .column = (int)(zero - text) + 1};
    snprintf(ret_error->text, sizeof ret_error->text, "a zero byte");
    return NULL;
}

const char *json_skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') at++;
    return at;
}

/* From a quote to after the closing one, or to the end of a malformed text */
static const char *skip_string(const char *at)
{
    for (at++; *at && *at != '"'; at++) at += *at == '\\' && at[1];
    return at + (*at == '"');
}

static const char *skip_scalar(const char *at)
{
    return *at == '"' ? skip_string(at) : at + strcspn(at, ",]} \t\r\n");
}

const char *json_skip(const char *at)
{
    int depth = 0;
    do {
        at = json_skip_blanks(at);
        if (*at == '{' || *at == '[') {
            depth++;
            at++;
        } else if (*at == '}' || *at == ']') {
            depth--;
            at++;
        } else if (*at == ',' || *at == ':') {
            at++;
        } else {
            at = skip_scalar(at);
        }
    } while (depth > 0 && *at);
    return at;
}

const char *json_enter(const char *at)
{
    return json_skip_blanks(json_skip_blanks(at) + 1);
}

const char *json_skip_key(const char *at)
{
    return json_enter(skip_string(at));
}

/* A name with escapes may be any name, so counts as wanted. */
static bool is_wanted(const struct named_cells *cells, const char *name, const char *end)
{
    const size_t length = (size_t)(end - name);
    return memchr(name, '\\', length) || named_cells_wanted(cells, name, length) >= 0;
}

bool json_cells_narrow(const struct named_cells *cells, const char *text, struct buffer *ret)
{
    const char *at = json_skip_blanks(text);
    buffer_clear(ret);
    if (*at != '{') return false;
    buffer_byte(ret, '{');
    do {
        const char *name = json_enter(at);
        if (*name != '"') return false;
        const char *name_end = skip_string(name), *colon = json_skip_blanks(name_end);
        if (*colon != ':') return false;
        const char *end = json_skip(json_enter(colon));
        if (is_wanted(cells, name + 1, name_end - 1)) {
            if (ret->used > 1) buffer_byte(ret, ',');
            buffer_put(ret, name, (size_t)(end - name));
        }
        at = json_skip_blanks(end);
    } while (*at == ',');
    if (*at != '}') return false;
    buffer_put(ret, "}", sizeof "}");
    return true;
}

/* ---- members ---- */

enum list_kind { OF_NOTHING, OF_INTEGERS, OF_NUMBERS, OF_WORDS, OF_OTHERS };

static size_t text_length(const struct json_value *value)
{
    return (size_t)(skip_scalar(value->text) - value->text);
}

/* 12, 12.0 and 1.2e1 are the same number, which is an id if it fits into 64 bits. */
static bool read_integer(const struct json_value *value, int64_t *ret)
{
    bool is_negative;
    uint64_t size;
    *ret = json_is_true(value->json);
    if (json_is_boolean(value->json)) return true;
    if (!decimal_whole(value->text, text_length(value), &is_negative, &size)) return false;
    *ret = is_negative ? -(int64_t)size : (int64_t)size;
    return size <= INT64_MAX;
}

static enum list_kind list_of(const struct json_value *value)
{
    int64_t id;
    switch (json_typeof(value->json)) {
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_REAL:
        return read_integer(value, &id) ? OF_INTEGERS : OF_NUMBERS;
    case JSON_STRING:
        return OF_WORDS;
    default:
        return OF_OTHERS;
    }
}

const char *json_type_text(const json_t *value)
{
    return json_is_object(value)   ? "an object"
           : json_is_array(value)  ? "a list"
           : json_is_null(value)   ? "null"
           : json_is_string(value) ? "a word"
                                   : "a number";
}

/* A number that is not an id becomes text, as in a table: a whole number its digits, others as
 * written. */
static void add_number(struct json_cells *m, struct cell *cell, const struct json_value *value)
{
    bool is_negative = false;
    uint64_t size = json_is_true(value->json);
    const size_t length = text_length(value);
    if (!json_is_boolean(value->json) && !decimal_whole(value->text, length, &is_negative, &size)) {
        named_cells_add_word(&m->named, cell, value->text, length);
        return;
    }
    const int digits =
        sprintf(m->digits_at, "%s%" PRIu64, is_negative && size > 0 ? "-" : "", size);
    named_cells_add_word(&m->named, cell, m->digits_at, (size_t)digits);
    m->digits_at += digits;
}

static void add_value(struct json_cells *m, struct cell *cell, const struct json_value *value,
                      enum list_kind list)
{
    int64_t id;
    if (list == OF_WORDS) {
        named_cells_add_word(&m->named, cell, json_string_value(value->json),
                             json_string_length(value->json));
    } else if (list == OF_NUMBERS) {
        add_number(m, cell, value);
    } else {
        read_integer(value, &id);
        named_cells_add_id(&m->named, cell, id);
    }
}

static err refuse(const json_t *value, const char *where)
{
    return fail(ERR_INPUT,
                "expected numbers, words, booleans, or a list of one kind of them, got %s%s",
                json_type_text(value), where);
}

/* A list of integers and other numbers is a list of numbers. */
static err find_list(const struct json_value *array, enum list_kind *ret)
{
    struct json_value value = {.text = json_enter(array->text)};
    *ret = OF_NOTHING;
    for (size_t i = 0; i < json_array_size(array->json); i++) {
        value.json = json_array_get(array->json, i);
        const enum list_kind list = list_of(&value);
        const bool is_mixed = *ret != OF_NOTHING && (*ret == OF_WORDS) != (list == OF_WORDS);
        if (list == OF_OTHERS || is_mixed) return refuse(value.json, " in a list");
        if (list > *ret) *ret = list;
        value.text = json_enter(json_skip(value.text));
    }
    return OK;
}

static err read_member(struct json_cells *m, struct cell *cell, const struct json_value *member)
{
    enum list_kind list = list_of(member);
    if (json_is_null(member->json)) return OK;
    if (!json_is_array(member->json)) {
        if (list == OF_OTHERS) return refuse(member->json, "");
        add_value(m, cell, member, list);
        return OK;
    }
    TRY(find_list(member, &list));
    struct json_value value = {.text = json_enter(member->text)};
    for (size_t i = 0; i < json_array_size(member->json); i++) {
        value.json = json_array_get(member->json, i);
        add_value(m, cell, &value, list);
        value.text = json_enter(json_skip(value.text));
    }
    return OK;
}

/* An object, or a list of objects or lists */
static bool is_nested(const json_t *value)
{
    const json_t *one;
    size_t i;
    json_array_foreach((json_t *)value, i,
                       one) if (json_is_object(one) || json_is_array(one)) return true;
    return json_is_object(value);
}

err json_cells_put(struct json_cells *m, const char *name, const struct json_value *value,
                   bool *ret_is_wanted)
{
    struct cell *cell;
    bool is_passed = false;
    *ret_is_wanted = false;
    if (is_nested(value->json)) TRY(named_cells_pass(&m->named, name, &is_passed));
    if (is_passed) return OK;
    TRY(named_cells_find(&m->named, name, strlen(name), &cell));
    *ret_is_wanted = cell != NULL;
    const err e = cell ? read_member(m, cell, value) : OK;
    return e ? fail_prefix(e, "\"%s\"", name) : OK;
}

/* ---- a row ---- */

err json_cells_clear(struct json_cells *m, size_t bytes)
{
    const size_t room = DIGITS_OF_BYTE * bytes + 1;
    TRY(named_cells_clear(&m->named, bytes));
    if (room > m->digits_room) {
        free(m->digits);
        m->digits = malloc(room);
        m->digits_room = m->digits ? room : 0;
    }
    m->digits_at = m->digits;
    return m->digits ? OK : fail(ERR_MEMORY, "no memory for the numbers of a row");
}

void json_cells_close(struct json_cells *m)
{
    named_cells_close(&m->named);
    free(m->digits);
    *m = (struct json_cells){0};
}
