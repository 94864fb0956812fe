/* bench_streams.c - elementwise kernels, reductions and optimizers, against a copy within the GPU
 * of as many bytes. All vectors are far larger than any cache. */
#include <stdio.h>
#include <string.h>

#include "kernels/rules.h"
#include "tests/cuda/bench/bench_copy.h"

enum { COLUMNS = 256 }; /* of what is a matrix to a kernel */

static const double goal = 0.85; /* of all but reductions, which bring a number back or few */

static void run_device_copy(struct bench *b, const void *arguments, int call)
{
    const size_t bytes = (size_t)b->floats * sizeof(float);
    cuda_check(&b->d,
               cudaMemcpyAsync(b->out, b->x, bytes, cudaMemcpyDeviceToDevice, b->state->stream),
               "cudaMemcpyAsync");
}

/* Microseconds in which the copy would move so many bytes; measured once. */
static double copy_us(struct bench *b, double bytes)
{
    if (b->copy_bytes_per_us <= 0) {
        const double us = bench_us(b, &(struct timed){run_device_copy, NULL, false});
        b->copy_bytes_per_us = 2.0 * (double)b->floats * sizeof(float) / us;
        printf("a copy within the GPU: %.1f GB/s read and written\n", b->copy_bytes_per_us * 1e-3);
    }
    return bytes / b->copy_bytes_per_us;
}

void bench_against_copy(struct bench *b, const struct stream *s)
{
    const double peer_us = copy_us(b, s->bytes);
    bench_report(b, &(struct figure){.group = s->group,
                                     .name = s->name,
                                     .us = bench_us(b, &s->timed),
                                     .unit = "GB/s",
                                     .amount = s->bytes,
                                     .peer = "a copy",
                                     .peer_us = peer_us,
                                     .goal = s->goal});
}

/* --- plain vectors --- */

static void run_fill(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->fill(&b->d, b->out, 0.5f, b->floats);
}

static void run_copy(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->copy(&b->d, b->out, b->x, b->floats);
}

static void run_axpy(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->axpy(&b->d, b->out, 0.5f, b->x, b->floats);
}

static void run_scale(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->scale(&b->d, b->out, -1, b->floats);
}

static void run_add(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->add(&b->d, b->out, b->x, b->y, b->floats);
}

static void run_multiply(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->multiply(&b->d, b->out, b->x, b->y, b->floats);
}

static void run_multiply_add(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->multiply_add(&b->d, b->out, b->x, b->y, b->floats);
}

static void run_clamp(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->clamp(&b->d, b->out, -0.5f, 0.5f, b->floats);
}

static void run_regularize(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->regularize(&b->d, b->out, b->x, 1e-3f, 1e-3f, b->floats);
}

static struct strided halves(struct bench *b)
{
    return (struct strided){.rows = b->floats / COLUMNS / 2,
                            .columns = COLUMNS,
                            .dst_stride = 2 * COLUMNS,
                            .src_stride = COLUMNS,
                            .dst = b->out,
                            .src = b->x};
}

static void run_copy_strided(struct bench *b, const void *arguments, int call)
{
    const struct strided s = halves(b);
    b->d.kernels->copy_strided(&b->d, &s);
}

static void run_add_strided(struct bench *b, const void *arguments, int call)
{
    const struct strided s = halves(b);
    b->d.kernels->add_strided(&b->d, &s);
}

static void run_dropout(struct bench *b, const void *arguments, int call)
{
    const uint64_t *draw = (const uint64_t *)b->y; /* any number of the device */
    b->d.kernels->dropout(&b->d, &(struct dropout){b->out, b->x, 0.5f, 7, draw, false}, b->floats);
}

static void run_sum_ordered(struct bench *b, const void *arguments, int call)
{
    const float *const sources[] = {b->x, b->y, b->z};
    b->d.kernels->sum_ordered(&b->d, b->out, sources, 3, 0.5f, b->floats);
}

/* --- activations --- */

static void run_relu(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->activate(&b->d, b->out, b->x, ACTIVATION_RELU, 0, b->floats);
}

static void run_tanh(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->activate(&b->d, b->out, b->x, ACTIVATION_TANH, 0, b->floats);
}

static void run_gelu(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->activate(&b->d, b->out, b->x, ACTIVATION_GELU, 0, b->floats);
}

static void run_relu_back(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->activate_back(&b->d, b->out, b->x, b->y, NULL, ACTIVATION_RELU, 0, b->floats,
                                false);
}

static void run_gelu_back(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->activate_back(&b->d, b->out, b->x, b->y, b->z, ACTIVATION_GELU, 0, b->floats,
                                false);
}

static void run_bias_relu(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->bias_activate(&b->d, b->out, b->y, NULL, ACTIVATION_RELU, 0, b->floats / COLUMNS,
                                COLUMNS);
}

/* --- reductions --- */

static void run_sum(struct bench *b, const void *arguments, int call)
{
    (void)kernels_sum(&b->d, b->x, b->floats);
}

static void run_sum_squares(struct bench *b, const void *arguments, int call)
{
    double sum;
    b->d.kernels->sums(&b->d, &(struct summed){b->x, b->floats, SUM_SQUARE}, 1, &sum);
}

static void run_all_finite(struct bench *b, const void *arguments, int call)
{
    (void)b->d.kernels->all_finite(&b->d, b->x, b->floats);
}

static void run_sum_rows(struct bench *b, const void *arguments, int call)
{
    b->d.kernels->sum_rows(&b->d, b->out, b->x, b->floats / COLUMNS, COLUMNS, false);
}

/* --- optimizers: values in out, slots in positive, y and z, gradients in x --- */

static void run_sgd(struct bench *b, const void *arguments, int call)
{
    const struct gradient_descent_constants k = {0.1f};
    const struct update u = {&rule_gradient_descent, &k, b->out, b->x};
    b->d.kernels->update(&b->d, &u, b->floats);
}

static void run_momentum(struct bench *b, const void *arguments, int call)
{
    const struct momentum_constants k = {0.1f, 0.9f, false};
    const struct update u = {&rule_momentum, &k, b->out, b->x, {b->positive}};
    b->d.kernels->update(&b->d, &u, b->floats);
}

static void run_nesterov(struct bench *b, const void *arguments, int call)
{
    const struct momentum_constants k = {0.1f, 0.9f, true};
    const struct update u = {&rule_momentum, &k, b->out, b->x, {b->positive}};
    b->d.kernels->update(&b->d, &u, b->floats);
}

static void run_adagrad(struct bench *b, const void *arguments, int call)
{
    const struct adagrad_constants k = {0.1f};
    const struct update u = {&rule_adagrad, &k, b->out, b->x, {b->positive}};
    b->d.kernels->update(&b->d, &u, b->floats);
}

static void run_adam(struct bench *b, const void *arguments, int call)
{
    const struct adam_constants k = {{0.1f, 0.9f, 0.999f, 1e-8f}};
    const struct update u = {&rule_adam, &k, b->out, b->x, {b->y, b->positive}};
    b->d.kernels->update(&b->d, &u, b->floats);
}

static void run_rmsprop(struct bench *b, const void *arguments, int call)
{
    const struct rmsprop_constants k = {0.1f, 0.9f, 0.9f, 1};
    const struct update u = {&rule_rmsprop, &k, b->out, b->x, {b->positive, b->y}};
    b->d.kernels->update(&b->d, &u, b->floats);
}

/* epsilon 1: what the slots hold at first is no mean and no mean of squares of anything. */
static void run_rmsprop_centered(struct bench *b, const void *arguments, int call)
{
    const struct rmsprop_constants k = {0.1f, 0.9f, 0.9f, 1};
    const struct update u = {&rule_rmsprop, &k, b->out, b->x, {b->positive, b->z, b->y}, 1};
    b->d.kernels->update(&b->d, &u, b->floats);
}

/* streams: how many times as many bytes as `floats` floats must be read and written */
static const struct {
    const char *group, *name;
    bench_body *body;
    double streams;
    bool waits; /* a number comes back */
} cases[] = {
    {"vector", "fill", run_fill, 1, false},
    {"vector", "copy", run_copy, 2, false},
    {"vector", "axpy", run_axpy, 3, false},
    {"vector", "scale", run_scale, 2, false},
    {"vector", "add", run_add, 3, false},
    {"vector", "multiply", run_multiply, 3, false},
    {"vector", "multiply_add", run_multiply_add, 4, false},
    {"vector", "clamp", run_clamp, 2, false},
    {"vector", "regularize", run_regularize, 3, false},
    {"vector", "copy_strided", run_copy_strided, 1, false},
    {"vector", "add_strided", run_add_strided, 1.5, false},
    {"vector", "dropout", run_dropout, 2, false},
    {"vector", "sum_ordered of 3", run_sum_ordered, 4, false},
    {"vector", "activate relu", run_relu, 2, false},
    {"vector", "activate tanh", run_tanh, 2, false},
    {"vector", "activate gelu", run_gelu, 2, false},
    {"vector", "activate_back relu", run_relu_back, 3, false},
    {"vector", "activate_back gelu", run_gelu_back, 4, false},
    {"vector", "bias_activate relu", run_bias_relu, 2, false},
    {"reduction", "sum", run_sum, 1, true},
    {"reduction", "sum_squares", run_sum_squares, 1, true},
    {"reduction", "all_finite", run_all_finite, 1, true},
    {"reduction", "sum_rows", run_sum_rows, 1, false},
    {"optimizer", "gradient_descent", run_sgd, 3, false},
    {"optimizer", "momentum", run_momentum, 5, false},
    {"optimizer", "momentum nesterov", run_nesterov, 5, false},
    {"optimizer", "adagrad", run_adagrad, 5, false},
    {"optimizer", "adam", run_adam, 7, false},
    {"optimizer", "rmsprop", run_rmsprop, 7, false},
    {"optimizer", "rmsprop centered", run_rmsprop_centered, 9, false},
};

void bench_streams(struct bench *b)
{
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        bench_against_copy(
            b, &(struct stream){.group = cases[i].group,
                                .name = cases[i].name,
                                .timed = {cases[i].body, NULL, cases[i].waits},
                                .bytes = cases[i].streams * (double)b->floats * sizeof(float),
                                .goal = strcmp(cases[i].group, "reduction") == 0 ? 0 : goal});
}
