/* given.h - as what a client gives each cell of a row: a text, a number or a whole one, and whether
 * as a list of them. A cell that several columns read is what most of them can be read from.
 */
#ifndef CMD_EXPORT_GIVEN_H
#define CMD_EXPORT_GIVEN_H

#include "cmd/export/cells.h"

/* A text can be read as a number, and a number as a whole one; pixels are read as such alone. */
enum given { GIVEN_WHOLE, GIVEN_NUMBER, GIVEN_TEXT, GIVEN_PIXELS, GIVEN_COUNT };

struct given_cells {
    enum given types[CELLS_MAX];
    bool is_list[CELLS_MAX];
    bool is_time[CELLS_MAX]; /* a column reads a date from it */
};

/* Of the cells that are found; of_texts: a cell is the text that stands in a file of CSV. */
void given_find(const struct cells *, bool of_texts, struct given_cells *ret);

/* Between values of a text; NULL: the cell is one value, or a list of them, as of ids where there
 * are such */
const char *given_separator(const struct column_spec *, bool of_texts);

#endif
