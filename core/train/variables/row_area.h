/* row_area.h - what a worker and a ps tell each other of tables, in memory that is common to both.
 *
 * Its front is the worker's:
 *
 *     int64 pushed[slices], wanted[slices]    how many rows of each slice
 *     int64 ids of those wanted; slice by slice, ascending, each once
 *     float gradients of the rows pushed, from a multiple of AREA_ALIGN bytes on
 *     int64 how often each of them occurred, of the slices that count it, behind these
 *     int64 ids of the rows pushed, likewise, from such a multiple on; they do not travel if the
 *           ps has them (with_ids false), since it has sent those very rows
 *
 * Its back is the ps':
 *
 *     float the rows wanted, in the same order
 *
 * Ids are rows of the whole table. Only what is used travels.
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
    bool counts;           /* how often each occurs in a batch */
};

/* The area that a worker shares with one ps */
struct row_area {
    int count;
    struct area_slice *slices;
    int64_t rows, floats; /* rows that a batch names at most, and their floats */
    int64_t counted;      /* how many of these rows lie in slices that count */
    size_t front, bytes;  /* largest sizes; the back begins at `front`; 0: there are no tables */
};

/* The slices' memory is the arena's; row_area_add `count` times at most. ERR_INPUT: rows of one
 * batch would take more than AREA_BYTES_MAX. */
void row_area_open(int count, struct arena *, struct row_area *ret);
err row_area_add(struct row_area *, const struct area_slice *);

/* How much of the front is in use. Sums are over all slices. */
struct area_counts {
    int64_t *pushed, *wanted; /* [count] */
    int64_t pushed_rows, wanted_rows, pushed_floats, wanted_floats;
    int64_t pushed_counted; /* pushed rows of slices that count */
};
void area_counts_open(const struct row_area *, struct arena *, struct area_counts *ret);
/* After pushed and wanted have been set. */
void area_counts_sum(const struct row_area *, struct area_counts *);
void area_counts_clear(const struct row_area *, struct area_counts *); /* sets all counts to 0 */

/* Memory elsewhere that takes the place of a part of the area */
struct area_patch {
    size_t offset, bytes;
    void *at;
};

/* The places of things in the area. */
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
