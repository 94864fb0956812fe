/* stored_table.h - the rows of a table with their ids, from a checkpoint alone: whatever way its
 * program cut it, and without its spec. A matrix is a table whose ids are the numbers of its rows.
 */
#ifndef CORE_TRAIN_CHECKPOINT_STORED_TABLE_H
#define CORE_TRAIN_CHECKPOINT_STORED_TABLE_H

#include "core/train/checkpoint/bundle/bundle.h"

struct table_changes;
struct stored_table {
    struct bundle *bundle; /* borrowed, as the name */
    const char *name;
    int64_t rows, width; /* rows; of a table that grows only those that have values */
    int parts;           /* parts by turns of the ids, or of a growing table; 0: a matrix */
    bool grows;
    const struct table_changes *newer; /* laid over it (newest.h), ids ascending; NULL: nothing */
};

/* ERR_INPUT: there is none, or it is no table of floats. */
err stored_table_find(struct bundle *, const char *name, struct stored_table *ret);

/* Whether a row of a growing table that a delta brings means that the table has evicted it. */
bool stored_row_is_gone(const struct stored_table *, const float *row);

struct stored_rows_taker {
    void *context;
    err (*take)(void *context, const int64_t *ids, int64_t count, const float *rows);
};
/* Each row once, in stretches of STORED_ROWS_MAX at most, part by part: ids ascend in a matrix, and
 * come in the order of the keys of a table that grows, those that it has not got yet at the end;
 * one that became zeros it has no more. Rows are held against their checksums while
 * they come: on an error the caller throws away what it took. What take returns is returned.
 */
enum { STORED_ROWS_MAX = 4096 };
err stored_table_read(const struct stored_table *, const struct stored_rows_taker *);

#endif
