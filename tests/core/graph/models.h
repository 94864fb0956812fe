/* models.h - whole models from JSON text, with parameters and a batch. */
#ifndef TESTS_CORE_GRAPH_MODELS_H
#define TESTS_CORE_GRAPH_MODELS_H

#include "core/graph/plan.h"
#include "tests/core/graph/bench.h"

enum { MODEL_PARAMS_MAX = 256, MODEL_COLUMNS_MAX = 8 };

/* "batch 4, features [3, 5], training" */
struct setting {
    int64_t batch;
    struct shape features; /* of one example */
    bool training, holds_batch_rows;
    const char *weight;        /* the column of what rows count; NULL: 1 */
    const struct column *more; /* [more_count] columns of the batch, beside features and labels */
    int more_count;
};

struct model {
    struct arena arena;
    json_t *json;
    struct graph *graph;
    struct plan *plan; /* NULL until model_open */
    float *features;   /* [batch, ...] normal numbers, aligned */
    void *labels;      /* classes, zeros and ones or normal numbers, as the loss wants */
    /* labels and features, in this order, so that names tell; then more */
    struct column columns[MODEL_COLUMNS_MAX];
    int column_count;
};

/* {"model": [...], "loss": ..., "metrics": [...]}; the error of parsing or of graph_make. */
err model_parse(struct model *, const char *text, const struct setting *);

/* Parses, draws the parameters and a batch, opens the plan. Fails the test on any error. */
void model_open(struct model *, struct device *, const char *text, const struct setting *);
void model_close(struct model *);

/* The first rows of its batch */
struct batch model_batch(const struct model *, int64_t rows);
void model_forward(struct model *, int64_t rows, uint64_t draw);
double model_loss(struct model *, int64_t rows, uint64_t draw); /* forward, then the mean */

#endif
