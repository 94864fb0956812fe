/* activate.cu - activation functions, alone and with the bias in front of them. Which one it is is
 * the same for every thread, so the choice costs nothing beside the memory. */
#include "kernels/cuda/launch.cuh"

struct activate_element {
    float *y;
    const float *x;
    enum activation kind;
    float alpha;
    __device__ void operator()(int64_t i) const
    {
        y[i] = element_activate(kind, alpha, x[i]);
    }
};

static void activate(struct device *d, float *y, const float *x, enum activation kind, float alpha,
                     int64_t n)
{
    if (kind == ACTIVATION_LINEAR && y == x) return;
    each(d, "activate", activate_element{y, x, kind, alpha}, n);
}

struct activate_back_element {
    float *dx;
    const float *dy, *y, *x; /* x NULL: not read */
    enum activation kind;
    float alpha;
    bool add;
    __device__ void operator()(int64_t i) const
    {
        float slope = element_slope(kind, alpha, y[i], x ? x[i] : 0.0f);
        float gradient = dy[i] * slope;
        dx[i] = add ? dx[i] + gradient : gradient;
    }
};

static bool reads_x(enum activation kind)
{
    return kind == ACTIVATION_SOFTPLUS || kind == ACTIVATION_SWISH || kind == ACTIVATION_GELU ||
           kind == ACTIVATION_GELU_TANH;
}

static void activate_back(struct device *d, float *dx, const float *dy, const float *y,
                          const float *x, enum activation kind, float alpha, int64_t n, bool add)
{
    const float *readable_y = y ? y : dy; /* linear has no use for y and may come without it */
    const float *readable_x = reads_x(kind) ? x : NULL;
    each(d, "activate_back",
         activate_back_element{dx, dy, readable_y, readable_x, kind, alpha, add}, n);
}

struct bias_element {
    float *y, *pre;    /* [rows, columns] */
    const float *bias; /* [columns] */
    enum activation kind;
    float alpha;
    int64_t columns;
    __device__ void operator()(int64_t i) const
    {
        float x = y[i];
        if (bias) x += bias[i - quotient_of(i, columns) * columns];
        if (pre) pre[i] = x;
        y[i] = element_activate(kind, alpha, x);
    }
};

static void bias_activate(struct device *d, float *y, const float *bias, float *pre,
                          enum activation kind, float alpha, int64_t rows, int64_t columns)
{
    each(d, "bias_activate", bias_element{y, pre, bias, kind, alpha, columns}, rows * columns);
}

void cuda_activate_fill(struct kernels *table)
{
    table->activate = activate;
    table->activate_back = activate_back;
    table->bias_activate = bias_activate;
}
