/* combine.h - what ops share that read ids: tables of rows, of which each example names some. */
#ifndef CORE_OPS_SPARSE_COMBINE_H
#define CORE_OPS_SPARSE_COMBINE_H

#include "core/graph/op.h"

/* How many rows tables have */
struct capacity {
    int kind;
    struct growth growth;
};

#define CAPACITY_FIELDS(at)                                                                        \
    {.name = "capacity",                                                                           \
     .type = FIELD_ENUM,                                                                           \
     .offset = (at) + offsetof(struct capacity, kind),                                             \
     .fallback = "\"static\"",                                                                     \
     .choices = capacity_names,                                                                    \
     .help = "static: one row for each possible id of the column; dynamic: rows are created for "  \
             "ids as they are seen, for columns with unbounded ids"},                              \
        {.name = "admit_after",                                                                    \
         .type = FIELD_INT,                                                                        \
         .offset = (at) + offsetof(struct capacity, growth.admit_after),                           \
         .fallback = "1",                                                                          \
         .min = 1,                                                                                 \
         .max = SIGHTS_MAX,                                                                        \
         .help = "dynamic: an id gets a row once it has been seen this many times (see "           \
                 "admit_by); until then it reads as zeros and its gradients are dropped, and "     \
                 "evaluation and prediction read zeros for it"},                                   \
        {.name = "admit_by",                                                                       \
         .type = FIELD_ENUM,                                                                       \
         .offset = (at) + offsetof(struct capacity, growth.admit_by),                              \
         .fallback = "\"steps\"",                                                                  \
         .choices = sights_names,                                                                  \
         .help = "dynamic: what admit_after counts: steps whose batch has the id at least once; "  \
                 "or every occurrence of it in the batches of all workers"},                       \
    {                                                                                              \
        .name = "evict_after_steps", .type = FIELD_INT,                                            \
        .offset = (at) + offsetof(struct capacity, growth.evict_after_steps), .fallback = "0",     \
        .max = 1e15,                                                                               \
        .help = "dynamic: a row not used for this many steps is evicted (up to 3 % later), and "   \
                "its id counts as never seen; 0: no eviction"                                      \
    }
extern const char *const capacity_names[];
/* NULL: static. ERR_INPUT: what is for tables that grow is given for one that does not. */
err capacity_growth(const struct capacity *, const struct growth **ret);

/* Of a table: what the rows that a batch names cost, each once, however often it names them; or all
 * rows */
struct row_regularizer {
    struct regularizer regularizer;
    int rows;
};
extern const struct object row_regularizer_object;
void row_regularizer_apply(const struct row_regularizer *, struct param *table);

#define ROW_REGULARIZER_FIELD(at)                                                                  \
    {                                                                                              \
        .name = "regularizer", .type = FIELD_OBJECT, .offset = (at), .fallback = "{}",             \
        .object = &row_regularizer_object, .help = "a penalty on the rows of the table"            \
    }

/* Declares the table [buckets of the input, width], called so; growth: as the param says; or takes
 * that of the node that shares its own, which must be such a one. ERR_INPUT: the ids are none for
 * such a table. */
err combine_add_table(struct node *, struct arena *, int input, const struct param *,
                      int64_t width);

/* A table's initializer, where none is said: that of TensorFlow's embedding_column,
 * truncated_normal with stddev 1 / sqrt(width) */
err combine_initialize(int64_t width, struct arena *, struct param *);

/* Beside those of enum combiner: rows are not combined, y is [batch, ..., width]. */
enum { COMBINER_NONE = COMBINER_SQRTN + 1 };

/* The named input that says what ids count, where an op has such: [batch, ...], as the ids. */
enum { COMBINE_WEIGHTS };

/* Input i, ids [batch, ...], and table i: y [batch, width] (+)= its rows; the table's gradient. */
void combine_forward(const struct node *, struct device *, int i, int combiner, bool add);
void combine_backward(const struct node *, struct device *, int i, int combiner);

#endif
