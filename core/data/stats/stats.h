/* stats.h - what is in the cells of a source, by one pass over its rows. */
#ifndef CORE_DATA_STATS_STATS_H
#define CORE_DATA_STATS_STATS_H

#include "core/data/data.h"
#include "core/data/stats/spread.h"
#include "core/data/stats/quantiles.h"
#include "core/data/stats/words.h"

/* Of a cell; or of the label, where this is no cell. */
struct cell_stats {
    const char *name;
    const char *separator; /* of its values, as a column of the spec has it; NULL: it is one */
    bool is_label;
    int64_t rows, missing; /* missing: without any value */
    int64_t values;        /* more than rows where cells are lists */
    int64_t numbers;       /* values that are finite numbers */
    int64_t ids;           /* values that the format has as whole numbers */
    const char *other;     /* the first value that is no number, and where; NULL: all are */
    struct spread spread;  /* of numbers */
    double min, max;
    struct quantiles quantiles; /* of numbers */
    struct word_counts words;   /* of all values as text */
};

struct stats {
    struct arena arena;
    const char *name; /* the file, or the first and the last */
    int64_t rows;
    struct cell_stats *cells; /* [count], the label last where it is no cell */
    int count;
};

/* Rows that skip and take leave. columns: of struct column_spec, for separators, which stay theirs;
 * context->columns is not looked at. words_max: of each cell, at least 2. ERR_INPUT: rows without
 * cells, or a broken row that may not be left out. */
err stats_read(const struct source_spec *, const struct format_context *,
               const struct objects *columns, int64_t words_max, struct stats *ret);
void stats_free(struct stats *); /* a zeroed one is fine */

#endif
