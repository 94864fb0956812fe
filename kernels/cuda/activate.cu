/* activate.cu - activation functions, alone and with a bias. Each function has its own kernels, so
 * that they do not branch on it. */
#include "kernels/cuda/product/packs.cuh"

template <enum activation KIND> struct constant {
    static constexpr enum activation kind = KIND;
};

/* run(constant of the kind) */
template <typename Run> static void with_kind(enum activation kind, const Run &run)
{
    switch (kind) {
    case ACTIVATION_RELU:
        return run(constant<ACTIVATION_RELU>{});
    case ACTIVATION_RELU6:
        return run(constant<ACTIVATION_RELU6>{});
    case ACTIVATION_ELU:
        return run(constant<ACTIVATION_ELU>{});
    case ACTIVATION_LEAKY_RELU:
        return run(constant<ACTIVATION_LEAKY_RELU>{});
    case ACTIVATION_SIGMOID:
        return run(constant<ACTIVATION_SIGMOID>{});
    case ACTIVATION_TANH:
        return run(constant<ACTIVATION_TANH>{});
    case ACTIVATION_SOFTPLUS:
        return run(constant<ACTIVATION_SOFTPLUS>{});
    case ACTIVATION_SWISH:
        return run(constant<ACTIVATION_SWISH>{});
    case ACTIVATION_GELU:
        return run(constant<ACTIVATION_GELU>{});
    case ACTIVATION_GELU_TANH:
        return run(constant<ACTIVATION_GELU_TANH>{});
    case ACTIVATION_SELU:
        return run(constant<ACTIVATION_SELU>{});
    case ACTIVATION_SOFTSIGN:
        return run(constant<ACTIVATION_SOFTSIGN>{});
    case ACTIVATION_SQUARE:
        return run(constant<ACTIVATION_SQUARE>{});
    case ACTIVATION_SQRT:
        return run(constant<ACTIVATION_SQRT>{});
    case ACTIVATION_EXP:
        return run(constant<ACTIVATION_EXP>{});
    case ACTIVATION_LOG:
        return run(constant<ACTIVATION_LOG>{});
    case ACTIVATION_ABS:
        return run(constant<ACTIVATION_ABS>{});
    default:
        return run(constant<ACTIVATION_LINEAR>{});
    }
}

/* Reads dy, y, x and dx, the last two only if needed */
template <enum activation KIND> struct activate_back_formula {
    float alpha;
    bool add;
    __device__ void operator()(float *to, const float *from, int64_t) const
    {
        float gradient = from[0] * element_slope(KIND, alpha, from[1], from[2]);
        to[0] = add ? from[3] + gradient : gradient;
    }
};

void cuda_activate_back(struct device *d, float *dx, const float *dy, const float *y,
                        const float *x, enum activation kind, float alpha, int64_t n, bool add)
{
    const float *read_y = kind == ACTIVATION_LINEAR ? NULL : y; /* y may be NULL */
    const float *read_x = activation_reads_x(kind) ? x : NULL, *read_dx = add ? dx : NULL;
    with_kind(kind, [&](auto is) {
        each_number(d, "activate_back", streams<4, 1>{{dy, read_y, read_x, read_dx}, {dx}},
                    activate_back_formula<decltype(is)::kind>{alpha, add}, n);
    });
}

/* If a row ends inside a pack, the next row continues with the first column. */
template <enum activation KIND> struct bias_body {
    enum { COUNT = LOADS, BLOCKS = RESIDENT_BLOCKS };
    const float *from; /* [rows, columns], may be y */
    float *y, *pre;    /* the same; pre may be NULL */
    const float *bias; /* [columns], may be NULL */
    float alpha;
    int64_t columns;

    template <int WIDTH> __device__ void add_bias(float *x, int64_t i) const
    {
        int64_t column = i - quotient_of(i, columns) * columns;
#pragma unroll
        for (int j = 0; j < WIDTH; j++) {
            x[j] += bias[column];
            column = column + 1 == columns ? 0 : column + 1;
        }
    }

    template <int WIDTH, int PACKS> __device__ void take(int64_t first, int64_t step) const
    {
        float x[PACKS][WIDTH];
#pragma unroll
        for (int k = 0; k < PACKS; k++) pack_read<WIDTH>(x[k], from + first + k * step);
#pragma unroll
        for (int k = 0; k < PACKS; k++)
            if (bias) add_bias<WIDTH>(x[k], first + k * step);
#pragma unroll
        for (int k = 0; k < PACKS; k++) {
            if (pre) pack_write<WIDTH>(pre + first + k * step, x[k]);
            for (int j = 0; j < WIDTH; j++) x[k][j] = element_activate(KIND, alpha, x[k][j]);
            pack_write<WIDTH>(y + first + k * step, x[k]);
        }
    }
};

static void run_bias(struct device *d, const char *name, float *y, const float *from,
                     const float *bias, float *pre, enum activation kind, float alpha, int64_t n,
                     int64_t columns)
{
    const float *const at[] = {y, from, pre};
    const struct pack_cut c = cut_together(at, 3, n);
    with_kind(kind, [&](auto is) {
        each_pack(d, name, bias_body<decltype(is)::kind>{from, y, pre, bias, alpha, columns}, c);
    });
}

void cuda_bias_activate(struct device *d, float *y, const float *bias, float *pre,
                        enum activation kind, float alpha, int64_t rows, int64_t columns)
{
    run_bias(d, "bias_activate", y, y, bias, pre, kind, alpha, rows * columns, columns);
}

void cuda_activate(struct device *d, float *y, const float *x, enum activation kind, float alpha,
                   int64_t n)
{
    if (kind == ACTIVATION_LINEAR && y == x) return;
    run_bias(d, "activate", y, x, NULL, NULL, kind, alpha, n, n);
}
