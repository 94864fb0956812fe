/* bench.c - how fast the GPU's kernels are, each against a limit measured in the same run.
 *
 *   products       against cuBLAS called bare, where it was found
 *   convolutions   against the rate of the largest product of the run
 *   vectors, rows  against a copy within the GPU of as many bytes
 *
 * usage: bench_gpu [SCALE]      sizes are divided by SCALE; 1 for figures, more to see it run
 */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/clock.h"
#include "kernels/cuda/cuda.h"

enum { SAMPLES = 15, SAMPLE_US = 5000, CALLS_MAX = 10000, FLOATS = 64 << 20, CLASSES = 64 };

/* What every case works on; sizes in floats */
struct bench {
    struct device d;
    struct cuda_state *state;
    int64_t scale, floats;
    float *a, *b, *c, *e;
    int32_t *labels;
    double product_rate; /* of the largest product so far, 1/us */
};

static _Noreturn void give_up(void)
{
    fprintf(stderr, "%s\n", error_text());
    exit(EXIT_FAILURE);
}

static int64_t scaled(const struct bench *b, int64_t size)
{
    return size > b->scale ? size / b->scale : 1;
}

static void *take(struct bench *b, int64_t floats)
{
    void *memory;
    const size_t bytes = (size_t)scaled(b, floats) * sizeof(float);
    if (b->d.kernels->allocate(&b->d, bytes, &memory)) give_up();
    return memory;
}

static void wait(struct bench *b)
{
    if (b->d.kernels->synchronize(&b->d)) give_up();
}

typedef void timed_body(struct bench *, const void *arguments);

static double us_of(struct bench *b, timed_body *body, const void *arguments, int calls)
{
    const uint64_t start = clock_ns();
    for (int i = 0; i < calls; i++) body(b, arguments);
    wait(b);
    return (double)(clock_ns() - start) / 1e3 / calls;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of samples of some milliseconds, whose end alone is waited for */
static double median_us(struct bench *b, timed_body *body, const void *arguments)
{
    double samples[SAMPLES];
    (void)us_of(b, body, arguments, 2);
    const double once = us_of(b, body, arguments, 3);
    const int calls = once * CALLS_MAX < SAMPLE_US ? CALLS_MAX : 1 + (int)(SAMPLE_US / once);
    for (int i = 0; i < SAMPLES; i++) samples[i] = us_of(b, body, arguments, calls);
    qsort(samples, SAMPLES, sizeof *samples, by_size);
    return samples[SAMPLES / 2];
}

/* --- products and convolutions --- */

static void run_gemm(struct bench *b, const void *arguments)
{
    b->d.kernels->gemm(&b->d, arguments);
}

/* The same product as gemm.cu asks for, without what stands before it */
static void run_bare(struct bench *b, const void *arguments)
{
    const struct gemm *g = arguments;
    const struct cuda_blas *blas = &b->state->blas;
    const float one = 1, none = 0;
    const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    if (blas->gemm(blas->handle, g->transpose_b, g->transpose_a, n, m, k, &one, g->b, BLAS_FLOAT,
                   g->transpose_b ? k : n, g->a, BLAS_FLOAT, g->transpose_a ? m : k, &none, g->c,
                   BLAS_FLOAT, n, blas->compute, BLAS_ANY_ALGORITHM) != 0)
        cuda_refuse(&b->d, "cublasGemmEx failed");
}

static void measure_product(struct bench *b, int64_t m, int64_t n, int64_t k)
{
    struct gemm g = {.m = scaled(b, m), .n = scaled(b, n), .k = scaled(b, k)};
    g.a = b->a, g.b = b->b, g.c = b->c;
    const double us = median_us(b, run_gemm, &g);
    const double work = 2.0 * (double)g.m * (double)g.n * (double)g.k;
    if (work / us > b->product_rate) b->product_rate = work / us;
    printf("gemm %5lld %5lld %5lld        %10.1f us %8.2f TFLOP/s", (long long)g.m, (long long)g.n,
           (long long)g.k, us, work / us / 1e6);
    if (b->state->blas.handle)
        printf("  %4.2f of bare cuBLAS\n", median_us(b, run_bare, &g) / us);
    else
        printf("  no cuBLAS\n");
}

struct convolution {
    struct conv2d shape;
    struct conv2d_plan *plan;
};

static void run_forward(struct bench *b, const void *arguments)
{
    const struct convolution *c = arguments;
    b->d.kernels->conv2d_forward(&b->d, c->plan, b->c, b->a, b->b, b->e, NULL, ACTIVATION_RELU, 0);
}

static void run_back_data(struct bench *b, const void *arguments)
{
    const struct convolution *c = arguments;
    b->d.kernels->conv2d_back_data(&b->d, c->plan, b->a, b->c, b->b, false);
}

static void run_back_kernel(struct bench *b, const void *arguments)
{
    const struct convolution *c = arguments;
    b->d.kernels->conv2d_back_kernel(&b->d, c->plan, b->b, b->c, b->a, false);
}

/* Square images and an odd kernel, padded to keep their size */
struct square {
    int64_t batch, side, kernel, in_channels, out_channels;
};

static struct conv2d shape_of(const struct bench *b, const struct square *s)
{
    const int64_t pad = s->kernel / 2;
    const struct window2d window = {scaled(b, s->batch),
                                    s->side,
                                    s->side,
                                    s->side,
                                    s->side,
                                    s->kernel,
                                    s->kernel,
                                    1,
                                    1,
                                    1,
                                    1,
                                    pad,
                                    pad,
                                    pad,
                                    pad};
    return (struct conv2d){window, scaled(b, s->in_channels), scaled(b, s->out_channels)};
}

static void measure_convolution(struct bench *b, const struct square *square)
{
    static const struct direction {
        const char *name;
        timed_body *body;
    } directions[] = {
        {"forward", run_forward}, {"data", run_back_data}, {"kernel", run_back_kernel}};
    struct convolution c = {shape_of(b, square), NULL};
    const struct window2d *w = &c.shape.window;
    const double work = 2.0 * (double)(w->batch * w->out_y * w->out_x) *
                        (double)(w->kernel_y * w->kernel_x * c.shape.in_channels) *
                        (double)c.shape.out_channels;
    if (b->d.kernels->conv2d_open(&b->d, &c.shape, &c.plan)) give_up();
    for (int i = 0; i < 3; i++) {
        const double us = median_us(b, directions[i].body, &c);
        printf("conv %lldx%lld %3lld-%3lld %-8s     %10.1f us %8.2f TFLOP/s  %4.2f of the best "
               "product\n",
               (long long)w->kernel_y, (long long)w->kernel_x, (long long)c.shape.in_channels,
               (long long)c.shape.out_channels, directions[i].name, us, work / us / 1e6,
               work / us / b->product_rate);
    }
    b->d.kernels->conv2d_close(&b->d, c.plan);
}

/* --- vectors and rows --- */

static void run_device_copy(struct bench *b, const void *arguments)
{
    const size_t bytes = (size_t)b->floats * sizeof(float);
    cuda_check(&b->d,
               cudaMemcpyAsync(b->c, b->a, bytes, cudaMemcpyDeviceToDevice, b->state->stream),
               "cudaMemcpyAsync");
}

static void run_copy(struct bench *b, const void *arguments)
{
    b->d.kernels->copy(&b->d, b->c, b->a, b->floats);
}

static void run_axpy(struct bench *b, const void *arguments)
{
    b->d.kernels->axpy(&b->d, b->c, 0.5f, b->a, b->floats);
}

static void run_sum(struct bench *b, const void *arguments)
{
    (void)b->d.kernels->sum_squares(&b->d, b->a, b->floats);
}

static void run_gelu(struct bench *b, const void *arguments)
{
    b->d.kernels->activate(&b->d, b->c, b->a, ACTIVATION_GELU, 0, b->floats);
}

static void run_dropout(struct bench *b, const void *arguments)
{
    const uint64_t *draw = (const uint64_t *)b->b; /* of the device, any number */
    b->d.kernels->dropout(&b->d, &(struct dropout){b->c, b->a, 0.5f, 7, draw, false}, b->floats);
}

static void run_momentum(struct bench *b, const void *arguments)
{
    const struct update_momentum u = {b->c, b->b, b->a, 0.1f, 0.9f, false};
    b->d.kernels->update_momentum(&b->d, &u, b->floats);
}

static void run_adam(struct bench *b, const void *arguments)
{
    const struct update_adam u = {b->c, b->b, b->e, b->a, 0.1f, 0.9f, 0.999f, 1e-8f};
    b->d.kernels->update_adam(&b->d, &u, b->floats);
}

static void run_softmax(struct bench *b, const void *arguments)
{
    b->d.kernels->softmax(&b->d, b->c, b->a, b->floats / CLASSES, CLASSES);
}

static void run_loss(struct bench *b, const void *arguments)
{
    b->d.kernels->softmax_cross_entropy(&b->d, &(struct cross_entropy){.rows = b->floats / CLASSES,
                                                                       .classes = CLASSES,
                                                                       .logits = b->a,
                                                                       .labels = b->labels,
                                                                       .scale = 1,
                                                                       .losses = b->e,
                                                                       .gradient = b->c});
}

/* streams: how many times as many bytes as `floats` floats are read and written */
static const struct stream {
    const char *name;
    timed_body *body;
    double streams;
} streams[] = {
    {"copy", run_copy, 2}, {"axpy", run_axpy, 3},       {"sum_squares", run_sum, 1},
    {"gelu", run_gelu, 2}, {"dropout", run_dropout, 2}, {"momentum", run_momentum, 5},
    {"adam", run_adam, 7}, {"softmax", run_softmax, 2}, {"cross entropy", run_loss, 2},
};

static void measure_streams(struct bench *b)
{
    const double bytes = (double)b->floats * sizeof(float);
    const double limit = 2 * bytes / median_us(b, run_device_copy, NULL);
    printf("copy within the GPU          %8.1f GB/s\n", limit / 1e3);
    for (size_t i = 0; i < sizeof streams / sizeof *streams; i++) {
        const double us = median_us(b, streams[i].body, NULL);
        const double rate = streams[i].streams * bytes / us;
        printf("%-15s          %10.1f us %8.1f GB/s    %4.2f of the copy\n", streams[i].name, us,
               rate / 1e3, rate / limit);
    }
}

static void measure_all(struct bench *b)
{
    measure_product(b, 4096, 4096, 4096);
    measure_product(b, 1024, 1024, 1024);
    measure_product(b, 1024, 512, 784);
    measure_convolution(b, &(struct square){64, 28, 3, 256, 256});
    measure_convolution(b, &(struct square){1024, 28, 5, 1, 32});
    measure_convolution(b, &(struct square){1024, 14, 5, 32, 64});
    measure_streams(b);
}

int main(int argc, char **argv)
{
    struct bench b = {.scale = argc > 1 ? strtol(argv[1], NULL, 10) : 1};
    if (b.scale < 1 || b.scale > 64) {
        fprintf(stderr, "usage: bench_gpu [SCALE from 1 to 64]\n");
        return EXIT_FAILURE;
    }
    if (device_open_gpu(&(struct gpu_options){0}, &b.d)) give_up();
    b.state = b.d.state;
    b.floats = FLOATS / (b.scale * b.scale * b.scale);
    b.a = take(&b, FLOATS);
    b.b = take(&b, FLOATS);
    b.c = take(&b, FLOATS);
    b.e = take(&b, FLOATS);
    b.labels = take(&b, FLOATS / CLASSES);
    printf("%s\n", b.d.kernels->name);
    measure_all(&b);
    device_close(&b.d);
    return EXIT_SUCCESS;
}
