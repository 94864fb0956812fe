/* jsonl: a JSON object per line. Plain or packed.
 *
 * A member is a cell: a number, a word, true or false (1 or 0), or a list of these; null, like a
 * member that is not there, is a missing one.
 */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/formats/delimited.h"
#include "core/data/formats/named_cells.h"

struct jsonl {
    struct row_reader reader; /* first: what others see */
    const struct named_attributes *attributes;
    struct input *input;
    struct delimited text;
    struct named_cells cells;
    bool without_labels;
    json_t *line; /* of the row: words are in it */
};

/* ---- members ---- */

enum list { OF_NOTHING, OF_INTEGERS, OF_NUMBERS, OF_WORDS, OF_OTHERS };

static enum list list_of(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_INTEGER:
        return OF_INTEGERS;
    case JSON_REAL:
        return OF_NUMBERS;
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

static err add_number(struct named_cells *c, struct cell *cell, double number)
{
    if (!isfinite((float)number)) return fail(ERR_INPUT, "%g is too large for a float", number);
    named_cells_add_number(c, cell, (float)number);
    return OK;
}

static err add_value(struct named_cells *c, struct cell *cell, const json_t *value, enum list list)
{
    if (list == OF_WORDS)
        named_cells_add_word(c, cell, json_string_value(value), json_string_length(value));
    else if (list == OF_NUMBERS)
        return add_number(c, cell,
                          json_is_boolean(value) ? json_is_true(value) : json_number_value(value));
    else
        named_cells_add_id(
            c, cell, json_is_boolean(value) ? json_is_true(value) : json_integer_value(value));
    return OK;
}

static err refuse(const json_t *value, const char *where)
{
    return fail(ERR_INPUT,
                "expected numbers, words, booleans, or a list of one kind of them, got %s%s",
                type_of(value), where);
}

/* Integers among numbers are numbers. */
static err find_list(const json_t *array, enum list *ret)
{
    *ret = OF_NOTHING;
    for (size_t i = 0; i < json_array_size(array); i++) {
        const json_t *value = json_array_get(array, i);
        const enum list list = list_of(value);
        const bool is_mixed = *ret != OF_NOTHING && (*ret == OF_WORDS) != (list == OF_WORDS);
        if (list == OF_OTHERS || is_mixed) return refuse(value, " in a list");
        if (list > *ret) *ret = list;
    }
    return OK;
}

static err read_member(struct named_cells *c, struct cell *cell, const json_t *value)
{
    enum list list = list_of(value);
    if (json_is_null(value)) return OK;
    if (!json_is_array(value))
        return list == OF_OTHERS ? refuse(value, "") : add_value(c, cell, value, list);
    TRY(find_list(value, &list));
    for (size_t i = 0; i < json_array_size(value); i++)
        TRY(add_value(c, cell, json_array_get(value, i), list));
    return OK;
}

static err read_members(struct named_cells *c, json_t *object)
{
    const char *name;
    json_t *value;
    json_object_foreach(object, name, value)
    {
        struct cell *cell;
        TRY(named_cells_find(c, name, strlen(name), &cell));
        if (!cell) continue;
        const err e = read_member(c, cell, value);
        if (e) return fail_prefix(e, "\"%s\"", name);
    }
    return OK;
}

/* ---- rows ---- */

static err read_line(struct jsonl *s, const struct cell *line)
{
    json_error_t error;
    json_decref(s->line);
    s->line = json_loadb(line->text, line->length, JSON_REJECT_DUPLICATES, &error);
    if (!s->line)
        return fail(ERR_INPUT, "column %d: %s", error.column > 0 ? error.column : 1, error.text);
    if (!json_is_object(s->line))
        return fail(ERR_INPUT, "expected an object, got %s", type_of(s->line));
    TRY(named_cells_clear(&s->cells, line->length));
    return read_members(&s->cells, s->line);
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
    free(s);
}

static err open_file(struct jsonl *s, const struct format_context *context)
{
    TRY(input_open(context, context->files[0], &s->input));
    return delimited_open(s->input, LINES, &s->text);
}

/* Names of the first lines, which are then read again */
static err look(struct jsonl *s, const struct format_context *context)
{
    bool found = true;
    for (int i = 0; i < ROWS_LOOKED_AT && found; i++) {
        const err e = next_line(s, &found);
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
    TRY(open_file(s, context));
    TRY(named_cells_open(&s->cells, s->attributes, context));
    if (s->cells.is_looking) TRY(look(s, context));
    s->reader = (struct row_reader){
        .calls = &calls,
        .name = input_path(s->input),
        .numbered = "line",
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
