/* bench_convolutions.c - convolutions through the kernels' table, against cuDNN called bare. Where
 * there is no cuDNN the time stands alone. */
#include <stdio.h>

#include "tests/cuda/bench/bench_dnn.h"

enum { NAME_MAX_BYTES = 96 };

static const double goal = 0.8; /* but in bf16: cuDNN has TF32 for numbers of 32 bits */

/* Square images and an odd kernel, padded to keep their size */
static const struct square {
    int64_t batch, side, kernel, in_channels, out_channels;
} squares[] = {
    {50, 28, 5, 1, 32},    {50, 14, 5, 32, 64},   {1024, 28, 5, 1, 32},
    {1024, 14, 5, 32, 64}, {64, 28, 3, 256, 256},
};

struct convolution {
    struct conv2d shape;
    struct conv2d_plan *plan;
    int64_t image, kernel, result; /* floats */
};

static void run_forward(struct bench *b, const void *arguments, int call)
{
    const struct convolution *c = arguments;
    b->d.kernels->conv2d_forward(
        &b->d, c->plan, bench_part(b, b->out, c->result, call), bench_part(b, b->x, c->image, call),
        bench_part(b, b->y, c->kernel, call), NULL, NULL, ACTIVATION_LINEAR, 0);
}

static void run_back_data(struct bench *b, const void *arguments, int call)
{
    const struct convolution *c = arguments;
    b->d.kernels->conv2d_back_data(&b->d, c->plan, bench_part(b, b->out, c->image, call),
                                   bench_part(b, b->z, c->result, call),
                                   bench_part(b, b->y, c->kernel, call), false);
}

static void run_back_kernel(struct bench *b, const void *arguments, int call)
{
    const struct convolution *c = arguments;
    b->d.kernels->conv2d_back_kernel(&b->d, c->plan, bench_part(b, b->out, c->kernel, call),
                                     bench_part(b, b->z, c->result, call),
                                     bench_part(b, b->x, c->image, call), false);
}

static const struct {
    const char *name;
    bench_body *body;
} directions[DIRECTIONS] = {[FORWARD] = {"forward", run_forward},
                            [BACK_DATA] = {"data", run_back_data},
                            [BACK_KERNEL] = {"kernel", run_back_kernel}};

static struct convolution convolution_of(const struct bench *b, const struct square *s)
{
    const int64_t pad = s->kernel / 2, batch = bench_scaled(b, s->batch);
    const int64_t in = bench_scaled(b, s->in_channels), out = bench_scaled(b, s->out_channels);
    const struct window2d window = {.batch = batch,
                                    .in_y = s->side,
                                    .in_x = s->side,
                                    .out_y = s->side,
                                    .out_x = s->side,
                                    .kernel_y = s->kernel,
                                    .kernel_x = s->kernel,
                                    .stride_y = 1,
                                    .stride_x = 1,
                                    .dilation_y = 1,
                                    .dilation_x = 1,
                                    .pad_top = pad,
                                    .pad_left = pad,
                                    .pad_bottom = pad,
                                    .pad_right = pad};
    const int64_t pixels = batch * s->side * s->side;
    return (struct convolution){.shape = {window, in, out},
                                .image = pixels * in,
                                .kernel = s->kernel * s->kernel * in * out,
                                .result = pixels * out};
}

static void measure(struct bench *b, const struct convolution *c, enum direction direction)
{
    const struct window2d *w = &c->shape.window;
    const long long kernel = w->kernel_y, side = w->in_y, in = c->shape.in_channels;
    const struct timed ours = {directions[direction].body, c, false};
    const struct bare_best best =
        b->dnn ? bare_dnn_best(b, &c->shape, direction) : (struct bare_best){0};
    char name[NAME_MAX_BYTES], peer[NAME_MAX_BYTES];
    snprintf(name, sizeof name, "conv %lldx%lld %lld-%lld %lldx%lld batch %lld %s %s", kernel,
             kernel, in, (long long)c->shape.out_channels, side, side, (long long)w->batch,
             directions[direction].name, bench_precision(b));
    snprintf(peer, sizeof peer, "cuDNN");
    if (best.us > 0)
        snprintf(peer, sizeof peer, "cuDNN %s algorithm %d", best.layout, best.algorithm);
    bench_report(
        b, &(struct figure){.group = "convolution",
                            .name = name,
                            .us = bench_us(b, &ours),
                            .unit = "TFLOP/s",
                            .amount = 2.0 * (double)c->result * (double)(kernel * kernel * in),
                            .peer = peer,
                            .peer_us = best.us,
                            .goal = b->precision == PRECISION_BF16 ? 0 : goal});
}

void bench_convolutions(struct bench *b)
{
    for (size_t i = 0; i < sizeof squares / sizeof *squares; i++) {
        struct convolution c = convolution_of(b, &squares[i]);
        if (b->d.kernels->conv2d_open(&b->d, &c.shape, &c.plan)) bench_give_up();
        for (int direction = 0; direction < DIRECTIONS; direction++)
            measure(b, &c, (enum direction)direction);
        b->d.kernels->conv2d_close(&b->d, c.plan);
    }
}
