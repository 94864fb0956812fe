/* standardize.h - mean and standard deviation of the numeric columns that are standardized.
 *
 * They are attributes of the columns, which the spec may set. Otherwise they are computed from the
 * training data, over all rows that have the column's numbers or a default: in one pass in the
 * order of the files, so that results are bitwise equal everywhere.
 */
#ifndef CORE_DATA_STATS_STANDARDIZE_H
#define CORE_DATA_STATS_STANDARDIZE_H

#include "core/data/data.h"

/* Mean and deviation of the column `name` */
struct standard {
    const char *name;
    struct floats mean, deviation; /* one per element; or none */
};

/* For column i; columns: of struct column_spec. False: it is not standardized. *ret borrows. */
bool standard_of(const struct objects *columns, int i, struct standard *ret);
/* Name of the first standardized column without mean and deviation; NULL: none. */
const char *standardize_wanting(const struct objects *columns);

/* Computes them for all columns that lack them. ERR_INPUT: the data are bad. A deviation of 0
 * becomes 1. */
err standardize_measure(const struct source_spec *train, const struct format_context *,
                        const struct objects *columns, struct arena *);
/* Sets them from a list of struct standard, which must outlive the columns. ERR_INPUT: the list
 * lacks a column. */
err standardize_give(const struct objects *standards, const struct objects *columns);

#endif
