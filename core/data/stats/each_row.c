/* each_row.c - see each_row.h. */
#include "core/data/stats/each_row.h"

#include <string.h>

#include "core/data/parts.h"

static err visit_rows(const struct source_spec *source, struct row_reader *reader,
                      struct bad_rows *bad_rows, const struct row_visitor *visitor, int64_t *ret)
{
    bool found = true;
    struct row row;
    if (visitor->begin) TRY(visitor->begin(visitor->context, reader));
    for (int64_t sound = reader->passed; source->take == 0 || *ret < source->take;) {
        TRY(reader->calls->next(reader, &row, &found));
        if (!found) return OK;
        err e = visitor->check ? visitor->check(visitor->context, reader, &row) : OK;
        if (!e && sound++ < source->skip) continue;
        if (!e) e = visitor->row(visitor->context, reader, &row);
        if (e) TRY(bad_rows_leave_out(bad_rows, e));
        *ret += !e;
    }
    return OK;
}

static err visit_all(const struct source_spec *source, struct row_reader *reader,
                     struct bad_rows *bad_rows, const struct row_visitor *visitor,
                     struct arena *arena, const char **ret_name)
{
    const char *first = arena_string(arena, reader->name);
    int64_t rows = 0;
    TRY(visit_rows(source, reader, bad_rows, visitor, &rows));
    const bool is_one = strcmp(first, reader->name) == 0;
    *ret_name = is_one ? first : arena_format(arena, "%s to %s", first, reader->name);
    TRY(bad_rows_end(bad_rows, *ret_name, rows));
    return rows ? OK : fail(ERR_INPUT, "%s: no row is left to look at", *ret_name);
}

err each_row(const struct source_spec *source, const struct format_context *context,
             const struct row_visitor *visitor, struct arena *arena, const char **ret_name)
{
    const struct format *format = source->format.kind->descriptor;
    struct bad_rows bad_rows;
    struct format_context own = *context;
    struct row_reader *reader = NULL;
    struct data_parts *parts = NULL;
    own.columns = NULL;
    own.bad_rows = &bad_rows;
    err e = bad_rows_begin(source->bad_rows, &bad_rows);
    bad_rows.is_ahead = visitor->is_ahead;
    if (!e) e = parts_open_rows(source, &own, &parts, &reader);
    if (!e) {
        e = visit_all(source, reader, &bad_rows, visitor, arena, ret_name);
        reader->calls->close(reader);
    }
    parts_free(parts);
    left_out_free(&bad_rows.left_out);
    return e ? fail_prefix(e, "%s data", format->object.name) : OK;
}
