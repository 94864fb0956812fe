/* bad_rows.h - counts broken rows of a source and leaves them out, up to a limit. */
#ifndef CORE_DATA_BAD_ROWS_H
#define CORE_DATA_BAD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum { BAD_ROWS_SHOWN = 5 };
static const double BAD_ROWS_MAX = 0x1p53;

/* The positions of the rows left out: how many rows had been kept before each of them, ascending.
 */
struct left_out {
    int64_t kept;
    int64_t *before; /* [count] */
    int64_t count, room;
};

struct bad_rows {
    int64_t limit, count;
    double share; /* above 0: limit as a fraction of all rows, instead of `limit`; checked after
                     the last row */
    struct left_out left_out;
    bool is_quiet; /* nothing is logged, because they were counted before */
    bool is_ahead; /* they are counted again later, and the total is logged then */
};

/* given: from the spec: 0, a number of rows, or below 1 a fraction of them. ERR_INPUT: neither. */
err bad_rows_begin(double given, struct bad_rows *ret);

/* The index among all rows of the row with index `kept` among those kept; both from 0. */
int64_t left_out_number(const struct left_out *, int64_t kept);
void left_out_free(struct left_out *);

bool bad_rows_are_allowed(const struct bad_rows *); /* NULL: no */

/* Counts a good row; may be NULL. */
void bad_rows_keep(struct bad_rows *);

/* For a row that failed with this error: OK if it may be left out; the first BAD_ROWS_SHOWN are
 * logged. Else the error, with how many there were; errors other than ERR_INPUT are returned
 * unchanged. */
err bad_rows_leave_out(struct bad_rows *, err);

/* After the last row, with `rows` good ones: logs how many were broken, if any. ERR_INPUT: more
 * than `share`. */
err bad_rows_end(const struct bad_rows *, const char *name, int64_t rows);

#endif
