/* named_lines.c - see named_lines.h. */
#include "core/data/formats/named_lines.h"

#include <stdlib.h>

static err fail_line(const struct named_lines *s, err e)
{
    return fail_prefix(e, "%s: line %lld", input_path(s->input), (long long)s->text.line);
}

static err next_line(struct named_lines *s, bool *ret_found)
{
    err e = delimited_next(&s->text, ret_found);
    s->reader.is_row_broken = e && s->text.is_passed;
    if (e) return e;
    if (!*ret_found) return OK;
    s->reader.is_row_broken = true;
    e = s->read(s);
    return e ? fail_line(s, e) : OK;
}

static err next_row(struct row_reader *reader, struct row *ret, bool *ret_found)
{
    struct named_lines *s = (struct named_lines *)reader;
    TRY(next_line(s, ret_found));
    if (!*ret_found)
        return label_check_seen(&s->attributes->label_form, &s->cells->seen, input_path(s->input));
    *ret = (struct row){.cells = s->cells->cells, .number = s->text.line};
    const err e = named_cells_label(s->cells, s->attributes, s->without_labels, &ret->label);
    return e ? fail_line(s, e) : OK;
}

static err skip_row(struct row_reader *reader, struct row_place *ret, bool *ret_found)
{
    struct delimited *text = &((struct named_lines *)reader)->text;
    TRY(delimited_skip(text, '\0', ret_found));
    *ret = (struct row_place){text->begin, text->line};
    return OK;
}

static err seek_row(struct row_reader *reader, const struct row_place *place)
{
    return delimited_seek(&((struct named_lines *)reader)->text, place->byte, place->number);
}

static err narrow(struct row_reader *reader, const int *cells, int count)
{
    return named_cells_narrow(((struct named_lines *)reader)->cells, cells, count);
}

static void close_file(struct named_lines *s)
{
    delimited_close(&s->text);
    input_close(s->input);
    s->input = NULL;
}

static void close_reader(struct row_reader *reader)
{
    struct named_lines *s = (struct named_lines *)reader;
    close_file(s);
    s->drop(s);
    free(s);
}

static err open_file(struct named_lines *s, const struct format_context *context)
{
    TRY(input_open(context, context->files[0], &s->input));
    TRY(delimited_open(s->input, s->delimiter, &s->text));
    s->text.skips_broken = bad_rows_are_allowed(context->bad_rows);
    return OK;
}

/* Finds names in the first good lines. Then the file is opened again, so that all lines are read as
 * rows and broken ones reported. */
static err look(struct named_lines *s, const struct format_context *context, struct looked *ret)
{
    bool found = true;
    while (found && ret->sound < ROWS_LOOKED_AT) {
        const err e = next_line(s, &found);
        if (e && !s->reader.is_row_broken) return e;
        looked_note(ret, e, found);
    }
    close_file(s);
    TRY(named_cells_looked(s->cells));
    return open_file(s, context);
}

static err open_reader(struct named_lines *s, const struct format_context *context)
{
    static const struct row_calls calls = {next_row, skip_row, seek_row, close_reader, narrow};
    struct looked looked = {0};
    TRY(open_file(s, context));
    TRY(named_cells_open(s->cells, s->attributes, context));
    const bool is_looking = s->cells->is_looking;
    if (is_looking) TRY(look(s, context, &looked));
    s->reader = (struct row_reader){
        .calls = &calls,
        .name = input_path(s->input),
        .numbered = "line",
        .is_empty = is_looking && looked_is_empty(&looked),
        .is_all_broken = looked_is_broken(&looked),
        .cut = (uint64_t)s->delimiter,
        .input = s->input,
    };
    named_cells_describe(s->cells, s->attributes, &s->reader);
    return OK;
}

err named_lines_open(struct named_lines *s, const struct format_context *context,
                     struct row_reader **ret)
{
    s->without_labels = context->without_labels;
    const err e = open_reader(s, context);
    if (e)
        close_reader(&s->reader);
    else
        *ret = &s->reader;
    return e;
}
