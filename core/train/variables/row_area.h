/* row_area.h - the memory that a worker and a ps share for rows of tables.
 *
 * Its front is written by the worker:
 *
 *     int64 pushed[slices], wanted[slices]    how many rows of each slice
 *     int64 ids of the rows wanted; slice by slice, ascending, each once
 *     float gradients of the rows pushed, from a multiple of AREA_ALIGN bytes on
 *     int64 how often each of these occurred, for slices that count it, from such a multiple on
 *     int64 ids of the rows pushed, also from such a multiple on; not sent if the ps knows them
 *           (with_ids false), as it has sent those very rows
 *
 * Its back is written by the ps:
 *
 *     float the rows wanted, in the same order
 *
 * Ids are rows of the whole table. Only the parts in use are sent.
 */
#ifndef CORE_TRAIN_VARIABLES_ROW_AREA_H
#define CORE_TRAIN_VARIABLES_ROW_AREA_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/arena.h"
#include "core/base/error.h"

enum { AREA_ALIGN = 64 };
static const size_t AREA_BYTES_MAX = (size_t)1 << 40;

struct area_slice {
    int64_t start, length; /* rows of the table that lie on this ps */
    int64_t width, most;   /* floats of a row; rows that a batch names at most */
    bool counts;           /* whether it needs how often each row occurs in a batch */
};

/* The area that a worker shares with one ps */
struct row_area {
    int count;
    struct area_slice *slices;
    int64_t rows, floats; /* the most rows that a batch names, and their floats */
    int64_t counted;      /* how many of these rows lie in slices that count */
    size_t front, bytes; /* in bytes, at most; the back begins at `front`; 0: there are no tables */
};

/* Allocates the slices in the arena; row_area_add may be called `count` times. ERR_INPUT: rows of
 * one batch would take more than AREA_BYTES_MAX. */
void row_area_open(int count, struct arena *, struct row_area *ret);
err row_area_add(struct row_area *, const struct area_slice *);

/* How much of the front is in use. Sums are over all slices. */
struct area_counts {
    int64_t *pushed, *wanted; /* [count] */
    int64_t pushed_rows, wanted_rows, pushed_floats, wanted_floats;
    int64_t pushed_counted; /* pushed rows of slices that count */
};
void area_counts_open(const struct row_area *, struct arena *, struct area_counts *ret);
/* Computes the sums, after pushed and wanted have been set. */
void area_counts_sum(const struct row_area *, struct area_counts *);
void area_counts_clear(const struct row_area *, struct area_counts *); /* sets all counts to 0 */

/* Memory elsewhere that replaces a part of the area */
struct area_patch {
    size_t offset, bytes;
    void *at;
};

/* Where these arrays are in the area that begins at `base`. */
int64_t *area_pushed_ids(const struct row_area *, const struct area_counts *, void *base);
int64_t *area_wanted_ids(const struct row_area *, const struct area_counts *, void *base);
float *area_gradients(const struct row_area *, const struct area_counts *, void *base);
int64_t *area_times(const struct row_area *, const struct area_counts *, void *base);
float *area_rows(const struct row_area *, void *base);
size_t area_front_bytes(const struct row_area *, const struct area_counts *,
                        bool with_ids); /* in use */

/* Writes the counts to the front. */
void area_write_counts(const struct row_area *, const struct area_counts *, void *base);
/* Reads the counts from a front of which `used` bytes came. ERR_PROTOCOL: more rows than allowed,
 * or a number of bytes that does not belong to this many rows; all counts are 0 then. */
err area_read_counts(const struct row_area *, const void *base, size_t used, bool with_ids,
                     struct area_counts *ret);

#endif
