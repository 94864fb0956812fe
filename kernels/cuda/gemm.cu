/* gemm.cu - matrix products: cuBLAS where it was found, else a kernel of our own. */
#include "kernels/cuda/product.cuh"

template <bool TRANSPOSE_A, bool TRANSPOSE_B> struct gemm_operands {
    enum { LEFT_ALONG_TERMS = !TRANSPOSE_A, RIGHT_ALONG_TERMS = TRANSPOSE_B };
    typedef int64_t Row, Term; /* their indices */
    struct gemm g;
    int64_t rows, columns, terms;

    __device__ Row row(int64_t i) const
    {
        return i;
    }

    __device__ Term term(int64_t k) const
    {
        return k;
    }

    __device__ float left(Row i, Term k) const
    {
        if (i >= rows || k >= terms) return 0.0f;
        return TRANSPOSE_A ? g.a[k * rows + i] : g.a[i * terms + k];
    }

    __device__ float right(Term k, int64_t column) const
    {
        return TRANSPOSE_B ? g.b[column * terms + k] : g.b[k * columns + column];
    }

    __device__ void store(int64_t i, int64_t column, int64_t, float sum) const
    {
        float *c = g.c + i * columns + column;
        *c = g.add ? *c + sum : sum;
    }
};

template <bool TRANSPOSE_A, bool TRANSPOSE_B>
static void own_product(struct device *d, const struct gemm *g)
{
    product(d, "gemm", gemm_operands<TRANSPOSE_A, TRANSPOSE_B>{*g, g->m, g->n, g->k}, 1);
}

static void own_gemm(struct device *d, const struct gemm *g)
{
    if (g->transpose_a && g->transpose_b)
        own_product<true, true>(d, g);
    else if (g->transpose_a)
        own_product<true, false>(d, g);
    else if (g->transpose_b)
        own_product<false, true>(d, g);
    else
        own_product<false, false>(d, g);
}

/* cuBLAS counts in ints. */
static bool fits_blas(const struct gemm *g)
{
    return g->m <= INT32_MAX && g->n <= INT32_MAX && g->k <= INT32_MAX;
}

/* Its matrices lie by columns: what it sees is the product of the transposes, b' a' = c'. */
static void blas_gemm(struct device *d, const struct gemm *g)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    const float one = 1.0f, kept = g->add ? 1.0f : 0.0f;
    cuda_select(d);
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

static void gemm(struct device *d, const struct gemm *g)
{
    const struct cuda_state *state = (const struct cuda_state *)d->state;
    if (g->m == 0 || g->n == 0) return;
    if (g->k == 0) {
        if (!g->add) d->kernels->fill(d, g->c, 0.0f, g->m * g->n);
    } else if (state->blas.handle && fits_blas(g)) {
        blas_gemm(d, g);
    } else {
        own_gemm(d, g);
    }
}

void cuda_gemm_fill(struct kernels *table)
{
    table->gemm = gemm;
}
