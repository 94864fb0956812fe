/* gemm.cu - matrix products: cuBLAS where it was found, else a kernel of our own, in float32 whatever
 * the precision allows. */
#include "kernels/cuda/product/matrix.cuh"

/* c = left right; c' where it is turned */
template <bool LEFT_ALONG_TERMS, bool RIGHT_ALONG_TERMS> struct gemm_operands {
    enum { ROUNDS = false };
    typedef matrix<LEFT_ALONG_TERMS> Left;
    typedef matrix<RIGHT_ALONG_TERMS> Right;
    Left left;
    Right right;
    int rows, columns, terms;
    float *c;
    bool is_turned, adds;

    gemm_operands plain(float *sums) const
    {
        return {left, right, rows, columns, terms, sums, false, false};
    }

    template <int COUNT> __device__ void store(int row, int column, const float *sums) const
    {
        if (!is_turned) {
            store_together<COUNT>(c + (int64_t)row * columns + column, sums, adds);
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; i++)
            store_together<1>(c + (int64_t)(column + i) * rows + row, sums + i, adds);
    }
};

/* A tile has more rows than columns, if need be: the few rows of a small batch fit its columns
 * better, as those of c' = b' a'. */
static bool should_turn(const struct gemm *g)
{
    return g->m <= TILE_ROWS / 2 && g->m < g->n;
}

static struct gemm turned(const struct gemm *g)
{
    return {!g->transpose_b, !g->transpose_a, g->add, g->n, g->m, g->k, g->b, g->a, g->c};
}

template <bool LEFT_ALONG_TERMS, bool RIGHT_ALONG_TERMS>
static void own_product(struct device *d, const struct gemm *g, bool is_turned)
{
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    const gemm_operands<LEFT_ALONG_TERMS, RIGHT_ALONG_TERMS> o = {
        {g->a, m, k}, {g->b, n, k}, m, n, k, g->c, is_turned, g->add};
    struct product p = {"gemm", false, false, product_slices(m, n, k), NULL};
    p.is_wide =
        has_quads(g->a, LEFT_ALONG_TERMS ? k : m) && has_quads(g->b, RIGHT_ALONG_TERMS ? k : n);
    p.sums = ((const struct cuda_state *)d->state)->product_sums;
    p.stores_quads = has_quads(p.slices > 1 || is_turned ? p.sums : g->c, n);
    product(d, p, o);
}

static void own_gemm(struct device *d, const struct gemm *wanted)
{
    const bool is_turned = should_turn(wanted);
    const struct gemm g = is_turned ? turned(wanted) : *wanted;
    if (g.transpose_a && g.transpose_b)
        own_product<false, true>(d, &g, is_turned);
    else if (g.transpose_a)
        own_product<false, false>(d, &g, is_turned);
    else if (g.transpose_b)
        own_product<true, true>(d, &g, is_turned);
    else
        own_product<true, false>(d, &g, is_turned);
}

/* cuBLAS counts in ints, and so do our own kernels. */
static bool fits_ints(const struct gemm *g)
{
    return g->m <= INT32_MAX && g->n <= INT32_MAX && g->k <= INT32_MAX;
}

/* Its matrices lie by columns: what it sees is the product of the transposes, b' a' = c'. */
static void blas_gemm(struct device *d, const struct gemm *g)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    const float one = 1.0f, kept = g->add ? 1.0f : 0.0f;
    if (!cuda_may_queue(d)) return;
    const int status = state->blas.gemm(state->blas.handle, g->transpose_b, g->transpose_a, n, m, k,
                                        &one, g->b, BLAS_FLOAT, g->transpose_b ? k : n, g->a,
                                        BLAS_FLOAT, g->transpose_a ? m : k, &kept, g->c, BLAS_FLOAT,
                                        n, state->blas.compute, BLAS_ANY_ALGORITHM);
    /* The library has a runtime of its own: CUDA's last error would be another's. */
    cuda_launched(d, "cublasGemmEx", cudaSuccess);
    if (status == 0) return;
    cuda_await_cause(d);
    cuda_remember(d, status == BLAS_NO_MEMORY ? ERR_MEMORY : ERR_DEVICE, "cublasGemmEx",
                  state->blas.status_text(status));
}

void cuda_gemm(struct device *d, const struct gemm *g)
{
    const struct cuda_state *state = (const struct cuda_state *)d->state;
    if (g->m == 0 || g->n == 0) return;
    if (g->k == 0) {
        if (!g->add) d->kernels->fill(d, g->c, 0.0f, g->m * g->n);
    } else if (!fits_ints(g)) {
        cuda_refuse(d, "a product of more than 2^31 rows, columns or terms");
    } else if (state->blas.handle) {
        blas_gemm(d, g);
    } else {
        own_gemm(d, g);
    }
}

err cuda_product_init(struct device *d)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    if (state->blas.handle) return OK;
    void *sums;
    const cudaError_t status = cudaMalloc(&sums, PRODUCT_SUMS_MAX * sizeof(float));
    if (status != cudaSuccess) {
        (void)cudaGetLastError();
        return fail(cuda_kind(status), "cudaMalloc: %s", cudaGetErrorString(status));
    }
    state->product_sums = (float *)sums;
    return OK;
}

void cuda_product_fini(struct cuda_state *state)
{
    if (state->product_sums) (void)cudaFree(state->product_sums);
}

/* Small products: a thread has a place of one of them, and one launch all. */
struct gemm_each_body {
    struct gemm g;

    __device__ void operator()(int64_t index) const
    {
        const int64_t row = quotient_of(index, g.n), i = quotient_of(row, g.m);
        const int64_t y = row - i * g.m, x = index - row * g.n;
        const float *a = g.a + i * g.m * g.k + (g.transpose_a ? y : y * g.k);
        const float *b = g.b + i * g.k * g.n + (g.transpose_b ? x * g.k : x);
        const int64_t a_step = g.transpose_a ? g.m : 1, b_step = g.transpose_b ? 1 : g.n;
        float sum = 0;
        for (int64_t k = 0; k < g.k; k++) sum += a[k * a_step] * b[k * b_step];
        g.c[index] = g.add ? g.c[index] + sum : sum;
    }
};

enum { GEMM_EACH_MAX = 1 << 20 }; /* multiply-adds of a product, from which on it fills a device */

void cuda_gemm_each(struct device *d, const struct gemm *g, int64_t count)
{
    if (g->m * g->n * g->k <= GEMM_EACH_MAX) {
        each(d, "gemm_each", gemm_each_body{*g}, count * g->m * g->n);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        struct gemm one = *g;
        one.a += i * g->m * g->k;
        one.b += i * g->k * g->n;
        one.c += i * g->m * g->n;
        one.made = NULL;
        cuda_gemm(d, &one);
    }
}
