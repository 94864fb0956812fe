/* bad_rows.h - rows of a file that are broken, counted and left out up to a limit. */
#ifndef CORE_DATA_BAD_ROWS_H
#define CORE_DATA_BAD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum { BAD_ROWS_SHOWN = 5 };

/* Which they were: how many rows had been kept before each of them, ascending. */
struct left_out {
    int64_t kept;
    int64_t *before; /* [count] */
    int64_t count, room;
};

struct bad_rows {
    int64_t limit, count;
    struct left_out left_out;
    bool is_quiet; /* who counts them a second time says nothing */
};

/* Of the row that is number `kept` of those that were, from 0: its number among all, from 0. */
int64_t left_out_number(const struct left_out *, int64_t kept);
void left_out_free(struct left_out *);

bool bad_rows_are_allowed(const struct bad_rows *); /* NULL: no */

/* A row that is sound; NULL: nobody counts. */
void bad_rows_keep(struct bad_rows *);

/* What is wrong with one row: OK where the row may be left out, and the log says so of the first
 * few. Else the error, with how many there were; one that is no ERR_INPUT stays as it is. */
err bad_rows_leave_out(struct bad_rows *, err);

/* In the log, how many there were of all these rows, if any. */
void bad_rows_report(const struct bad_rows *, const char *name, int64_t rows);

#endif
