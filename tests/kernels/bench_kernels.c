/* bench_kernels.c - how fast the kernels are, each against a limit measured in the same run.
 *
 *   products       against the better of OpenBLAS' and oneDNN's bare call
 *   convolutions   against the rate of the largest product of the run
 *   vectors        against memcpy of as many bytes
 *   steps          softmax regression and a 784-512-512-10 network, forward to update
 *
 * usage: bench_kernels [THREADS [products|convolutions|vectors|steps]]
 */
#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "kernels/rules.h"

enum { SAMPLES = 25, SAMPLE_NS = 2000000, FLOATS_MAX = 6 << 20 };

/* What is timed: body(context), again and again */
struct timed {
    void (*body)(void *context);
    void *context;
};

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double per_call_us(const struct timed *t, int calls)
{
    uint64_t start = clock_ns();
    for (int i = 0; i < calls; i++) t->body(t->context);
    return (double)(clock_ns() - start) / 1e3 / calls;
}

/* Median of samples of at least 2 ms, so that one preemption does not count */
static double median_us(void (*body)(void *), void *context)
{
    const struct timed t = {body, context};
    per_call_us(&t, 2);
    double once = per_call_us(&t, 3), samples[SAMPLES];
    int calls = 1 + (int)(SAMPLE_NS / 1e3 / (once + 0.01));
    for (int i = 0; i < SAMPLES; i++) samples[i] = per_call_us(&t, calls);
    qsort(samples, SAMPLES, sizeof *samples, by_size);
    return samples[SAMPLES / 2];
}

static float *floats(struct device *d, int64_t n)
{
    void *memory;
    if (d->kernels->allocate(d, (size_t)n * sizeof(float), &memory)) {
        fprintf(stderr, "%s\n", error_text());
        exit(1);
    }
    float *x = memory;
    for (int64_t i = 0; i < n; i++) x[i] = random_uniform(1, (uint64_t)i) - 0.5f;
    return x;
}

/* --- products --- */

/* Which of the operands is transposed */
enum orientation { NN, TN, NT };

struct product {
    const char *name;
    enum orientation orientation;
    int64_t m, n, k;
    /* set when it runs */
    struct gemm gemm;
    struct device *device;
};

static void run_ours(void *context)
{
    const struct product *p = context;
    p->device->kernels->gemm(p->device, &p->gemm);
}

static void run_openblas(void *context)
{
    const struct gemm *g = &((const struct product *)context)->gemm;
    int m = (int)g->m, n = (int)g->n, k = (int)g->k;
    cblas_sgemm(CblasRowMajor, g->transpose_a ? CblasTrans : CblasNoTrans,
                g->transpose_b ? CblasTrans : CblasNoTrans, m, n, k, 1, g->a,
                g->transpose_a ? m : k, g->b, g->transpose_b ? k : n, 0, g->c, n);
}

static void run_onednn(void *context)
{
    const struct gemm *g = &((const struct product *)context)->gemm;
    (void)dnnl_sgemm(g->transpose_a ? 'T' : 'N', g->transpose_b ? 'T' : 'N', g->m, g->n, g->k, 1,
                     g->a, g->transpose_a ? g->m : g->k, g->b, g->transpose_b ? g->k : g->n, 0,
                     g->c, g->n);
}

static struct product products[] = {
    {"square", NN, 512, 512, 512},          {"softmax forward", NN, 100, 10, 784},
    {"softmax dW", TN, 784, 10, 100},       {"mlp forward 1", NN, 100, 512, 784},
    {"mlp forward 2", NN, 100, 512, 512},   {"mlp forward 3", NN, 100, 10, 512},
    {"mlp dH2", NT, 100, 512, 10},          {"mlp dH1", NT, 100, 512, 512},
    {"mlp dW3", TN, 512, 10, 100},          {"mlp dW2", TN, 512, 512, 100},
    {"mlp dW1", TN, 784, 512, 100},         {"cnn dense 1", NN, 50, 1024, 3136},
    {"cnn dense 1 dW", TN, 3136, 1024, 50}, {"cnn dense 1 dX", NT, 50, 3136, 1024},
    {"cnn dense 2", NN, 50, 10, 1024},      {"cnn dense 2 dW", TN, 1024, 10, 50},
    {"cnn dense 2 dX", NT, 50, 1024, 10},   {"ctr 1", NN, 1024, 256, 416},
    {"ctr 2", NN, 1024, 128, 256},          {"ctr 3", NN, 1024, 1, 128},
    {"ctr 3 dW", TN, 128, 1, 1024},         {"ctr 3 dX", NT, 1024, 128, 1},
    {"ctr 1 dW", TN, 416, 256, 1024},       {"ctr 1 dX", NT, 1024, 416, 256},
};

/* Returns the best rate of all, in GFLOP/s. */
static double bench_products(struct device *d)
{
    float *a = floats(d, FLOATS_MAX), *b = floats(d, FLOATS_MAX), *c = floats(d, FLOATS_MAX);
    double best_rate = 0;
    printf("%-18s %16s %10s %8s %10s %10s %6s\n", "product", "m x n x k", "us", "GFLOP/s",
           "OpenBLAS", "oneDNN", "ratio");
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        struct product *p = &products[i];
        struct gemm *g = &p->gemm;
        *g = (struct gemm){.transpose_a = p->orientation == TN,
                           .transpose_b = p->orientation == NT,
                           .m = p->m,
                           .n = p->n,
                           .k = p->k,
                           .a = a,
                           .b = b,
                           .c = c};
        p->device = d;
        double ours = median_us(run_ours, p); /* first: it sets the threads of the others */
        openblas_set_num_threads(d->threads);
        double theirs = median_us(run_openblas, p), others = median_us(run_onednn, p);
        openblas_set_num_threads(1);
        double bare = theirs < others ? theirs : others;
        double rate = 2e-3 * (double)g->m * (double)g->n * (double)g->k / ours;
        char shape[48];
        snprintf(shape, sizeof shape, "%lldx%lldx%lld", (long long)g->m, (long long)g->n,
                 (long long)g->k);
        printf("%-18s %16s %10.1f %8.0f %10.1f %10.1f %6.2f\n", p->name, shape, ours, rate, theirs,
               others, bare / ours);
        if (rate > best_rate) best_rate = rate;
    }
    d->kernels->release(d, a);
    d->kernels->release(d, b);
    d->kernels->release(d, c);
    return best_rate;
}

/* --- convolutions --- */

struct convolution {
    const char *name;
    int64_t batch, size, kernel, in, out;
    bool needs_dx;
    /* set when it runs */
    struct device *device;
    struct conv2d_plan *plan;
    float *x, *y, *weights, *bias;
};

static struct convolution convolutions[] = {
    {"mnist 1", 50, 28, 5, 1, 32, .needs_dx = false},
    {"mnist 2", 50, 14, 5, 32, 64, .needs_dx = true},
    {"5x5 64", 50, 24, 5, 64, 64, .needs_dx = true},
    {"3x3 64", 50, 14, 3, 64, 64, .needs_dx = true},
    {"1x1 256", 50, 14, 1, 256, 64, .needs_dx = true},
};

static void run_forward(void *context)
{
    const struct convolution *c = context;
    c->device->kernels->conv2d_forward(c->device, c->plan, c->y, c->x, c->weights, c->bias, NULL,
                                       ACTIVATION_RELU, 0);
}

static void run_back_data(void *context)
{
    const struct convolution *c = context;
    c->device->kernels->conv2d_back_data(c->device, c->plan, c->x, c->y, c->weights, false);
}

static void run_back_kernel(void *context)
{
    const struct convolution *c = context;
    c->device->kernels->conv2d_back_kernel(c->device, c->plan, c->weights, c->y, c->x, false);
}

static void print_direction(const char *name, struct convolution *c, void (*run)(void *),
                            double peak)
{
    double us = median_us(run, c);
    double work =
        (double)(c->batch * c->size * c->size) * (double)(c->kernel * c->kernel * c->in * c->out);
    printf(" | %s %8.0f us %4.0f GFLOP/s %4.2f", name, us, 2e-3 * work / us,
           2e-3 * work / us / peak);
}

static void bench_convolution(struct device *d, struct convolution *c, double peak)
{
    const int64_t before = (c->kernel - 1) / 2, after = c->kernel - 1 - before;
    const struct conv2d shape = {{c->batch, c->size, c->size, c->size, c->size, c->kernel,
                                  c->kernel, 1, 1, 1, 1, before, before, after, after},
                                 c->in,
                                 c->out};
    c->device = d;
    if (d->kernels->conv2d_open(d, &shape, &c->plan)) {
        fprintf(stderr, "%s\n", error_text());
        exit(1);
    }
    const int64_t pixels = c->batch * c->size * c->size;
    c->x = floats(d, pixels * c->in), c->y = floats(d, pixels * c->out);
    c->weights = floats(d, c->kernel * c->kernel * c->in * c->out), c->bias = floats(d, c->out);
    printf("%-10s", c->name);
    print_direction("forward", c, run_forward, peak);
    if (c->needs_dx) print_direction("data", c, run_back_data, peak);
    print_direction("kernel", c, run_back_kernel, peak);
    printf("\n");
    float *const memory[] = {c->x, c->y, c->weights, c->bias};
    for (int i = 0; i < 4; i++) d->kernels->release(d, memory[i]);
    d->kernels->conv2d_close(d, c->plan);
}

static void bench_convolutions(struct device *d, double peak)
{
    printf("\nconvolution, ratio to %.0f GFLOP/s of the best product\n", peak);
    for (size_t i = 0; i < sizeof convolutions / sizeof *convolutions; i++)
        bench_convolution(d, &convolutions[i], peak);
}

/* --- vectors --- */

enum { VECTOR = 669706 }; /* parameters of the 784-512-512-10 network */

struct vectors {
    struct device *device;
    float *a, *b, *c, *d;
};

static void run_memcpy(void *context)
{
    const struct vectors *v = context;
    memcpy(v->a, v->b, VECTOR * sizeof(float));
}

static void run_axpy(void *context)
{
    const struct vectors *v = context;
    v->device->kernels->axpy(v->device, v->a, 1e-9f, v->b, VECTOR);
}

static void run_add(void *context)
{
    const struct vectors *v = context;
    v->device->kernels->add(v->device, v->a, v->b, v->c, VECTOR);
}

static void run_sum_squares(void *context)
{
    const struct vectors *v = context;
    double sum;
    v->device->kernels->sums(v->device, &(struct summed){v->b, VECTOR, SUM_SQUARE}, 1, &sum);
    v->c[0] = (float)sum;
}

static void run_relu(void *context)
{
    const struct vectors *v = context;
    v->device->kernels->activate(v->device, v->a, v->b, ACTIVATION_RELU, 0, VECTOR);
}

static void run_tanh(void *context)
{
    const struct vectors *v = context;
    v->device->kernels->activate(v->device, v->a, v->b, ACTIVATION_TANH, 0, VECTOR);
}

static void run_gelu(void *context)
{
    const struct vectors *v = context;
    v->device->kernels->activate(v->device, v->a, v->b, ACTIVATION_GELU, 0, VECTOR);
}

static void run_sgd(void *context)
{
    const struct vectors *v = context;
    const struct gradient_descent_constants k = {1e-9f};
    const struct update u = {&rule_gradient_descent, &k, v->a, v->b};
    v->device->kernels->update(v->device, &u, VECTOR);
}

static void run_adagrad(void *context)
{
    const struct vectors *v = context;
    const struct adagrad_constants k = {1e-9f};
    const struct update u = {&rule_adagrad, &k, v->a, v->b, {v->c}};
    v->device->kernels->update(v->device, &u, VECTOR);
}

static void run_adam(void *context)
{
    const struct vectors *v = context;
    const struct adam_constants k = {{1e-9f, 0.9f, 0.999f, 1e-8f}};
    const struct update u = {&rule_adam, &k, v->a, v->b, {v->c, v->d}};
    v->device->kernels->update(v->device, &u, VECTOR);
}

static void run_dropout(void *context)
{
    const struct vectors *v = context;
    static const uint64_t draw = 1;
    const struct dropout mask = {v->a, v->b, 0.5f, 7, &draw, false};
    v->device->kernels->dropout(v->device, &mask, VECTOR);
}

static void bench_vectors(struct device *d)
{
    const struct {
        const char *name;
        void (*run)(void *);
        int streams; /* floats read and written for each element */
    } kernels[] = {{"memcpy", run_memcpy, 2}, {"axpy", run_axpy, 3},
                   {"add", run_add, 3},       {"sum_squares", run_sum_squares, 1},
                   {"relu", run_relu, 2},     {"tanh", run_tanh, 2},
                   {"gelu", run_gelu, 2},     {"dropout", run_dropout, 2},
                   {"sgd", run_sgd, 3},       {"adagrad", run_adagrad, 5},
                   {"adam", run_adam, 7}};
    struct vectors v = {d, floats(d, VECTOR), floats(d, VECTOR), floats(d, VECTOR),
                        floats(d, VECTOR)};
    for (int i = 0; i < VECTOR; i++) v.c[i] = v.d[i] = 1;
    double copy_rate = 0;
    printf("\nvectors of %d floats, ratio to memcpy\n", VECTOR);
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        double us = median_us(kernels[i].run, &v);
        double rate = 4e-3 * VECTOR * kernels[i].streams / us;
        if (i == 0) copy_rate = rate;
        printf("%-12s %8.1f us %6.1f GB/s %5.2f\n", kernels[i].name, us, rate, rate / copy_rate);
    }
    float *const memory[] = {v.a, v.b, v.c, v.d};
    for (int i = 0; i < 4; i++) d->kernels->release(d, memory[i]);
}

/* --- steps --- */

enum { BATCH = 100, LAYERS_MAX = 3 };

struct network {
    struct device *device;
    int layers;
    int64_t widths[LAYERS_MAX + 1];
    int64_t parameters;
    float *values, *gradients, *outputs[LAYERS_MAX + 1], *slopes[LAYERS_MAX + 1], *losses;
    int32_t labels[BATCH];
};

static void forward(const struct network *n)
{
    const struct kernels *k = n->device->kernels;
    const float *w = n->values;
    for (int i = 0; i < n->layers; i++) {
        const int64_t in = n->widths[i], out = n->widths[i + 1];
        struct gemm g = {
            .m = BATCH, .n = out, .k = in, .a = n->outputs[i], .b = w, .c = n->outputs[i + 1]};
        k->gemm(n->device, &g);
        bool is_last = i + 1 == n->layers;
        k->bias_activate(n->device, n->outputs[i + 1], w + in * out, NULL,
                         is_last ? ACTIVATION_LINEAR : ACTIVATION_RELU, 0, BATCH, out);
        w += in * out + out;
    }
}

static void backward(const struct network *n)
{
    const struct kernels *k = n->device->kernels;
    const float *w = n->values + n->parameters;
    float *dw = n->gradients + n->parameters;
    for (int i = n->layers - 1; i >= 0; i--) {
        const int64_t in = n->widths[i], out = n->widths[i + 1];
        const float *dy = n->slopes[i + 1];
        w -= in * out + out, dw -= in * out + out;
        struct gemm of_w = {.transpose_a = true,
                            .m = in,
                            .n = out,
                            .k = BATCH,
                            .a = n->outputs[i],
                            .b = dy,
                            .c = dw};
        k->gemm(n->device, &of_w);
        k->sum_rows(n->device, dw + in * out, dy, BATCH, out, false);
        if (i == 0) return;
        struct gemm of_x = {
            .transpose_b = true, .m = BATCH, .n = in, .k = out, .a = dy, .b = w, .c = n->slopes[i]};
        k->gemm(n->device, &of_x);
        k->activate_back(n->device, n->slopes[i], n->slopes[i], n->outputs[i], NULL,
                         ACTIVATION_RELU, 0, BATCH * in, false);
    }
}

static void run_step(void *context)
{
    const struct network *n = context;
    static const float scale = 1.0f / BATCH;
    const struct kernels *k = n->device->kernels;
    forward(n);
    struct cross_entropy c = {.rows = BATCH,
                              .classes = n->widths[n->layers],
                              .logits = n->outputs[n->layers],
                              .labels = n->labels,
                              .scale = &scale,
                              .losses = n->losses,
                              .gradient = n->slopes[n->layers]};
    k->softmax_cross_entropy(n->device, &c);
    backward(n);
    const struct gradient_descent_constants rate = {0.01f};
    const struct update u = {&rule_gradient_descent, &rate, n->values, n->gradients};
    k->update(n->device, &u, n->parameters);
}

static void bench_step(struct device *d, struct network *n, const char *name)
{
    n->device = d;
    for (int i = 0; i < n->layers; i++)
        n->parameters += n->widths[i] * n->widths[i + 1] + n->widths[i + 1];
    n->values = floats(d, n->parameters), n->gradients = floats(d, n->parameters);
    d->kernels->scale(d, n->values, 0.05f, n->parameters);
    for (int i = 0; i <= n->layers; i++) {
        n->outputs[i] = floats(d, BATCH * n->widths[i]);
        n->slopes[i] = floats(d, BATCH * n->widths[i]);
    }
    n->losses = floats(d, BATCH);
    for (int i = 0; i < BATCH; i++) n->labels[i] = i % 10;
    run_step(n);
    double before = kernels_sum(d, n->losses, BATCH) / BATCH, us = median_us(run_step, n);
    printf("%-12s %8.1f us a step, %8.0f examples/s (loss %.4f to %.4f)\n", name, us,
           BATCH * 1e6 / us, before, kernels_sum(d, n->losses, BATCH) / BATCH);
    for (int i = 0; i <= n->layers; i++) {
        d->kernels->release(d, n->outputs[i]);
        d->kernels->release(d, n->slopes[i]);
    }
    d->kernels->release(d, n->values);
    d->kernels->release(d, n->gradients);
    d->kernels->release(d, n->losses);
}

static void bench_steps(struct device *d)
{
    printf("\nsteps of %d examples\n", BATCH);
    bench_step(d, &(struct network){.layers = 1, .widths = {784, 10}}, "softmax sgd");
    bench_step(d, &(struct network){.layers = 3, .widths = {784, 512, 512, 10}}, "mlp sgd");
}

static bool is_wanted(int argc, char **argv, const char *part)
{
    return argc < 3 || strcmp(argv[2], part) == 0;
}

int main(int argc, char **argv)
{
    cpu_environment_prepare(argv);
    struct device d;
    if (device_open_cpu(argc > 1 ? atoi(argv[1]) : 1, NULL, &d)) {
        fprintf(stderr, "%s\n", error_text());
        return 1;
    }
    printf("%s, %d threads\n", cpu_description(), d.threads);
    double peak = 1;
    if (is_wanted(argc, argv, "products") || is_wanted(argc, argv, "convolutions"))
        peak = bench_products(&d);
    if (is_wanted(argc, argv, "convolutions")) bench_convolutions(&d, peak);
    if (is_wanted(argc, argv, "vectors")) bench_vectors(&d);
    if (is_wanted(argc, argv, "steps")) bench_steps(&d);
    device_close(&d);
    return 0;
}
