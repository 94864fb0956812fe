/* loss.c - applies weights of rows to what a loss computes. The host counts labels and weights
 * while it still has the batch; the scale computed from them goes to the device with the batch.
 *
 * The mean is tf.losses' SUM_BY_NONZERO_WEIGHTS: the weighted sum divided by how many weights are
 * not 0; the sum is its SUM, divided by nothing.
 */
#include "core/graph/op.h"

static const char *const reductions[] = {[REDUCTION_MEAN] = "mean", [REDUCTION_SUM] = "sum", NULL};

static const struct field spec_fields[] = {
    {.name = "reduction",
     .type = FIELD_ENUM,
     .offset = offsetof(struct loss_spec, reduction),
     .fallback = "mean",
     .choices = reductions,
     .help =
         "how the losses of a batch are combined: mean, or sum, whose gradient grows with the "
         "batch. Workers and towers are averaged in either case, and evaluations report the mean"},
    {0},
};

const struct object loss_spec_object = {
    .name = "loss",
    .summary = "the objective",
    .fields = spec_fields,
    .size = sizeof(struct loss_spec),
};

void loss_row_weights(const struct loss_node *node, struct device *d, int64_t first, int64_t rows,
                      float *ret)
{
    for (int64_t i = 0; i < rows; i++) ret[i] = 1; /* valid even if the device fails */
    if (!loss_is_weighted(node)) return;
    d->kernels->download(d, ret, (const float *)node->weights.value + first,
                         (size_t)rows * sizeof(float));
}

bool loss_is_weighted(const struct loss_node *node)
{
    return node->weights.name != NULL;
}

/* Labels per row */
static int64_t places_of(const struct loss_node *node)
{
    return shape_count_from(&node->labels.shape, 1);
}

/* Labels of these rows that count: negative ones do not where a row has several. */
static int64_t count_labels(const struct loss_node *node, const int32_t *labels, int64_t rows)
{
    const int64_t places = places_of(node), all = rows * places;
    int64_t count = 0;
    if (places == 1 || node->labels.dtype != INT32) return rows;
    for (int64_t i = 0; i < all; i++) count += labels[i] >= 0;
    return count;
}

struct loss_counts loss_count(const struct loss_node *node, const void *labels,
                              const float *weights, int64_t rows)
{
    const size_t row_bytes = (size_t)places_of(node) * dtype_size(node->labels.dtype);
    struct loss_counts ret = {.labels = count_labels(node, labels, rows)};
    if (!weights) ret.counted = node->loss->weight(node, labels, rows);
    for (int64_t i = 0; weights && i < rows; i++)
        if (weights[i] != 0)
            ret.counted +=
                node->loss->weight(node, (const char *)labels + (size_t)i * row_bytes, 1);
    return ret;
}

double loss_divisor(const struct loss_node *node)
{
    return node->reduction == REDUCTION_SUM ? 1 : node->counts.counted;
}

float loss_scale(const struct loss_node *node, const struct loss_counts *counts)
{
    if (node->reduction == REDUCTION_SUM) return node->factor;
    return counts->counted > 0 ? node->factor * (float)(1.0 / counts->counted) : 0.0f;
}

/* Multiplies values [rows, columns] by the weights of the rows, in place */
static void weigh(const struct loss_node *node, struct device *d, float *values, int64_t rows,
                  int64_t columns)
{
    struct fold f = {.of = FOLD_MULTIPLY, .scale = 1, .y = values, .a = values};
    f.b = node->weights.value;
    fold_axis(&f, rows, columns, columns, 1, 0);
    fold_axis(&f, columns, 1, 1, 0, 0);
    d->kernels->fold(d, &f);
}

void loss_forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct tensor *logits = node->logits;
    node->loss->forward(node, d, rows);
    if (!loss_is_weighted(node)) return;
    weigh(node, d, node->losses, rows, 1);
    if (logits->gradient)
        weigh(node, d, logits->gradient, rows, shape_count_from(&logits->shape, 1));
}
