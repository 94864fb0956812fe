/* batch.h - a batch: rows as named, typed columns, which data sources make and graphs read.
 *
 * A graph names the columns that it reads, and looks them up once, when it is made; every batch fed
 * to it then has the same columns in the same order.
 */
#ifndef CORE_GRAPH_BATCH_H
#define CORE_GRAPH_BATCH_H

#include "core/graph/tensor.h"

enum {
    LISTED_COLUMNS_MAX = 4096,                 /* in a spec */
    COLUMNS_MAX = 2 * LISTED_COLUMNS_MAX + 64, /* in a batch: with weights and labels */
};

/* "features": the default input of the first node; "labels": the default label of a loss. */
extern const char FEATURES_NAME[], LABELS_NAME[];

struct occurrences {
    int64_t count;
    const double *at;
};

struct column {
    const char *name;
    enum dtype dtype;
    struct shape shape; /* of one row; rank 0: one number */
    const void *at; /* [rows, shape] in host memory, borrowed; NULL: a description without data */

    int64_t buckets;  /* INT64: ids are below it; a negative one means "no id" */
    bool is_weighted; /* INT64: the next column holds the weights of these ids, in the same shape */
    bool is_label;    /* one of the source's listed labels: nodes cannot read it */
    /* How often each label or id occurs in the data set, indexed by it; NULL: not counted */
    const struct occurrences *occurrences;
};

struct batch {
    int64_t rows;
    const struct column *columns;
    int column_count;
    uint64_t index; /* of the batch in its worker's share of the stream (core/data/source.h) */
    uint64_t epoch; /* of its first row */
};

/* Elements and bytes of one row */
int64_t column_width(const struct column *);
size_t column_row_bytes(const struct column *);

/* Index of the column; -1: there is none. */
int column_find(const struct column *, int count, const char *name);

#endif
