/* softmax_cross_entropy: log sum exp(logits) - logits[label], one label per example.
 *
 * logits [batch, classes], labels int32 [batch]; the gradient is softmax(logits) minus the
 * (smoothed) label, over the divisor of the mean.
 *
 * With class weights the mean is TensorFlow's SUM_BY_NONZERO_WEIGHTS: the weighted sum over the
 * number of examples whose weight is not zero.
 */
#include "core/graph/op.h"

#include <inttypes.h>

enum { CLASSES_MAX = 1 << 24, LABELS_AT_ONCE = 1024, WEIGHTS_ALIGN = 64 };

struct attributes {
    double label_smoothing;
    struct floats class_weights;
    float *weights; /* [classes], made by infer; NULL: all 1 */
};

static const struct field fields[] = {
    {.name = "label_smoothing",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct attributes, label_smoothing),
     .fallback = "0",
     .max = 1,
     .help = "label smoothing s: the true class gets 1 - s + s / classes, every other class s / "
             "classes"},
    {.name = "class_weights",
     .type = FIELD_FLOATS,
     .offset = offsetof(struct attributes, class_weights),
     .fallback = "[]",
     .max = 1e9,
     .help = "weight of an example by its class; none: 1"},
    {0},
};

/* As kernels want them: floats, aligned. */
static float *make_weights(const struct floats *given, struct arena *arena)
{
    const uintptr_t memory =
        (uintptr_t)arena_new(arena, (size_t)given->count * sizeof(float) + WEIGHTS_ALIGN);
    float *weights = (float *)((memory + WEIGHTS_ALIGN - 1) / WEIGHTS_ALIGN * WEIGHTS_ALIGN);
    for (int i = 0; i < given->count; i++) weights[i] = (float)given->at[i];
    return weights;
}

/* The spec's attributes are shared by several graphs, so the weights go into a copy. */
static err infer(struct loss_node *node, struct arena *arena)
{
    const struct attributes *given = node->attributes;
    const struct shape *logits = &node->logits->shape;
    char text[SHAPE_TEXT_MAX];
    if (logits->rank != 2)
        return fail(ERR_INPUT, "wants logits of [batch, classes], but \"%s\" makes %s",
                    node->logits->name, shape_text(logits, text));
    if (logits->dim[1] > CLASSES_MAX)
        return fail(ERR_INPUT, "%" PRId64 " classes; at most %d are possible", logits->dim[1],
                    CLASSES_MAX);
    if (given->class_weights.count && given->class_weights.count != logits->dim[1])
        return fail(ERR_INPUT, "class_weights: %d numbers for %" PRId64 " classes",
                    given->class_weights.count, logits->dim[1]);

    node->labels = (struct tensor){.dtype = INT32, .shape = {1, {logits->dim[0]}}};
    if (given->class_weights.count == 0) return OK;
    struct attributes *own = arena_new(arena, sizeof *own);
    *own = *given;
    own->weights = make_weights(&given->class_weights, arena);
    node->attributes = own;
    node->reads_labels = true;
    return OK;
}

/* Where the device has memory of its own, the weights are taken there. */
static size_t prepared_bytes(const struct loss_node *node, struct device *d)
{
    const struct attributes *a = node->attributes;
    return a->weights && d->is_separate ? (size_t)a->class_weights.count * sizeof(float) : 0;
}

static err prepare(struct loss_node *node, struct device *d)
{
    const struct attributes *a = node->attributes;
    const size_t bytes = prepared_bytes(node, d);
    if (!bytes) return OK;
    TRY(d->kernels->allocate(d, bytes, &node->state));
    d->kernels->upload(d, node->state, a->weights, bytes);
    return OK;
}

static void release(struct loss_node *node, struct device *d)
{
    if (node->state) d->kernels->release(d, node->state);
    node->state = NULL;
}

/* The labels are in the device's memory, so they are looked at piece by piece. */
static double weight(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct attributes *a = node->attributes;
    if (!a->weights) return (double)rows;

    const int32_t *labels = node->labels.value;
    int64_t counted = 0;
    for (int64_t first = 0; first < rows; first += LABELS_AT_ONCE) {
        int32_t piece[LABELS_AT_ONCE] = {0}; /* where the device fails and nothing comes */
        const int64_t left = rows - first;
        const int64_t count = left < LABELS_AT_ONCE ? left : LABELS_AT_ONCE;
        d->kernels->download(d, piece, labels + first, (size_t)count * sizeof *piece);
        for (int64_t i = 0; i < count; i++) counted += a->weights[piece[i]] != 0.0f;
    }
    return (double)counted;
}

static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct attributes *a = node->attributes;
    d->kernels->softmax_cross_entropy(d,
                                      &(struct cross_entropy){
                                          .rows = rows,
                                          .classes = node->logits->shape.dim[1],
                                          .logits = node->logits->value,
                                          .labels = node->labels.value,
                                          .class_weights = node->state ? node->state : a->weights,
                                          .label_smoothing = (float)a->label_smoothing,
                                          .scale = loss_scale(node, weight(node, d, rows)),
                                          .losses = node->losses,
                                          .gradient = node->logits->gradient,
                                      });
}

/* Plain, smoothed, weighted with a class that does not count, and both together. */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 3}}}},
    {"{\"label_smoothing\": 0.1}", 1, {{2, {4, 17}}}},
    {"{\"class_weights\": [1, 0, 2.5]}", 1, {{2, {6, 3}}}},
    {"{\"class_weights\": [0.5, 2], \"label_smoothing\": 0.2}", 1, {{2, {3, 2}}}},
    {0},
};

const struct loss loss_softmax_cross_entropy = {
    .object = {"softmax_cross_entropy", "one of several classes: the label is its number", fields,
               sizeof(struct attributes)},
    .predicts = PREDICTS_CLASS,
    .labels = LABELS_CLASSES,
    .infer = infer,
    .prepare = prepare,
    .prepared_bytes = prepared_bytes,
    .release = release,
    .forward = forward,
    .weight = weight,
    .cases = cases,
};
