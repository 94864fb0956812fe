/* stats.c - see stats.h. */
#include "core/data/stats/stats.h"

#include <math.h>
#include <string.h>

#include "core/base/printable.h"
#include "core/data/columns/column.h"
#include "core/data/stats/each_row.h"

/* ---- one value ---- */

/* For an id with a number both count: the id as a word, the number as a number. */
static bool number_of(const struct item *item, double *ret)
{
    if (!item->is_pair) return item_number(item, ret);
    *ret = (double)item->weight;
    return isfinite(*ret);
}

static err add_number(struct cell_stats *c, double number)
{
    if (c->numbers == 0 || number < c->min) c->min = number;
    if (c->numbers == 0 || number > c->max) c->max = number;
    c->numbers++;
    spread_add(&c->spread, number, c->numbers);
    return quantiles_add(&c->quantiles, number);
}

struct row_at_hand {
    struct arena *arena;
    const struct row_reader *reader;
    const struct row *row;
};

/* `"12,5" in part-1.csv, line 7; decimals are written with a point` */
static const char *describe_other(const struct row_at_hand *place, const char *text, size_t length)
{
    char shown[CELL_TEXT_MAX];
    const char *copy = arena_format(place->arena, "%.*s", (int)length, text);
    const struct cell cell = {.text = copy, .length = strlen(copy)};
    return arena_format(place->arena, "\"%s\" in %s, %s %lld%s", cell_text(&cell, shown),
                        place->reader->name, place->reader->numbered, (long long)place->row->number,
                        cell_number_hint(&cell));
}

static err add_item(struct cell_stats *c, const struct item *item, const struct row_at_hand *place)
{
    char buffer[ITEM_TEXT_MAX];
    size_t length;
    double number;
    const char *text = item_text(item, buffer, &length);
    c->values++;
    c->ids += item->is_id;
    if (number_of(item, &number))
        TRY(add_number(c, number));
    else if (!c->other)
        c->other = describe_other(place, text, length);
    return words_add(&c->words, text, length);
}

static err add_cell(struct cell_stats *c, const struct cell *cell, const struct row_at_hand *place)
{
    struct items items = {.cell = cell, .separator = c->separator};
    struct item item;
    const int64_t before = c->values;
    while (items_next(&items, &item)) TRY(add_item(c, &item, place));
    c->rows++;
    c->missing += c->values == before;
    return OK;
}

/* ---- all rows ---- */

/* From the first column of the cell that has a separator of one character */
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

struct stats_reading {
    struct stats *stats;
    const struct objects *columns;
    int64_t words_max;
    bool without_labels;
};

static err begin(void *context, const struct row_reader *reader)
{
    const struct stats_reading *r = context;
    struct stats *s = r->stats;
    s->count = reader->cell_count + (reader->label_cell < 0 && !r->without_labels);
    s->cells = arena_array(&s->arena, (size_t)s->count, sizeof *s->cells);
    for (int i = 0; i < s->count; i++) {
        struct cell_stats *c = &s->cells[i];
        const bool is_cell = i < reader->cell_count;
        const char *name = is_cell ? reader->cell_names[i] : LABELS_NAME;
        const size_t room = PRINTABLE_BYTES_MAX * strlen(name) + 1;
        char *shown = arena_new(&s->arena, room);
        printable_copy(shown, room, name);
        c->name = shown;
        c->is_label = !is_cell || i == reader->label_cell;
        c->separator = is_cell ? separator_of(r->columns, name) : NULL;
        c->words.max = r->words_max;
    }
    return OK;
}

/* The label as text if it is not a number; else as a number. */
static struct cell label_of(const struct row *row)
{
    double number;
    if (row->label_text && !cell_number(row->label_text, &number)) return *row->label_text;
    return (struct cell){.count = 1, .numbers = &row->label};
}

static err add_row(void *context, const struct row_reader *reader, const struct row *row)
{
    struct stats *s = ((const struct stats_reading *)context)->stats;
    const struct cell of_label = label_of(row);
    const struct row_at_hand place = {&s->arena, reader, row};
    for (int i = 0; i < s->count; i++)
        TRY(add_cell(&s->cells[i], i < reader->cell_count ? &row->cells[i] : &of_label, &place));
    s->rows++;
    return OK;
}

err stats_read(const struct source_spec *source, const struct format_context *context,
               const struct objects *columns, int64_t words_max, struct stats *ret)
{
    struct stats s = {0};
    struct stats_reading reading = {&s, columns, words_max, context->without_labels};
    const struct row_visitor visitor = {begin, NULL, add_row, &reading};
    struct format_context later = *context;
    later.later_columns = columns;
    const err e = each_row(source, &later, &visitor, &s.arena, &s.name);
    if (e)
        stats_free(&s);
    else
        *ret = s;
    return e;
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
