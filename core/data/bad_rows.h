/* bad_rows.h - rows of a file that are broken, counted and left out up to a limit. */
#ifndef CORE_DATA_BAD_ROWS_H
#define CORE_DATA_BAD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum { BAD_ROWS_SHOWN = 5 };

struct bad_rows {
    int64_t limit, count;
};

bool bad_rows_are_allowed(const struct bad_rows *); /* NULL: no */

/* What is wrong with one row: OK where the row may be left out, and the log says so of the first
 * few. Else the error, with how many there were; one that is no ERR_INPUT stays as it is. */
err bad_rows_leave_out(struct bad_rows *, err);

/* In the log, how many there were of all these rows, if any. */
void bad_rows_report(const struct bad_rows *, const char *name, int64_t rows);

#endif
