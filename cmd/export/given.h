/* given.h - the type in which a client gives each cell of a row: text, float or integer, or a list
 * of these. A cell that several columns read has the type from which all can be read.
 */
#ifndef CMD_EXPORT_GIVEN_H
#define CMD_EXPORT_GIVEN_H

#include "cmd/export/cells.h"

/* From least to most general: a number can be an integer, text a number; pixels are separate. */
enum given { GIVEN_WHOLE, GIVEN_NUMBER, GIVEN_TEXT, GIVEN_PIXELS, GIVEN_COUNT };

struct given_cells {
    enum given types[CELLS_MAX];
    bool is_list[CELLS_MAX];
    bool is_time[CELLS_MAX]; /* a column reads a date from it */
};

/* To be called after cells_find(); of_texts: cells are text as in a CSV file. */
void given_find(const struct cells *, bool of_texts, struct given_cells *ret);

/* What separates the values in a text; NULL: the cell is one value, or a list of values */
const char *given_separator(const struct column_spec *, bool of_texts);

#endif
