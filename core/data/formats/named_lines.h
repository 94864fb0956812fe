/* named_lines.h - the common part of formats with one row per line that names its own cells; the
 * format reads one line. */
#ifndef CORE_DATA_FORMATS_NAMED_LINES_H
#define CORE_DATA_FORMATS_NAMED_LINES_H

#include "core/data/formats/delimited.h"
#include "core/data/formats/named_cells.h"

struct named_lines {
    struct row_reader reader; /* first: the public part */
    const struct named_attributes *attributes;
    struct input *input;
    struct delimited text;     /* holds the row read last */
    struct named_cells *cells; /* the format's; named_lines_open opens them */
    bool without_labels;
    char delimiter; /* WORDS or LINES */
    /* Makes cells of the line in `text`. ERR_INPUT: what was expected. */
    err (*read)(struct named_lines *);
    void (*drop)(struct named_lines *); /* frees cells, and what else the format owns */
};

/* The struct is malloc'ed and zeroed but for attributes, cells, delimiter, read and drop; takes it,
 * also on failure. */
err named_lines_open(struct named_lines *, const struct format_context *, struct row_reader **ret);

#endif
