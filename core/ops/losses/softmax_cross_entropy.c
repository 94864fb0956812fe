/* softmax_cross_entropy: log sum exp(logits) - logits[label], one label per example, or per
 * position of one, such as the steps of a sequence.
 *
 * logits [batch, ..., classes], labels int32 [batch, ...]; the gradient is softmax(logits) minus
 * the (smoothed) label, divided by the divisor of the mean, which is over all labels. An example's
 * loss is the sum over its labels. A position whose label is negative has no loss and does not
 * count.
 *
 * With class weights the mean is TensorFlow's SUM_BY_NONZERO_WEIGHTS: the weighted sum over the
 * number of examples whose weight is not zero.
 */
#include "core/graph/op.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CLASSES_MAX = 1 << 24, WEIGHTS_ALIGN = 64 };

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

/* Converts to floats, aligned for the kernels. */
static float *make_weights(const struct floats *given, struct arena *arena)
{
    const uintptr_t memory =
        (uintptr_t)arena_new(arena, (size_t)given->count * sizeof(float) + WEIGHTS_ALIGN);
    float *weights = (float *)((memory + WEIGHTS_ALIGN - 1) / WEIGHTS_ALIGN * WEIGHTS_ALIGN);
    for (int i = 0; i < given->count; i++) weights[i] = (float)given->at[i];
    return weights;
}

static int64_t classes_of(const struct loss_node *node)
{
    const struct shape *logits = &node->logits->shape;
    return logits->dim[logits->rank - 1];
}

/* Labels per example */
static int64_t places_of(const struct loss_node *node)
{
    return shape_count_from(&node->labels.shape, 1);
}

/* The spec's attributes are shared by several graphs, so the weights go into a copy. */
static err infer(struct loss_node *node, struct arena *arena)
{
    const struct attributes *given = node->attributes;
    const struct shape *logits = &node->logits->shape;
    char text[SHAPE_TEXT_MAX];
    if (logits->rank < 2)
        return fail(ERR_INPUT, "wants logits of [batch, ..., classes], but \"%s\" makes %s",
                    node->logits->name, shape_text(logits, text));
    if (classes_of(node) > CLASSES_MAX)
        return fail(ERR_INPUT, "%" PRId64 " classes; at most %d are possible", classes_of(node),
                    CLASSES_MAX);
    if (node->logits->answers && (given->class_weights.count || given->label_smoothing > 0))
        return fail(ERR_INPUT,
                    "%s: of logits that are not those of all classes, as \"%s\" makes them, "
                    "there is none",
                    given->label_smoothing > 0 ? "label_smoothing" : "class_weights",
                    node->logits->name);
    if (given->class_weights.count && given->class_weights.count != classes_of(node))
        return fail(ERR_INPUT, "class_weights: %d numbers for %" PRId64 " classes",
                    given->class_weights.count, classes_of(node));

    node->labels = (struct tensor){.dtype = INT32, .shape = *logits};
    node->labels.shape.rank--;
    if (given->class_weights.count == 0) return OK;
    struct attributes *own = arena_new(arena, sizeof *own);
    *own = *given;
    own->weights = make_weights(&given->class_weights, arena);
    node->attributes = own;
    node->weighs_classes = true;
    return OK;
}

/* A copy of the weights on a device with memory of its own; memory for the loss of each label, if
 * an example has several. */
struct prepared_loss {
    float *weights, *losses; /* NULL: not needed */
};

static size_t weights_bytes(const struct loss_node *node, struct device *d)
{
    const struct attributes *a = node->attributes;
    return a->weights && d->is_separate ? (size_t)a->class_weights.count * sizeof(float) : 0;
}

static size_t losses_bytes(const struct loss_node *node)
{
    return places_of(node) > 1 ? (size_t)shape_count(&node->labels.shape) * sizeof(float) : 0;
}

static size_t prepared_bytes(const struct loss_node *node, struct device *d)
{
    return weights_bytes(node, d) + losses_bytes(node);
}

static err take(struct device *d, size_t bytes, float **ret)
{
    void *memory = NULL;
    if (bytes) TRY(d->kernels->allocate(d, bytes, &memory));
    *ret = memory;
    return OK;
}

static err prepare(struct loss_node *node, struct device *d)
{
    const struct attributes *a = node->attributes;
    struct prepared_loss *p = calloc(1, sizeof *p);
    if (!p) return fail(ERR_MEMORY, "no memory for a loss");
    node->state = p;
    TRY(take(d, weights_bytes(node, d), &p->weights));
    TRY(take(d, losses_bytes(node), &p->losses));
    if (p->weights) d->kernels->upload(d, p->weights, a->weights, weights_bytes(node, d));
    return OK;
}

static void release(struct loss_node *node, struct device *d)
{
    struct prepared_loss *p = node->state;
    if (p && p->weights) d->kernels->release(d, p->weights);
    if (p && p->losses) d->kernels->release(d, p->losses);
    free(p);
    node->state = NULL;
}

/* A single label of an example always counts, unless the weight of its class is 0. */
static double weight(const struct loss_node *node, const void *labels, int64_t rows)
{
    const struct attributes *a = node->attributes;
    const int32_t *at = labels;
    const int64_t all = rows * places_of(node);
    int64_t counted = 0;
    if (!a->weights && places_of(node) == 1) return (double)rows;
    for (int64_t i = 0; i < all; i++)
        counted += at[i] >= 0 && (!a->weights || a->weights[at[i]] != 0.0f);
    return (double)counted;
}

/* An example's loss is the sum over its labels. */
static void sum_places(const struct loss_node *node, struct device *d, int64_t rows,
                       const float *losses)
{
    const int64_t places = places_of(node);
    struct fold f = {FOLD_A, .scale = 1, .y = node->losses, .a = losses};
    fold_axis(&f, rows, 1, places, 0, 0);
    fold_axis(&f, places, 0, 1, 0, 0);
    d->kernels->fold(d, &f);
}

static void forward(const struct loss_node *node, struct device *d, int64_t rows)
{
    const struct attributes *a = node->attributes;
    const struct prepared_loss *p = node->state;
    d->kernels->softmax_cross_entropy(d, &(struct cross_entropy){
                                             .rows = rows * places_of(node),
                                             .classes = classes_of(node),
                                             .logits = node->logits->value,
                                             .labels = node->labels.value,
                                             .class_weights = p->weights ? p->weights : a->weights,
                                             .label_smoothing = (float)a->label_smoothing,
                                             .scale = node->scale,
                                             .losses = p->losses ? p->losses : node->losses,
                                             .gradient = node->logits->gradient,
                                         });
    if (p->losses) sum_places(node, d, rows, p->losses);
}

/* Plain, smoothed, with a class of weight 0, and both together; several labels per example. */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {5, 3}}}},
    {"{\"label_smoothing\": 0.1}", 1, {{2, {4, 17}}}},
    {"{\"class_weights\": [1, 0, 2.5]}", 1, {{2, {6, 3}}}},
    {"{\"class_weights\": [0.5, 2], \"label_smoothing\": 0.2}", 1, {{2, {3, 2}}}},
    {"{}", 1, {{3, {4, 3, 5}}}},
    {"{\"class_weights\": [1, 0, 2.5]}", 1, {{3, {4, 3, 3}}}},
    {0},
};

const struct loss loss_softmax_cross_entropy = {
    .object = {"softmax_cross_entropy",
               "exactly one of several classes, per example or per position (logits [batch, ..., "
               "classes]); labels are class numbers, negative ones are ignored",
               fields, sizeof(struct attributes)},
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

/* ---- sampled classes ---- */

/* An evaluation has the logits of all classes; nothing is sampled. */
static err infer_sampled(struct loss_node *node, struct arena *arena)
{
    const struct tensor *logits = node->logits;
    static const struct attributes none;
    if (logits->classes == 0)
        return fail(ERR_INPUT, "wants the logits of a sampled_logits, which \"%s\" are not",
                    logits->name);
    node->attributes = &none;
    return infer(node, arena);
}

static const struct field no_fields[] = {{0}};
static const struct op_case sampled_cases[] = {{"{}", 1, {{2, {5, 3}}}}, {0}};

const struct loss loss_sampled_softmax = {
    .object = {"sampled_softmax",
               "one of many classes (tf.nn.sampled_softmax_loss), after sampled_logits: "
               "softmax_cross_entropy over the label and the drawn classes; evaluation and "
               "prediction use all classes",
               no_fields, sizeof(struct attributes)},
    .predicts = PREDICTS_CLASS,
    .labels = LABELS_CLASSES,
    .infer = infer_sampled,
    .prepare = prepare,
    .prepared_bytes = prepared_bytes,
    .release = release,
    .forward = forward,
    .weight = weight,
    .cases = sampled_cases,
};
