/* answers.c - see answers.h. */
#include "core/ops/metrics/answers.h"

#include <math.h>

#include "core/base/range.h"

enum { ANSWERS_AT_ONCE = 2048 };

/* Class 1 is the yes. */
static bool is_of_two_classes(const struct loss_node *loss)
{
    return loss->loss->predicts == PREDICTS_CLASS && loss->logits->shape.rank == 2 &&
           loss->logits->shape.dim[1] == 2;
}

err answers_infer_yes_or_no(struct metric_node *node, struct arena *arena)
{
    const struct loss *loss = node->loss->loss;
    if (loss->predicts == PREDICTS_LOGIT || loss->predicts == PREDICTS_PROBABILITY) return OK;
    if (is_of_two_classes(node->loss)) return OK;
    return fail(
        ERR_INPUT,
        "wants a loss over yes and no, as sigmoid_cross_entropy, or over two classes; %s is "
        "none",
        loss->object.name);
}

err answers_infer_numbers(struct metric_node *node, struct arena *arena)
{
    const struct loss *loss = node->loss->loss;
    if (loss->predicts == PREDICTS_NUMBER) return OK;
    return fail(ERR_INPUT, "wants a loss over numbers, as mean_squared_error; %s is none",
                loss->object.name);
}

double answers_probability(const struct loss_node *loss, float said)
{
    return loss->loss->predicts == PREDICTS_PROBABILITY ? said : 1 / (1 + exp(-(double)said));
}

bool answers_wants_yes(double label)
{
    return label != 0;
}

/* A softmax of two logits is the sigmoid of the logit of class 1 minus that of class 0. */
static void each_of_two_classes(const struct metric_node *node, struct device *d, int64_t rows,
                                answers_add *add, double *state)
{
    const struct tensor *logits = node->loss->logits, *labels = &node->loss->labels;
    for (int64_t first = 0; first < rows; first += ANSWERS_AT_ONCE) {
        float said[2 * ANSWERS_AT_ONCE] = {0}, weights[ANSWERS_AT_ONCE];
        int32_t wanted[ANSWERS_AT_ONCE] = {0};
        const int64_t left = rows - first, n = left < ANSWERS_AT_ONCE ? left : ANSWERS_AT_ONCE;
        d->kernels->download(d, said, (const float *)logits->value + 2 * first,
                             (size_t)(2 * n) * sizeof *said);
        d->kernels->download(d, wanted, (const int32_t *)labels->value + first,
                             (size_t)n * sizeof *wanted);
        loss_row_weights(node->loss, d, first, n, weights);
        for (int64_t i = 0; i < n; i++)
            add(node,
                (struct answer){said[2 * i + 1] - said[2 * i], (float)wanted[i], weights[i],
                                first + i},
                state);
    }
}

/* On the host and in order, so that sums are the same on every device and with any number of
 * threads: cheap compared with the model. */
void answers_each(const struct metric_node *node, struct device *d, int64_t rows, answers_add *add,
                  double *state)
{
    const struct tensor *logits = node->loss->logits, *labels = &node->loss->labels;
    const int64_t columns = shape_count_from(&logits->shape, 1), count = rows * columns;
    if (is_of_two_classes(node->loss)) return each_of_two_classes(node, d, rows, add, state);
    for (int64_t first = 0; first < count; first += ANSWERS_AT_ONCE) {
        float said[ANSWERS_AT_ONCE] = {0}; /* in case the device fails */
        float wanted[ANSWERS_AT_ONCE] = {0}, weights[ANSWERS_AT_ONCE + 1];
        const int64_t left = count - first, n = left < ANSWERS_AT_ONCE ? left : ANSWERS_AT_ONCE;
        const size_t bytes = (size_t)n * sizeof(float);
        d->kernels->download(d, said, (const float *)logits->value + first, bytes);
        d->kernels->download(d, wanted, (const float *)labels->value + first, bytes);
        const int64_t row = first / columns, last = (first + n - 1) / columns;
        loss_row_weights(node->loss, d, row, last - row + 1, weights);
        for (int64_t i = 0; i < n; i++) {
            const int64_t of = (first + i) / columns;
            add(node, (struct answer){said[i], wanted[i], weights[of - row], of}, state);
        }
    }
}

struct in_top {
    int64_t k;
    bool first_of_equal;
};

/* An example may have several labels. */
static int64_t count_in_top(const struct metric_node *node, struct device *d, struct range rows,
                            const struct in_top *top)
{
    const struct tensor *logits = node->loss->logits, *labels = &node->loss->labels;
    const int64_t classes = logits->shape.dim[logits->shape.rank - 1];
    const int64_t places = shape_count_from(&labels->shape, 1), first = rows.begin * places;
    return d->kernels->count_in_top(
        d, (const float *)logits->value + first * classes, (const int32_t *)labels->value + first,
        range_count(rows) * places, classes, top->k, top->first_of_equal);
}

/* With weights, adjacent rows of equal weight are counted in one call: each call is a round trip to
 * a device with memory of its own. */
void answers_in_top(const struct metric_node *node, struct device *d, int64_t rows, int64_t k,
                    bool first_of_equal, double *state)
{
    const struct in_top top = {k, first_of_equal};
    if (!loss_is_weighted(node->loss)) {
        state[0] += (double)count_in_top(node, d, (struct range){0, rows}, &top);
        state[1] += (double)node->loss->counts.labels;
        return;
    }
    for (int64_t first = 0; first < rows; first += ANSWERS_AT_ONCE) {
        float weights[ANSWERS_AT_ONCE];
        const int64_t left = rows - first, n = left < ANSWERS_AT_ONCE ? left : ANSWERS_AT_ONCE;
        loss_row_weights(node->loss, d, first, n, weights);
        for (int64_t begin = 0, end; begin < n; begin = end) {
            for (end = begin + 1; end < n && weights[end] == weights[begin];) end++;
            const struct range alike = {first + begin, first + end};
            state[0] += weights[begin] * (double)count_in_top(node, d, alike, &top);
            state[1] += weights[begin] * (double)range_count(alike);
        }
    }
}

const struct field answers_threshold_fields[] = {
    {.name = "threshold",
     .type = FIELD_FLOAT,
     .offset = offsetof(struct answers_threshold, threshold),
     .fallback = "0.5",
     .min = 0,
     .max = 1,
     .help = "probabilities above this count as positive"},
    {0},
};

err answers_infer_threshold(struct metric_node *node, struct arena *arena)
{
    const struct answers_threshold *a = node->attributes;
    TRY(answers_infer_yes_or_no(node, arena));
    if (a->threshold != 0.5) node->name = arena_format(arena, "%s_%g", node->name, a->threshold);
    return OK;
}

/* The threshold is rounded to float, as in TensorFlow. */
bool answers_is_yes(const struct metric_node *node, float said)
{
    const struct answers_threshold *a = node->attributes;
    return answers_probability(node->loss, said) > (float)a->threshold;
}
