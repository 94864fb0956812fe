/* named_lines.h - rows of a file of lines, each of which names its cells: what formats of such
 * lines share, around how one line is read.
 */
#ifndef CORE_DATA_FORMATS_NAMED_LINES_H
#define CORE_DATA_FORMATS_NAMED_LINES_H

#include "core/data/formats/delimited.h"
#include "core/data/formats/named_cells.h"

struct named_lines {
    struct row_reader reader; /* first: what others see */
    const struct named_attributes *attributes;
    struct input *input;
    struct delimited text;     /* of the row that was read last */
    struct named_cells *cells; /* the format's; opened here */
    bool without_labels;
    char delimiter; /* WORDS or LINES */
    /* Makes cells of the line that is in `text`. ERR_INPUT: what was expected. */
    err (*read)(struct named_lines *);
    void (*drop)(struct named_lines *); /* cells, and what else the format has beside the struct */
};

/* Of a zeroed struct, in memory of its own, in which attributes, cells, delimiter, read and drop
 * are set; takes it, also on failure. */
err named_lines_open(struct named_lines *, const struct format_context *, struct row_reader **ret);

#endif
