/* jsonl: a JSON object per line; its members are cells (core/data/formats/json_cells.h). Plain or
 * packed. */
#include <stdlib.h>

#include "core/data/formats/delimited.h"
#include "core/data/formats/json_cells.h"

struct jsonl {
    struct row_reader reader; /* first: what others see */
    const struct named_attributes *attributes;
    struct input *input;
    struct delimited text;
    struct json_cells cells;
    bool without_labels;
    json_t *line; /* of the row: words are in it */
};

/* ---- rows ---- */

/* Members come in the order of the line. */
static err read_members(struct json_cells *cells, json_t *object, const char *line)
{
    const char *name, *key = json_enter(line);
    bool is_wanted;
    json_t *json;
    json_object_foreach(object, name, json)
    {
        const struct json_value value = {json, json_skip_key(key)};
        TRY(json_cells_put(cells, name, &value, &is_wanted));
        key = json_enter(json_skip(value.text));
    }
    return OK;
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
        return fail(ERR_INPUT, "expected an object, got %s", json_type_text(s->line));
    TRY(json_cells_clear(&s->cells, line->length));
    return read_members(&s->cells, s->line, line->text);
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
        return label_check_seen(&s->attributes->label_form, &s->cells.named.seen,
                                input_path(s->input));
    *ret = (struct row){.cells = s->cells.named.cells, .number = s->text.line};
    const err e = named_cells_label(&s->cells.named, s->attributes, s->without_labels, &ret->label);
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
    json_cells_close(&s->cells);
    json_decref(s->line);
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
    s->cells.named.is_looking = false;
    return open_file(s, context);
}

static err open_reader(struct jsonl *s, const struct format_context *context)
{
    static const struct row_calls calls = {next_row, skip_row, seek_row, close_reader};
    bool is_empty = false;
    TRY(open_file(s, context));
    TRY(named_cells_open(&s->cells.named, s->attributes, context));
    if (s->cells.named.is_looking) TRY(look(s, context, &is_empty));
    s->reader = (struct row_reader){
        .calls = &calls,
        .name = input_path(s->input),
        .numbered = "line",
        .is_empty = is_empty,
        .cut = (uint64_t)LINES,
        .input = s->input,
    };
    named_cells_describe(&s->cells.named, s->attributes, &s->reader);
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
