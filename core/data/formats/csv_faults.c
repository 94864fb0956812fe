/* csv_faults.c - see csv_faults.h. */
#include "core/data/formats/csv_faults.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/base/log.h"
#include "core/data/said_once.h"

static const char MARK[] = "\xef\xbb\xbf"; /* byte order mark */

static bool has_delimiter(const char *text)
{
    return strpbrk(text, ";\t|,") || strstr(text, "::");
}

bool csv_looks_uncut(const struct csv_names *names)
{
    return names->width == 1 && has_delimiter(names->at[0]);
}

/* After a byte order mark in the middle of a file, quotes are still in the text. */
static bool is_first_name(const char *name, const char *text)
{
    if (strncmp(text, MARK, strlen(MARK)) != 0) return strcmp(text, name) == 0;
    text += strlen(MARK);
    const size_t quotes = *text == '"', length = strlen(text);
    return length == strlen(name) + 2 * quotes && !strncmp(text + quotes, name, strlen(name)) &&
           (!quotes || text[length - 1] == '"');
}

/* Not if the header is a single word, which may also be data. */
bool csv_is_header(const struct csv_names *names, const struct delimited *row)
{
    if (names->width < 2 || row->count != names->width) return false;
    for (int i = 1; i < names->width; i++)
        if (strcmp(row->cells[i].text, names->at[i])) return false;
    return is_first_name(names->at[0], row->cells[0].text);
}

static const char *reason_of(const struct csv_names *names, const struct delimited *row)
{
    const char *first = row->cells[0].text;
    const int more = row->count - names->width;
    if (row->count == 1 && *first == '#') return ": comments are not read here";
    if (row->count == 1 && has_delimiter(first))
        return ": all of it is one cell; is its delimiter another?";
    if (more == 1 && row->cells[row->count - 1].length == 0)
        return ": it ends with a delimiter, the first line does not";
    if (more == -1 && !*names->at[names->width - 1])
        return ": the first line ends with a delimiter, and no name is behind it";
    if (more > 0) return ": a cell with a delimiter in it is to stand in quotes";
    return "";
}

const char *csv_width_reason(const struct csv_names *names, const struct delimited *row,
                             char ret[CSV_REASON_MAX])
{
    if (row->lines > 1)
        snprintf(ret, CSV_REASON_MAX, ": in quotes it goes on to line %lld; is a quote missing?",
                 (long long)(row->line + row->lines - 1));
    else if (names->width == 1 && row->count > 1)
        snprintf(ret, CSV_REASON_MAX, ": the first line is \"%.64s\"; are these the names?",
                 names->at[0]);
    else
        snprintf(ret, CSV_REASON_MAX, "%s", reason_of(names, row));
    return ret;
}

/* ---- in the log ---- */

static uint64_t of_text(const char *text)
{
    return fingerprint(text, strlen(text));
}

struct column_place {
    const char *name;
    int column;
};

static int compare(const void *a, const void *b)
{
    const struct column_place *x = a, *y = b;
    const int order = strcmp(x->name, y->name);
    return order ? order : x->column - y->column;
}

/* Names the first of these; logged for one file only of those with the same names. */
static void say_doubles(const struct csv_names *names, const struct column_place *first, int count,
                        uint64_t what)
{
    char more[64] = "";
    if (count == 0 || !said_first(SAID_DOUBLE_NAMES, what)) return;
    if (count > 1) snprintf(more, sizeof more, ", and so are others: %d names in all", count);
    log_line(
        LOG_WARNING,
        "%s: line %lld: columns %d and %d are both called \"%.64s\"%s: rename one, or name all "
        "by \"names\"",
        names->path, (long long)names->line, first[0].column, first[1].column, first->name, more);
}

void csv_warn_of_doubles(const struct csv_names *names)
{
    struct column_place *sorted = calloc((size_t)names->width, sizeof *sorted);
    const struct column_place *first = NULL;
    uint64_t what = 0;
    int count = 0;
    if (!sorted) return; /* no warning then */
    for (int i = 0; i < names->width; i++) sorted[i] = (struct column_place){names->at[i], i};
    qsort(sorted, (size_t)names->width, sizeof *sorted, compare);
    for (int i = 0; i + 1 < names->width; i++) {
        const char *name = sorted[i].name;
        if (!*name || strcmp(name, sorted[i + 1].name) != 0) continue;
        if (i > 0 && strcmp(name, sorted[i - 1].name) == 0) continue; /* already counted */
        if (!count++) first = &sorted[i];
        what = fingerprint_join(what, of_text(name));
    }
    say_doubles(names, first, count, what);
    free(sorted);
}

void csv_warn_of_nameless(const struct csv_names *names, int column)
{
    if (!said_first(SAID_NAMELESS, (uint64_t)column)) return;
    log_line(
        LOG_WARNING,
        "%s: line %lld: column %d has no name, and is a feature: are these numbers of rows, or "
        "does the line end with a delimiter? \"except\": [%d] leaves it out",
        names->path, (long long)names->line, column, column);
}

/* Names of digits only are accepted, since many programs write indices of columns. */
void csv_warn_of_numbers(const struct csv_names *names)
{
    double number;
    for (int i = 0; i < names->width; i++) {
        const struct cell cell = {.text = names->at[i], .length = strlen(names->at[i])};
        const bool is_index = strspn(cell.text, "0123456789") == cell.length;
        if (is_index || !cell_number(&cell, &number)) continue;
        if (said_first(SAID_NUMBER_NAME, of_text(names->at[i])))
            log_line(LOG_WARNING,
                     "%s: line %lld: the name of column %d is a number, \"%.64s\": is this line "
                     "data? Then say \"header\": false, or without a spec --header=false",
                     names->path, (long long)names->line, i, names->at[i]);
        return;
    }
}

void csv_warn_of_uncut(const struct csv_names *names)
{
    if (!csv_looks_uncut(names) || !said_first(SAID_UNCUT, of_text(names->at[0]))) return;
    log_line(LOG_WARNING,
             "%s: line %lld: all of it is one cell, \"%.64s\"; is \"delimiter\" "
             "another?",
             names->path, (long long)names->line, names->at[0]);
}
