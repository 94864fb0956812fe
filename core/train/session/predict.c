/* predict.c - what a model says of examples: its last node's output, as its loss takes it.
 */
#include <math.h>
#include <stdlib.h>

#include "core/train/session/session_inside.h"

/* In place, of one row; the largest logit is taken off first, so that nothing overflows. */
static void softmax(float *row, int64_t columns)
{
    float top = row[0];
    double sum = 0;
    for (int64_t i = 1; i < columns; i++) top = fmaxf(top, row[i]);
    for (int64_t i = 0; i < columns; i++) sum += exp((double)row[i] - top);
    for (int64_t i = 0; i < columns; i++) row[i] = (float)(exp((double)row[i] - top) / sum);
}

/* Once for all of a set, on the host: an exponential per number is nothing beside the model. */
static void to_probabilities(enum prediction predicts, const struct predictions *p, float *values)
{
    switch (predicts) {
    case PREDICTS_CLASS:
        for (int64_t i = 0; i < p->rows; i++) softmax(values + i * p->columns, p->columns);
        break;
    case PREDICTS_LOGIT:
        for (int64_t i = 0; i < p->rows * p->columns; i++)
            values[i] = (float)(1 / (1 + exp(-(double)values[i])));
        break;
    case PREDICTS_NUMBER:
        break;
    }
}

/* values: [batch, columns], scratch. */
static err predict_all(struct session *s, const struct prediction_taker *taker, float *values)
{
    struct device *d = s->options.device;
    const struct loss_node *loss = &s->eval_plan->graph->loss;
    struct predictions p = {.columns = shape_count_from(&loss->logits->shape, 1), .at = values};
    for (;; p.first += p.rows) {
        TRY(session_forward_evaluation(s, &p.rows));
        if (p.rows == 0) return OK;
        d->kernels->download(d, values, loss->logits->value,
                             (size_t)(p.rows * p.columns) * sizeof(float));
        TRY(d->kernels->synchronize(d)); /* only now is it known whether all has come */
        to_probabilities(loss->loss->predicts, &p, values);
        TRY(taker->take(taker->context, &p));
    }
}

err session_predict(struct session *s, const struct prediction_taker *taker)
{
    if (!s->eval_data) return OK;
    TRY(session_open_evaluation(s));
    const struct shape *logits = &s->eval_plan->graph->loss.logits->shape;
    float *values = malloc((size_t)shape_count(logits) * sizeof *values);
    if (!values) return fail(ERR_MEMORY, "no memory for predictions");
    err e = predict_all(s, taker, values);
    free(values);
    return e;
}
