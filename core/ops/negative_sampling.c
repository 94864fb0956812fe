/* negative_sampling: corrects logits for training data of which only a fraction of the negatives is
 * kept. In training the loss gets y = x - log(rate), the logit within the kept rows, so that x is
 * the logit among all rows; evaluation and prediction have y = x. */
#include <math.h>

#include "core/graph/op.h"

struct attributes {
    double rate;
};

static const struct field fields[] = {
    FIELD_OF("rate", FLOAT, struct attributes, rate, .min = 1e-9, .max = 1,
             .help = "fraction of the rows labelled 0 that were kept, at random, in data.train; "
                     "all rows labelled 1 must be there"),
    {0},
};

static err infer(struct node *node, struct arena *arena)
{
    node->output.shape = node->input[0]->shape;
    node->is_view = !node->training;
    return OK;
}

static void forward(const struct node *node, struct device *d)
{
    const struct attributes *a = node->attributes;
    const int64_t count = shape_count(&node->output.shape);
    d->kernels->fill(d, node->output.value, (float)-log(a->rate), count);
    d->kernels->axpy(d, node->output.value, 1.0f, node->input[0]->value, count);
}

static void backward(const struct node *node, struct device *d)
{
    float *dx = node->input[0]->gradient;
    const int64_t count = shape_count(&node->output.shape);
    if (!dx) return;
    if (node->add[0])
        d->kernels->axpy(d, dx, 1.0f, node->output.gradient, count);
    else
        d->kernels->copy(d, dx, node->output.gradient, count);
}

static const struct op_case cases[] = {
    {"{\"rate\": 0.1}", 1, {{2, {5, 1}}}},
    {"{\"rate\": 1}", 1, {{3, {2, 3, 7}}}},
    {0},
};

const struct op op_negative_sampling = {
    .object = {"negative_sampling",
               "corrects logits for data.train with only a fraction of the rows labelled 0, so "
               "that predictions are calibrated for the full data",
               fields, sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .infer = infer,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
