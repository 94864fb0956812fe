/* convert.h - stored columns to what the graph reads: y = scale * x + offset, labels of one type.
 */
#ifndef CORE_DATA_CONVERT_H
#define CORE_DATA_CONVERT_H

#include "core/data/storage.h"

struct conversion {
    struct column made; /* FLOAT32, INT32 or INT64; as the graph reads it, at NULL */
    double scale, offset;
};
/* ret: as many as the dataset has columns */
void conversions_of(const struct transform *, const struct dataset *, struct conversion *ret);
void conversions_as_stored(const struct dataset *, struct conversion *ret); /* none of any */

/* What is stored is what would be made of it. */
bool conversion_is_identity(const struct conversion *, const struct column *stored);

/* Rows first .. first + rows - 1, in stored order. */
void convert(const struct conversion *, const struct column *stored, int64_t first, int64_t rows,
             void *ret);
/* Rows rows[0 .. count - 1], in this order. */
void convert_rows(const struct conversion *, const struct column *stored, const int64_t *rows,
                  int64_t count, void *ret);

/* Room for batches as they are made, of the columns that somebody reads: ret_slots[count], where
 * those are in the memory, each from a cache line on; others are at NULL. name: for messages.
 * ERR_MEMORY; ERR_INPUT: a batch is more than memory can be. */
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
