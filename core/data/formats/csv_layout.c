/* csv_layout.c - see csv_layout.h. */
#include "core/data/formats/csv_layout.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fingerprint.h"
#include "core/base/log.h"
#include "core/data/columns/column.h"
#include "core/data/said_once.h"

enum { LACKING = -1, NAMES_SHOWN_MAX = 8, NAMES_TEXT_MAX = 640 };

/* Index of the cell in the file; each is returned once. likely: tried first, since files mostly
 * have the same order. */
static int find(const struct csv_header *header, const bool *is_taken, const char *name, int likely)
{
    for (int i = 0; i < header->width; i++) {
        const int cell = (likely + i) % header->width;
        if (!is_taken[cell] && strcmp(header->names[cell], name) == 0) return cell;
    }
    return LACKING;
}

static const struct objects *columns_of(const struct format_context *context)
{
    return context->later_columns ? context->later_columns : context->columns;
}

static bool may_lack(const struct csv_header *header, const struct format_context *context,
                     const char *name)
{
    const struct objects *columns = columns_of(context);
    return columns && columns_may_lack_cell(columns, name, header->has_missing_words);
}

static void add(struct csv_layout *l, const char *name, int from)
{
    l->names[l->count] = name;
    l->from[l->count++] = from;
}

/* ---- which cells ---- */

/* The cells of the header, followed by those that it lacks */
static void lay_out_first(struct csv_layout *l, const struct csv_header *header,
                          const struct format_context *context)
{
    const struct objects *columns = columns_of(context);
    for (int i = 0; i < header->width; i++) add(l, header->names[i], i);
    for (int i = 0; columns && i < columns->count; i++) {
        const char *name = column_optional_cell((const struct column_spec *)columns->at + i, true);
        if (name && text_find(l->names, l->count, name) < 0 && may_lack(header, context, name))
            add(l, name, LACKING);
    }
}

/* The cells of earlier files. false: the header lacks a required one, or has another. */
static bool lay_out_next(struct csv_layout *l, const struct csv_header *header,
                         const struct format_context *context, bool *is_taken)
{
    const struct strings *expected = &context->cell_names;
    int likely = 0, taken = 0;
    for (int i = 0; i < expected->count; i++) {
        const int cell = find(header, is_taken, expected->at[i], likely);
        if (cell == LACKING && !may_lack(header, context, expected->at[i])) return false;
        add(l, expected->at[i], cell);
        if (cell == LACKING) continue;
        is_taken[cell] = true;
        likely = cell + 1;
        taken++;
    }
    return taken == header->width;
}

static bool is_as_file(const struct csv_layout *l, const struct csv_header *header)
{
    bool is_so = l->count == header->width;
    for (int i = 0; is_so && i < l->count; i++) is_so = l->from[i] == i;
    return is_so;
}

/* ---- messages ---- */

static void say_lacking(const struct csv_layout *l, const struct csv_header *header)
{
    char names[NAMES_TEXT_MAX] = "";
    size_t used = 0;
    int lacking = 0;
    uint64_t what = fingerprint(header->source, strlen(header->source));
    const char *first = NULL;
    for (int i = 0; i < l->count; i++) {
        if (l->from[i] != LACKING) continue;
        what = fingerprint_join(what, fingerprint(l->names[i], strlen(l->names[i])));
        if (!first) first = l->names[i];
        if (lacking++ < NAMES_SHOWN_MAX)
            used += (size_t)snprintf(names + used, sizeof names - used, "%s\"%.64s\"",
                                     used ? ", " : "", l->names[i]);
    }
    if (lacking == 0 || !said_first(SAID_LACKING, what)) return;
    const struct suggestion near =
        suggest(first, (const char *const *)header->names, header->width);
    if (lacking > NAMES_SHOWN_MAX)
        snprintf(names + used, sizeof names - used, ", ... (%d in all)", lacking);
    log_line(LOG_WARNING,
             "%s: the header has no %s%s: in this file, and in any other like it, these values are "
             "empty in every row",
             header->path, names, near.text);
}

/* ---- the layout ---- */

static int count_room(const struct csv_header *header, const struct format_context *context)
{
    const struct objects *columns = columns_of(context);
    const int first = header->width + (columns ? columns->count : 0);
    return first > context->cell_names.count ? first : context->cell_names.count;
}

err csv_layout_new(const struct csv_header *header, const struct format_context *context,
                   struct csv_layout *ret)
{
    const size_t room = (size_t)count_room(header, context);
    struct csv_layout l = {.names = calloc(room, sizeof *l.names),
                           .from = calloc(room, sizeof *l.from),
                           .cells = calloc(room, sizeof *l.cells)};
    bool *is_taken = calloc((size_t)header->width, sizeof *is_taken);
    const bool has_room = l.names && l.from && l.cells && is_taken;
    bool fits = has_room;
    if (fits && context->cell_names.count)
        fits = lay_out_next(&l, header, context, is_taken);
    else if (fits)
        lay_out_first(&l, header, context);
    free(is_taken);
    if (fits && !is_as_file(&l, header)) {
        say_lacking(&l, header);
        *ret = l;
        return OK;
    }
    csv_layout_free(&l);
    return has_room ? OK : fail(ERR_MEMORY, "%s: no memory for its cells", header->path);
}

void csv_layout_free(struct csv_layout *l)
{
    free(l->names);
    free(l->from);
    free(l->cells);
    *l = (struct csv_layout){0};
}

const struct cell *csv_layout_row(struct csv_layout *l, const struct cell *of_file)
{
    if (!l->names) return of_file;
    for (int i = 0; i < l->count; i++)
        l->cells[i] = l->from[i] == LACKING ? (struct cell){.text = "", .is_absent = true}
                                            : of_file[l->from[i]];
    return l->cells;
}

int csv_layout_cell(const struct csv_layout *l, int cell)
{
    if (!l->names || cell < 0) return cell;
    int i = 0;
    while (l->from[i] != cell) i++; /* ends: every cell is returned */
    return i;
}
