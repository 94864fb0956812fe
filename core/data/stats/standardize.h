/* standardize.h - mean and deviation of the numeric columns that are standardized.
 *
 * They are attributes of the columns, which the spec may give. Those that it does not give are
 * those of the training data, over all rows that have the column's numbers or their default: one
 * pass, row by row in the order of the files, so that the same files make the same bits everywhere.
 */
#ifndef CORE_DATA_STATS_STANDARDIZE_H
#define CORE_DATA_STATS_STANDARDIZE_H

#include "core/data/data.h"

/* Of one column, by its name */
struct standard {
    const char *name;
    struct floats mean, deviation; /* as many as it has numbers; or none */
};

/* Of column i of these, of struct column_spec. False: it is not standardized. Borrowed. */
bool standard_of(const struct objects *columns, int i, struct standard *ret);
/* The first that is standardized and lacks its numbers; NULL: none is. */
const char *standardize_wanting(const struct objects *columns);

/* Gives them to all that lack them. ERR_INPUT: the data are bad. A deviation of 0 becomes 1. */
err standardize_measure(const struct source_spec *train, const struct format_context *,
                        const struct objects *columns, struct arena *);
/* The same from a list of struct standard, which stays. ERR_INPUT: it has not what a column lacks.
 */
err standardize_give(const struct objects *standards, const struct objects *columns);

#endif
