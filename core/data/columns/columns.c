/* columns.c - makes the columns that the spec lists from the rows of a source. */
#include "core/data/columns/column.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/data/formats/label.h"
#include "core/data/said_once.h"
#include "core/data/storage.h"

enum { USE_TEXT_MAX = 1024 };

static const struct field column_fields[] = {
    FIELD_OF("name", STRING, struct column_spec, name,
             .help = "name by which nodes and other columns refer to it"),
    {0},
};

const struct object column_spec_object = {"column", "a column of a batch", column_fields,
                                          sizeof(struct column_spec)};

/* ---- functions for kinds ---- */

void column_makes_ids(struct column_maker *m, int64_t max, int64_t buckets)
{
    m->made.dtype = INT64;
    m->made.shape = (struct shape){1, {max}};
    m->made.buckets = buckets ? buckets : ANY_ID;
    m->inverse = UINT64_MAX / (uint64_t)m->made.buckets;
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
    return fail(ERR_INPUT, "expected %s, got \"%s\"%s", expected, cell_text(&cell, text),
                cell_number_hint(&cell));
}

err column_refuse_id(const struct column_maker *m, const struct item *item)
{
    char expected[64];
    if (m->made.buckets == ANY_ID) return item_refuse(item, "an id from 0 to 2^64 - 1");
    snprintf(expected, sizeof expected, "an id from 0 to %" PRId64, m->made.buckets - 1);
    return item_refuse(item, expected);
}

/* ---- opening ---- */

struct columns {
    struct column made[COLUMNS_MAX];
    size_t row_bytes[COLUMNS_MAX];
    int count;
    bool is_stored;               /* the reader makes the columns */
    struct strings feature_names; /* if is_stored */
    struct prints prints;
    const char
        *positive; /* the positive label, which must occur and has not yet; NULL: it need not */
    struct column_maker *makers; /* [maker_count] */
    int maker_count;
    int64_t pixels_left;
    struct arena arena; /* for names of columns, and memory of makers */
};

const char *const truncations[] = {
    [TRUNCATE_NONE] = "none", [TRUNCATE_FIRST] = "first", [TRUNCATE_LAST] = "last", NULL};

err separator_check(const char *separator)
{
    const size_t length = strlen(separator);
    if (length >= 1 && length <= SEPARATOR_BYTES_MAX && !strpbrk(separator, "\r\n")) return OK;
    return fail(ERR_INPUT, "separator: expected 1 to %d characters of one line, got \"%s\"",
                (int)SEPARATOR_BYTES_MAX, separator);
}

static bool has_default(const struct column_spec *spec)
{
    const struct column_kind *kind = spec->column.kind->descriptor;
    const struct field *f = object_field(&kind->object, "default");
    if (!f) return false;
    const void *at = (const char *)spec->column.attributes + f->offset;
    return f->type == FIELD_JSON ? !json_is_null(*(json_t *const *)at) && *(json_t *const *)at
                                 : *(const int64_t *)at != NO_ID;
}

const char *column_optional_cell(const struct column_spec *spec, bool any)
{
    const struct column_source *source = spec->column.attributes;
    if (!column_reads_cell(spec->column.kind->descriptor)) return NULL;
    if (!any && !has_default(spec)) return NULL;
    return source->cell ? source->cell : spec->name;
}

bool columns_may_lack_cell(const struct objects *columns, const char *name, bool any)
{
    bool is_read = false;
    for (int i = 0; i < columns->count; i++) {
        const struct column_spec *spec = (const struct column_spec *)columns->at + i;
        const char *cell = column_optional_cell(spec, true);
        if (!cell || strcmp(cell, name)) continue;
        if (!column_optional_cell(spec, any)) return false;
        is_read = true;
    }
    return is_read;
}

/* Kinds that read one cell begin with SOURCE_FIELDS. */
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
            return fail(ERR_INPUT,
                        "%s: cells %d and %d are both called \"%s\": rename one, or name all by "
                        "\"names\" of the source",
                        reader->name, cell, i, name);
    return OK;
}

static err check_source(struct column_maker *m, const struct row_reader *reader)
{
    const struct column_source *source = m->attributes;
    const char *cell = source->cell ? source->cell : m->name;
    m->cell = row_reader_cell(reader, cell);
    const err e =
        m->cell < 0 ? row_reader_fail_cell(reader, cell) : column_check_cell(reader, cell, m->cell);
    if (e) return fail_prefix(e, "source");
    if (source->separator) TRY(separator_check(source->separator));
    return OK;
}

err column_note_content(struct column_spec *spec, const struct format_context *context)
{
    const struct column_kind *kind = spec->column.kind->descriptor;
    if (!kind->content) return OK;
    const err e = kind->content(spec->column.attributes, context, &spec->content);
    return e ? fail_prefix(e, "column \"%s\"", spec->name) : OK;
}

/* Lists are read again by every thread, and for every followed file, so they may have changed. */
static err check_content(const struct column_spec *spec, const struct column_maker *m)
{
    const struct column_content *known = &spec->content, *now = &m->content;
    if (!known->digest || (known->count == now->count && known->digest == now->digest)) return OK;
    return fail(ERR_INPUT, "its %s have changed since the run began: %lld then, %lld now",
                m->kind->content_name, (long long)known->count, (long long)now->count);
}

static err add_made(struct columns *c, const struct column *column)
{
    if (column_find(c->made, c->count, column->name) >= 0)
        return fail(ERR_INPUT, "the name is taken");
    if (c->count == COLUMNS_MAX)
        return fail(ERR_INPUT, "more than %d columns, weights and labels included", COLUMNS_MAX);
    c->row_bytes[c->count] = column_row_bytes(column);
    c->made[c->count++] = *column;
    return OK;
}

static err open_maker(struct columns *c, const struct row_reader *reader,
                      const struct column_spec *spec, const struct format_context *context)
{
    struct column_maker *m = &c->makers[c->maker_count];
    const struct column_context all = {context, reader, c->makers, c->maker_count, &c->arena};
    *m = (struct column_maker){.kind = spec->column.kind->descriptor,
                               .name = arena_string(&c->arena, spec->name),
                               .attributes = spec->column.attributes,
                               .prints = &c->prints,
                               .cell = -1,
                               .stand_in = NO_ID};
    if (column_reads_cell(m->kind)) TRY(check_source(m, reader));
    m->is_trained_on = context->wants_all_cells;
    m->awaits_cell = m->is_trained_on && column_optional_cell(spec, reader->may_lack_any);
    TRY(m->kind->open(m, &all));
    TRY(check_content(spec, m));
    m->made.name = m->name;
    TRY(add_made(c, &m->made));
    c->maker_count++;
    if (!m->made.is_weighted) return OK;
    const struct column weights = {.name = arena_format(&c->arena, "%s/weights", m->name),
                                   .dtype = FLOAT32,
                                   .shape = m->made.shape};
    return add_made(c, &weights);
}

static err open_makers(struct columns *c, const struct row_reader *reader,
                       const struct format_context *context)
{
    const struct objects *specs = context->columns;
    const struct column label = {.name = LABELS_NAME, .dtype = reader->label_dtype};
    const size_t cells = (size_t)reader->cell_count;
    c->makers = arena_array(&c->arena, (size_t)specs->count, sizeof *c->makers);
    c->prints.row_of = arena_array(&c->arena, cells, sizeof *c->prints.row_of);
    c->prints.at = arena_array(&c->arena, cells, sizeof *c->prints.at);
    TRY(add_made(c, &label));
    for (int i = 0; i < specs->count; i++) {
        const struct column_spec *spec = (const struct column_spec *)specs->at + i;
        const err e = open_maker(c, reader, spec, context);
        if (e)
            return fail_prefix(e, "columns[%d] (%s \"%s\")", i + spec->left_out,
                               spec->column.kind->object->name, spec->name);
    }
    return OK;
}

static err take_stored(struct columns *c, const struct row_reader *reader)
{
    c->is_stored = true;
    c->feature_names =
        (struct strings){arena_strings(&c->arena, reader->feature_names, reader->feature_count),
                         reader->feature_count};
    for (int i = 0; i < STORED_COLUMNS; i++) {
        struct column column = reader->stored[i];
        column.name = arena_string(&c->arena, column.name);
        TRY(add_made(c, &column));
    }
    return OK;
}

err columns_new(const struct row_reader *reader, const struct format_context *context,
                struct columns **ret)
{
    struct columns *c = calloc(1, sizeof *c);
    if (!c) return fail(ERR_MEMORY, "no memory for columns");
    if (context->wants_all_cells) c->positive = reader->positive;
    const err e = reader->stored ? take_stored(c, reader) : open_makers(c, reader, context);
    if (e)
        columns_free(c);
    else
        *ret = c;
    return e;
}

void columns_free(struct columns *c)
{
    if (c) arena_free(&c->arena);
    free(c);
}

void columns_limit_pixels(struct columns *c, int64_t pixels)
{
    c->pixels_left = pixels;
    for (int i = 0; i < c->maker_count; i++) c->makers[i].pixels_left = &c->pixels_left;
}

const struct column *columns_made(const struct columns *c, int *ret_count)
{
    *ret_count = c->count;
    return c->made;
}

/* ---- one row ---- */

void column_turn(void *values, size_t bytes, int64_t count, int64_t first)
{
    char copy[IDS_OF_ROW_MAX * sizeof(int64_t)], *at = values;
    const size_t before = bytes * (size_t)first, all = bytes * (size_t)count;
    memcpy(copy, at, all);
    memcpy(at, copy + before, all - before);
    memcpy(at + all - before, copy, before);
}

static int64_t keep_last(int64_t max, int64_t count, int64_t *ids, float *weights)
{
    if (count <= max) return count;
    column_turn(ids, sizeof *ids, max, count % max);
    if (weights) column_turn(weights, sizeof *weights, max, count % max);
    return max;
}

/* Makes the ids of all items of a cell by id() of the column's kind (hash.c, vocabulary.c and so
 * on), padded with NO_ID; weights may be NULL. */
static err make_ids(struct column_maker *m, const struct cell *cells, int64_t *ids, float *weights)
{
    const int64_t max = m->made.shape.dim[0];
    const int truncate = ((const struct column_source *)m->attributes)->truncate;
    struct items items = column_items(m, cells);
    struct item item;
    int64_t count = 0, id;
    bool is_missing = false;
    while ((count < max || truncate != TRUNCATE_FIRST) && items_next(&items, &item)) {
        TRY(m->kind->id(m, &item, &id));
        if (id == NO_ID) continue;
        if (count >= max && truncate == TRUNCATE_NONE)
            return fail(ERR_INPUT,
                        "more than %lld values (\"max\"; \"truncate\" keeps the first or the last)",
                        (long long)max);
        is_missing |= item.is_replaced;
        m->weighted += item.has_weight;
        m->loses_weight |= !weights && item.has_weight && item.weight != 1;
        ids[count % max] = id;
        if (weights) weights[count % max] = item.weight;
        count++;
    }
    count = keep_last(max, count, ids, weights);
    m->missing += is_missing || count == 0;
    if (count == 0 && m->stand_in != NO_ID) ids[count++] = m->stand_in;
    for (; count < max; count++) {
        ids[count] = NO_ID;
        if (weights) weights[count] = 0;
    }
    return OK;
}

/* Whether the cell is one word and its id is made of its fingerprint */
static bool is_printed(const struct column_maker *m, const struct cell *cells)
{
    const struct column_source *source = m->attributes;
    return m->kind->is_of_print && cell_is_word(&cells[m->cell], source->separator);
}

/* Makes that id, padded with NO_ID */
static err make_printed(struct column_maker *m, const struct cell *cells, int64_t *ids)
{
    ids[0] = column_bucket(m, column_print(m->prints, cells, m->cell));
    for (int64_t i = 1; i < m->made.shape.dim[0]; i++) ids[i] = NO_ID;
    return OK;
}

/* Whether the cell is a non-empty list of ids, not too many, all of which are valid; otherwise
 * make_ids reports what is wrong. */
static bool is_listed(const struct column_maker *m, const struct cell *cell)
{
    const uint64_t buckets = (uint64_t)m->made.buckets;
    bool fits = m->kind->is_of_id && !cell->text && cell->ids && cell->count > 0 &&
                cell->count <= m->made.shape.dim[0];
    for (int64_t i = 0; fits && i < cell->count; i++) fits = (uint64_t)cell->ids[i] < buckets;
    return fits;
}

static err make_listed(struct column_maker *m, const struct cell *cell, int64_t *ids,
                       float *weights)
{
    const int64_t count = cell->count, max = m->made.shape.dim[0];
    for (int64_t i = 0; i < count; i++) ids[i] = cell->ids[i];
    for (int64_t i = count; i < max; i++) ids[i] = NO_ID;
    for (int64_t i = 0; !weights && cell->numbers && !m->loses_weight && i < count; i++)
        m->loses_weight = cell->numbers[i] != 1;
    if (!weights) return OK;
    m->weighted += cell->numbers ? count : 0;
    for (int64_t i = 0; i < count; i++) weights[i] = cell->numbers ? (float)cell->numbers[i] : 1;
    for (int64_t i = count; i < max; i++) weights[i] = 0;
    return OK;
}

/* weights: NULL if the column has none */
static err make_values(struct column_maker *m, const struct cell *cells, void *to, void *weights)
{
    if (!m->kind->id) return m->kind->make(m, cells, to);
    if (is_listed(m, &cells[m->cell])) return make_listed(m, &cells[m->cell], to, weights);
    return is_printed(m, cells) ? make_printed(m, cells, to) : make_ids(m, cells, to, weights);
}

/* Warns about numbers of ids, as in libsvm's rows, since they may be essential. */
static void say_lost_weight(const struct column_maker *m, const struct row_reader *reader,
                            const struct row *row)
{
    if (!said_first(SAID_LOST_WEIGHT, fingerprint(m->name, strlen(m->name)))) return;
    log_line(LOG_WARNING,
             "%s: %s %lld: column \"%s\": ids come with numbers other than 1, which are ignored: a "
             "column \"ids\" with \"weights\": true uses them",
             reader->name, reader->numbered, (long long)row->number, m->name);
}

static err make_column(struct column_maker *m, const struct row_reader *reader,
                       const struct row *row, void *to, void *weights)
{
    const bool has_lost = m->loses_weight;
    const err e = make_values(m, row->cells, to, weights);
    if (m->loses_weight && !has_lost) say_lost_weight(m, reader, row);
    if (e != ERR_INPUT) return e;
    const char *cell = m->cell < 0 ? m->name : reader->cell_names[m->cell];
    const bool is_named = strcmp(cell, m->name) == 0;
    return fail_prefix(e, "%s: %s %lld: column \"%s\"%s%s%s", reader->name, reader->numbered,
                       (long long)row->number, m->name, is_named ? "" : " (cell \"",
                       is_named ? "" : cell, is_named ? "" : "\")");
}

err columns_make(struct columns *c, const struct row_reader *reader, const struct row *row,
                 void *const *to, int64_t at)
{
    void *place[COLUMNS_MAX];
    int column = LABELS + 1;
    for (int i = 0; i < c->count; i++) place[i] = (char *)to[i] + c->row_bytes[i] * (size_t)at;
    if (row->label == 1) c->positive = NULL;
    if (c->is_stored) return reader->calls->make(reader, row, place[LABELS], place[FEATURES]);
    label_store(c->made[LABELS].dtype, row->label, place[LABELS]);
    c->prints.row++;
    for (int i = 0; i < c->maker_count; i++) {
        struct column_maker *m = &c->makers[i];
        void *weights = m->made.is_weighted ? place[column + 1] : NULL;
        m->awaits_cell = m->awaits_cell && row->cells[m->cell].is_absent;
        TRY(make_column(m, reader, row, place[column], weights));
        column += m->made.is_weighted ? 2 : 1;
    }
    return OK;
}

/* ---- values that some row must have ---- */

static bool wants_weights(const struct column_maker *m)
{
    return (m->made.is_weighted || m->awaits_word) && m->weighted == 0;
}

bool columns_await(const struct columns *c)
{
    if (c->positive) return true;
    for (int i = 0; i < c->maker_count; i++)
        if (wants_weights(&c->makers[i]) || c->makers[i].awaits_cell) return true;
    return false;
}

/* With a misspelled name, all rows would train on the same value. */
static err refuse_cell(const struct column_maker *m, const char *name,
                       const struct row_reader *reader)
{
    const char *const *names = reader->cell_names, *cell = names[m->cell];
    const int behind = m->cell + 1;
    struct suggestion near = suggest(cell, names, m->cell);
    if (!near.text[0]) near = suggest(cell, names + behind, reader->cell_count - behind);
    const bool is_own_name = strcmp(cell, m->name) == 0;
    const char *hint = near.text[0] || !is_own_name ? near.text : " (\"source\" names another)";
    return fail(ERR_INPUT,
                "%s: column \"%s\": no row of any file has a cell \"%s\"%s; \"default\" and "
                "\"missing\" stand in for some rows, not for all that are trained on",
                name, m->name, cell, hint);
}

/* Without any weights in the cells, a weighted column would train as if each were 1. */
err columns_check_awaited(const struct columns *c, const char *name,
                          const struct row_reader *reader, int64_t rows)
{
    if (c->positive)
        return fail(ERR_INPUT,
                    "%s: no label of the %lld rows that are trained on is \"%s\" (\"positive\"); "
                    "dtrain stats shows which there are",
                    name, (long long)rows, c->positive);
    for (int i = 0; i < c->maker_count; i++) {
        const struct column_maker *m = &c->makers[i];
        if (m->awaits_cell) return refuse_cell(m, name, reader);
        if (m->awaits_word && wants_weights(m))
            return fail(ERR_INPUT, "%s: label \"%s\": no row has its \"positive\" word", name,
                        m->name);
        if (wants_weights(m) && m->missing < rows)
            return fail(ERR_INPUT,
                        "%s: column \"%s\": \"weights\" is true, and no value has one: expected "
                        "id:weight, as in 3:0.5, or false",
                        name, m->name);
    }
    return OK;
}

/* ---- all rows, as a dataset ---- */

struct made {
    struct columns *columns;
    struct block blocks[COLUMNS_MAX]; /* one per column, each with room for at least `room` rows */
    void *to[COLUMNS_MAX];            /* addresses of the blocks */
    int64_t rows, room;
    char use[USE_TEXT_MAX];
    char *name;
};

static void drop(struct made *made)
{
    for (int i = 0; i < COLUMNS_MAX; i++) block_drop(&made->blocks[i]);
    columns_free(made->columns);
    free(made->name);
    free(made);
}

static void close_made(struct dataset *d)
{
    drop(d->owned);
}

/* For generators: one zero too many asks for more rows than memory can hold. */
static err check_memory(const struct columns *c, const struct row_reader *reader)
{
    const double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    size_t row_bytes = 0;
    for (int i = 0; i < c->count; i++) row_bytes += column_row_bytes(&c->made[i]);
    if (memory <= 0 || (double)reader->rows * (double)row_bytes <= memory) return OK;
    return fail(ERR_INPUT, "%s: %lld rows of %zu bytes: the memory of this host holds %.0f",
                reader->name, (long long)reader->rows, row_bytes, memory / (double)row_bytes);
}

static err make_room(struct made *made)
{
    const int64_t wanted = made->rows + 1;
    made->room = INT64_MAX;
    for (int i = 0; i < made->columns->count; i++) {
        const size_t row_bytes = made->columns->row_bytes[i];
        TRY(block_grow(&made->blocks[i], row_bytes * (uint64_t)wanted));
        made->to[i] = made->blocks[i].at;
        const int64_t room = (int64_t)(made->blocks[i].bytes / row_bytes);
        if (room < made->room) made->room = room;
    }
    return OK;
}

static err make_row(struct made *made, const struct row_reader *reader, const struct row *row)
{
    if (made->rows == made->room) TRY(make_room(made));
    TRY(columns_make(made->columns, reader, row, made->to, made->rows));
    made->rows++;
    return OK;
}

/* Logs progress, as reading many rows takes a while. */
static void note_progress(const struct made *made, const struct row_reader *reader,
                          uint64_t *due_ms)
{
    enum { LOOK_ROWS = 1024, FIRST_MS = 1000, NOTE_MS = 10000 };
    char of[32] = "";
    if (made->rows % LOOK_ROWS) return;
    const uint64_t now_ms = clock_ms();
    if (!*due_ms) *due_ms = now_ms + FIRST_MS;
    if (now_ms < *due_ms) return;
    *due_ms = now_ms + NOTE_MS;
    if (reader->rows > 0) snprintf(of, sizeof of, " of %lld", (long long)reader->rows);
    log_line(LOG_INFO, "reading %s: %lld%s rows", reader->name, (long long)made->rows, of);
}

/* A row that is left out is overwritten by the next one. */
static err make_rows(struct made *made, struct row_reader *reader, struct bad_rows *bad_rows)
{
    bool found = true;
    uint64_t due_ms = 0;
    struct row row;
    while (found) {
        note_progress(made, reader, &due_ms);
        err e = reader->calls->next(reader, &row, &found);
        if (e && !reader->is_row_broken) return e;
        if (!e && found) e = make_row(made, reader, &row);
        if (!e && found) bad_rows_keep(bad_rows);
        if (e) TRY(bad_rows_leave_out(bad_rows, e));
    }
    return OK;
}

/* "9 columns; rows without a value: age 3, occupation 1843", or `use` of the reader */
static void say_use(struct made *made, const struct row_reader *reader)
{
    const struct columns *c = made->columns;
    if (c->is_stored) {
        snprintf(made->use, sizeof made->use, "%s", reader->use ? reader->use : "");
        return;
    }
    int used = snprintf(made->use, sizeof made->use, "%d column%s", c->maker_count,
                        c->maker_count == 1 ? "" : "s");
    const char *before = "; rows without a value: ";
    for (int i = 0; i < c->maker_count; i++) {
        const struct column_maker *m = &c->makers[i];
        if (m->missing == 0 || used >= (int)sizeof made->use - 1) continue;
        used += snprintf(made->use + used, sizeof made->use - (size_t)used, "%s%s %lld", before,
                         m->name, (long long)m->missing);
        before = ", ";
    }
}

static err make_all(struct made *made, struct row_reader *reader,
                    const struct format_context *context)
{
    made->name = strdup(reader->name);
    if (!made->name) return fail(ERR_MEMORY, "no memory for columns");
    TRY(columns_new(reader, context, &made->columns));
    TRY(format_context_tell(context, made->columns->made, made->columns->count));
    TRY(check_memory(made->columns, reader));
    TRY(make_rows(made, reader, context->bad_rows));
    if (made->rows == 0 && !context->has_other_parts)
        return fail(ERR_INPUT, "%s: the file has no row of data", made->name);
    if (!context->without_labels && !context->has_other_parts)
        TRY(columns_check_awaited(made->columns, made->name, reader, made->rows));
    say_use(made, reader);
    return OK;
}

static void give(struct made *made, struct dataset *ret)
{
    *ret = (struct dataset){.rows = made->rows,
                            .columns = made->columns->made,
                            .column_count = made->columns->count,
                            .name = made->name,
                            .label_name = made->name,
                            .use = made->use,
                            .feature_names = made->columns->feature_names,
                            .owned = made,
                            .close = close_made};
    for (int i = 0; i < ret->column_count; i++) ret->columns[i].at = made->blocks[i].at;
}

err columns_open(struct row_reader *reader, const struct format_context *context,
                 struct dataset *ret)
{
    if (reader->is_empty) {
        reader->calls->close(reader);
        *ret = (struct dataset){0};
        return OK;
    }
    struct made *made = calloc(1, sizeof *made);
    const err e =
        made ? make_all(made, reader, context) : fail(ERR_MEMORY, "no memory for columns");
    reader->calls->close(reader);
    if (e && made) drop(made);
    if (!e) give(made, ret);
    return e;
}
