/* gemm.c - matrix products: our own kernel, OpenBLAS or oneDNN, depending on the shape.
 *
 * Measured on one AVX-512 core: oneDNN is 2 to 50 % faster for the large shapes of a step, and
 * shares its threads with its convolutions; OpenBLAS is up to four times faster for small ones,
 * where oneDNN's fixed cost shows, and for a [m, k] b [n, k] products of few rows. OpenBLAS is
 * limited to one thread, so that the process has one pool of threads.
 */
#include <cblas.h>

#include "kernels/cpu/isa.h"

/* Multiply-adds below which OpenBLAS is faster */
enum { SMALL_MAX = 1 << 18, SMALL_TRANSPOSED_B_MAX = 1 << 20 };

static bool is_small(const struct gemm *g)
{
    if (g->n == 1) return false; /* oneDNN turns this into a product of matrix and vector */
    /* b transposed and k short: one of oneDNN's best cases */
    if (g->transpose_b && g->k < 32 && g->n >= 64 && g->m >= 16) return false;
    /* in double, because the product of three large numbers may overflow */
    double work = (double)g->m * (double)g->n * (double)g->k;
    return work < (g->transpose_b ? SMALL_TRANSPOSED_B_MAX : SMALL_MAX);
}

/* Sizes fit an int, because their product is small. */
static void openblas(const struct gemm *g)
{
    int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans,
                g->transpose_b ? CblasTrans : CblasNoTrans, m, n, k, 1.0f, g->a,
                g->transpose_a ? m : k, g->b, g->transpose_b ? k : n, g->add ? 1.0f : 0.0f, g->c,
                n);
}

/* a_stride: floats from row to row of a */
static void onednn(struct device *d, const struct gemm *g, int64_t a_stride)
{
    const struct device alone = {.threads = 1}; /* for little work */
    library_threads(g->m * g->n <= SPREAD_GRAIN / g->k ? &alone : d);
    const dnnl_status_t status = dnnl_sgemm(
        g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k, 1.0f, g->a,
        a_stride, g->b, g->transpose_b ? g->k : g->n, g->add ? 1.0f : 0.0f, g->c, g->n);
    cpu_note(d, status, "dnnl_sgemm");
}

/* Splits off the first rows of c; `left` keeps the others for the next band. */
static struct gemm take_band(struct gemm *left, int64_t rows)
{
    struct gemm band = *left;
    band.m = rows;
    left->m -= rows;
    left->a += left->transpose_a ? rows : rows * left->k;
    left->c += rows * left->n;
    return band;
}

/* Rows of bands that are as fast as the whole: oneDNN uses other code for few rows, which without
 * AVX-512 takes twice as long from 1 / rows + 1 / columns of about 1 / 263 on, and balances threads
 * worse. */
static int64_t band_rows(const struct device *d, const struct gemm *g)
{
    enum { ROWS_MIN = LANES == 16 ? 256 : 512, FLOATS_MIN = 2 * ROWS_MIN * ROWS_MIN, STEP = 16 };
    const int64_t by_rows = g->m / ROWS_MIN, by_size = g->m * g->n / FLOATS_MIN;
    const int64_t bands = by_rows < by_size ? by_rows : by_size;
    if (!g->made || bands < 2 || d->threads > 1) return g->m;
    return (g->m + bands * STEP - 1) / (bands * STEP) * STEP;
}

static void onednn_in_bands(struct device *d, const struct gemm *g)
{
    const int64_t a_stride = g->transpose_a ? g->m : g->k, most = band_rows(d, g);
    struct gemm left = *g;
    while (left.m > 0) {
        const struct gemm band = take_band(&left, left.m < most ? left.m : most);
        onednn(d, &band, a_stride);
        if (g->made && left.m > 0) g->made(g->context, g->m - left.m);
    }
}

void ISA(gemm)(struct device *d, const struct gemm *g)
{
    struct cpu_state *state = d->state;
    if (g->m == 0 || g->n == 0) return;
    if (g->k == 0) {
        if (!g->add) d->kernels->fill(d, g->c, 0.0f, g->m * g->n);
    } else if (ISA(narrow_can)(g)) {
        ISA(narrow_run)(d, g, state->packed);
    } else if (is_small(g)) {
        openblas(g);
    } else if (ISA(bf16_can)(d, g)) {
        ISA(bf16_run)(d, g);
    } else {
        onednn_in_bands(d, g);
    }
    if (g->made) g->made(g->context, g->m);
}

/* Product i of several contiguous ones */
static struct gemm product_at(const struct gemm *g, int64_t i)
{
    struct gemm one = *g;
    one.a += i * g->m * g->k;
    one.b += i * g->k * g->n;
    one.c += i * g->m * g->n;
    one.made = NULL;
    return one;
}

static void small_products(const void *arguments, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        const struct gemm one = product_at(arguments, i);
        openblas(&one);
    }
}

/* Small products are distributed over the threads, each one computed by a single thread. */
void ISA(gemm_each)(struct device *d, const struct gemm *g, int64_t count)
{
    if (is_small(g) && g->m > 0 && g->k > 0) {
        spread(d, count, SPREAD_GRAIN / (g->m * g->n * g->k / 8 + 1) + 1, small_products, g);
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        const struct gemm one = product_at(g, i);
        ISA(gemm)(d, &one);
    }
}
