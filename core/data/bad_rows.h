/* bad_rows.h - rows of a file that are broken, counted and left out up to a limit. */
#ifndef CORE_DATA_BAD_ROWS_H
#define CORE_DATA_BAD_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/error.h"

enum { BAD_ROWS_SHOWN = 5 };
static const double BAD_ROWS_MAX = 0x1p53;

/* Which they were: how many rows had been kept before each of them, ascending. */
struct left_out {
    int64_t kept;
    int64_t *before; /* [count] */
    int64_t count, room;
};

struct bad_rows {
    int64_t limit, count;
    double share; /* above 0: of all rows, instead of limit; known when the last was read */
    struct left_out left_out;
    bool is_quiet; /* who counts them a second time says nothing */
    bool is_ahead; /* others count them later, and say how many they were */
};

/* As the spec has it: 0, a number of rows, or below 1 a share of them. ERR_INPUT: neither. */
err bad_rows_begin(double given, struct bad_rows *ret);

/* Of the row that is number `kept` of those that were, from 0: its number among all, from 0. */
int64_t left_out_number(const struct left_out *, int64_t kept);
void left_out_free(struct left_out *);

bool bad_rows_are_allowed(const struct bad_rows *); /* NULL: no */

/* A row that is sound; NULL: nobody counts. */
void bad_rows_keep(struct bad_rows *);

/* What is wrong with one row: OK where the row may be left out, and the log says so of the first
 * few, once. Else the error, with how many there were; one that is no ERR_INPUT stays as it is. */
err bad_rows_leave_out(struct bad_rows *, err);

/* When all rows were read, of which these are sound: in the log, how many were not, if any.
 * ERR_INPUT: more than the share. */
err bad_rows_end(const struct bad_rows *, const char *name, int64_t rows);

#endif
