/* losses.c - losses of rows and their gradients. */
#include "kernels/cpu/chunk.h"
#include "kernels/cpu/isa.h"

enum { LOSS_GRAIN = SPREAD_GRAIN / 8 }; /* elements: an exp and a log each */

/* sum(x - top): what label smoothing spreads over the other classes */
static float row_sum_below(const float *x, float top, int64_t columns)
{
    double sum = 0;
    for (int64_t i = 0; i < columns; i++) sum += x[i] - top;
    return (float)sum;
}

/* What remains to compute for sixteen rows together: loss = weight (log sum - expected) */
struct open_losses {
    float sum[CHUNK], expected[CHUNK], weight[CHUNK];
};

/* With z = x - max and S = sum(e^z): loss = log S - sum(target z), gradient = e^z / S - target,
 * where target = (1 - smoothing) onehot(label) + smoothing / classes. */
ELEMENT void softmax_loss_row(const struct cross_entropy *c, int64_t row, int at,
                              struct open_losses *open)
{
    const float *x = c->logits + row * c->classes;
    float *gradient = c->gradient ? c->gradient + row * c->classes : NULL;
    const int32_t label = c->labels[row];
    if (label < 0) {
        open->weight[at] = open->expected[at] = 0.0f;
        open->sum[at] = 1.0f;
        for (int64_t i = 0; gradient && i < c->classes; i++) gradient[i] = 0.0f;
        return;
    }
    const float weight = c->class_weights ? c->class_weights[label] : 1.0f;
    const float share = c->label_smoothing / (float)c->classes, own = 1.0f - c->label_smoothing;

    const float top = row_max(x, c->classes);
    open->weight[at] = weight;
    open->expected[at] = own * (x[label] - top);
    if (share > 0.0f) open->expected[at] += share * row_sum_below(x, top, c->classes);
    open->sum[at] = row_exp(gradient, x, top, c->classes); /* last, because gradient may be the
                                                              logits */
    if (!gradient) return;

    const float scale = *c->scale;
    const float factor = weight * scale / open->sum[at], below = share * weight * scale;
    for (int64_t i = 0; i < c->classes; i++) gradient[i] = gradient[i] * factor - below;
    gradient[label] -= own * weight * scale;
}

static void softmax_loss_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct cross_entropy c = *(const struct cross_entropy *)arguments;
    struct open_losses open = {.sum = {0}};
    for (int64_t row = begin; row < end; row += CHUNK) {
        const int count = chunk_count(end - row);
        for (int i = 0; i < count; i++) softmax_loss_row(&c, row + i, i, &open);
        float losses[CHUNK];
        for (int i = 0; i < CHUNK; i++)
            losses[i] = open.weight[i] * (mathf_log(open.sum[i]) - open.expected[i]);
        chunk_store(c.losses + row, losses, count);
    }
}

void ISA(softmax_cross_entropy)(struct device *d, const struct cross_entropy *c)
{
    spread(d, c->rows, LOSS_GRAIN / (c->classes + CHUNK) + 1, softmax_loss_rows, c);
}

struct one_hot {
    float *y;
    const int32_t *labels;
    int64_t classes;
};

static void one_hot_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct one_hot *h = arguments;
    for (int64_t row = begin; row < end; row++)
        for (int64_t i = 0; i < h->classes; i++)
            h->y[row * h->classes + i] = i == h->labels[row] ? 1.0f : 0.0f;
}

void ISA(one_hot)(struct device *d, float *y, const int32_t *labels, int64_t rows, int64_t classes)
{
    spread(d, rows, SPREAD_GRAIN / (classes + 1) + 1, one_hot_rows,
           &(struct one_hot){y, labels, classes});
}

/* terms [CHUNK]: the losses of the count elements that begin at flat index `at` */
ELEMENT void pair_chunk(enum pair_kind kind, const struct pairs *p, int64_t at, int count,
                        float *terms)
{
    const float scale = *p->scale;
    float x[CHUNK], targets[CHUNK], slopes[CHUNK];
    chunk_load(x, p->x + at, count, 0.0f);
    chunk_load(targets, p->targets + at, count, 0.0f);
#pragma omp simd
    for (int i = 0; i < CHUNK; i++) {
        float slope;
        terms[i] = element_pair_loss(kind, p, x[i], targets[i], &slope);
        slopes[i] = scale * slope;
    }
    if (p->gradient) chunk_store(p->gradient + at, slopes, count);
}

ELEMENT void pair_row(enum pair_kind kind, const struct pairs *p, int64_t row)
{
    float terms[CHUNK];
    double sum[CHUNK] = {0};
    for (int64_t at = 0; at < p->columns; at += CHUNK) {
        int count = chunk_count(p->columns - at);
        pair_chunk(kind, p, row * p->columns + at, count, terms);
        for (int i = 0; i < CHUNK; i++) sum[i] += i < count ? terms[i] : 0.0f;
    }
    p->losses[row] = (float)chunk_sum(sum);
}

/* One column is the common case: losses are then laid out like the elements, sixteen rows at a
 * time. */
ELEMENT void pair_rows(enum pair_kind kind, const void *arguments, int64_t begin, int64_t end)
{
    const struct pairs p = *(const struct pairs *)arguments;
    if (p.columns != 1) {
        for (int64_t row = begin; row < end; row++) pair_row(kind, &p, row);
        return;
    }
    float terms[CHUNK];
    for (int64_t at = begin; at < end; at += CHUNK) {
        int count = chunk_count(end - at);
        pair_chunk(kind, &p, at, count, terms);
        chunk_store(p.losses + at, terms, count);
    }
}

static void sigmoid_rows(const void *arguments, int64_t begin, int64_t end)
{
    pair_rows(PAIR_SIGMOID, arguments, begin, end);
}

static void weighted_rows(const void *arguments, int64_t begin, int64_t end)
{
    pair_rows(PAIR_WEIGHTED, arguments, begin, end);
}

static void log_rows(const void *arguments, int64_t begin, int64_t end)
{
    pair_rows(PAIR_LOG, arguments, begin, end);
}

static void squared_rows(const void *arguments, int64_t begin, int64_t end)
{
    pair_rows(PAIR_SQUARED, arguments, begin, end);
}

static void huber_rows(const void *arguments, int64_t begin, int64_t end)
{
    pair_rows(PAIR_HUBER, arguments, begin, end);
}

void ISA(sigmoid_cross_entropy)(struct device *d, const struct cross_entropy *c)
{
    const struct pairs p = pairs_of_classes(c);
    spread(d, c->rows, LOSS_GRAIN / (c->classes + 1) + 1, sigmoid_rows, &p);
}

static void regression(struct device *d, const struct regression *r, range_body *body)
{
    const struct pairs p = pairs_of_regression(r);
    spread(d, r->rows, LOSS_GRAIN / (r->columns + 1) + 1, body, &p);
}

void ISA(weighted_cross_entropy)(struct device *d, const struct regression *r)
{
    regression(d, r, weighted_rows);
}

void ISA(log_loss)(struct device *d, const struct regression *r)
{
    regression(d, r, log_rows);
}

void ISA(squared_error)(struct device *d, const struct regression *r)
{
    regression(d, r, squared_rows);
}

void ISA(huber)(struct device *d, const struct regression *r)
{
    regression(d, r, huber_rows);
}
