/* combine.h - shared by ops that read ids and look up rows of tables by them. */
#ifndef CORE_OPS_SPARSE_COMBINE_H
#define CORE_OPS_SPARSE_COMBINE_H

#include "core/graph/op.h"

/* How many rows a table has */
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
/* Sets *ret; NULL: static. ERR_INPUT: a setting of growing tables is given for a static one. */
err capacity_growth(const struct capacity *, const struct growth **ret);

/* The penalty of a table: on the rows that a batch names, each once however often it is named, or
 * on all rows */
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

/* Declares the table [buckets of the input, width], with the name and growth of the param; or uses
 * that of the node whose params are shared, which must be alike. ERR_INPUT: the ids do not suit the
 * table. */
err combine_add_table(struct node *, struct arena *, int input, const struct param *,
                      int64_t width);

/* Sets the table's default initializer, that of TensorFlow's embedding_column: truncated_normal
 * with stddev 1 / sqrt(width) */
err combine_initialize(int64_t width, struct arena *, struct param *);

/* In addition to enum combiner: rows are not combined, y is [batch, ..., width]. */
enum { COMBINER_NONE = COMBINER_SQRTN + 1 };

/* Index of the named input with weights of ids, in the shape of the ids, for ops that have one. */
enum { COMBINE_WEIGHTS };

/* For input i, ids [batch, ...], and table i. Forward: y [batch, width] = or += the combined rows;
 * backward: the table's gradient. */
void combine_forward(const struct node *, struct device *, int i, int combiner, bool add);
void combine_backward(const struct node *, struct device *, int i, int combiner);

#endif
