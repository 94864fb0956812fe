/* convert.h - converts stored columns for the graph: y = scale * x + offset, labels to the wanted
 * type. */
#ifndef CORE_DATA_CONVERT_H
#define CORE_DATA_CONVERT_H

#include "core/data/storage.h"

struct conversion {
    struct column made; /* FLOAT32, INT32 or INT64, as the graph reads it; `at` NULL */
    double scale, offset;
};
/* ret: [column_count] of the dataset */
void conversions_of(const struct transform *, const struct dataset *, struct conversion *ret);
void conversions_as_stored(const struct dataset *, struct conversion *ret); /* nothing is
                                                                               converted */

/* Whether converting would change nothing. */
bool conversion_is_identity(const struct conversion *, const struct column *stored);

/* Rows first .. first + rows - 1, in stored order. */
void convert(const struct conversion *, const struct column *stored, int64_t first, int64_t rows,
             void *ret);
/* The rows with indices rows[0 .. count - 1], in this order. */
void convert_rows(const struct conversion *, const struct column *stored, const int64_t *rows,
                  int64_t count, void *ret);

/* Allocates `count` slots for batches of the columns that are read: in each (*ret_slots)[i] they
 * point into *ret_memory, aligned to cache lines; other columns have `at` NULL. The caller frees
 * both, also after a failure. name: for messages. ERR_MEMORY; ERR_INPUT: a batch exceeds the
 * address space. */
struct made_columns {
    const char *name;
    const struct conversion *conversions; /* [column_count] */
    int column_count;
    const int *read; /* [read_count] */
    int read_count;
    int64_t batch; /* rows */
};
err conversion_slots(const struct made_columns *, int count, struct column ***ret_slots,
                     struct block *ret_memory);

#endif
