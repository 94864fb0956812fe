/* vector.cu - kernels on plain vectors of floats: one struct each, whose call is one element. */
#include "kernels/cuda/launch.cuh"

struct fill_element {
    float *y, value;
    __device__ void operator()(int64_t i) const
    {
        y[i] = value;
    }
};

static void fill(struct device *d, float *y, float value, int64_t n)
{
    each(d, "fill", fill_element{y, value}, n);
}

struct copy_element {
    float *y;
    const float *x;
    __device__ void operator()(int64_t i) const
    {
        y[i] = x[i];
    }
};

static void copy(struct device *d, float *y, const float *x, int64_t n)
{
    each(d, "copy", copy_element{y, x}, n);
}

struct axpy_element {
    float *y, a;
    const float *x;
    __device__ void operator()(int64_t i) const
    {
        y[i] += a * x[i];
    }
};

static void axpy(struct device *d, float *y, float a, const float *x, int64_t n)
{
    each(d, "axpy", axpy_element{y, a, x}, n);
}

struct scale_element {
    float *y, a;
    __device__ void operator()(int64_t i) const
    {
        y[i] *= a;
    }
};

static void scale(struct device *d, float *y, float a, int64_t n)
{
    each(d, "scale", scale_element{y, a}, n);
}

struct add_element {
    float *y;
    const float *a, *b;
    __device__ void operator()(int64_t i) const
    {
        y[i] = a[i] + b[i];
    }
};

static void add(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    each(d, "add", add_element{y, a, b}, n);
}

struct multiply_element {
    float *y;
    const float *a, *b;
    __device__ void operator()(int64_t i) const
    {
        y[i] = a[i] * b[i];
    }
};

static void multiply(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    each(d, "multiply", multiply_element{y, a, b}, n);
}

struct multiply_add_element {
    float *y;
    const float *a, *b;
    __device__ void operator()(int64_t i) const
    {
        y[i] += a[i] * b[i];
    }
};

static void multiply_add(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    each(d, "multiply_add", multiply_add_element{y, a, b}, n);
}

struct clamp_element {
    float *y, low, high;
    __device__ void operator()(int64_t i) const
    {
        y[i] = element_clamp(y[i], low, high);
    }
};

static void clamp(struct device *d, float *y, float low, float high, int64_t n)
{
    each(d, "clamp", clamp_element{y, low, high}, n);
}

struct regularize_element {
    float *gradient;
    const float *w;
    float l1, l2;
    __device__ void operator()(int64_t i) const
    {
        gradient[i] += element_regularize(w[i], l1, l2);
    }
};

static void regularize(struct device *d, float *gradient, const float *w, float l1, float l2,
                       int64_t n)
{
    each(d, "regularize", regularize_element{gradient, w, l1, l2}, n);
}

/* Elements are counted through the rows. */
struct strided_element {
    struct strided s;
    bool add;
    __device__ void operator()(int64_t i) const
    {
        int64_t row = quotient_of(i, s.columns), column = i - row * s.columns;
        float *dst = s.dst + row * s.dst_stride + column;
        float x = s.src[row * s.src_stride + column];
        *dst = add ? *dst + x : x;
    }
};

static void copy_strided(struct device *d, const struct strided *s)
{
    each(d, "copy_strided", strided_element{*s, false}, s->rows * s->columns);
}

static void add_strided(struct device *d, const struct strided *s)
{
    each(d, "add_strided", strided_element{*s, true}, s->rows * s->columns);
}

struct dropout_element {
    float *y;
    const float *x;
    float rate, kept;
    uint64_t key;
    const uint64_t *draw;
    bool add;
    __device__ void operator()(int64_t i) const
    {
        const uint64_t mask = element_random_u64(key, *draw);
        bool keeps = element_random_uniform(mask, (uint64_t)i) >= rate;
        float value = keeps ? x[i] * kept : 0.0f;
        y[i] = add ? y[i] + value : value;
    }
};

static void dropout(struct device *d, const struct dropout *v, int64_t n)
{
    each(d, "dropout",
         dropout_element{v->y, v->x, v->rate, 1.0f / (1.0f - v->rate), v->key, v->draw, v->add}, n);
}

/* Travels with the launch, whose arguments may have 4 KiB. */
enum { SOURCES_MAX = 256 };
struct sources {
    const float *at[SOURCES_MAX];
};

/* The sum is written when it is complete: y may be one of the sources. */
struct ordered_element {
    float *y, scale;
    int count;
    struct sources sources;
    __device__ void operator()(int64_t i) const
    {
        float sum = sources.at[0][i];
        for (int source = 1; source < count; source++) sum += sources.at[source][i];
        y[i] = scale * sum;
    }
};

static void sum_ordered(struct device *d, float *y, const float *const sources[], int count,
                        float factor, int64_t n)
{
    ordered_element body = {y, factor, count, {}};
    if (count > SOURCES_MAX) {
        cuda_refuse(d, "sum_ordered: more than 256 sources");
        return;
    }
    memcpy(body.sources.at, sources, (size_t)count * sizeof *sources);
    each(d, "sum_ordered", body, n);
}

/* Host loops: this device has no threads on the host. */
static void spread(struct device *d, int64_t n, int64_t grain, spread_body *body,
                   const void *arguments)
{
    body(arguments, 0, n);
}

void cuda_vector_fill(struct kernels *table)
{
    table->fill = fill;
    table->copy = copy;
    table->axpy = axpy;
    table->scale = scale;
    table->add = add;
    table->multiply = multiply;
    table->multiply_add = multiply_add;
    table->clamp = clamp;
    table->regularize = regularize;
    table->copy_strided = copy_strided;
    table->add_strided = add_strided;
    table->dropout = dropout;
    table->sum_ordered = sum_ordered;
    table->spread = spread;
}
