/* indicator: how often each id occurs in an example, y [batch, ids]: one-hot for one id; weights
 * are summed if ids have weights, as in TensorFlow's indicator_column. */
#include "core/graph/op.h"

/* Limit on outputs per example. */
enum { CLASSES_MAX = 1 << 20 };

static err infer(struct node *node, struct arena *arena)
{
    const struct tensor *ids = node->input[0];
    if (ids->buckets < 1 || ids->buckets > CLASSES_MAX)
        return fail(ERR_INPUT,
                    "\"%s\" has %s: expected a column of 1 to %d; embedding has a table for more",
                    ids->name, ids->buckets < 1 ? "ids without a limit" : "too many ids",
                    CLASSES_MAX);
    node->output.shape = (struct shape){2, {ids->shape.dim[0], ids->buckets}};
    return OK;
}

static void forward(const struct node *node, struct device *d)
{
    const struct tensor *ids = node->input[0];
    const struct combine c = {.batch = ids->shape.dim[0],
                              .places = shape_count_from(&ids->shape, 1),
                              .rows = ids->buckets,
                              .width = 1,
                              .combiner = COMBINER_SUM,
                              .ids = ids->value,
                              .weights = ids->weights ? ids->weights->value : NULL};
    d->kernels->ids_count(d, &c, node->output.value);
}

/* Ids have no gradient. */
static void backward(const struct node *node, struct device *d)
{
}

static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 1}}}, 4},
    {"{}", 1, {{2, {4, 7}}}, 3},
    {"{}", 1, {{2, {4, 7}}}, 3, true},
    {0},
};

const struct op op_indicator = {
    .object = {"indicator",
               "how often an example has each id: [batch, ids], one-hot where it has "
               "one; weights of ids are summed; of more than 1024 ids it is not exported"},
    .inputs_min = 1,
    .inputs_max = 1,
    .reads_ids = true,
    .ids_as_are = true,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
