/* each_row.h - the rows of a source one by one, with their cells, as a pass over the data wants
 * them. */
#ifndef CORE_DATA_STATS_EACH_ROW_H
#define CORE_DATA_STATS_EACH_ROW_H

#include "core/data/data.h"

struct row_visitor {
    err (*begin)(void *context, const struct row_reader *); /* NULL: nothing is to be begun */
    /* ERR_INPUT of both: the row is broken; it is left out where "bad_rows" allows it. check: of
     * every row, so that skip and take count those that training has; NULL: they count all. */
    err (*check)(void *context, const struct row_reader *, const struct row *);
    err (*row)(void *context, const struct row_reader *, const struct row *);
    void *context;
    bool is_ahead; /* the rows are read again, to train on: how many are left out is said then */
};

/* Those that skip and take leave. context->columns is not looked at. ERR_INPUT: rows without cells,
 * none, or a broken one that may not be left out. ret_name: the file, or the first and the last, in
 * the arena. */
err each_row(const struct source_spec *, const struct format_context *, const struct row_visitor *,
             struct arena *, const char **ret_name);

#endif
