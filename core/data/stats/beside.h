/* beside.h - cells of each row, as they stand in the file, beside what is made of the rows. */
#ifndef CORE_DATA_STATS_BESIDE_H
#define CORE_DATA_STATS_BESIDE_H

#include "core/data/data.h"

struct rows_beside;

/* These cells of all rows of the source's files. All arguments are borrowed. ERR_INPUT: rows
 * without cells, or none of that name. */
err beside_open(const struct source_spec *, const struct format_context *,
                const struct strings *cells, struct rows_beside **ret);
/* To the row that is number `row` of all that there are, from 0; each is behind the one before. */
err beside_next(struct rows_beside *, int64_t row);
/* Of the row, which of the names it is; stays until the next call. */
const struct cell *beside_cell(const struct rows_beside *, int cell);
void beside_close(struct rows_beside *); /* NULL is fine */

#endif
