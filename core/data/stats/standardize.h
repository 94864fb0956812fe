/* standardize.h - mean and deviation of the numeric columns that are standardized.
 *
 * They are attributes of the columns, which the spec may give. Those that it does not give are
 * those of the training data, over all rows that have the column's numbers or their default: one
 * pass, row by row in the order of the files, so that the same files make the same bits everywhere.
 * They are kept as JSON: {"age": {"mean": [38.6], "deviation": [13.6]}}.
 */
#ifndef CORE_DATA_STATS_STANDARDIZE_H
#define CORE_DATA_STATS_STANDARDIZE_H

#include <jansson.h>

#include "core/data/data.h"

/* columns: of struct column_spec. The first that lacks its numbers; NULL: none does. */
const char *standardize_wanting(const struct objects *columns);

/* Gives them to all that lack them. ERR_INPUT: the data are bad. A deviation of 0 becomes 1. */
err standardize_measure(const struct source_spec *train, const struct format_context *,
                        const struct objects *columns, struct arena *);
/* The same from what was kept. ERR_INPUT: it has not what a column lacks. */
err standardize_read(const json_t *, const struct objects *columns, struct arena *);

/* Of all that are standardized, with their numbers; of columns of a spec as it was read: into
 * these, in the same order. NULL: no memory. */
json_t *standardize_write(const struct objects *columns);
err standardize_note(const struct objects *columns, json_t *of_spec);

#endif
