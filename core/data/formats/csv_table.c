/* csv_table.c - see csv_table.h. */
#include "core/data/formats/csv_table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/fingerprint.h"
#include "core/data/formats/csv_faults.h"

enum { DELIMITER_BYTES_MAX = 8, ROWS_COUNTED = 100 };

/* ---- names ---- */

static err no_memory(const struct csv_table *t)
{
    return fail(ERR_MEMORY, "%s: no memory for the names of its columns", t->path);
}

/* Refuses a first line of only numbers, which is data: as names it would be silently lost. Also the
 * line "sep=;" that spreadsheets may write first. */
static err check_header(const struct csv_table *t)
{
    const struct delimited *text = &t->text;
    int numbers = 0;
    for (int i = 0; i < text->count; i++) {
        double number;
        numbers += cell_number(&text->cells[i], &number);
    }
    if (text->count <= 2 && strncasecmp(text->cells[0].text, "sep=", 4) == 0 &&
        !isalnum((unsigned char)text->cells[0].text[4]))
        return fail(
            ERR_INPUT,
            "%s: line %lld: \"%.8s\" is a spreadsheet's word on the delimiter, and no name: "
            "leave the line out",
            t->path, (long long)text->line, text->cells[0].text);
    if (numbers < text->count) return OK;
    return fail(ERR_INPUT,
                "%s: line %lld: expected the names of the columns, got numbers; say \"header\": "
                "false where there are none",
                t->path, (long long)text->line);
}

/* Refuses "names" that are the header's names in another order. */
static err check_given(const struct csv_table *t)
{
    const struct strings *given = &t->attributes->names;
    const struct delimited *text = &t->text;
    for (int i = 0; i < given->count && i < text->count; i++) {
        if (strcmp(given->at[i], text->cells[i].text) == 0) continue;
        for (int k = 0; k < text->count; k++)
            if (strcmp(given->at[i], text->cells[k].text) == 0)
                return fail(ERR_INPUT,
                            "%s: line %lld: \"names\" has \"%.64s\" as its name %d, in the header "
                            "it is name %d: leave \"names\" out, or have them in that order",
                            t->path, (long long)text->line, given->at[i], i + 1, k + 1);
    }
    return OK;
}

/* From the spec, else from the header, which has just been read, else the index. */
static char *name_of(const struct csv_table *t, int cell)
{
    char index[16];
    const struct strings *given = &t->attributes->names;
    snprintf(index, sizeof index, "%d", cell);
    if (given->count) return strdup(given->at[cell]);
    return strdup(t->is_named ? t->text.cells[cell].text : index);
}

static err take_names(struct csv_table *t, int width)
{
    t->names = calloc((size_t)width, sizeof *t->names);
    if (!t->names) return no_memory(t);
    t->width = width;
    for (int i = 0; i < width; i++) {
        t->names[i] = name_of(t, i);
        if (!t->names[i]) return no_memory(t);
    }
    return OK;
}

/* Keeps the header, to recognize it if it is repeated */
static err keep_header(struct csv_table *t)
{
    const int width = t->text.count;
    t->header = calloc((size_t)width, sizeof *t->header);
    if (!t->header) return no_memory(t);
    t->header_width = width;
    for (int i = 0; i < width; i++) {
        t->header[i] = strdup(t->text.cells[i].text);
        if (!t->header[i]) return no_memory(t);
    }
    return OK;
}

static err read_header(struct csv_table *t)
{
    t->header_line = t->text.line;
    if (!t->attributes->names.count) {
        TRY(check_header(t));
        return take_names(t, t->text.count);
    }
    TRY(check_given(t));
    return keep_header(t);
}

struct csv_names csv_table_names(const struct csv_table *t)
{
    return (struct csv_names){t->path, t->header_line, t->names, t->width};
}

static bool looks_uncut(const struct csv_table *t)
{
    const struct csv_names names = csv_table_names(t);
    return csv_looks_uncut(&names);
}

static err find_by_name(const struct csv_table *t, const char *name, int *ret)
{
    if (!t->is_named)
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
    if (t->width == 1 && t->attributes->header)
        return fail(ERR_INPUT, "%s: no column \"%s\": all of the first line is one, \"%.64s\"; %s",
                    t->path, name, t->names[0],
                    looks_uncut(t) ? "is \"delimiter\" another?" : "are these the names?");
    const struct suggestion near = suggest_or_list(name, (const char *const *)t->names, t->width);
    return fail(ERR_INPUT, "%s: no column \"%s\"%s", t->path, name, near.text);
}

err csv_table_find(const struct csv_table *t, const struct csv_key *key, int *ret)
{
    if (key->name) return find_by_name(t, key->name, ret);
    if (!key->is_index) return fail(ERR_INPUT, "%s: a column is a name or an index", t->path);
    if (key->index < -t->width || key->index >= t->width)
        return fail(ERR_INPUT, "%s: column %lld: expected %d to %d", t->path, (long long)key->index,
                    -t->width, t->width - 1);
    *ret = (int)(key->index < 0 ? key->index + t->width : key->index);
    return OK;
}

/* ---- rows ---- */

static err check_width(const struct csv_table *t)
{
    char reason[CSV_REASON_MAX];
    const struct csv_names names = csv_table_names(t);
    if (t->text.count == t->width) return OK;
    const bool is_counted = !t->is_named && bad_rows_are_allowed(t->bad_rows);
    return fail(ERR_INPUT, "%s: line %lld: expected %d cells as in %s, got %d%s", t->path,
                (long long)t->text.line, t->width, is_counted ? "most lines" : "the first line",
                t->text.count, csv_width_reason(&names, &t->text, reason));
}

/* Refuses a repeated header: with cells of words it would count as a row, with another class. */
static err check_is_data(const struct csv_table *t)
{
    struct csv_names header = csv_table_names(t);
    if (t->header) header.at = t->header;
    if (t->header) header.width = t->header_width;
    if (!header.line || !csv_is_header(&header, &t->text)) return OK;
    return fail(ERR_INPUT,
                "%s: line %lld: is the header once more, as where files were put together: leave "
                "the line out, or allow \"bad_rows\" (where it is data: \"names\", \"header\": "
                "false, and no header in the file)",
                t->path, (long long)t->text.line);
}

/* After the last row: ERR_INPUT if the labels read contradict the spec. */
static err advance(struct csv_table *t, bool *ret_found)
{
    *ret_found = true;
    t->reader.is_row_broken = false;
    const err e = t->has_row ? OK : delimited_next(&t->text, ret_found);
    t->has_row = false;
    t->reader.is_row_broken = e && t->text.is_passed;
    if (e) return e;
    if (!*ret_found) return label_check_seen(&t->attributes->label_form, &t->seen, t->path);
    t->reader.is_row_broken = true;
    TRY(check_width(t));
    TRY(check_is_data(t));
    for (int i = 0; t->missing.count && i < t->width; i++) {
        struct cell *cell = &t->text.cells[i];
        if (cell_is_one_of(cell->text, cell->length, &t->missing))
            *cell = (struct cell){.text = ""};
    }
    return OK;
}

err csv_table_bad_cell(const struct csv_table *t, int cell, const char *expected)
{
    char text[CELL_TEXT_MAX];
    return fail(ERR_INPUT, "%s: line %lld: column %d%s%s%s: expected %s, got \"%s\"%s", t->path,
                (long long)t->text.line, cell, t->is_named ? " (" : "",
                t->is_named ? t->names[cell] : "", t->is_named ? ")" : "", expected,
                cell_text(&t->text.cells[cell], text), cell_number_hint(&t->text.cells[cell]));
}

static err read_label(struct csv_table *t, double *ret)
{
    const struct label_form *form = &t->attributes->label_form;
    const struct cell *cell = &t->text.cells[t->label];
    if (label_read(form, cell, &t->seen, ret)) return OK;
    const err e = csv_table_bad_cell(t, t->label, label_expected(form, cell));
    return fail(e, "%s%s", error_text(), label_none(cell));
}

/* ---- as a reader of rows ---- */

static err next_row(struct row_reader *reader, struct row *ret, bool *ret_found)
{
    struct csv_table *t = (struct csv_table *)reader;
    TRY(advance(t, ret_found));
    if (!*ret_found) return OK;
    *ret = (struct row){.cells = csv_layout_row(&t->layout, t->text.cells), .number = t->text.line};
    return t->without_labels ? OK : read_label(t, &ret->label);
}

/* The first row may have been read already, to count its cells. */
static err skip_row(struct row_reader *reader, struct row_place *ret, bool *ret_found)
{
    struct csv_table *t = (struct csv_table *)reader;
    *ret_found = t->has_row;
    TRY(t->has_row ? OK : delimited_skip(&t->text, '\0', ret_found));
    t->has_row = false;
    *ret = (struct row_place){t->text.begin, t->text.line};
    return OK;
}

static err seek_row(struct row_reader *reader, const struct row_place *place)
{
    struct csv_table *t = (struct csv_table *)reader;
    t->has_row = false;
    return delimited_seek(&t->text, place->byte, place->number);
}

static void close_reader(struct row_reader *reader)
{
    csv_table_close((struct csv_table *)reader);
    free(reader);
}

/* ---- opening ---- */

/* Without labels the column may be missing; if it exists, it is still not a feature. */
static err find_label(struct csv_table *t, const struct csv_key *key)
{
    err e = csv_table_find(t, key, &t->label);
    if (!e || !t->without_labels) return e;
    t->label = -1;
    return OK;
}

/* "\t" typed in a shell arrives as two characters. */
static const char *delimiter_of(const struct csv_attributes *a)
{
    return strcmp(a->delimiter, "\\t") == 0 ? "\t" : a->delimiter;
}

static err open_text(const struct csv_attributes *a, struct input *in, struct delimited *ret)
{
    const char *delimiter = delimiter_of(a);
    TRY(delimited_open(in, delimiter[0], ret));
    delimited_set_more(ret, delimiter + 1);
    return OK;
}

static int most_frequent(const int *widths, int count)
{
    int most = 0, ret = 0;
    for (int i = 0; i < count; i++) {
        int rows = 0;
        for (int k = 0; k < count; k++) rows += widths[k] == widths[i];
        if (rows > most) ret = widths[i];
        if (rows > most) most = rows;
    }
    return ret;
}

/* For cells without names if the first row may be broken: the most frequent number of cells in the
 * first rows. 0: no rows. */
static err count_cells(const struct csv_table *t, const struct format_context *context, int *ret)
{
    int widths[ROWS_COUNTED], count = 0;
    bool found = true;
    struct input *in;
    struct delimited text = {0};
    TRY(input_open(context, context->files[0], &in));
    err e = open_text(t->attributes, in, &text);
    while (!e && found && count < ROWS_COUNTED) {
        e = delimited_next(&text, &found);
        if (!e && found) widths[count++] = text.count;
        if (e && text.is_passed) e = OK;
    }
    delimited_close(&text);
    input_close(in);
    *ret = most_frequent(widths, count);
    return OK; /* errors are reported when rows are read */
}

/* Leaves out all rows of a file that has only broken ones */
static err leave_out_all(struct csv_table *t, bool *ret_found)
{
    do {
        const err e = delimited_next(&t->text, ret_found);
        if (e && !t->text.is_passed) return e;
        if (e) TRY(bad_rows_leave_out(t->bad_rows, e));
    } while (*ret_found);
    return OK;
}

/* If the first row is broken, seeks back, so that it is read and counted as a row; unless the
 * number of cells cannot be determined: then all rows may be broken. */
static err find_first_row(struct csv_table *t, const struct format_context *context,
                          bool *ret_found)
{
    const err e = delimited_next(&t->text, ret_found);
    const struct row_place first = {t->text.begin, t->text.line};
    int width = t->names ? t->width : t->attributes->names.count + context->cell_names.count;
    t->has_row = !e && *ret_found;
    if (!e || !t->text.is_passed) return e;
    if (!width && !bad_rows_are_allowed(t->bad_rows)) return e;
    if (!width) TRY(count_cells(t, context, &width));
    TRY(delimited_seek(&t->text, first.byte, first.number));
    *ret_found = width > 0;
    return width ? OK : leave_out_all(t, ret_found);
}

/* The number of cells of a file whose cells have no names */
static err find_width(const struct csv_table *t, const struct format_context *context, int *ret)
{
    *ret = context->cell_names.count;
    if (!*ret && bad_rows_are_allowed(context->bad_rows)) TRY(count_cells(t, context, ret));
    if (!*ret) *ret = t->text.count;
    return OK;
}

/* Refuses JSON lines, which would be taken as names */
static err check_no_object(const struct csv_table *t)
{
    const struct cell *first = &t->text.cells[0], *last = &t->text.cells[t->text.count - 1];
    if (strncmp(first->text, "{\"", 2) != 0 || last->length == 0 ||
        last->text[last->length - 1] != '}')
        return OK;
    return fail(ERR_INPUT,
                "%s: the first line is a JSON object: \"format\": \"jsonl\" reads such rows",
                t->path);
}

/* "names" of the spec replace those of the header. */
static err read_first(struct csv_table *t, const struct csv_key *label,
                      const struct format_context *context)
{
    const struct csv_attributes *a = t->attributes;
    bool found = false;
    t->is_named = a->header || a->names.count;
    if (a->header) {
        TRY(delimited_next(&t->text, &found));
        if (found) TRY(check_no_object(t));
        if (found) TRY(read_header(t));
    }
    TRY(find_first_row(t, context, &found));
    if (!found && context->has_other_parts) {
        t->reader.is_empty = true;
        return OK;
    }
    if (!found) return fail(ERR_INPUT, "%s: the file has no row of data", t->path);
    int width = a->names.count;
    if (!t->names && !width) TRY(find_width(t, context, &width));
    if (!t->names) TRY(take_names(t, width));
    struct csv_names read = csv_table_names(t);
    if (t->header) read = (struct csv_names){t->path, t->header_line, t->header, t->header_width};
    if (a->header && !a->names.count) csv_warn_of_doubles(&read);
    if (a->header) csv_warn_of_numbers(&read);
    return find_label(t, label);
}

static uint64_t cut_by(const char *delimiter)
{
    return delimiter[1] ? fingerprint(delimiter, strlen(delimiter)) : (unsigned char)delimiter[0];
}

static void describe(struct csv_table *t)
{
    static const struct row_calls calls = {
        .next = next_row, .skip = skip_row, .seek = seek_row, .close = close_reader};
    t->reader = (struct row_reader){
        .calls = &calls,
        .is_empty = t->reader.is_empty,
        .name = t->path,
        .numbered = "line",
        .cell_names = (const char *const *)t->names,
        .cell_count = t->width,
        .label_cell = t->label,
        .label_dtype = label_dtype(&t->attributes->label_form),
        .positive = label_positive(&t->attributes->label_form),
        .may_lack_any = t->missing.count > 0,
        .cut = cut_by(delimiter_of(t->attributes)) << 1 | t->attributes->header,
        .input = t->input,
    };
}

err csv_table_open(const struct csv_attributes *a, const struct csv_key *label,
                   struct strings missing, const struct format_context *context,
                   struct csv_table *ret)
{
    *ret = (struct csv_table){.attributes = a,
                              .without_labels =
                                  context->without_labels || a->label_form.labels.count > 0,
                              .bad_rows = context->bad_rows,
                              .missing = missing};
    ret->seen = label_seen_begin(context->has_other_parts, context->labels);
    const size_t length = strlen(a->delimiter);
    if (length < 1 || length > DELIMITER_BYTES_MAX || strpbrk(a->delimiter, "\"\r\n"))
        return fail(ERR_INPUT,
                    "\"delimiter\": expected 1 to %d characters, without quotes and line ends, got "
                    "\"%s\"",
                    (int)DELIMITER_BYTES_MAX, a->delimiter);
    TRY(input_open(context, context->files[0], &ret->input));
    ret->path = input_path(ret->input);
    TRY(open_text(a, ret->input, &ret->text));
    ret->text.skips_broken = bad_rows_are_allowed(context->bad_rows);
    TRY(read_first(ret, label, context));
    describe(ret);
    return OK;
}

void csv_table_close(struct csv_table *t)
{
    for (int i = 0; t->names && i < t->width; i++) free(t->names[i]);
    free(t->names);
    for (int i = 0; t->header && i < t->header_width; i++) free(t->header[i]);
    free(t->header);
    free(t->missing.at);
    csv_layout_free(&t->layout);
    delimited_close(&t->text);
    input_close(t->input);
}

/* Only for names from headers: names from the spec are the same for every file. */
static err lay_out(struct csv_table *t, const struct format_context *context)
{
    const struct csv_attributes *a = t->attributes;
    const struct csv_names names = csv_table_names(t);
    if (t->reader.is_empty || !a->header || a->names.count) return OK;
    csv_warn_of_uncut(&names);
    if (csv_looks_uncut(&names)) return OK;
    const struct csv_header header = {t->path, a->file.at[0], t->names, t->width,
                                      t->missing.count > 0};
    TRY(csv_layout_new(&header, context, &t->layout));
    if (!t->layout.names) return OK;
    t->reader.cell_names = t->layout.names;
    t->reader.cell_count = t->layout.count;
    t->reader.label_cell = csv_layout_cell(&t->layout, t->label);
    return OK;
}

err csv_table_read(const struct csv_attributes *a, const struct csv_key *label,
                   struct strings missing, const struct format_context *context,
                   struct row_reader **ret)
{
    struct csv_table *t = calloc(1, sizeof *t);
    if (!t) {
        free(missing.at);
        return fail(ERR_MEMORY, "no memory to read %s", context->files[0]);
    }
    err e = csv_table_open(a, label, missing, context, t);
    if (!e) e = lay_out(t, context);
    if (e)
        close_reader(&t->reader);
    else
        *ret = &t->reader;
    return e;
}
