/* stats.c - see stats.h. */
#include "core/data/stats/stats.h"

#include <math.h>
#include <string.h>

#include "core/data/columns/column.h"
#include "core/data/parts.h"

/* ---- one value ---- */

/* Of an id with a number both count: the id as a word, the number as a number. */
static bool number_of(const struct item *item, float *ret)
{
    if (!item->is_pair) return item_number(item, ret);
    *ret = item->weight;
    return isfinite(*ret);
}

/* Welford's sums: a mean that is far from 0 costs no digits. */
static err add_number(struct cell_stats *c, float number)
{
    const double from_mean = (double)number - c->mean;
    if (c->numbers == 0 || number < c->min) c->min = number;
    if (c->numbers == 0 || number > c->max) c->max = number;
    c->numbers++;
    c->mean += from_mean / (double)c->numbers;
    c->squares += from_mean * ((double)number - c->mean);
    return quantiles_add(&c->quantiles, number);
}

static err add_item(struct cell_stats *c, const struct item *item)
{
    char buffer[ITEM_TEXT_MAX];
    size_t length;
    float number;
    const char *text = item_text(item, buffer, &length);
    c->values++;
    c->ids += item->is_id;
    if (number_of(item, &number)) TRY(add_number(c, number));
    return words_add(&c->words, text, length);
}

static err add_cell(struct cell_stats *c, const struct cell *cell)
{
    struct items items = {.cell = cell, .separator = c->separator};
    struct item item;
    const int64_t before = c->values;
    while (items_next(&items, &item)) TRY(add_item(c, &item));
    c->rows++;
    c->missing += c->values == before;
    return OK;
}

double cell_stats_deviation(const struct cell_stats *c)
{
    return sqrt(c->squares / (double)c->numbers);
}

/* ---- all rows ---- */

/* As the first column has it that is made of the cell */
static const char *separator_of(const struct objects *columns, const char *cell)
{
    for (int i = 0; i < columns->count; i++) {
        const struct column_spec *spec = (const struct column_spec *)columns->at + i;
        const struct column_source *source = spec->column.attributes;
        if (!column_reads_cell(spec->column.kind->descriptor)) continue;
        if (strcmp(source->cell ? source->cell : spec->name, cell) != 0) continue;
        if (source->separator && strlen(source->separator) == 1) return source->separator;
    }
    return NULL;
}

static void describe(struct stats *s, const struct row_reader *reader,
                     const struct objects *columns, int64_t words_max)
{
    s->count = reader->cell_count + (reader->label_cell < 0);
    s->cells = arena_array(&s->arena, (size_t)s->count, sizeof *s->cells);
    for (int i = 0; i < s->count; i++) {
        struct cell_stats *c = &s->cells[i];
        const bool is_cell = i < reader->cell_count;
        c->name = arena_string(&s->arena, is_cell ? reader->cell_names[i] : LABELS_NAME);
        c->is_label = !is_cell || i == reader->label_cell;
        c->separator = is_cell ? separator_of(columns, c->name) : NULL;
        c->words.max = words_max;
    }
}

static err add_row(struct stats *s, const struct row_reader *reader, const struct row *row)
{
    const float label = (float)row->label;
    const struct cell of_label = {.count = 1, .numbers = &label};
    for (int i = 0; i < s->count; i++)
        TRY(add_cell(&s->cells[i], i < reader->cell_count ? &row->cells[i] : &of_label));
    s->rows++;
    return OK;
}

static err read_rows(struct stats *s, const struct source_spec *source, struct row_reader *reader)
{
    const char *first = arena_string(&s->arena, reader->name);
    bool found = true;
    struct row row;
    for (int64_t i = 0; source->take == 0 || s->rows < source->take; i++) {
        TRY(reader->calls->next(reader, &row, &found));
        if (!found) break;
        if (i >= source->skip) TRY(add_row(s, reader, &row));
    }
    s->name = strcmp(first, reader->name) ? arena_format(&s->arena, "%s to %s", first, reader->name)
                                          : first;
    return s->rows ? OK : fail(ERR_INPUT, "%s: no row is left to look at", s->name);
}

err stats_read(const struct source_spec *source, const struct format_context *context,
               const struct objects *columns, int64_t words_max, struct stats *ret)
{
    const struct format *format = source->format.kind->descriptor;
    struct bad_rows bad_rows = {.limit = source->bad_rows};
    struct format_context own = *context;
    struct row_reader *reader = NULL;
    struct parts *parts = NULL;
    struct stats s = {0};
    own.columns = NULL;
    own.bad_rows = &bad_rows;
    err e = parts_open_rows(source, &own, &parts, &reader);
    if (!e) {
        describe(&s, reader, columns, words_max);
        e = read_rows(&s, source, reader);
        reader->calls->close(reader);
        if (!e) bad_rows_report(&bad_rows, s.name, s.rows);
    }
    parts_free(parts);
    if (!e) *ret = s;
    if (!e) return OK;
    stats_free(&s);
    return fail_prefix(e, "%s data", format->object.name);
}

void stats_free(struct stats *s)
{
    for (int i = 0; i < s->count; i++) {
        quantiles_free(&s->cells[i].quantiles);
        words_free(&s->cells[i].words);
    }
    arena_free(&s->arena);
    *s = (struct stats){0};
}
