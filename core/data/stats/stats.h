/* stats.h - statistics of the cells of a source, from one pass over its rows. */
#ifndef CORE_DATA_STATS_STATS_H
#define CORE_DATA_STATS_STATS_H

#include "core/data/data.h"
#include "core/data/stats/spread.h"
#include "core/data/stats/quantiles.h"
#include "core/data/stats/words.h"

/* Statistics of one cell; or of the label, if it is not a cell. */
struct cell_stats {
    const char *name;
    const char *separator; /* between values, from a column of the spec; NULL: the cell is one
                              value */
    bool is_label;
    int64_t rows, missing; /* missing: rows without any value */
    int64_t values;        /* more than rows if cells are lists */
    int64_t numbers;       /* values that are finite numbers */
    int64_t ids;           /* values that the format stores as integers */
    const char *other;     /* the first value that is not a number, and where it is; NULL: all
                              are numbers */
    struct spread spread;  /* of numbers */
    double min, max;
    struct quantiles quantiles; /* of numbers */
    struct word_counts words;   /* of all values, as text */
};

struct stats {
    struct arena arena;
    const char *name; /* the file, or the first and the last */
    int64_t rows;
    struct cell_stats *cells; /* [count]; last the label, if it is not a cell */
    int count;
};

/* Reads the rows that skip and take select. columns: of struct column_spec, for separators, which
 * are borrowed; context->columns is ignored. words_max: how many words to count per cell, at least
 * 2. ERR_INPUT: rows without cells, or a broken row that may not be left out. */
err stats_read(const struct source_spec *, const struct format_context *,
               const struct objects *columns, int64_t words_max, struct stats *ret);
void stats_free(struct stats *); /* may be zeroed */

#endif
