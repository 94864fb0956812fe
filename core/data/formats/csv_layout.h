/* csv_layout.h - the cells that a table gives out, where they are not those of its file one by one:
 * the header may lack those of columns that have something in their place, and several files are
 * given out as the first one is.
 */
#ifndef CORE_DATA_FORMATS_CSV_LAYOUT_H
#define CORE_DATA_FORMATS_CSV_LAYOUT_H

#include "core/data/data.h"

struct csv_layout {
    const char **names; /* [count]; borrowed. NULL: as the file has them */
    int *from;          /* [count] cells of the file; LACKING: the file has none */
    struct cell *cells; /* [count] of one row */
    int count;
};

/* What a file of the source is called, and its header. */
struct csv_header {
    const char *path, *source; /* source: the first file, or pattern, that the spec names */
    char **names;              /* [width] */
    int width;
    bool has_missing_words; /* the source lists words for cells without a value */
};

/* Left as the file has them where that is what is wanted, or where it has other cells than the
 * files before: these are refused by whoever compares them. What it lacks is said in the log once,
 * however often it is opened. */
err csv_layout_new(const struct csv_header *, const struct format_context *, struct csv_layout *);
void csv_layout_free(struct csv_layout *); /* a zeroed one is fine */

/* The row as it is given out; cell: of the file, -1: none */
const struct cell *csv_layout_row(struct csv_layout *, const struct cell *of_file);
int csv_layout_cell(const struct csv_layout *, int cell);

#endif
