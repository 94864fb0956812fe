/* batch.h - rows as named, typed columns: what a source of data makes and a graph reads.
 *
 * A graph says by name which columns it reads, and looks for them once, when it is made; every
 * batch that it is fed then has the same columns in the same order.
 */
#ifndef CORE_GRAPH_BATCH_H
#define CORE_GRAPH_BATCH_H

#include "core/graph/tensor.h"

enum {
    LISTED_COLUMNS_MAX = 4096,                 /* that a spec lists */
    COLUMNS_MAX = 2 * LISTED_COLUMNS_MAX + 64, /* of a batch: weights and labels beside these */
};

/* Features are what a node reads that names no other; labels are for the loss. */
extern const char FEATURES_NAME[], LABELS_NAME[];

struct occurrences {
    int64_t count;
    const double *at;
};

struct column {
    const char *name;
    enum dtype dtype;
    struct shape shape; /* of one row; rank 0: one number */
    const void *at;     /* [rows, shape] in the host's memory, borrowed; NULL: only described */

    int64_t buckets;  /* INT64: ids are below it, or negative, which is none */
    bool is_weighted; /* INT64: the next column is the weights of these ids, in the same shape */
    bool is_label;    /* of those that a source lists: nodes do not read it */
    /* How often each label or id occurs in the set, by its number; NULL: nobody has counted */
    const struct occurrences *occurrences;
};

struct batch {
    int64_t rows;
    const struct column *columns;
    int column_count;
    uint64_t index; /* of the batch in its worker's share of the stream (core/data/source.h) */
    uint64_t epoch; /* of its first row */
};

/* Numbers and bytes of one row */
int64_t column_width(const struct column *);
size_t column_row_bytes(const struct column *);

/* Index of the column, -1: there is none. */
int column_find(const struct column *, int count, const char *name);

#endif
