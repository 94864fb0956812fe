/* standardize.c - see standardize.h. */
#include "core/data/stats/standardize.h"

#include <string.h>

#include "core/data/columns/numeric.h"
#include "core/data/stats/each_row.h"
#include "core/data/stats/spread.h"

/* The attributes of column i; NULL: it is not standardized. */
static struct numeric_attributes *standardized(const struct objects *columns, int i,
                                               const char **ret_name)
{
    const struct column_spec *spec = (const struct column_spec *)columns->at + i;
    struct numeric_attributes *a = spec->column.attributes;
    *ret_name = spec->name;
    return spec->column.kind->descriptor == &column_numeric && a->standardize ? a : NULL;
}

bool standard_of(const struct objects *columns, int i, struct standard *ret)
{
    const struct numeric_attributes *a = standardized(columns, i, &ret->name);
    if (!a) return false;
    ret->mean = a->mean;
    ret->deviation = a->deviation;
    return true;
}

static bool is_wanting(const struct numeric_attributes *a)
{
    return a && a->mean.count == 0 && a->deviation.count == 0;
}

const char *standardize_wanting(const struct objects *columns)
{
    const char *name;
    for (int i = 0; i < columns->count; i++)
        if (is_wanting(standardized(columns, i, &name))) return name;
    return NULL;
}

static void make_room(struct numeric_attributes *a, struct arena *arena)
{
    const size_t count = (size_t)a->source.max;
    a->mean = (struct floats){arena_array(arena, count, sizeof(double)), (int)count};
    a->deviation = (struct floats){arena_array(arena, count, sizeof(double)), (int)count};
}

/* ---- of the training data ---- */

/* A column without standardizing, scale and offset */
struct measured {
    struct numeric_attributes plain;
    struct column_maker maker;
    struct numeric_attributes *to;
    struct spread *spread; /* [max] */
    double *row;           /* [max] */
    bool is_counted;       /* the current row is */
    int64_t rows;          /* rows counted */
};

struct measuring {
    const struct format_context *context;
    const struct objects *columns;
    struct arena *arena;
    struct columns *all;
    void *row[COLUMNS_MAX]; /* one row of `all` */
    struct measured *at;    /* [count] */
    int count;
};

static void describe(struct measuring *m, struct measured *column, const char *name,
                     struct numeric_attributes *a)
{
    const size_t count = (size_t)a->source.max;
    column->to = a;
    column->plain = *a;
    column->plain.standardize = false;
    column->plain.scale = 1;
    column->plain.offset = 0;
    column->maker =
        (struct column_maker){.kind = &column_numeric, .name = name, .attributes = &column->plain};
    column->spread = arena_array(m->arena, count, sizeof *column->spread);
    column->row = arena_array(m->arena, count, sizeof(double));
    make_room(a, m->arena);
    for (size_t i = 0; i < count; i++) a->deviation.at[i] = 1; /* until they are known */
}

static err find_cell(struct measured *column, const struct row_reader *reader)
{
    struct column_maker *maker = &column->maker;
    const char *cell = column->plain.source.cell ? column->plain.source.cell : maker->name;
    maker->cell = row_reader_cell(reader, cell);
    if (maker->cell >= 0) return column_check_cell(reader, cell, maker->cell);
    return fail_prefix(row_reader_fail_cell(reader, cell), "column \"%s\"", maker->name);
}

/* Opens all columns, since training leaves out a row if any column of it fails. */
static err open_all(struct measuring *m, const struct row_reader *reader)
{
    struct format_context context = *m->context;
    context.columns = m->columns;
    TRY(columns_new(reader, &context, &m->all));
    int count;
    const struct column *made = columns_made(m->all, &count);
    for (int i = 0; i < count; i++)
        m->row[i] = arena_new(m->arena, (size_t)column_width(&made[i]) * dtype_size(made[i].dtype));
    return OK;
}

static err check_row(void *context, const struct row_reader *reader, const struct row *row)
{
    struct measuring *m = context;
    return columns_make(m->all, reader, row, m->row, 0);
}

static err begin(void *context, const struct row_reader *reader)
{
    struct measuring *m = context;
    const char *name;
    m->at = arena_array(m->arena, (size_t)m->columns->count, sizeof *m->at);
    for (int i = 0; i < m->columns->count; i++) {
        struct numeric_attributes *a = standardized(m->columns, i, &name);
        if (!is_wanting(a)) continue;
        describe(m, &m->at[m->count], name, a);
        TRY(find_cell(&m->at[m->count++], reader));
    }
    return open_all(m, reader);
}

/* Cells that the mean will replace do not count. */
static err read_row(struct measured *column, const struct row *row)
{
    const int64_t missing = column->maker.missing;
    TRY(numeric_read(&column->maker, row->cells, column->row));
    column->is_counted = column->maker.missing == missing || !numeric_default_is_mean(column->to);
    return OK;
}

static void add_to_spread(struct measured *column)
{
    if (!column->is_counted) return;
    column->rows++;
    for (int64_t k = 0; k < column->plain.source.max; k++)
        spread_add(&column->spread[k], column->row[k], column->rows);
}

static err add_row(void *context, const struct row_reader *reader, const struct row *row)
{
    struct measuring *m = context;
    for (int i = 0; i < m->count; i++) {
        struct column_maker *maker = &m->at[i].maker;
        const err e = read_row(&m->at[i], row);
        if (e)
            return fail_prefix(e, "%s: %s %lld: column \"%s\"", reader->name, reader->numbered,
                               (long long)row->number, maker->name);
    }
    for (int i = 0; i < m->count; i++) add_to_spread(&m->at[i]);
    return OK;
}

static void give(const struct measuring *m, struct arena *arena)
{
    for (int i = 0; i < m->count; i++) {
        struct measured *column = &m->at[i];
        make_room(column->to, arena);
        for (int64_t k = 0; k < column->plain.source.max; k++) {
            const double deviation = spread_deviation(&column->spread[k], column->rows);
            column->to->mean.at[k] = column->spread[k].mean;
            column->to->deviation.at[k] = deviation > 0 ? deviation : 1;
        }
    }
}

err standardize_measure(const struct source_spec *train, const struct format_context *context,
                        const struct objects *columns, struct arena *arena)
{
    struct arena own = {0};
    struct measuring m = {.context = context, .columns = columns, .arena = &own};
    const struct row_visitor visitor = {begin, check_row, add_row, &m, .is_ahead = true};
    struct format_context later = *context;
    const char *name;
    later.later_columns = columns;
    const err e = each_row(train, &later, &visitor, &own, &name);
    for (int i = 0; i < m.count; i++) m.at[i].to->mean = m.at[i].to->deviation = (struct floats){0};
    if (!e) give(&m, arena);
    columns_free(m.all);
    arena_free(&own);
    return e;
}

/* ---- of a list ---- */

static const struct standard *find(const struct objects *standards, const char *name)
{
    const struct standard *all = standards->at;
    for (int i = 0; i < standards->count; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

err standardize_give(const struct objects *standards, const struct objects *columns)
{
    const char *name;
    for (int i = 0; i < columns->count; i++) {
        struct numeric_attributes *a = standardized(columns, i, &name);
        if (!is_wanting(a)) continue;
        const struct standard *s = find(standards, name);
        if (!s || s->mean.count != a->source.max || s->deviation.count != a->source.max)
            return fail(ERR_INPUT,
                        "expected mean and deviation of the %lld numbers of column \"%s\"",
                        (long long)a->source.max, name);
        a->mean = s->mean;
        a->deviation = s->deviation;
    }
    return OK;
}
