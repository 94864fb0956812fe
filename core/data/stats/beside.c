/* beside.c - see beside.h. */
#include "core/data/stats/beside.h"

#include <stdlib.h>

#include "core/data/parts.h"

struct rows_beside {
    struct format_context context;
    struct bad_rows bad_rows; /* counts those that the reader itself skips */
    struct data_parts *parts;
    struct row_reader *reader;
    const struct strings *names;
    int *cells;    /* [names->count] indices of the reader's cells */
    int64_t given; /* rows that the reader has returned or reported as broken */
    struct row row;
};

static err find_cells(struct rows_beside *b)
{
    const struct row_reader *r = b->reader;
    b->cells = calloc((size_t)b->names->count, sizeof *b->cells);
    if (!b->cells) return fail(ERR_MEMORY, "no memory to read cells");
    for (int i = 0; i < b->names->count; i++) {
        const char *name = b->names->at[i];
        b->cells[i] = row_reader_cell(r, name);
        if (b->cells[i] < 0) return row_reader_fail_cell(r, name);
    }
    return OK;
}

/* Any number of rows may be broken: the main reader has checked the limit. */
static err open_rows(struct rows_beside *b, const struct source_spec *source,
                     const struct format_context *context)
{
    b->bad_rows = (struct bad_rows){.limit = INT64_MAX, .is_quiet = true};
    b->context = *context;
    b->context.columns = NULL;
    b->context.bad_rows = &b->bad_rows;
    TRY(parts_open_rows(source, &b->context, &b->parts, &b->reader));
    TRY(find_cells(b));
    if (!b->reader->calls->narrow) return OK;
    return b->reader->calls->narrow(b->reader, b->cells, b->names->count);
}

err beside_open(const struct source_spec *source, const struct format_context *context,
                const struct strings *cells, struct rows_beside **ret)
{
    struct rows_beside *b = calloc(1, sizeof *b);
    if (!b) return fail(ERR_MEMORY, "no memory to read cells");
    b->names = cells;
    const err e = open_rows(b, source, context);
    if (e)
        beside_close(b);
    else
        *ret = b;
    return e;
}

static int64_t passed(const struct rows_beside *b)
{
    return b->given + b->bad_rows.count;
}

err beside_next(struct rows_beside *b, int64_t row)
{
    bool found = true;
    while (found && passed(b) <= row) {
        const err e = b->reader->calls->next(b->reader, &b->row, &found);
        const bool is_broken = e && b->reader->is_row_broken;
        if (e && !is_broken) return e;
        b->given += is_broken || found;
        if (!is_broken && found && passed(b) == row + 1) return OK;
    }
    return fail(ERR_INPUT, "%s: row %lld is not there any more: changed while it is read",
                b->reader->name, (long long)row + 1);
}

const struct cell *beside_cell(const struct rows_beside *b, int cell)
{
    return &b->row.cells[b->cells[cell]];
}

void beside_close(struct rows_beside *b)
{
    if (!b) return;
    if (b->reader) b->reader->calls->close(b->reader);
    parts_free(b->parts);
    left_out_free(&b->bad_rows.left_out);
    free(b->cells);
    free(b);
}
