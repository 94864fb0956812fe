/* each_row.h - one pass over the rows of a source, with their cells. */
#ifndef CORE_DATA_STATS_EACH_ROW_H
#define CORE_DATA_STATS_EACH_ROW_H

#include "core/data/data.h"

struct row_visitor {
    err (*begin)(void *context, const struct row_reader *); /* may be NULL */
    /* If check or row returns ERR_INPUT, the row is broken; it is left out if "bad_rows" allows it.
     * check is called also for skipped rows, so that skip counts the same rows as in training;
     * NULL: all are good. */
    err (*check)(void *context, const struct row_reader *, const struct row *);
    err (*row)(void *context, const struct row_reader *, const struct row *);
    void *context;
    bool is_ahead; /* the rows will be read again for training, which logs how many are left out */
};

/* Visits the rows that skip and take select. Ignores context->columns. ERR_INPUT: rows without
 * cells, no rows, or a broken one that may not be left out. ret_name: the file, or the first and
 * the last, in the arena. */
err each_row(const struct source_spec *, const struct format_context *, const struct row_visitor *,
             struct arena *, const char **ret_name);

#endif
