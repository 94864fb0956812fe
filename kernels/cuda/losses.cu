/* losses.cu - losses of rows and their gradients, with a warp for each row. */
#include "kernels/cuda/rows.cuh"

/* sum(x - top): what label smoothing spreads over the other classes */
ON_GPU float row_sum_below(const float *x, float top, int64_t columns)
{
    double sum = 0;
    for (int64_t i = lane_index(); i < columns; i += WARP) sum += x[i] - top;
    return (float)warp_sum(sum);
}

/* With z = x - max and S = sum(e^z): loss = log S - sum(target z), gradient = e^z / S - target,
 * where target = (1 - smoothing) onehot(label) + smoothing / classes. The gradient may lie where
 * the logits are, so all that is wanted of them is read before the first e^z is written. */
ON_GPU void softmax_loss_row(const struct cross_entropy &c, int64_t row)
{
    const float *x = c.logits + row * c.classes;
    float *gradient = c.gradient ? c.gradient + row * c.classes : NULL;
    const int32_t label = c.labels[row];
    const float weight = c.class_weights ? c.class_weights[label] : 1.0f;
    const float share = c.label_smoothing / (float)c.classes, own = 1.0f - c.label_smoothing;

    const float top = row_max(x, c.classes);
    float expected = own * (x[label] - top);
    if (share > 0.0f) expected += share * row_sum_below(x, top, c.classes);
    __syncwarp();
    const float sum = row_exp(gradient, x, top, c.classes);
    if (lane_index() == 0) c.losses[row] = weight * (mathf_log(sum) - expected);
    if (!gradient) return;

    const float factor = weight * c.scale / sum, below = share * weight * c.scale;
    for (int64_t i = lane_index(); i < c.classes; i += WARP) {
        float g = gradient[i] * factor - below;
        gradient[i] = i == label ? g - own * weight * c.scale : g;
    }
}

static __global__ void softmax_losses(struct cross_entropy c)
{
    for (int64_t row = grid_warp(); row < c.rows; row += grid_warps()) softmax_loss_row(c, row);
}

static void softmax_cross_entropy(struct device *d, const struct cross_entropy *c)
{
    if (c->rows == 0) return;
    launch(d, {"softmax_cross_entropy", row_blocks(c->rows), 1}, softmax_losses, *c);
}

ON_GPU float pair_at(enum pair_kind kind, const struct pairs &p, int64_t i)
{
    float slope, loss = element_pair_loss(kind, &p, p.x[i], p.targets[i], &slope);
    if (p.gradient) p.gradient[i] = p.scale * slope;
    return loss;
}

static __global__ void pair_losses(enum pair_kind kind, struct pairs p, int64_t rows)
{
    for (int64_t row = grid_warp(); row < rows; row += grid_warps()) {
        double sum = 0;
        for (int64_t i = lane_index(); i < p.columns; i += WARP)
            sum += pair_at(kind, p, row * p.columns + i);
        sum = warp_sum(sum);
        if (lane_index() == 0) p.losses[row] = (float)sum;
    }
}

/* One column is the common case: a thread for each row. */
struct pair_element {
    enum pair_kind kind;
    struct pairs p;
    __device__ void operator()(int64_t i) const
    {
        p.losses[i] = pair_at(kind, p, i);
    }
};

static void run_pairs(struct device *d, enum pair_kind kind, const struct pairs *p, int64_t rows)
{
    static const char *const names[] = {"sigmoid_cross_entropy", "squared_error", "huber"};
    if (p->columns == 1)
        each(d, names[kind], pair_element{kind, *p}, rows);
    else if (rows > 0)
        launch(d, {names[kind], row_blocks(rows), 1}, pair_losses, kind, *p, rows);
}

static void sigmoid_cross_entropy(struct device *d, const struct cross_entropy *c)
{
    const struct pairs p = pairs_of_classes(c);
    run_pairs(d, PAIR_SIGMOID, &p, c->rows);
}

static void regression(struct device *d, enum pair_kind kind, const struct regression *r)
{
    const struct pairs p = pairs_of_regression(r);
    run_pairs(d, kind, &p, r->rows);
}

static void squared_error(struct device *d, const struct regression *r)
{
    regression(d, PAIR_SQUARED, r);
}

static void huber(struct device *d, const struct regression *r)
{
    regression(d, PAIR_HUBER, r);
}

void cuda_losses_fill(struct kernels *table)
{
    table->softmax_cross_entropy = softmax_cross_entropy;
    table->sigmoid_cross_entropy = sigmoid_cross_entropy;
    table->squared_error = squared_error;
    table->huber = huber;
}
