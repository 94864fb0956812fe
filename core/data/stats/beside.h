/* beside.h - reads cells of each row as written in the file, to accompany what is computed from the
 * rows. */
#ifndef CORE_DATA_STATS_BESIDE_H
#define CORE_DATA_STATS_BESIDE_H

#include "core/data/data.h"

struct rows_beside;

/* cells: names of the cells wanted. All arguments are borrowed. ERR_INPUT: rows without cells, or
 * no cell of that name. */
err beside_open(const struct source_spec *, const struct format_context *,
                const struct strings *cells, struct rows_beside **ret);
/* Goes forward to row number `row` of the files, counted from 0 with broken ones; it must be after
 * the previous one. */
err beside_next(struct rows_beside *, int64_t row);
/* cell: index in `cells` of beside_open. The result is valid until the next beside_next. */
const struct cell *beside_cell(const struct rows_beside *, int cell);
void beside_close(struct rows_beside *); /* may be NULL */

#endif
