/* losses.cu - losses of rows and their gradients. */
#include "kernels/cuda/rows.cuh"

/* The target of a row */
struct softmax_target {
    int32_t label;
    float weight, share, own; /* label: own + share, every other class: share */
};

/* With z = x - max and S = sum(e^z): loss = log S - sum(target z), gradient = e^z / S - target,
 * where target = (1 - smoothing) onehot(label) + smoothing / classes. The gradient may lie where
 * the logits are, so all that is wanted of them is read before the first of it is written. */
struct softmax_loss_row {
    enum { IS_SUM = false, BLOCKS = 3 };
    struct cross_entropy c;

    template <typename Row> __device__ struct softmax_target target_of(const Row &row) const
    {
        const int32_t label = row.columns > 0 ? c.labels[row.row] : 0;
        const float weight = label < 0 ? 0.0f : c.class_weights ? c.class_weights[label] : 1.0f;
        return {label, weight, c.label_smoothing / (float)c.classes, 1.0f - c.label_smoothing};
    }

    template <typename Row> __device__ float top_of(const Row &row, float *held) const
    {
        float top = -INFINITY;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            row.read(held, c.logits, at);
            row.each(at, [&](int i, int64_t) { top = held[i] > top ? held[i] : top; });
        }
        return row.group.max(top); /* NaN does not count */
    }

    template <typename Row>
    __device__ void write_gradient(const Row &row, const struct softmax_target &t, float *held,
                                   float top, float sum) const
    {
        const float scale = *c.scale;
        const float factor = t.weight * scale / sum, below = t.share * t.weight * scale;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            if (Row::IS_WIDE) row.read(held, c.logits, at);
            row.each(at, [&](int i, int64_t column) {
                const float e = Row::IS_WIDE ? mathf_exp(held[i] - top) : held[i];
                const float g = e * factor - below;
                held[i] = t.label < 0         ? 0.0f
                          : column == t.label ? g - t.own * t.weight * scale
                                              : g;
            });
            row.write(c.gradient, held, at);
        }
    }

    template <typename Row> __device__ double operator()(const Row &row) const
    {
        float held[HELD];
        double sum = 0, below_top = 0; /* below_top: sum(z), for label smoothing */
        const struct softmax_target t = target_of(row);
        const bool has_row = row.columns > 0, has_label = has_row && t.label >= 0;
        const float logit = has_label ? c.logits[row.row * row.columns + t.label] : 0.0f;
        const float top = top_of(row, held);
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            if (Row::IS_WIDE) row.read(held, c.logits, at);
            row.each(at, [&](int i, int64_t) {
                const float z = held[i] - top;
                if (t.share > 0.0f) below_top += z;
                sum += held[i] = mathf_exp(z);
            });
        }
        const float whole = (float)row.group.sum(sum);
        float expected = t.own * (logit - top);
        if (t.share > 0.0f) expected += t.share * (float)row.group.sum(below_top);
        if (row.group.rank == 0 && has_row)
            c.losses[row.row] = has_label ? t.weight * (mathf_log(whole) - expected) : 0.0f;
        row.group.wait();
        if (c.gradient) write_gradient(row, t, held, top, whole);
        return 0;
    }
};

void cuda_softmax_cross_entropy(struct device *d, const struct cross_entropy *c)
{
    if (c->rows == 0) return;
    each_row(d, "softmax_cross_entropy", softmax_loss_row{*c}, {c->rows, c->classes},
             is_packed(c->logits) && is_packed(c->gradient));
}

/* All threads take the same branch on the kind of loss, which costs less than a kernel per kind. */
struct pair_row {
    enum { IS_SUM = false, BLOCKS = 2 };
    struct pairs p;
    enum pair_kind kind;

    template <typename Row> __device__ double operator()(const Row &row) const
    {
        const float scale = *p.scale;
        float held[HELD], targets[HELD];
        double sum = 0;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            row.read(held, p.x, at);
            row.read(targets, p.targets, at);
            row.each(at, [&](int i, int64_t) {
                float slope;
                sum += element_pair_loss(kind, &p, held[i], targets[i], &slope);
                held[i] = scale * slope;
            });
            if (p.gradient) row.write(p.gradient, held, at);
        }
        sum = row.group.sum(sum);
        if (row.group.rank == 0 && row.columns > 0) p.losses[row.row] = (float)sum;
        return 0;
    }
};

/* One column is the common case: its numbers are their own rows. */
struct pair_formula {
    struct pairs p;
    enum pair_kind kind;

    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        float slope;
        to[0] = element_pair_loss(kind, &p, from[0], from[1], &slope);
        to[1] = *p.scale * slope;
    }
};

static void run_pairs(struct device *d, const char *name, enum pair_kind kind,
                      const struct pairs &p, int64_t rows)
{
    const bool packed = is_packed(p.x) && is_packed(p.targets) && is_packed(p.gradient);
    if (p.columns == 1)
        each_number(d, name, streams<2, 2>{{p.x, p.targets}, {p.losses, p.gradient}},
                    pair_formula{p, kind}, rows);
    else if (rows > 0)
        each_row(d, name, pair_row{p, kind}, {rows, p.columns}, packed);
}

void cuda_sigmoid_cross_entropy(struct device *d, const struct cross_entropy *c)
{
    run_pairs(d, "sigmoid_cross_entropy", PAIR_SIGMOID, pairs_of_classes(c), c->rows);
}

void cuda_weighted_cross_entropy(struct device *d, const struct regression *r)
{
    run_pairs(d, "weighted_cross_entropy", PAIR_WEIGHTED, pairs_of_regression(r), r->rows);
}

void cuda_log_loss(struct device *d, const struct regression *r)
{
    run_pairs(d, "log_loss", PAIR_LOG, pairs_of_regression(r), r->rows);
}

void cuda_squared_error(struct device *d, const struct regression *r)
{
    run_pairs(d, "squared_error", PAIR_SQUARED, pairs_of_regression(r), r->rows);
}

void cuda_huber(struct device *d, const struct regression *r)
{
    run_pairs(d, "huber", PAIR_HUBER, pairs_of_regression(r), r->rows);
}

struct one_hot_body {
    float *y;
    const int32_t *labels;
    int64_t classes;

    __device__ void operator()(int64_t index) const
    {
        const int64_t row = quotient_of(index, classes);
        y[index] = index - row * classes == labels[row] ? 1.0f : 0.0f;
    }
};

void cuda_one_hot(struct device *d, float *y, const int32_t *labels, int64_t rows, int64_t classes)
{
    each(d, "one_hot", one_hot_body{y, labels, classes}, rows * classes);
}
