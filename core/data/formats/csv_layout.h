/* csv_layout.h - maps the cells of a file to those that the table's reader returns, if they differ:
 * the header may lack cells of columns with a default, and files are returned with the cells of the
 * first one. */
#ifndef CORE_DATA_FORMATS_CSV_LAYOUT_H
#define CORE_DATA_FORMATS_CSV_LAYOUT_H

#include "core/data/data.h"

struct csv_layout {
    const char **names; /* [count]; borrowed. NULL: same as in the file */
    int *from;          /* [count] indices of cells in the file; LACKING: not in the file */
    struct cell *cells; /* [count] of one row */
    int count;
};

/* A file of the source and its header. */
struct csv_header {
    const char *path, *source; /* source: the first file or pattern in the spec */
    char **names;              /* [width] */
    int width;
    bool has_missing_words; /* the source lists words that mean "no value" */
};

/* names stays NULL if the file has the wanted cells, or other cells than earlier files: then the
 * caller compares and refuses them. Cells that the file lacks are logged once, however often it is
 * opened. */
err csv_layout_new(const struct csv_header *, const struct format_context *, struct csv_layout *);
void csv_layout_free(struct csv_layout *); /* may be zeroed */

/* csv_layout_row: a row of the file as the reader returns it. csv_layout_cell: the index in that
 * row of a cell of the file; -1 stays -1 */
const struct cell *csv_layout_row(struct csv_layout *, const struct cell *of_file);
int csv_layout_cell(const struct csv_layout *, int cell);

#endif
