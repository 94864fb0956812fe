/* csv: a table of numbers, one row per line, cells between delimiters. Plain or gzip.
 *
 * A column is named by the header or by its index (from 0; -1 is the last). Features become
 * float32 [columns].
 */
#include "core/data/formats/delimited.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const label_types[] = {"class", "number", NULL};
enum { LABEL_CLASS };
enum { USE_TEXT_MAX = 1024, USE_NAMES_MAX = 300 };

struct csv_attributes {
    const char *file, *delimiter;
    json_t *label, *columns, *except, *missing; /* borrowed from the spec */
    bool header;
    int label_type; /* index into label_types */
};

/* A file on its way to a dataset. Names and columns are owned and dropped when it is read. */
struct table {
    const struct csv_attributes *attributes;
    struct delimited text;
    const char *path;
    char **names; /* [width], NULL without a header */
    int width;
    int label; /* column; -1: the file has none, and none is needed */
    bool without_labels;
    int *columns; /* [column_count]: which ones are features */
    int column_count;
    bool *is_listed;        /* [width]: features by "columns", or left out by "except" */
    char use[USE_TEXT_MAX]; /* for a person */
    bool has_missing;
    float missing;
    int64_t rows;
    struct storage storage;
};

/* ---- columns ---- */

/* A first line of nothing but numbers is data: reading it as names would lose a row in silence. */
static err read_names(struct table *t)
{
    const struct delimited *text = &t->text;
    t->names = calloc((size_t)text->count, sizeof *t->names);
    if (!t->names) return fail(ERR_MEMORY, "%s: no memory for column names", t->path);
    t->width = text->count;
    int numbers = 0;
    for (int i = 0; i < text->count; i++) {
        double number;
        numbers += cell_number(&text->cells[i], &number);
        t->names[i] = strdup(text->cells[i].text);
        if (!t->names[i]) return fail(ERR_MEMORY, "%s: no memory for column names", t->path);
    }
    if (numbers < text->count) return OK;
    return fail(ERR_INPUT,
                "%s: line %lld: expected the names of the columns, got numbers; say \"header\": "
                "false where there are none",
                t->path, (long long)text->line);
}

static err find_by_name(const struct table *t, const char *name, int *ret)
{
    if (!t->names)
        return fail(ERR_INPUT, "%s: column \"%s\": without a header columns have indices only",
                    t->path, name);
    int found = -1;
    for (int i = 0; i < t->width; i++) {
        if (strcmp(t->names[i], name)) continue;
        if (found >= 0)
            return fail(ERR_INPUT,
                        "%s: columns %d and %d are both called \"%s\": say which by its "
                        "index",
                        t->path, found, i, name);
        found = i;
    }
    if (found >= 0) {
        *ret = found;
        return OK;
    }
    const char *near = nearest_name(name, (const char *const *)t->names, t->width);
    return fail(ERR_INPUT, "%s: no column \"%s\"%s%s%s", t->path, name,
                near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

/* which: as the spec has it, a JSON string or integer. */
static err find_column(const struct table *t, const json_t *which, int *ret)
{
    if (json_is_string(which)) return find_by_name(t, json_string_value(which), ret);
    if (!json_is_integer(which))
        return fail(ERR_INPUT, "%s: a column is a name or an index", t->path);
    json_int_t index = json_integer_value(which);
    if (index < -t->width || index >= t->width)
        return fail(ERR_INPUT, "%s: column %lld: expected %d to %d", t->path, (long long)index,
                    -t->width, t->width - 1);
    *ret = (int)(index < 0 ? index + t->width : index);
    return OK;
}

static bool is_given(const json_t *list)
{
    return list && !json_is_null(list);
}

/* A column that is listed twice is a mistake: as a feature it would count twice. */
static err find_listed(struct table *t, const char *key, const json_t *which, int *ret)
{
    int column = 0;
    TRY(find_column(t, which, &column));
    if (t->is_listed[column])
        return fail(ERR_INPUT, "%s: \"%s\" has column %d twice", t->path, key, column);
    t->is_listed[column] = true;
    *ret = column;
    return OK;
}

/* Is it a name that no column has? */
static bool is_absent(const struct table *t, const json_t *which)
{
    const char *name = json_string_value(which);
    for (int i = 0; name && t->names && i < t->width; i++)
        if (strcmp(t->names[i], name) == 0) return false;
    return name && t->names;
}

/* Without a list: every column but the label and what is left out. Words among them are found when
 * the first row is read. A file to predict need not have what is left out. */
static err choose_remaining_columns(struct table *t)
{
    const json_t *except = t->attributes->except;
    if (is_given(except) && !json_is_array(except))
        return fail(ERR_INPUT, "%s: \"except\": expected a list of names or indices", t->path);
    for (size_t i = 0; i < json_array_size(except); i++) {
        int column = 0;
        const json_t *which = json_array_get(except, i);
        if (!t->without_labels || !is_absent(t, which))
            TRY(find_listed(t, "except", which, &column));
    }
    for (int i = 0; i < t->width; i++)
        if (i != t->label && !t->is_listed[i]) t->columns[t->column_count++] = i;
    return OK;
}

/* The label among the features is always a mistake: the model would learn to copy it. */
static err choose_listed_columns(struct table *t)
{
    size_t count = json_array_size(t->attributes->columns);
    if (is_given(t->attributes->except))
        return fail(ERR_INPUT, "%s: expected \"columns\" or \"except\", got both", t->path);
    if (!json_is_array(t->attributes->columns) || count < 1 || count > (size_t)t->width)
        return fail(ERR_INPUT, "%s: \"columns\": expected a list of 1 to %d names or indices",
                    t->path, t->width);
    for (size_t i = 0; i < count; i++) {
        int column = 0;
        TRY(find_listed(t, "columns", json_array_get(t->attributes->columns, i), &column));
        if (column == t->label)
            return fail(ERR_INPUT, "%s: \"columns\" has the label's column (%d)", t->path, column);
        t->columns[t->column_count++] = column;
    }
    return OK;
}

static err check_width(const struct table *t)
{
    if (t->text.count == t->width) return OK;
    return fail(ERR_INPUT, "%s: line %lld: expected %d cells as in the first line, got %d", t->path,
                (long long)t->text.line, t->width, t->text.count);
}

/* Where no label is needed its column may be missing; where it is there, it is still no feature. */
static err find_label(struct table *t)
{
    err e = find_column(t, t->attributes->label, &t->label);
    if (!e || !t->without_labels) return e;
    t->label = -1;
    return OK;
}

/* Needs the first row of data in t->text. */
static err choose_columns(struct table *t)
{
    if (!t->names) t->width = t->text.count;
    TRY(check_width(t));
    TRY(find_label(t));
    t->columns = calloc((size_t)t->width, sizeof *t->columns);
    t->is_listed = calloc((size_t)t->width, sizeof *t->is_listed);
    if (!t->columns || !t->is_listed) return fail(ERR_MEMORY, "%s: no memory for columns", t->path);
    TRY(is_given(t->attributes->columns) ? choose_listed_columns(t) : choose_remaining_columns(t));
    if (t->column_count > 0) return OK;
    return fail(ERR_INPUT, "%s: line %lld: no column is left for features", t->path,
                (long long)t->text.line);
}

/* ---- which columns are used, for a person ---- */

__attribute__((format(printf, 2, 3))) static void say(struct table *t, const char *format, ...)
{
    const size_t used = strlen(t->use);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->use + used, sizeof t->use - used, format, arguments);
    va_end(arguments);
}

/* By name, or by index where there are no names. */
static void say_column(struct table *t, int column, const char *before)
{
    if (t->names)
        say(t, "%s%.64s", before, t->names[column]);
    else
        say(t, "%s%d", before, column);
}

/* Those that nobody listed as a feature, or that are listed as none. */
static void say_left_out(struct table *t)
{
    const bool is_listed_feature = is_given(t->attributes->columns);
    int count = 0;
    const size_t end = strlen(t->use) + USE_NAMES_MAX;
    for (int i = 0; i < t->width; i++) {
        if (i == t->label || t->is_listed[i] == is_listed_feature) continue;
        if (strlen(t->use) < end) say_column(t, i, count ? ", " : "; left out: ");
        count++;
    }
    if (count && strlen(t->use) >= end) say(t, ", ... (%d in all)", count);
}

/* "label class; 4 features: a, b, c, d; left out: id" */
static void say_use(struct table *t)
{
    if (t->label >= 0) say_column(t, t->label, "label ");
    say(t, "%s%d feature%s: ", t->label >= 0 ? "; " : "", t->column_count,
        t->column_count == 1 ? "" : "s");
    const size_t end = strlen(t->use) + USE_NAMES_MAX;
    for (int i = 0; i < t->column_count; i++) {
        if (strlen(t->use) >= end) {
            say(t, ", ...");
            break;
        }
        say_column(t, t->columns[i], i ? ", " : "");
    }
    say_left_out(t);
}

/* ---- rows ---- */

/* Columns are counted from 0, as the spec counts them; lines from 1, as editors do. */
static err bad_cell(const struct table *t, int column, const char *expected)
{
    char text[CELL_TEXT_MAX];
    return fail(ERR_INPUT, "%s: line %lld: column %d%s%s%s: expected %s, got \"%s\"", t->path,
                (long long)t->text.line, column, t->names ? " (" : "",
                t->names ? t->names[column] : "", t->names ? ")" : "", expected,
                cell_text(&t->text.cells[column], text));
}

static err read_feature(const struct table *t, int column, float *ret)
{
    const struct cell *cell = &t->text.cells[column];
    double number;
    if (cell_is_missing(cell)) {
        if (!t->has_missing)
            return bad_cell(t, column, "a number (\"missing\" says what stands for none)");
        *ret = t->missing;
        return OK;
    }
    if (cell_number(cell, &number) && isfinite((float)number)) {
        *ret = (float)number;
        return OK;
    }
    const bool hints = t->rows == 0 && !is_given(t->attributes->columns);
    return bad_cell(
        t, column, hints ? "a number (\"except\" names columns that are no features)" : "a number");
}

/* Nothing stands for a missing label: a row without one cannot be learned from. */
static err read_label(const struct table *t, void *ret)
{
    double number;
    bool is_class = t->attributes->label_type == LABEL_CLASS;
    if (!cell_number(&t->text.cells[t->label], &number) || !isfinite((float)number))
        return bad_cell(t, t->label, is_class ? "a class (a whole number)" : "a number");
    if (is_class && (number != floor(number) || fabs(number) > INT32_MAX))
        return bad_cell(t, t->label, "a class (a whole number)");
    if (is_class)
        *(int32_t *)ret = (int32_t)number;
    else
        *(float *)ret = (float)number;
    return OK;
}

/* A cell takes two bytes of text at least and four here, so memory is bounded by the file. */
static err read_row(struct table *t)
{
    TRY(check_width(t));
    size_t row_bytes = sizeof(float) * (size_t)t->column_count;
    TRY(block_grow(&t->storage.features, row_bytes * (uint64_t)(t->rows + 1)));
    float *features = (float *)t->storage.features.at + t->column_count * t->rows;
    for (int i = 0; i < t->column_count; i++) TRY(read_feature(t, t->columns[i], &features[i]));
    if (!t->without_labels) {
        TRY(block_grow(&t->storage.labels, 4 * (uint64_t)(t->rows + 1)));
        TRY(read_label(t, (char *)t->storage.labels.at + 4 * t->rows));
    }
    t->rows++;
    return OK;
}

/* Kept as JSON by the table of fields, because null and 0 mean different things. */
static err read_missing(struct table *t)
{
    const json_t *missing = t->attributes->missing;
    t->has_missing = missing && !json_is_null(missing);
    if (!t->has_missing) return OK;
    if (!json_is_number(missing) || !(fabs(json_number_value(missing)) <= FLT_MAX))
        return fail(ERR_INPUT, "%s: \"missing\": expected a number or null", t->path);
    t->missing = (float)json_number_value(missing);
    return OK;
}

static err read_table(struct table *t)
{
    bool found = false;
    TRY(read_missing(t));
    if (t->attributes->header) {
        TRY(delimited_next(&t->text, &found));
        if (found) TRY(read_names(t));
    }
    TRY(delimited_next(&t->text, &found));
    if (!found) return fail(ERR_INPUT, "%s: the file has no row of data", t->path);
    TRY(choose_columns(t));
    say_use(t);
    while (found) {
        TRY(read_row(t));
        TRY(delimited_next(&t->text, &found));
    }
    return OK;
}

/* ---- the format ---- */

static void drop_table(struct table *t)
{
    for (int i = 0; t->names && i < t->width; i++) free(t->names[i]);
    free(t->names);
    free(t->columns);
    free(t->is_listed);
    delimited_close(&t->text);
    storage_drop(&t->storage);
}

static err give_table(struct table *t, struct dataset *ret)
{
    const bool is_class = t->attributes->label_type == LABEL_CLASS;
    struct dataset d = {
        .rows = t->rows,
        .columns = {[FEATURES] = {.dtype = FLOAT32, .shape = {.rank = 1, .dim = {t->column_count}}},
                    [LABELS] = {.dtype = is_class ? INT32 : FLOAT32}},
    };
    t->storage.name = t->path;
    t->storage.use = t->use;
    TRY(storage_give(&t->storage, &d));
    *ret = d;
    return OK;
}

static err open_csv(const void *attributes, const struct format_context *context,
                    struct dataset *ret)
{
    const struct csv_attributes *a = attributes;
    if (strlen(a->delimiter) != 1 || strchr("\"\r\n", a->delimiter[0]))
        return fail(ERR_INPUT, "\"delimiter\": expected one character, got \"%s\"", a->delimiter);
    struct input *in = NULL;
    struct table t = {.attributes = a, .without_labels = context->without_labels};
    err e = input_open(context, a->file, &in);
    if (!e) t.path = input_path(in);
    if (!e) e = delimited_open(in, a->delimiter[0], &t.text);
    if (!e) e = read_table(&t);
    if (!e) e = give_table(&t, ret);
    drop_table(&t);
    input_close(in);
    return e;
}

static const struct field fields[] = {
    {.name = "file",
     .type = FIELD_STRING,
     .offset = offsetof(struct csv_attributes, file),
     .may_differ = true,
     .help = "a table of text, plain or gzip"},
    {.name = "label",
     .type = FIELD_JSON,
     .offset = offsetof(struct csv_attributes, label),
     .help = "column of the label: its name, or its index from 0 (-1: the last)"},
    {.name = "label_type",
     .type = FIELD_ENUM,
     .offset = offsetof(struct csv_attributes, label_type),
     .fallback = "\"class\"",
     .choices = label_types,
     .help = "class: whole numbers; number: any"},
    {.name = "columns",
     .type = FIELD_JSON,
     .offset = offsetof(struct csv_attributes, columns),
     .fallback = "null",
     .help = "list of the columns that are features, by name or index; null: all but the label and "
             "except"},
    {.name = "except",
     .type = FIELD_JSON,
     .offset = offsetof(struct csv_attributes, except),
     .fallback = "null",
     .help =
         "list of columns that are no features, by name or index: numbers of rows, names, dates"},
    {.name = "header",
     .type = FIELD_BOOL,
     .offset = offsetof(struct csv_attributes, header),
     .fallback = "true",
     .help = "the first line names the columns"},
    {.name = "delimiter",
     .type = FIELD_STRING,
     .offset = offsetof(struct csv_attributes, delimiter),
     .fallback = "\",\"",
     .may_differ = true,
     .help = "the character between cells"},
    {.name = "missing",
     .type = FIELD_JSON,
     .offset = offsetof(struct csv_attributes, missing),
     .fallback = "null",
     .help = "number that stands for a cell that is empty, ?, NA or nan; null: such a cell is an "
             "error"},
    {0},
};

const struct format format_csv = {
    .object = {"csv", "a table of numbers as text, plain or gzip", fields,
               sizeof(struct csv_attributes)},
    .file_field = "file",
    .open = open_csv,
};
