/* test_image.c - convolution and pooling against naive loops, over a list of geometries. */
#include "tests/kernels/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum padding { VALID, SAME };

struct geometry {
    int64_t batch, in_y, in_x, kernel_y, kernel_x, stride_y, stride_x, dilation;
    enum padding padding;
    int64_t in_channels, out_channels;
};

static const struct geometry convolutions[] = {
    {2, 7, 6, 3, 3, 1, 1, 1, SAME, 4, 5},     {2, 7, 6, 3, 3, 1, 1, 1, VALID, 4, 5},
    {3, 8, 9, 3, 3, 2, 2, 1, SAME, 3, 17},    {2, 10, 8, 4, 2, 1, 3, 1, SAME, 2, 3},
    {2, 9, 11, 3, 3, 1, 1, 2, SAME, 5, 16},   {1, 11, 9, 3, 3, 1, 1, 2, VALID, 16, 16},
    {2, 9, 9, 3, 3, 2, 2, 2, VALID, 4, 6},    {4, 5, 5, 1, 1, 1, 1, 1, SAME, 7, 9},
    {4, 6, 5, 1, 1, 2, 2, 1, VALID, 16, 32},  {3, 28, 28, 5, 5, 1, 1, 1, SAME, 1, 32},
    {2, 14, 14, 5, 5, 1, 1, 1, SAME, 32, 64}, {1, 3, 3, 3, 3, 1, 1, 1, VALID, 1, 1},
    {5, 4, 4, 2, 2, 2, 2, 1, VALID, 1, 1},    {1, 1, 12, 1, 5, 1, 2, 1, SAME, 3, 4},
    {2, 9, 8, 3, 3, 2, 1, 1, SAME, 8, 12},    {2, 7, 9, 3, 3, 1, 2, 2, SAME, 12, 72},
    {1, 6, 7, 3, 3, 1, 1, 1, SAME, 72, 4},    {1, 6, 7, 3, 3, 1, 1, 1, SAME, 6, 8},
    {2, 5, 6, 3, 2, 1, 1, 1, VALID, 140, 36}, {3, 9, 7, 2, 3, 3, 2, 1, VALID, 4, 132},
};
enum { CONVOLUTIONS = sizeof convolutions / sizeof *convolutions };

/* One direction of a window */
struct extent {
    int64_t in, kernel, stride;
};

/* SAME and VALID as TensorFlow has them */
static void pad(enum padding padding, struct extent e, int64_t *ret_out, int64_t *ret_before,
                int64_t *ret_after)
{
    *ret_out = (padding == SAME ? e.in + e.stride - 1 : e.in - e.kernel + e.stride) / e.stride;
    int64_t total = (*ret_out - 1) * e.stride + e.kernel - e.in;
    if (padding == VALID || total < 0) total = 0;
    *ret_before = total / 2;
    *ret_after = total - total / 2;
}

static struct window2d window_of(const struct geometry *g)
{
    struct window2d w = {.batch = g->batch,
                         .in_y = g->in_y,
                         .in_x = g->in_x,
                         .kernel_y = g->kernel_y,
                         .kernel_x = g->kernel_x,
                         .stride_y = g->stride_y,
                         .stride_x = g->stride_x,
                         .dilation_y = g->dilation,
                         .dilation_x = g->dilation};
    const struct extent y = {g->in_y, (g->kernel_y - 1) * g->dilation + 1, g->stride_y};
    const struct extent x = {g->in_x, (g->kernel_x - 1) * g->dilation + 1, g->stride_x};
    pad(g->padding, y, &w.out_y, &w.pad_top, &w.pad_bottom);
    pad(g->padding, x, &w.out_x, &w.pad_left, &w.pad_right);
    return w;
}

/* Calls visit for every (output pixel, kernel cell) whose input pixel lies inside the image. All
 * three are counted through the batch or the kernel, without channels. */
struct visitor {
    void (*visit)(struct visitor *, int64_t out, int64_t in, int64_t cell);
};

static void visit_window(struct visitor *v, const struct window2d *w, int64_t out)
{
    const int64_t image = out / (w->out_y * w->out_x);
    const int64_t out_y = out / w->out_x % w->out_y, out_x = out % w->out_x;
    for (int64_t ky = 0; ky < w->kernel_y; ky++)
        for (int64_t kx = 0; kx < w->kernel_x; kx++) {
            int64_t y = out_y * w->stride_y - w->pad_top + ky * w->dilation_y;
            int64_t x = out_x * w->stride_x - w->pad_left + kx * w->dilation_x;
            if (y < 0 || y >= w->in_y || x < 0 || x >= w->in_x) continue;
            v->visit(v, out, (image * w->in_y + y) * w->in_x + x, ky * w->kernel_x + kx);
        }
}

static void visit_all(struct visitor *v, const struct window2d *w)
{
    for (int64_t out = 0; out < w->batch * w->out_y * w->out_x; out++) visit_window(v, w, out);
}

/* --- convolution --- */

/* One convolution with its memory and the results wanted, in double */
struct trial {
    struct visitor visitor;
    struct conv2d shape;
    int64_t sources, destinations, weights; /* counts of floats */
    float *x, *y, *kernel, *bias, *dx, *dy, *dkernel;
    double *want_y, *want_dx, *want_dkernel;
};

static void accumulate(struct visitor *v, int64_t out, int64_t in, int64_t cell)
{
    struct trial *t = (struct trial *)v;
    const int64_t ins = t->shape.in_channels, outs = t->shape.out_channels;
    for (int64_t i = 0; i < ins; i++)
        for (int64_t o = 0; o < outs; o++) {
            const int64_t weight = (cell * ins + i) * outs + o;
            const double x = t->x[in * ins + i], w = t->kernel[weight], dy = t->dy[out * outs + o];
            t->want_y[out * outs + o] += x * w;
            t->want_dx[in * ins + i] += dy * w;
            t->want_dkernel[weight] += dy * x;
        }
}

static double *zeros(int64_t n)
{
    return test_calloc((size_t)n, sizeof(double));
}

static void trial_open(struct device *d, const struct geometry *g, struct trial *t)
{
    *t = (struct trial){.visitor = {accumulate},
                        .shape = {window_of(g), g->in_channels, g->out_channels}};
    const struct window2d *w = &t->shape.window;
    t->sources = w->batch * w->in_y * w->in_x * g->in_channels;
    t->destinations = w->batch * w->out_y * w->out_x * g->out_channels;
    t->weights = w->kernel_y * w->kernel_x * g->in_channels * g->out_channels;
    t->x = random_floats(d, t->sources, -1, 1, 100);
    t->dx = random_floats(d, t->sources, -1, 1, 101);
    t->y = random_floats(d, t->destinations, -1, 1, 102);
    t->dy = random_floats(d, t->destinations, -1, 1, 103);
    t->kernel = random_floats(d, t->weights, -1, 1, 104);
    t->dkernel = random_floats(d, t->weights, -1, 1, 105);
    t->bias = random_floats(d, g->out_channels, -1, 1, 106);
    t->want_y = zeros(t->destinations);
    t->want_dx = zeros(t->sources);
    t->want_dkernel = zeros(t->weights);
    visit_all(&t->visitor, w);
}

static void trial_close(struct device *d, struct trial *t)
{
    float *const floats[] = {t->x, t->dx, t->y, t->dy, t->kernel, t->dkernel, t->bias};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) free_floats(d, floats[i]);
    test_free(t->want_y);
    test_free(t->want_dx);
    test_free(t->want_dkernel);
}

/* Up to 1600 products of numbers below 1 are added; thousands for a kernel's gradient. */
static const struct tolerance conv_tolerance = {1e-5, 1e-4}, kernel_tolerance = {1e-5, 4e-4};

/* kind, bias or none, pre-activation wanted or not, as choice says */
static void check_forward(struct device *d, struct trial *t, struct conv2d_plan *plan, int choice)
{
    const enum activation kinds[] = {ACTIVATION_LINEAR, ACTIVATION_RELU, ACTIVATION_TANH};
    const enum activation kind = kinds[choice % 3];
    const bool has_bias = choice / 3 % 2, has_pre = choice / 6;
    float *pre = new_floats(d, t->destinations);
    d->kernels->conv2d_forward(d, plan, t->y, t->x, t->kernel, has_bias ? t->bias : NULL,
                               has_pre ? pre : NULL, kind, 0);
    for (int64_t i = 0; i < t->destinations; i++) {
        double want = t->want_y[i] + (has_bias ? t->bias[i % t->shape.out_channels] : 0);
        if (has_pre) assert_near(pre[i], want, conv_tolerance, "pre", i);
        if (kind == ACTIVATION_RELU) want = fmax(want, 0);
        if (kind == ACTIVATION_TANH) want = tanh(want);
        assert_near(t->y[i], want, conv_tolerance, "conv2d_forward", i);
    }
    free_floats(d, pre);
}

static void check_back_data(struct device *d, struct trial *t, struct conv2d_plan *plan)
{
    float *before = copy_floats(d, t->dx, t->sources);
    for (int add = 1; add >= 0; add--) {
        d->kernels->conv2d_back_data(d, plan, t->dx, t->dy, t->kernel, add);
        for (int64_t i = 0; i < t->sources; i++)
            assert_near(t->dx[i], t->want_dx[i] + (add ? before[i] : 0), conv_tolerance,
                        "conv2d_back_data", i);
    }
    free_floats(d, before);
}

static void check_back_kernel(struct device *d, struct trial *t, struct conv2d_plan *plan)
{
    float *before = copy_floats(d, t->dkernel, t->weights);
    for (int add = 1; add >= 0; add--) {
        d->kernels->conv2d_back_kernel(d, plan, t->dkernel, t->dy, t->x, add);
        for (int64_t i = 0; i < t->weights; i++)
            assert_near(t->dkernel[i], t->want_dkernel[i] + (add ? before[i] : 0), kernel_tolerance,
                        "conv2d_back_kernel", i);
    }
    free_floats(d, before);
}

static void check_convolution(struct device *d, const struct geometry *g)
{
    struct trial t;
    struct conv2d_plan *plan = NULL;
    trial_open(d, g, &t);
    assert_int_equal(d->kernels->conv2d_open(d, &t.shape, &plan), OK);
    for (int choice = 0; choice < 12; choice++) check_forward(d, &t, plan, choice);
    check_back_data(d, &t, plan);
    check_back_kernel(d, &t, plan);
    d->kernels->conv2d_close(d, plan);
    trial_close(d, &t);
}

static void each_convolution(struct device *d)
{
    for (int i = 0; i < CONVOLUTIONS; i++) check_convolution(d, &convolutions[i]);
}

static void convolutions_and_their_gradients_are_right(void **state)
{
    on_every_device(each_convolution);
}

static void run_all(struct device *d, struct conv2d_plan *plan, const struct trial *t)
{
    const struct kernels *k = d->kernels;
    k->conv2d_forward(d, plan, t->y, t->x, t->kernel, t->bias, NULL, ACTIVATION_RELU, 0);
    k->conv2d_back_data(d, plan, t->dx, t->dy, t->kernel, false);
    k->conv2d_back_kernel(d, plan, t->dkernel, t->dy, t->x, false);
}

static void repeat_convolution(struct device *d)
{
    struct trial t;
    struct conv2d_plan *plan = NULL;
    trial_open(d, &convolutions[10], &t);
    assert_int_equal(d->kernels->conv2d_open(d, &t.shape, &plan), OK);
    run_all(d, plan, &t);
    float *y = copy_floats(d, t.y, t.destinations), *dx = copy_floats(d, t.dx, t.sources);
    float *dkernel = copy_floats(d, t.dkernel, t.weights);
    for (int i = 0; i < 3; i++) {
        run_all(d, plan, &t);
        assert_same_bits(y, t.y, t.destinations, "y");
        assert_same_bits(dx, t.dx, t.sources, "dx");
        assert_same_bits(dkernel, t.dkernel, t.weights, "dkernel");
    }
    d->kernels->conv2d_close(d, plan);
    free_floats(d, y);
    free_floats(d, dx);
    free_floats(d, dkernel);
    trial_close(d, &t);
}

static void convolutions_give_the_same_bits_run_after_run(void **state)
{
    on_every_device(repeat_convolution);
}

static void refuse_impossible(struct device *d)
{
    struct conv2d shape = {window_of(&convolutions[0]), 4, 5};
    shape.window.out_y += 3; /* does not follow from the other numbers */
    struct conv2d_plan *plan = NULL;
    assert_int_equal(d->kernels->conv2d_open(d, &shape, &plan), ERR_DEVICE);
    assert_non_null(strstr(error_text(), "convolution"));
    d->kernels->conv2d_close(d, plan);
}

static void a_convolution_that_cannot_be_is_refused_when_opened(void **state)
{
    on_every_device(refuse_impossible);
}

/* --- pooling --- */

static const struct geometry poolings[] = {
    {2, 8, 6, 2, 2, 2, 2, 1, SAME, 32, 0},  {3, 28, 28, 2, 2, 2, 2, 1, VALID, 64, 0},
    {2, 7, 9, 2, 2, 2, 2, 1, SAME, 3, 0},   {2, 7, 9, 2, 2, 2, 2, 1, VALID, 3, 0},
    {1, 8, 8, 3, 3, 2, 2, 1, SAME, 17, 0},  {2, 6, 5, 3, 3, 1, 1, 1, SAME, 1, 0},
    {2, 5, 7, 5, 7, 1, 1, 1, VALID, 70, 0}, {1, 9, 4, 3, 2, 3, 1, 1, SAME, 10, 0},
    {1, 5, 5, 1, 1, 2, 2, 1, VALID, 4, 0},
};
enum { POOLINGS = sizeof poolings / sizeof *poolings };

struct pool_trial {
    struct visitor visitor;
    struct pool2d shape;
    int64_t sources, destinations;
    float *x, *y, *dy;
    int64_t *first; /* index in x of the first maximum of each output; -1 before any */
    int64_t *cells; /* real elements of each output's window */
    double *sums, *want_max_dx, *want_avg_dx;
};

static void collect(struct visitor *v, int64_t out, int64_t in, int64_t cell)
{
    struct pool_trial *t = (struct pool_trial *)v;
    for (int64_t c = 0; c < t->shape.channels; c++) {
        const int64_t at = out * t->shape.channels + c, from = in * t->shape.channels + c;
        if (t->first[at] < 0 || t->x[from] > t->x[t->first[at]]) t->first[at] = from;
        t->sums[at] += t->x[from];
        t->cells[at]++;
    }
}

static void share_out(struct visitor *v, int64_t out, int64_t in, int64_t cell)
{
    struct pool_trial *t = (struct pool_trial *)v;
    for (int64_t c = 0; c < t->shape.channels; c++) {
        const int64_t at = out * t->shape.channels + c;
        t->want_avg_dx[in * t->shape.channels + c] += (double)t->dy[at] / (double)t->cells[at];
    }
}

static void pool_trial_open(struct device *d, const struct geometry *g, struct pool_trial *t)
{
    *t = (struct pool_trial){.visitor = {collect}, .shape = {window_of(g), g->in_channels}};
    const struct window2d *w = &t->shape.window;
    t->sources = w->batch * w->in_y * w->in_x * g->in_channels;
    t->destinations = w->batch * w->out_y * w->out_x * g->in_channels;
    t->x = random_floats(d, t->sources, -3, 3, 110);
    for (int64_t i = 0; i < t->sources; i++) t->x[i] = rintf(t->x[i]); /* ties everywhere */
    t->y = random_floats(d, t->destinations, -1, 1, 111);
    t->dy = random_floats(d, t->destinations, -1, 1, 112);
    t->first = test_malloc((size_t)t->destinations * sizeof *t->first);
    memset(t->first, -1, (size_t)t->destinations * sizeof *t->first);
    t->cells = test_calloc((size_t)t->destinations, sizeof *t->cells);
    t->sums = zeros(t->destinations);
    t->want_max_dx = zeros(t->sources);
    t->want_avg_dx = zeros(t->sources);
    visit_all(&t->visitor, w);
    t->visitor.visit = share_out;
    visit_all(&t->visitor, w);
    for (int64_t i = 0; i < t->destinations; i++) t->want_max_dx[t->first[i]] += t->dy[i];
}

static void pool_trial_close(struct device *d, struct pool_trial *t)
{
    free_floats(d, t->x);
    free_floats(d, t->y);
    free_floats(d, t->dy);
    test_free(t->first);
    test_free(t->cells);
    test_free(t->sums);
    test_free(t->want_max_dx);
    test_free(t->want_avg_dx);
}

static void check_pool_gradients(struct device *d, struct pool_trial *t, bool add)
{
    float *dx = random_floats(d, t->sources, -1, 1, 113), *before = copy_floats(d, dx, t->sources);
    d->kernels->max_pool(d, &t->shape, t->y, t->x);
    d->kernels->max_pool_back(d, &t->shape, dx, t->dy, t->y, t->x, add);
    for (int64_t i = 0; i < t->sources; i++)
        assert_near(dx[i], t->want_max_dx[i] + (add ? before[i] : 0), summed, "max_pool_back", i);
    memcpy(dx, before, (size_t)t->sources * sizeof *dx);
    d->kernels->avg_pool_back(d, &t->shape, dx, t->dy, add);
    for (int64_t i = 0; i < t->sources; i++)
        assert_near(dx[i], t->want_avg_dx[i] + (add ? before[i] : 0), summed, "avg_pool_back", i);
    free_floats(d, dx);
    free_floats(d, before);
}

static void check_pooling(struct device *d, const struct geometry *g)
{
    struct pool_trial t;
    pool_trial_open(d, g, &t);
    d->kernels->max_pool(d, &t.shape, t.y, t.x);
    for (int64_t i = 0; i < t.destinations; i++)
        assert_near(t.y[i], t.x[t.first[i]], exact, "max_pool", i);
    d->kernels->avg_pool(d, &t.shape, t.y, t.x);
    for (int64_t i = 0; i < t.destinations; i++)
        assert_near(t.y[i], t.sums[i] / (double)t.cells[i], close_by, "avg_pool", i);
    check_pool_gradients(d, &t, false);
    check_pool_gradients(d, &t, true);
    pool_trial_close(d, &t);
}

static void each_pooling(struct device *d)
{
    for (int i = 0; i < POOLINGS; i++) check_pooling(d, &poolings[i]);
}

static void pools_and_their_gradients_are_right_with_ties_going_to_the_first(void **state)
{
    on_every_device(each_pooling);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(convolutions_and_their_gradients_are_right),
        cmocka_unit_test(convolutions_give_the_same_bits_run_after_run),
        cmocka_unit_test(a_convolution_that_cannot_be_is_refused_when_opened),
        cmocka_unit_test(pools_and_their_gradients_are_right_with_ties_going_to_the_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
