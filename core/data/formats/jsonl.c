/* jsonl: a JSON object per line; its members are cells (core/data/formats/json_cells.h). Plain or
 * packed. */
#include <stdlib.h>
#include <string.h>

#include "core/data/formats/json_cells.h"
#include "core/data/formats/named_lines.h"

struct jsonl {
    struct named_lines lines; /* first: the public part */
    struct json_cells cells;
    json_t *line;         /* the parsed row; words point into it */
    struct buffer narrow; /* the row's text with wanted members only */
};

/* The line, or its wanted members: columns in errors refer to this text */
static err find_text(struct jsonl *s, const char **ret, size_t *ret_bytes)
{
    const struct cell *line = &s->lines.text.cells[0];
    *ret = line->text;
    *ret_bytes = line->length;
    if (!s->cells.named.wanted) return OK;
    const bool is_narrow = json_cells_narrow(&s->cells.named, line->text, &s->narrow);
    if (s->narrow.is_short) return fail(ERR_MEMORY, "no memory for a line");
    if (!is_narrow) return OK;
    *ret = (const char *)s->narrow.at;
    *ret_bytes = s->narrow.used - 1;
    return OK;
}

/* Members are iterated in the order of the line. */
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

static const char of_array[] =
    "expected an object, got a list: JSON lines have a row in each line, "
    "and no list around them (jq -c '.[]' makes them)";

static err read_line(struct named_lines *lines)
{
    struct jsonl *s = (struct jsonl *)lines;
    const char *text;
    size_t bytes;
    json_error_t error;
    TRY(find_text(s, &text, &bytes));
    const bool has_return = memchr(text, '\r', bytes);
    json_decref(s->line);
    s->line = json_cells_load(text, bytes, &error);
    if (!s->line && *text == '[' && lines->text.line == 1) return fail(ERR_INPUT, "%s", of_array);
    if (!s->line)
        return fail(ERR_INPUT, "column %d: %s%s%s", error.column > 0 ? error.column : 1, error.text,
                    has_return ? "; the line " : "", has_return ? delimited_of_return : "");
    if (json_is_array(s->line)) return fail(ERR_INPUT, "%s", of_array);
    if (!json_is_object(s->line))
        return fail(ERR_INPUT, "expected an object, got %s", json_type_text(s->line));
    TRY(json_cells_clear(&s->cells, bytes));
    return read_members(&s->cells, s->line, text);
}

static void drop(struct named_lines *lines)
{
    struct jsonl *s = (struct jsonl *)lines;
    json_cells_close(&s->cells);
    json_decref(s->line);
    buffer_drop(&s->narrow);
}

static err read_jsonl(const void *attributes, const struct format_context *context,
                      struct row_reader **ret)
{
    struct jsonl *s = calloc(1, sizeof *s);
    if (!s) return fail(ERR_MEMORY, "no memory to read %s", context->files[0]);
    s->lines = (struct named_lines){.attributes = attributes,
                                    .cells = &s->cells.named,
                                    .delimiter = LINES,
                                    .read = read_line,
                                    .drop = drop};
    return named_lines_open(&s->lines, context, ret);
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
