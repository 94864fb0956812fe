/* bench_products.c - matrix products through the kernels' table, against cuBLAS called bare. */
#include <stdio.h>

#include "tests/cuda/bench/bench.h"

enum { NAME_MAX_BYTES = 80 };

static const double goal = 0.95; /* but in bf16, which cuBLAS may take TF32 for */

static const struct product_size {
    int64_t m, n, k;
} sizes[] = {{4096, 4096, 4096}, {1024, 1024, 1024}, {1024, 512, 784}, {100, 512, 784}};

/* The operands of this call */
static struct gemm operands(struct bench *b, const struct product_size *size, int call)
{
    const int64_t m = size->m, n = size->n, k = size->k;
    return (struct gemm){.m = m,
                         .n = n,
                         .k = k,
                         .a = bench_part(b, b->x, m * k, call),
                         .b = bench_part(b, b->y, k * n, call),
                         .c = bench_part(b, b->out, m * n, call)};
}

static void run_ours(struct bench *b, const void *arguments, int call)
{
    const struct gemm g = operands(b, arguments, call);
    b->d.kernels->gemm(&b->d, &g);
}

/* The same product of rows as gemm.cu asks for: cuBLAS thinks in columns, so b stands first. */
static void run_bare(struct bench *b, const void *arguments, int call)
{
    const struct gemm g = operands(b, arguments, call);
    const struct cuda_blas *blas = &b->blas;
    const float one = 1, none = 0;
    const int m = (int)g.m, n = (int)g.n, k = (int)g.k;
    if (blas->gemm(blas->handle, 0, 0, n, m, k, &one, g.b, BLAS_FLOAT, n, g.a, BLAS_FLOAT, k, &none,
                   g.c, BLAS_FLOAT, n, blas->compute, BLAS_ANY_ALGORITHM) != 0)
        cuda_refuse(&b->d, "cublasGemmEx failed");
}

static void measure(struct bench *b, const struct product_size *whole)
{
    const struct product_size size = {bench_scaled(b, whole->m), bench_scaled(b, whole->n),
                                      bench_scaled(b, whole->k)};
    char name[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "gemm %lldx%lldx%lld %s", (long long)size.m, (long long)size.n,
             (long long)size.k, bench_precision(b));
    const double bare_us =
        b->blas.handle ? bench_us(b, &(struct timed){run_bare, &size, false}) : 0;
    bench_report(b,
                 &(struct figure){.group = "product",
                                  .name = name,
                                  .us = bench_us(b, &(struct timed){run_ours, &size, false}),
                                  .unit = "TFLOP/s",
                                  .amount = 2.0 * (double)size.m * (double)size.n * (double)size.k,
                                  .peer = "cuBLAS",
                                  .peer_us = bare_us,
                                  .goal = b->precision == PRECISION_BF16 ? 0 : goal});
}

void bench_products(struct bench *b)
{
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) measure(b, &sizes[i]);
}
