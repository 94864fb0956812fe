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
     .help = "static: a row for each id that the column can have; dynamic: one for each id that "  \
             "is seen, of a column whose ids are any"},                                            \
        {.name = "admit_after",                                                                    \
         .type = FIELD_INT,                                                                        \
         .offset = (at) + offsetof(struct capacity, growth.admit_after),                           \
         .fallback = "1",                                                                          \
         .min = 1,                                                                                 \
         .max = SIGHTS_MAX,                                                                        \
         .help = "dynamic: the step that sees an id for so many times (admit_by) makes its row; "  \
                 "before, it "                                                                     \
                 "is a row of zeros, and its gradients are dropped; evaluations and predictions "  \
                 "read zeros for every id without a row"},                                         \
        {.name = "admit_by",                                                                       \
         .type = FIELD_ENUM,                                                                       \
         .offset = (at) + offsetof(struct capacity, growth.admit_by),                              \
         .fallback = "\"steps\"",                                                                  \
         .choices = sights_names,                                                                  \
         .help = "dynamic: what admit_after counts: steps that name the id, however often; or "    \
                 "occurrences of it in their batches, of all workers"},                            \
    {                                                                                              \
        .name = "evict_after_steps", .type = FIELD_INT,                                            \
        .offset = (at) + offsetof(struct capacity, growth.evict_after_steps), .fallback = "0",     \
        .max = 1e15,                                                                               \
        .help = "dynamic: a row that no step has named for so many goes, at most 3 % later, and "  \
                "its id is as if never seen; 0: none goes"                                         \
    }
extern const char *const capacity_names[];
/* NULL: static. ERR_INPUT: what is for tables that grow is given for one that does not. */
err capacity_growth(const struct capacity *, const struct growth **ret);

/* Declares the table [buckets of the input, width], called so; growth: as the param says; or takes
 * that of the node that shares its own, which must be such a one. ERR_INPUT: the ids are none for
 * such a table. */
err combine_add_table(struct node *, struct arena *, int input, const struct param *,
                      int64_t width);

/* Input i, ids [batch, ...], and table i: y [batch, width] (+)= its rows; the table's gradient. */
void combine_forward(const struct node *, struct device *, int i, enum combiner, bool add);
void combine_backward(const struct node *, struct device *, int i, enum combiner);

#endif
