/* jsonl: a JSON object per line. Plain or packed.
 *
 * A member is a cell: a number, a word, true or false (1 or 0), or a list of these; null, like a
 * member that is not there, is a missing one.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/columns/decimal.h"
#include "core/data/formats/delimited.h"
#include "core/data/formats/named_cells.h"

enum { DIGITS_OF_BYTE = 5 }; /* "1e19" has 20 */

struct jsonl {
    struct row_reader reader; /* first: what others see */
    const struct named_attributes *attributes;
    struct input *input;
    struct delimited text;
    struct named_cells cells;
    bool without_labels;
    json_t *line; /* of the row: words are in it */
    char *digits; /* [digits_room] of numbers of the row */
    size_t digits_room;
};

/* ---- numbers as they are written ---- */

/* The reader of JSON makes doubles of numbers, and keeps no text. The text is in the line, which is
 * known to be right: so this walks through it beside the values. */

static const char *skip_blanks(const char *at)
{
    while (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n') at++;
    return at;
}

/* From a quote to behind the next one */
static const char *skip_string(const char *at)
{
    for (at++; *at != '"'; at++) at += *at == '\\';
    return at + 1;
}

static const char *skip_scalar(const char *at)
{
    return *at == '"' ? skip_string(at) : at + strcspn(at, ",]} \t\r\n");
}

/* With all that is in it */
static const char *skip_value(const char *at)
{
    int depth = 0;
    do {
        at = skip_blanks(at);
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
    } while (depth > 0);
    return at;
}

/* To the first value, or the first member, behind a bracket or a comma */
static const char *enter(const char *at)
{
    return skip_blanks(skip_blanks(at) + 1);
}

static const char *skip_key(const char *at)
{
    return enter(skip_string(at));
}

/* ---- members ---- */

enum list { OF_NOTHING, OF_INTEGERS, OF_NUMBERS, OF_WORDS, OF_OTHERS };

struct value {
    const json_t *json;
    const char *text; /* in the line */
};

/* Where cells go, and digits of whole numbers that are written in another way */
struct members {
    struct named_cells *cells;
    char *digits;
};

static size_t text_length(const struct value *value)
{
    return (size_t)(skip_scalar(value->text) - value->text);
}

/* 12, 12.0 and 1.2e1 are one number: it is an id, where 64 bits have it. */
static bool read_integer(const struct value *value, int64_t *ret)
{
    bool is_negative;
    uint64_t size;
    *ret = json_is_true(value->json);
    if (json_is_boolean(value->json)) return true;
    if (!decimal_whole(value->text, text_length(value), &is_negative, &size)) return false;
    *ret = is_negative ? -(int64_t)size : (int64_t)size;
    return size <= INT64_MAX;
}

static enum list list_of(const struct value *value)
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

static const char *type_of(const json_t *value)
{
    return json_is_object(value)   ? "an object"
           : json_is_array(value)  ? "a list"
           : json_is_null(value)   ? "null"
           : json_is_string(value) ? "a word"
                                   : "a number";
}

/* A number that is no id is a word, like the cell of a table: a whole one its digits, another one
 * as it is written. */
static void add_number(struct members *m, struct cell *cell, const struct value *value)
{
    bool is_negative = false;
    uint64_t size = json_is_true(value->json);
    const size_t length = text_length(value);
    if (!json_is_boolean(value->json) && !decimal_whole(value->text, length, &is_negative, &size)) {
        named_cells_add_word(m->cells, cell, value->text, length);
        return;
    }
    const int digits = sprintf(m->digits, "%s%" PRIu64, is_negative && size > 0 ? "-" : "", size);
    named_cells_add_word(m->cells, cell, m->digits, (size_t)digits);
    m->digits += digits;
}

static void add_value(struct members *m, struct cell *cell, const struct value *value,
                      enum list list)
{
    int64_t id;
    if (list == OF_WORDS) {
        named_cells_add_word(m->cells, cell, json_string_value(value->json),
                             json_string_length(value->json));
    } else if (list == OF_NUMBERS) {
        add_number(m, cell, value);
    } else {
        read_integer(value, &id);
        named_cells_add_id(m->cells, cell, id);
    }
}

static err refuse(const json_t *value, const char *where)
{
    return fail(ERR_INPUT,
                "expected numbers, words, booleans, or a list of one kind of them, got %s%s",
                type_of(value), where);
}

/* Integers among numbers are numbers. */
static err find_list(const struct value *array, enum list *ret)
{
    struct value value = {.text = enter(array->text)};
    *ret = OF_NOTHING;
    for (size_t i = 0; i < json_array_size(array->json); i++) {
        value.json = json_array_get(array->json, i);
        const enum list list = list_of(&value);
        const bool is_mixed = *ret != OF_NOTHING && (*ret == OF_WORDS) != (list == OF_WORDS);
        if (list == OF_OTHERS || is_mixed) return refuse(value.json, " in a list");
        if (list > *ret) *ret = list;
        value.text = enter(skip_value(value.text));
    }
    return OK;
}

static err read_member(struct members *m, struct cell *cell, const struct value *member)
{
    enum list list = list_of(member);
    if (json_is_null(member->json)) return OK;
    if (!json_is_array(member->json)) {
        if (list == OF_OTHERS) return refuse(member->json, "");
        add_value(m, cell, member, list);
        return OK;
    }
    TRY(find_list(member, &list));
    struct value value = {.text = enter(member->text)};
    for (size_t i = 0; i < json_array_size(member->json); i++) {
        value.json = json_array_get(member->json, i);
        add_value(m, cell, &value, list);
        value.text = enter(skip_value(value.text));
    }
    return OK;
}

/* Members come in the order of the line. */
static err read_members(struct members *m, json_t *object, const char *line)
{
    const char *name, *key = enter(line);
    json_t *json;
    json_object_foreach(object, name, json)
    {
        const struct value value = {json, skip_key(key)};
        struct cell *cell;
        TRY(named_cells_find(m->cells, name, strlen(name), &cell));
        const err e = cell ? read_member(m, cell, &value) : OK;
        if (e) return fail_prefix(e, "\"%s\"", name);
        key = enter(skip_value(value.text));
    }
    return OK;
}

/* ---- rows ---- */

static err make_room_for_digits(struct jsonl *s, size_t length)
{
    const size_t room = DIGITS_OF_BYTE * length + 1;
    if (room <= s->digits_room) return OK;
    free(s->digits);
    s->digits = malloc(room);
    s->digits_room = s->digits ? room : 0;
    return s->digits ? OK : fail(ERR_MEMORY, "no memory for the numbers of a row");
}

static err read_line(struct jsonl *s, const struct cell *line)
{
    json_error_t error;
    json_decref(s->line);
    s->line = json_loadb(line->text, line->length, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL,
                         &error);
    if (!s->line)
        return fail(ERR_INPUT, "column %d: %s", error.column > 0 ? error.column : 1, error.text);
    if (!json_is_object(s->line))
        return fail(ERR_INPUT, "expected an object, got %s", type_of(s->line));
    TRY(named_cells_clear(&s->cells, line->length));
    TRY(make_room_for_digits(s, line->length));
    return read_members(&(struct members){&s->cells, s->digits}, s->line, line->text);
}

static err fail_line(const struct jsonl *s, err e)
{
    return fail_prefix(e, "%s: line %lld", input_path(s->input), (long long)s->text.line);
}

static err next_line(struct jsonl *s, bool *ret_found)
{
    s->reader.is_row_broken = false;
    TRY(delimited_next(&s->text, ret_found));
    if (!*ret_found) return OK;
    s->reader.is_row_broken = true;
    const err e = read_line(s, &s->text.cells[0]);
    return e ? fail_line(s, e) : OK;
}

static err next_row(struct row_reader *reader, struct row *ret, bool *ret_found)
{
    struct jsonl *s = (struct jsonl *)reader;
    TRY(next_line(s, ret_found));
    if (!*ret_found)
        return label_check_seen(&s->attributes->label_form, &s->cells.seen, input_path(s->input));
    *ret = (struct row){.cells = s->cells.cells, .number = s->text.line};
    const err e = named_cells_label(&s->cells, s->attributes, s->without_labels, &ret->label);
    return e ? fail_line(s, e) : OK;
}

static err skip_row(struct row_reader *reader, struct row_place *ret, bool *ret_found)
{
    struct delimited *text = &((struct jsonl *)reader)->text;
    TRY(delimited_skip(text, '\0', ret_found));
    *ret = (struct row_place){text->begin, text->line};
    return OK;
}

static err seek_row(struct row_reader *reader, const struct row_place *place)
{
    return delimited_seek(&((struct jsonl *)reader)->text, place->byte, place->number);
}

static void close_file(struct jsonl *s)
{
    delimited_close(&s->text);
    input_close(s->input);
    s->input = NULL;
}

static void close_reader(struct row_reader *reader)
{
    struct jsonl *s = (struct jsonl *)reader;
    close_file(s);
    named_cells_close(&s->cells);
    json_decref(s->line);
    free(s->digits);
    free(s);
}

static err open_file(struct jsonl *s, const struct format_context *context)
{
    TRY(input_open(context, context->files[0], &s->input));
    return delimited_open(s->input, LINES, &s->text);
}

/* Names of the first lines, which are then read again */
static err look(struct jsonl *s, const struct format_context *context, bool *ret_is_empty)
{
    bool found = true;
    for (int i = 0; i < ROWS_LOOKED_AT && found; i++) {
        const err e = next_line(s, &found);
        if (i == 0 && !e) *ret_is_empty = !found;
        const bool is_left_out = s->reader.is_row_broken && bad_rows_are_allowed(context->bad_rows);
        if (e && !is_left_out) return e;
    }
    close_file(s);
    s->cells.is_looking = false;
    return open_file(s, context);
}

static err open_reader(struct jsonl *s, const struct format_context *context)
{
    static const struct row_calls calls = {next_row, skip_row, seek_row, close_reader};
    bool is_empty = false;
    TRY(open_file(s, context));
    TRY(named_cells_open(&s->cells, s->attributes, context));
    if (s->cells.is_looking) TRY(look(s, context, &is_empty));
    s->reader = (struct row_reader){
        .calls = &calls,
        .name = input_path(s->input),
        .numbered = "line",
        .is_empty = is_empty,
        .cut = (uint64_t)LINES,
        .input = s->input,
    };
    named_cells_describe(&s->cells, s->attributes, &s->reader);
    return OK;
}

static err read_jsonl(const void *attributes, const struct format_context *context,
                      struct row_reader **ret)
{
    struct jsonl *s = calloc(1, sizeof *s);
    if (!s) return fail(ERR_MEMORY, "no memory to read %s", context->files[0]);
    s->attributes = attributes;
    s->without_labels = context->without_labels;
    const err e = open_reader(s, context);
    if (e)
        close_reader(&s->reader);
    else
        *ret = &s->reader;
    return e;
}

static const struct field fields[] = {
    NAMED_FIELDS("files of a JSON object per line, plain or packed"),
    {0},
};

const struct format format_jsonl = {
    .object = {"jsonl", "JSON lines, an object each; data.columns reads their members", fields,
               sizeof(struct named_attributes)},
    .read = read_jsonl,
    .label_form = offsetof(struct named_attributes, label_form),
};
