/* nce: for each class, whether it is the label: sum over classes of max(x, 0) - x z + log(1 +
 * exp(-|x|)), where z is 1 for the label and 0 for the others; the mean over examples.
 *
 * After a sampled_logits, the classes are the label and the drawn ones (tf.nn.nce_loss), in an
 * evaluation all.
 */
#include <inttypes.h>

#include "core/graph/op.h"

static const struct field fields[] = {{0}};

static err infer(struct loss_node *node, struct arena *arena)
{
    const struct shape *logits = &node->logits->shape;
    char text[SHAPE_TEXT_MAX];
    if (logits->rank != 2)
        return fail(ERR_INPUT, "wants logits of [batch, classes], but \"%s\" makes %s",
                    node->logits->name, shape_text(logits, text));
    node->labels = (struct tensor){.dtype = INT32, .shape = {1, {logits->dim[0]}}};
    return OK;
}

/* Memory for one-hot labels */
static size_t prepared_bytes(const struct loss_node *node, struct device *d)
{
    return (size_t)shape_count(&node->logits->shape) * sizeof(float);
}

static err prepare(struct loss_node *node, struct device *d)
{
    return d->kernels->allocate(d, prepared_bytes(node, d), &node->state);
}

static void release(struct loss_node *node, struct device *d)
{
    if (node->state) d->kernels->release(d, node->state);
    node->state = NULL;
}

static double weight(const struct loss_node *node, const void *labels, int64_t rows)
{
    return (double)rows;
}

static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const int64_t classes = node->logits->shape.dim[1];
    d->kernels->one_hot(d, node->state, node->labels.value, rows, classes);
    d->kernels->sigmoid_cross_entropy(d, &(struct cross_entropy){
                                             .rows = rows,
                                             .classes = classes,
                                             .logits = node->logits->value,
                                             .targets = node->state,
                                             .scale = node->scale,
                                             .losses = node->losses,
                                             .gradient = node->logits->gradient,
                                         });
}

static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 3}}}},
    {"{}", 1, {{2, {4, 17}}}},
    {0},
};

const struct loss loss_nce = {
    .object = {"nce",
               "one of many classes as binary decisions (tf.nn.nce_loss), after sampled_logits: "
               "over the label and the drawn classes; evaluation and prediction use all classes",
               fields, 0},
    .predicts = PREDICTS_CLASS,
    .is_each = true,
    .labels = LABELS_CLASSES,
    .infer = infer,
    .prepare = prepare,
    .prepared_bytes = prepared_bytes,
    .release = release,
    .forward = forward,
    .weight = weight,
    .cases = cases,
};
