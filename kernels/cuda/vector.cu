/* vector.cu - kernels on plain vectors of floats: one formula each, for one element of every
 * vector. */
#include "kernels/cuda/product/packs.cuh"

struct fill_formula {
    float value;
    __device__ void operator()(float *to, const float *, int64_t) const
    {
        to[0] = value;
    }
};

void cuda_fill(struct device *d, float *y, float value, int64_t n)
{
    each_number(d, "fill", streams<0, 1>{{NULL}, {y}}, fill_formula{value}, n);
}

struct copy_formula {
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        to[0] = from[0];
    }
};

void cuda_copy(struct device *d, float *y, const float *x, int64_t n)
{
    each_number(d, "copy", streams<1, 1>{{x}, {y}}, copy_formula{}, n);
}

struct axpy_formula {
    float a;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        to[0] = from[0] + a * from[1];
    }
};

void cuda_axpy(struct device *d, float *y, float a, const float *x, int64_t n)
{
    each_number(d, "axpy", streams<2, 1>{{y, x}, {y}}, axpy_formula{a}, n);
}

struct scale_formula {
    float a;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        to[0] = from[0] * a;
    }
};

void cuda_scale(struct device *d, float *y, float a, int64_t n)
{
    each_number(d, "scale", streams<1, 1>{{y}, {y}}, scale_formula{a}, n);
}

struct add_formula {
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        to[0] = from[0] + from[1];
    }
};

void cuda_add(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    each_number(d, "add", streams<2, 1>{{a, b}, {y}}, add_formula{}, n);
}

struct multiply_formula {
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        to[0] = from[0] * from[1];
    }
};

void cuda_multiply(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    each_number(d, "multiply", streams<2, 1>{{a, b}, {y}}, multiply_formula{}, n);
}

struct multiply_add_formula {
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        to[0] = from[0] + from[1] * from[2];
    }
};

void cuda_multiply_add(struct device *d, float *y, const float *a, const float *b, int64_t n)
{
    each_number(d, "multiply_add", streams<3, 1>{{y, a, b}, {y}}, multiply_add_formula{}, n);
}

struct clamp_formula {
    float low, high;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        to[0] = element_clamp(from[0], low, high);
    }
};

void cuda_clamp(struct device *d, float *y, float low, float high, int64_t n)
{
    each_number(d, "clamp", streams<1, 1>{{y}, {y}}, clamp_formula{low, high}, n);
}

struct regularize_formula {
    float l1, l2;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        to[0] = from[0] + element_regularize(from[1], l1, l2);
    }
};

void cuda_regularize(struct device *d, float *gradient, const float *w, float l1, float l2,
                     int64_t n)
{
    each_number(d, "regularize", streams<2, 1>{{gradient, w}, {gradient}},
                regularize_formula{l1, l2}, n);
}

/* Elements are numbered across rows; a pack is always within one row. */
template <typename Index> struct strided_body {
    enum { COUNT = LOADS, BLOCKS = RESIDENT_BLOCKS };
    struct strided s;
    bool add;

    template <int WIDTH, int PACKS> __device__ void take(int64_t first, int64_t step) const
    {
        float *to[PACKS], x[PACKS][WIDTH], y[PACKS][WIDTH];
#pragma unroll
        for (int k = 0; k < PACKS; k++) {
            const Index i = (Index)(first + k * step), row = i / (Index)s.columns;
            const int64_t column = i - row * (Index)s.columns;
            to[k] = s.dst + row * s.dst_stride + column;
            pack_read<WIDTH>(x[k], s.src + row * s.src_stride + column);
            if (add) pack_read<WIDTH>(y[k], to[k]);
        }
#pragma unroll
        for (int k = 0; k < PACKS; k++) {
            for (int j = 0; j < WIDTH; j++) y[k][j] = add ? y[k][j] + x[k][j] : x[k][j];
            pack_write<WIDTH>(to[k], y[k]);
        }
    }
};

static void run_strided(struct device *d, const char *name, const struct strided *s, bool add)
{
    const int64_t n = s->rows * s->columns;
    const bool has_packs = (s->columns | s->dst_stride | s->src_stride) % PACK == 0 &&
                           is_packed(s->dst) && is_packed(s->src);
    const struct pack_cut c = has_packs ? cut_of(0, n) : uncut(n);
    if (n <= UINT32_MAX)
        each_pack(d, name, strided_body<uint32_t>{*s, add}, c);
    else
        each_pack(d, name, strided_body<int64_t>{*s, add}, c);
}

void cuda_copy_strided(struct device *d, const struct strided *s)
{
    run_strided(d, "copy_strided", s, false);
}

void cuda_add_strided(struct device *d, const struct strided *s)
{
    run_strided(d, "add_strided", s, true);
}

/* The key of the mask is the same for all elements of a thread, which reads it before it writes. */
struct dropout_formula {
    float rate, kept;
    uint64_t key;
    const uint64_t *draw;
    int64_t first;
    bool add;
    __device__ void operator()(float *to, const float *from, int64_t i) const
    {
        const uint64_t mask = element_random_u64(key, *draw);
        bool keeps = element_random_uniform(mask, (uint64_t)(first + i)) >= rate;
        float value = keeps ? from[0] * kept : 0.0f;
        to[0] = add ? from[1] + value : value;
    }
};

void cuda_dropout(struct device *d, const struct dropout *v, int64_t n)
{
    each_number(d, "dropout", streams<2, 1>{{v->x, v->add ? v->y : NULL}, {v->y}},
                dropout_formula{v->rate, 1.0f / (1.0f - v->rate), v->key, v->draw, v->first, v->add}, n);
}

/* Passed as a kernel argument, limited to 4 KiB. */
enum { SOURCES_MAX = 256 };

/* The sum is written when it is complete: y may be one of the sources. */
struct ordered_body {
    enum { COUNT = 1, BLOCKS = RESIDENT_BLOCKS };
    float *y, scale;
    int count;
    const float *sources[SOURCES_MAX];

    template <int WIDTH, int PACKS> __device__ void take(int64_t i, int64_t) const
    {
        float sum[WIDTH];
        pack_read<WIDTH>(sum, sources[0] + i);
#pragma unroll 4 /* this many loads in flight at once */
        for (int source = 1; source < count; source++) {
            float x[WIDTH];
            pack_read<WIDTH>(x, sources[source] + i);
            for (int j = 0; j < WIDTH; j++) sum[j] += x[j];
        }
        for (int j = 0; j < WIDTH; j++) sum[j] *= scale;
        pack_write<WIDTH>(y + i, sum);
    }
};

void cuda_sum_ordered(struct device *d, float *y, const float *const sources[], int count,
                      float factor, int64_t n)
{
    ordered_body body = {y, factor, count, {}};
    if (count > SOURCES_MAX) {
        cuda_refuse(d, "sum_ordered: more than 256 sources");
        return;
    }
    memcpy(body.sources, sources, (size_t)count * sizeof *sources);
    const struct pack_cut of_sources = cut_together(sources, count, n);
    const float *const ends[] = {y, sources[0]};
    each_pack(d, "sum_ordered", body, of_sources.packs > 0 ? cut_together(ends, 2, n) : uncut(n));
}
