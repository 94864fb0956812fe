/* columns.c - the rows of a source as columns, as the spec lists them. */
#include "core/data/columns/column.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/data/storage.h"

enum { USE_TEXT_MAX = 1024 };

static const struct field column_fields[] = {
    {.name = "name",
     .type = FIELD_STRING,
     .offset = offsetof(struct column_spec, name),
     .help = "what nodes and other columns call it"},
    {0},
};

const struct object column_spec_object = {"column", "a column of a batch", column_fields,
                                          sizeof(struct column_spec)};

/* ---- what kinds call ---- */

void column_makes_ids(struct column_maker *m, int64_t max, int64_t buckets)
{
    m->made.dtype = INT64;
    m->made.shape = (struct shape){1, {max}};
    m->made.buckets = buckets;
}

struct items column_items(const struct column_maker *m, const struct cell *cells)
{
    const struct column_source *source = m->attributes;
    return (struct items){.cell = &cells[m->cell], .separator = source->separator};
}

err item_refuse(const struct item *item, const char *expected)
{
    char text[CELL_TEXT_MAX], buffer[ITEM_TEXT_MAX];
    struct cell cell = {0};
    cell.text = item_text(item, buffer, &cell.length);
    if (item->is_pair)
        return fail(ERR_INPUT, "expected %s, got \"%s\", an id with the number %g", expected,
                    cell_text(&cell, text), (double)item->weight);
    return fail(ERR_INPUT, "expected %s, got \"%s\"", expected, cell_text(&cell, text));
}

/* ---- a source on its way to a dataset ---- */

struct made {
    struct dataset dataset; /* its columns, as they are made; at: set in the end */
    struct block blocks[COLUMNS_MAX];
    char use[USE_TEXT_MAX];
    char *name;
    struct arena arena; /* names of columns, and while it is read all that makers have */

    struct row_reader *reader;
    struct column_maker *makers; /* [maker_count] */
    int maker_count;
};

static void drop(struct made *made)
{
    for (int i = 0; i < made->dataset.column_count; i++) block_drop(&made->blocks[i]);
    arena_free(&made->arena);
    free(made->name);
    free(made);
}

static void close_made(struct dataset *d)
{
    drop(d->owned);
}

/* Kinds without id() or a cell of their own say by themselves what they read. */
bool column_reads_cell(const struct column_kind *kind)
{
    const struct field *first = kind->object.fields;
    return strcmp(first->name, "source") == 0;
}

err column_check_cell(const struct row_reader *reader, const char *name, int cell)
{
    if (cell == reader->label_cell) return fail(ERR_INPUT, "\"%s\" is the label", name);
    for (int i = cell + 1; i < reader->cell_count; i++)
        if (strcmp(reader->cell_names[i], name) == 0)
            return fail(ERR_INPUT, "cells %d and %d are both called \"%s\"", cell, i, name);
    return OK;
}

static err check_source(struct column_maker *m, const struct row_reader *reader)
{
    const struct column_source *source = m->attributes;
    const char *cell = source->cell ? source->cell : m->name;
    m->cell = row_reader_cell(reader, cell);
    if (m->cell < 0) {
        const char *near = nearest_name(cell, reader->cell_names, reader->cell_count);
        return fail(ERR_INPUT, "source: %s has no cell \"%s\"%s%s%s", reader->name, cell,
                    near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
    }
    const err e = column_check_cell(reader, cell, m->cell);
    if (e) return fail_prefix(e, "source");
    if (source->separator && strlen(source->separator) != 1)
        return fail(ERR_INPUT, "separator: expected one character, got \"%s\"", source->separator);
    return OK;
}

static err add_made(struct made *made, const struct column *column)
{
    struct dataset *d = &made->dataset;
    if (column_find(d->columns, d->column_count, column->name) >= 0)
        return fail(ERR_INPUT, "the name is taken");
    if (d->column_count == COLUMNS_MAX)
        return fail(ERR_INPUT, "more than %d columns, weights and labels included", COLUMNS_MAX);
    d->columns[d->column_count++] = *column;
    return OK;
}

static err open_maker(struct made *made, const struct column_spec *spec,
                      const struct format_context *context)
{
    struct column_maker *m = &made->makers[made->maker_count];
    const struct column_context all = {context, made->reader, made->makers, made->maker_count,
                                       &made->arena};
    *m = (struct column_maker){.kind = spec->column.kind->descriptor,
                               .name = arena_string(&made->arena, spec->name),
                               .attributes = spec->column.attributes,
                               .cell = -1,
                               .stand_in = NO_ID};
    if (column_reads_cell(m->kind)) TRY(check_source(m, made->reader));
    TRY(m->kind->open(m, &all));
    m->made.name = m->name;
    TRY(add_made(made, &m->made));
    made->maker_count++;
    if (!m->made.is_weighted) return OK;
    const struct column weights = {.name = arena_format(&made->arena, "%s/weights", m->name),
                                   .dtype = FLOAT32,
                                   .shape = m->made.shape};
    return add_made(made, &weights);
}

static err open_makers(struct made *made, const struct format_context *context)
{
    const struct objects *specs = context->columns;
    const struct column label = {.name = LABELS_NAME, .dtype = made->reader->label_dtype};
    made->makers = arena_array(&made->arena, (size_t)specs->count, sizeof *made->makers);
    TRY(add_made(made, &label));
    for (int i = 0; i < specs->count; i++) {
        const struct column_spec *spec = (const struct column_spec *)specs->at + i;
        const err e = open_maker(made, spec, context);
        if (e)
            return fail_prefix(e, "columns[%d] (%s \"%s\")", i, spec->column.kind->object->name,
                               spec->name);
    }
    return OK;
}

/* ---- rows ---- */

/* The ids of all items, then none; weights may be NULL. */
static err make_ids(struct column_maker *m, const struct cell *cells, int64_t *ids, float *weights)
{
    const int64_t max = m->made.shape.dim[0];
    struct items items = column_items(m, cells);
    struct item item;
    int64_t count = 0;
    bool is_missing = false;
    while (items_next(&items, &item)) {
        if (count == max) return fail(ERR_INPUT, "more than %lld values (\"max\")", (long long)max);
        TRY(m->kind->id(m, &item, &ids[count]));
        if (ids[count] == NO_ID) continue;
        is_missing |= item.is_replaced;
        if (weights) weights[count] = item.weight;
        count++;
    }
    m->missing += is_missing || count == 0;
    if (count == 0 && m->stand_in != NO_ID) ids[count++] = m->stand_in;
    for (; count < max; count++) {
        ids[count] = NO_ID;
        if (weights) weights[count] = 0;
    }
    return OK;
}

/* Where the next row of a column goes */
static err room(struct made *made, int column, void **ret)
{
    const size_t bytes = column_row_bytes(&made->dataset.columns[column]);
    const uint64_t rows = (uint64_t)made->dataset.rows;
    TRY(block_grow(&made->blocks[column], bytes * (rows + 1)));
    *ret = (char *)made->blocks[column].at + bytes * rows;
    return OK;
}

static err make_label(struct made *made, double label)
{
    void *to;
    TRY(room(made, LABELS, &to));
    if (made->reader->label_dtype == INT32)
        *(int32_t *)to = (int32_t)label;
    else
        *(float *)to = (float)label;
    return OK;
}

/* column: of the dataset, the first that it makes */
static err make_column(struct made *made, struct column_maker *m, const struct row *row, int column)
{
    void *to, *weights = NULL;
    TRY(room(made, column, &to));
    if (m->made.is_weighted) TRY(room(made, column + 1, &weights));
    const err e =
        m->kind->id ? make_ids(m, row->cells, to, weights) : m->kind->make(m, row->cells, to);
    if (e != ERR_INPUT) return e;
    return fail_prefix(e, "%s: %s %lld: column \"%s\"", made->reader->name, made->reader->numbered,
                       (long long)row->number, m->name);
}

/* A generator is asked for more rows than there is memory by one zero too many. */
static err check_memory(const struct made *made)
{
    const int64_t rows = made->reader->rows;
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    size_t row_bytes = 0;
    for (int i = 0; i < made->dataset.column_count; i++)
        row_bytes += column_row_bytes(&made->dataset.columns[i]);
    if (memory <= 0 || (double)rows * (double)row_bytes <= memory) return OK;
    return fail(ERR_INPUT, "%s: %lld rows of %zu bytes: the memory of this host holds %.0f",
                made->reader->name, (long long)rows, row_bytes, memory / (double)row_bytes);
}

static err make_row(struct made *made, const struct row *row)
{
    int column = LABELS + 1;
    TRY(make_label(made, row->label));
    for (int i = 0; i < made->maker_count; i++) {
        TRY(make_column(made, &made->makers[i], row, column));
        column += made->makers[i].made.is_weighted ? 2 : 1;
    }
    made->dataset.rows++;
    return OK;
}

/* A row that is left out gives its place to the next one. */
static err make_rows(struct made *made, struct bad_rows *bad_rows)
{
    bool found = true;
    struct row row;
    while (found) {
        TRY(made->reader->calls->next(made->reader, &row, &found));
        if (!found) break;
        const err e = make_row(made, &row);
        if (e) TRY(bad_rows_leave_out(bad_rows, e));
    }
    if (made->dataset.rows > 0) return OK;
    return fail(ERR_INPUT, "%s: the file has no row of data", made->reader->name);
}

/* "9 columns; rows without a value: age 3, occupation 1843" */
static void say_use(struct made *made)
{
    int used = snprintf(made->use, sizeof made->use, "%d column%s", made->maker_count,
                        made->maker_count == 1 ? "" : "s");
    const char *before = "; rows without a value: ";
    for (int i = 0; i < made->maker_count; i++) {
        const struct column_maker *m = &made->makers[i];
        if (m->missing == 0 || used >= (int)sizeof made->use - 1) continue;
        used += snprintf(made->use + used, sizeof made->use - (size_t)used, "%s%s %lld", before,
                         m->name, (long long)m->missing);
        before = ", ";
    }
}

static err make_all(struct made *made, const struct format_context *context)
{
    made->name = strdup(made->reader->name);
    if (!made->name) return fail(ERR_MEMORY, "no memory for columns");
    TRY(open_makers(made, context));
    TRY(check_memory(made));
    TRY(make_rows(made, context->bad_rows));
    say_use(made);
    return OK;
}

err columns_open(struct row_reader *reader, const struct format_context *context,
                 struct dataset *ret)
{
    struct made *made = calloc(1, sizeof *made);
    err e = made ? OK : fail(ERR_MEMORY, "no memory for columns");
    if (made) made->reader = reader;
    if (!e) e = make_all(made, context);
    reader->calls->close(reader);
    if (e) {
        if (made) drop(made);
        return e;
    }
    struct dataset *d = &made->dataset;
    for (int i = 0; i < d->column_count; i++) d->columns[i].at = made->blocks[i].at;
    d->name = d->label_name = made->name;
    d->use = made->use;
    d->owned = made;
    d->close = close_made;
    *ret = *d;
    return OK;
}
