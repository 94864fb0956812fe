/* stored_table.h - reads the rows of a table with their ids from a checkpoint, without a spec,
 * however the table was partitioned. A matrix counts as a table whose ids are its row numbers. */
#ifndef CORE_TRAIN_CHECKPOINT_STORED_TABLE_H
#define CORE_TRAIN_CHECKPOINT_STORED_TABLE_H

#include "core/train/checkpoint/bundle/bundle.h"

struct table_changes;
struct stored_table {
    struct bundle *bundle; /* borrowed, as the name */
    const char *name;
    int64_t rows, width; /* rows; of a growing table only those with values */
    int parts;           /* parts by id modulo parts, or of a growing table; 0: a matrix */
    bool grows;
    const struct table_changes *newer; /* rows that replace stored ones (newest.h), ids ascending;
                                          NULL: none */
};

/* ERR_INPUT: not found, or not a table of floats. */
err stored_table_find(struct bundle *, const char *name, struct stored_table *ret);

/* Whether this row of a delta means that the growing table has evicted it. */
bool stored_row_is_gone(const struct stored_table *, const float *row);

struct stored_rows_taker {
    void *context;
    err (*take)(void *context, const int64_t *ids, int64_t count, const float *rows);
};
/* Calls take for each row once, at most STORED_ROWS_MAX at a time, part by part: by ascending ids
 * in a matrix, by ascending keys in a growing table, then new rows of deltas. Rows that a delta
 * evicts are left out. Checksums are compared as rows are read: on an error discard all rows.
 * Returns take's error. */
enum { STORED_ROWS_MAX = 4096 };
err stored_table_read(const struct stored_table *, const struct stored_rows_taker *);

#endif
