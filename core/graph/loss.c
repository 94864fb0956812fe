/* loss.c - a loss whose examples count more or less: around what the loss itself computes. The host
 * counts what does not count, and for that looks at one weight per example.
 *
 * The mean is tf.losses' SUM_BY_NONZERO_WEIGHTS: the weighted sum over how many weights are not 0;
 * the sum is its SUM, which is divided by nothing.
 */
#include "core/graph/op.h"

enum { AT_ONCE = 8192 }; /* each piece is a round trip to a device with memory of its own */

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

static int64_t smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void loss_row_weights(const struct loss_node *node, struct device *d, int64_t first, int64_t rows,
                      float *ret)
{
    for (int64_t i = 0; i < rows; i++) ret[i] = 1; /* also where the device fails */
    if (!loss_is_weighted(node)) return;
    d->kernels->download(d, ret, (const float *)node->weights.value + first,
                         (size_t)rows * sizeof(float));
}

bool loss_is_weighted(const struct loss_node *node)
{
    return node->weights.name != NULL;
}

double loss_weight(const struct loss_node *node, struct device *d, int64_t rows)
{
    double sum = 0;
    if (!loss_is_weighted(node)) return node->loss->weight(node, d, 0, rows);
    for (int64_t first = 0; first < rows; first += AT_ONCE) {
        float weights[AT_ONCE];
        const int64_t count = smaller(AT_ONCE, rows - first);
        loss_row_weights(node, d, first, count, weights);
        for (int64_t i = 0; i < count; i++)
            if (weights[i] != 0) sum += node->loss->weight(node, d, first + i, 1);
    }
    return sum;
}

int64_t loss_count_labels(const struct loss_node *node, struct device *d, int64_t first,
                          int64_t rows)
{
    const int64_t places = shape_count_from(&node->labels.shape, 1), all = rows * places;
    const int32_t *labels = (const int32_t *)node->labels.value + first * places;
    int64_t count = 0;
    if (places == 1) return rows;
    for (int64_t at = 0; at < all; at += AT_ONCE) {
        int32_t piece[AT_ONCE] = {0}; /* where the device fails and nothing comes */
        const int64_t n = smaller(AT_ONCE, all - at);
        d->kernels->download(d, piece, labels + at, (size_t)n * sizeof *piece);
        for (int64_t i = 0; i < n; i++) count += piece[i] >= 0;
    }
    return count;
}

double loss_divisor(const struct loss_node *node, struct device *d, int64_t rows)
{
    return node->reduction == REDUCTION_SUM ? 1 : loss_weight(node, d, rows);
}

float loss_scale(const struct loss_node *node, double weight)
{
    if (node->reduction == REDUCTION_SUM) return node->factor;
    return weight > 0 ? node->factor * (float)(1.0 / weight) : 0.0f;
}

/* What makes of a gradient that was divided by the number of all rows one of those that count */
static double correction(const struct loss_node *node, struct device *d, int64_t rows)
{
    if (node->reduction == REDUCTION_SUM) return 1;
    const double counted = loss_weight(node, d, rows);
    return counted > 0 ? node->loss->weight(node, d, 0, rows) / counted : 0;
}

/* values [rows, columns] times the weight of the row and the factor, where they lie */
static void weigh(const struct loss_node *node, struct device *d, float *values, int64_t rows,
                  int64_t columns, double factor)
{
    struct fold f = {FOLD_MULTIPLY, .scale = (float)factor};
    f.y = values;
    f.a = values;
    f.b = node->weights.value;
    f.kept = (struct fold_loops){2, .n = {rows, columns}, .y = {columns, 1}, .a = {columns, 1},
                                 .b = {1, 0}};
    d->kernels->fold(d, &f);
}

void loss_forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct tensor *logits = node->logits;
    node->loss->forward(node, d, rows);
    if (!loss_is_weighted(node)) return;
    weigh(node, d, node->losses, rows, 1, 1);
    if (logits->gradient)
        weigh(node, d, logits->gradient, rows, shape_count_from(&logits->shape, 1),
              correction(node, d, rows));
}
