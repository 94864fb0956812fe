/* csv: a table, one row per line, cells between delimiters. Plain or packed.
 *
 * A cell is named by the header, by the spec or by its index (from 0; -1 is the last). Without
 * data.columns all features must be numbers, and become float32 [columns].
 */
#include "core/base/log.h"
#include "core/data/columns/column.h"
#include "core/data/formats/csv_faults.h"
#include "core/data/formats/csv_table.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USE_TEXT_MAX = 1024, USE_NAMES_MAX = 300, LIST_TEXT_MAX = 400, NAME_SHOWN_MAX = 80 };

/* A file read without data.columns: all features are numbers */
struct number_table {
    struct csv_table file; /* first: the public part */
    struct row_calls calls;
    struct column stored[STORED_COLUMNS];
    int *columns; /* [column_count] indices of the features */
    int column_count;
    const char **feature_names; /* [column_count] if the file names them */
    bool *is_listed;            /* [width]: features by "columns", or left out by "except" */
    char use[USE_TEXT_MAX];     /* for messages */
    bool has_missing;
    double missing;
    struct feature_scaling scaling;
    int64_t first_line; /* of data */
};

/* ---- columns ---- */

/* which: a JSON string or integer from the spec */
static struct csv_key key_of(const json_t *which)
{
    return (struct csv_key){json_string_value(which), json_is_integer(which),
                            json_integer_value(which)};
}

static err check_key(const char *name, const json_t *key)
{
    if (json_is_string(key) || json_is_integer(key)) return OK;
    const bool is_list = json_is_array(key);
    return fail(ERR_INPUT, "%s: expected the name or the index of one column, got %s%s", name,
                is_list               ? "a list"
                : json_is_object(key) ? "an object"
                                      : "neither",
                is_list && strcmp(name, "label") == 0
                    ? "; \"labels\" of the source, beside data.columns, are several"
                    : "");
}

/* The label may be left out if "labels" are listed. */
static err check_label(const struct csv_attributes *a)
{
    const bool is_given = a->label && !json_is_null(a->label);
    if (!is_given && a->label_form.labels.count > 0) return OK;
    return is_given ? check_key("label", a->label)
                    : fail(ERR_INPUT, "expected \"label\", the name or the index of a column, or "
                                      "\"labels\", got none");
}

/* The words of "missing", if it is a list, for data.columns; else none. For free(). */
static err list_missing(const json_t *list, struct strings *ret)
{
    const size_t count = json_array_size(list);
    *ret = (struct strings){0};
    if (count > MISSING_WORDS_MAX)
        return fail(ERR_INPUT, "missing: more than %d words", (int)MISSING_WORDS_MAX);
    for (size_t i = 0; i < count; i++)
        if (!json_is_string(json_array_get(list, i)))
            return fail(ERR_INPUT, "missing[%zu]: expected a word", i);
    ret->at = calloc(count + 1, sizeof *ret->at);
    if (!ret->at) return fail(ERR_MEMORY, "no memory for words");
    for (size_t i = 0; i < count; i++)
        ret->at[ret->count++] = json_string_value(json_array_get(list, i));
    return OK;
}

static bool is_given(const json_t *list)
{
    return list && !json_is_null(list);
}

/* A column listed twice is an error: as a feature it would count twice. */
static err find_listed(struct number_table *t, const char *key, const json_t *which, int *ret)
{
    int column = 0;
    const struct csv_key of_spec = key_of(which);
    TRY(csv_table_find(&t->file, &of_spec, &column));
    if (t->is_listed[column])
        return fail(ERR_INPUT, "%s: \"%s\" has column %d twice", t->file.path, key, column);
    t->is_listed[column] = true;
    *ret = column;
    return OK;
}

/* Whether it is a name that no column has */
static bool is_absent(const struct number_table *t, const json_t *which)
{
    const char *name = json_string_value(which);
    return name && t->file.is_named &&
           text_find((const char *const *)t->file.names, t->file.width, name) < 0;
}

/* Without "columns": all columns but the label and those of "except". If some have words, that is
 * found when the first row is read. For predictions the file may lack columns of "except". */
static err choose_remaining_columns(struct number_table *t)
{
    const json_t *except = t->file.attributes->except;
    if (is_given(except) && !json_is_array(except))
        return fail(ERR_INPUT, "%s: \"except\": expected a list of names or indices", t->file.path);
    for (size_t i = 0; i < json_array_size(except); i++) {
        int column = 0;
        const json_t *which = json_array_get(except, i);
        if (!t->file.without_labels || !is_absent(t, which))
            TRY(find_listed(t, "except", which, &column));
    }
    for (int i = 0; i < t->file.width; i++)
        if (i != t->file.label && !t->is_listed[i]) t->columns[t->column_count++] = i;
    return OK;
}

/* The label among the features is an error: the model would learn to copy it. */
static err choose_listed_columns(struct number_table *t)
{
    size_t count = json_array_size(t->file.attributes->columns);
    if (is_given(t->file.attributes->except))
        return fail(ERR_INPUT, "%s: expected \"columns\" or \"except\", got both", t->file.path);
    if (!json_is_array(t->file.attributes->columns) || count < 1 || count > (size_t)t->file.width)
        return fail(ERR_INPUT, "%s: \"columns\": expected a list of 1 to %d names or indices",
                    t->file.path, t->file.width);
    for (size_t i = 0; i < count; i++) {
        int column = 0;
        TRY(find_listed(t, "columns", json_array_get(t->file.attributes->columns, i), &column));
        if (column == t->file.label)
            return fail(ERR_INPUT, "%s: \"columns\" has the label's column (%d)", t->file.path,
                        column);
        t->columns[t->column_count++] = column;
    }
    return OK;
}

static err choose_as_listed(struct number_table *t)
{
    return is_given(t->file.attributes->columns) ? choose_listed_columns(t)
                                                 : choose_remaining_columns(t);
}

/* As many names as fit: "a, b, ..." */
static const char *list_names(const char *const *names, int count, char ret[LIST_TEXT_MAX])
{
    size_t used = 0;
    for (int i = 0; i < count && used < LIST_TEXT_MAX - NAME_SHOWN_MAX; i++)
        used +=
            (size_t)snprintf(ret + used, LIST_TEXT_MAX - used, "%s%.64s", i ? ", " : "", names[i]);
    if (used >= LIST_TEXT_MAX - NAME_SHOWN_MAX) snprintf(ret + used, LIST_TEXT_MAX - used, ", ...");
    return ret;
}

static err refuse_names(const struct number_table *t, const struct strings *expected)
{
    char have[LIST_TEXT_MAX], wanted[LIST_TEXT_MAX];
    return fail(ERR_INPUT, "%s: its features are %s; those of the model are %s", t->file.path,
                list_names(t->feature_names, t->column_count, have),
                list_names(expected->at, expected->count, wanted));
}

/* Index of the name; -1: none. likely: tried first, since files mostly have the same order. */
static int find_name(const struct strings *names, const char *name, int likely)
{
    const bool is_there = strcmp(names->at[likely], name) == 0;
    return is_there ? likely : text_find(names->at, names->count, name);
}

/* Puts the features into the order of `expected`. The caller compares their number. */
static err order_by_name(struct number_table *t, const struct strings *expected)
{
    int *ordered = calloc((size_t)t->file.width, sizeof *ordered); /* index + 1 of a column; 0:
                                                                      not yet set */
    if (!ordered) return fail(ERR_MEMORY, "%s: no memory for columns", t->file.path);
    bool fits = true;
    for (int i = 0; fits && i < t->column_count; i++) {
        const int place = find_name(expected, t->feature_names[i], i);
        fits = place >= 0 && ordered[place] == 0;
        if (fits) ordered[place] = t->columns[i] + 1;
    }
    for (int i = 0; fits && i < t->column_count; i++) {
        t->columns[i] = ordered[i] - 1;
        t->feature_names[i] = t->file.names[t->columns[i]];
    }
    free(ordered);
    return fits ? OK : refuse_names(t, expected);
}

static err match_names(struct number_table *t, const struct format_context *context)
{
    const struct strings *expected = &context->feature_names;
    if (!t->file.is_named || expected->count != t->column_count) return OK;
    const err e = order_by_name(t, expected);
    if (e != ERR_INPUT) return e;
    if (!context->takes_other_features)
        return fail(e, "%s (--changed_features=accept takes them as they stand)", error_text());
    log_line(LOG_WARNING, "%s: they are taken as they stand (--changed_features)", error_text());
    return OK;
}

/* A column by its index is meant. */
static void warn_of_nameless(const struct number_table *t)
{
    const struct csv_names names = csv_table_names(&t->file);
    const bool is_listed = is_given(t->file.attributes->columns);
    for (int i = 0; !is_listed && t->file.is_named && i < t->column_count; i++)
        if (!*t->feature_names[i]) csv_warn_of_nameless(&names, t->columns[i]);
}

static err choose_columns(struct number_table *t, const struct format_context *context)
{
    const size_t width = (size_t)t->file.width;
    t->columns = calloc(width, sizeof *t->columns);
    t->is_listed = calloc(width, sizeof *t->is_listed);
    t->feature_names = calloc(width, sizeof *t->feature_names);
    if (!t->columns || !t->is_listed || !t->feature_names)
        return fail(ERR_MEMORY, "%s: no memory for columns", t->file.path);
    TRY(choose_as_listed(t));
    for (int i = 0; i < t->column_count; i++) t->feature_names[i] = t->file.names[t->columns[i]];
    warn_of_nameless(t);
    if (t->column_count > 0) return match_names(t, context);
    return fail(ERR_INPUT, "%s: line %lld: no column is left for features", t->file.path,
                (long long)t->file.text.line);
}

/* ---- which columns are used, for messages ---- */

__attribute__((format(printf, 2, 3))) static void say(struct number_table *t, const char *format,
                                                      ...)
{
    const size_t used = strlen(t->use);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(t->use + used, sizeof t->use - used, format, arguments);
    va_end(arguments);
}

/* By name, or by index if there are no names. */
static void say_column(struct number_table *t, int column, const char *before)
{
    if (t->file.is_named)
        say(t, "%s%.64s", before, t->file.names[column]);
    else
        say(t, "%s%d", before, column);
}

/* Columns that "columns" does not list, or that "except" lists. */
static void say_left_out(struct number_table *t)
{
    const bool is_listed_feature = is_given(t->file.attributes->columns);
    int count = 0;
    const size_t end = strlen(t->use) + USE_NAMES_MAX;
    for (int i = 0; i < t->file.width; i++) {
        if (i == t->file.label || t->is_listed[i] == is_listed_feature) continue;
        if (strlen(t->use) < end) say_column(t, i, count ? ", " : "; left out: ");
        count++;
    }
    if (count && strlen(t->use) >= end) say(t, ", ... (%d in all)", count);
}

/* "label class; 4 features: a, b, c, d; left out: id" */
static void say_use(struct number_table *t)
{
    if (t->file.label >= 0) say_column(t, t->file.label, "label ");
    say(t, "%s%d feature%s: ", t->file.label >= 0 ? "; " : "", t->column_count,
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

static err refuse_feature(const struct number_table *t, int column)
{
    const bool is_first = t->file.text.line == t->first_line;
    const bool hints = is_first && !is_given(t->file.attributes->columns);
    return csv_table_bad_cell(&t->file, column,
                              hints ? "a number (\"except\" names columns that are no features)"
                                    : "a number");
}

/* Computes in double and rounds once */
static err read_feature(const struct number_table *t, int column, float *ret)
{
    const struct cell *cell = &t->file.text.cells[column];
    double number;
    if (cell_is_missing(cell)) {
        if (!t->has_missing)
            return csv_table_bad_cell(&t->file, column,
                                      "a number (\"missing\" says what stands for none)");
        number = t->missing;
    } else if (!cell_number(cell, &number)) {
        return refuse_feature(t, column);
    }
    *ret = (float)(t->scaling.scale * number + t->scaling.offset);
    return isfinite(*ret) ? OK : refuse_feature(t, column);
}

static err make_row(const struct row_reader *reader, const struct row *row, void *label,
                    void *features)
{
    const struct number_table *t = (const struct number_table *)reader;
    float *to = features;
    for (int i = 0; i < t->column_count; i++) TRY(read_feature(t, t->columns[i], &to[i]));
    label_store(reader->label_dtype, row->label, label);
    return OK;
}

/* The field has type JSON because null and 0 mean different things. */
static err read_missing(struct number_table *t)
{
    const json_t *missing = t->file.attributes->missing;
    t->has_missing = missing && !json_is_null(missing);
    if (!t->has_missing) return OK;
    if (!json_is_number(missing) || !(fabs(json_number_value(missing)) <= FLT_MAX))
        return fail_prefix(fields_fail_expected(
                               "\"missing\"",
                               "a number or null (words that count as empty are for data.columns)",
                               missing),
                           "%s", t->file.path);
    t->missing = json_number_value(missing);
    return OK;
}

/* ---- the format ---- */

static void close_table(struct row_reader *reader)
{
    struct number_table *t = (struct number_table *)reader;
    free(t->columns);
    free(t->is_listed);
    free(t->feature_names);
    csv_table_close(&t->file);
    free(t);
}

static void describe(struct number_table *t)
{
    struct row_reader *reader = &t->file.reader;
    t->stored[LABELS] = (struct column){.name = LABELS_NAME, .dtype = reader->label_dtype};
    t->stored[FEATURES] =
        (struct column){.name = FEATURES_NAME, .dtype = FLOAT32, .shape = {1, {t->column_count}}};
    t->calls = *reader->calls;
    t->calls.make = make_row;
    t->calls.close = close_table;
    reader->calls = &t->calls;
    reader->stored = t->stored;
    reader->use = t->use;
    reader->feature_names = t->feature_names;
    reader->feature_count = t->file.is_named ? t->column_count : 0;
}

static err open_table(struct number_table *t, const struct csv_attributes *a,
                      const struct format_context *context)
{
    const struct csv_key label = key_of(a->label);
    TRY(check_label(a));
    TRY(csv_table_open(a, &label, (struct strings){0}, context, &t->file));
    if (t->file.reader.is_empty) return OK;
    TRY(read_missing(t));
    t->scaling = feature_scaling_of(context);
    TRY(choose_columns(t, context));
    say_use(t);
    t->first_line = t->file.text.line;
    describe(t);
    return OK;
}

static err read_stored(const void *attributes, const struct format_context *context,
                       struct row_reader **ret)
{
    struct number_table *t = calloc(1, sizeof *t);
    if (!t) return fail(ERR_MEMORY, "no memory to read %s", context->files[0]);
    const err e = open_table(t, attributes, context);
    if (e)
        close_table(&t->file.reader);
    else
        *ret = &t->file.reader;
    return e;
}

static err read_csv(const void *attributes, const struct format_context *context,
                    struct row_reader **ret)
{
    const struct csv_attributes *a = attributes;
    if ((is_given(a->columns) || is_given(a->except)) && context->columns)
        return fail(ERR_INPUT, "\"columns\" and \"except\" are for a source whose features are all "
                               "its numbers; here data.columns says what is read");
    if (is_given(a->missing) && !json_is_array(a->missing) && context->columns)
        return fail(
            ERR_INPUT,
            "\"missing\": beside data.columns expected a list of words that count as empty, "
            "such as [\"NA\", \"NULL\"]; the number for empty cells is \"default\" of a "
            "column");
    const struct csv_key label = key_of(a->label);
    struct strings missing;
    TRY(check_label(a));
    TRY(list_missing(a->missing, &missing));
    return csv_table_read(a, &label, missing, context, ret);
}

static const struct field fields[] = {
    FIELD_OF(
        "file", FILES, struct csv_attributes, file, .may_differ = true,
        .help =
            "CSV files, plain or compressed: a file, a list, a pattern, or @ and a file of names"),
    FIELD_OF(
        "label", JSON, struct csv_attributes, label, .fallback = "null",
        .help =
            "column of the label: its name, or its index from 0 (-1: the last); null: where "
            "\"labels\" are listed, of which one alone may have a threshold, a scale or one_hot"),
    LABELS_FIELD(csv_attributes),
    LABEL_FIELDS(csv_attributes),
    FIELD_OF("columns", JSON, struct csv_attributes, columns, .fallback = "null",
             .help =
                 "feature columns, by name or index; null: all but the label and those of except"),
    FIELD_OF("except", JSON, struct csv_attributes, except, .fallback = "null",
             .help = "columns that are not features, by name or index: row numbers, names, dates"),
    FIELD_OF("header", BOOL, struct csv_attributes, header, .fallback = "true",
             .help = "the first line names the columns"),
    FIELD_OF("names", STRINGS, struct csv_attributes, names, .fallback = "[]",
             .count_max = CELLS_MAX,
             .help = "column names, if there is no header or to override it"),
    FIELD_OF("delimiter", STRING, struct csv_attributes, delimiter, .fallback = "\",\"",
             .may_differ = true,
             .help = "separator between cells, of one or more characters: \"::\"; \\t is a tab"),
    FIELD_OF("missing", JSON, struct csv_attributes, missing, .fallback = "null",
             .help = "number used for cells that are empty, ?, NA, nan, NULL, None, N/A or \\N "
                     "(null: such a cell is an error); beside data.columns: list of words that "
                     "count as empty, such as [\"NA\", \"NULL\"]"),
    {0},
};

const struct format format_csv = {
    .object = {"csv", "a table as text, plain or packed", fields, sizeof(struct csv_attributes)},
    .read = read_csv,
    .read_stored = read_stored,
    .scales = true,
    .label_form = offsetof(struct csv_attributes, label_form),
};
