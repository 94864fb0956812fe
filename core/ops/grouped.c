/* grouped.c - see grouped.h. */
#include "core/ops/grouped.h"

#include "core/ops/algebra/loops.h"

static int64_t padded_y(const struct window2d *w)
{
    return w->pad_top + w->in_y + w->pad_bottom;
}

static int64_t padded_x(const struct window2d *w)
{
    return w->pad_left + w->in_x + w->pad_right;
}

struct tensor grouped_room(const struct window2d *w, int64_t channels)
{
    return (struct tensor){.dtype = FLOAT32,
                           .shape = {4, {w->batch, padded_y(w), padded_x(w), channels}}};
}

/* Strides of an image, or of the padded one */
struct image {
    int64_t row, all; /* floats of a row of pixels, and of an image */
};

static void move(struct device *d, const struct grouped *g, struct fold f, struct image y,
                 struct image a)
{
    const struct window2d *w = &g->window;
    fold_axis(&f, w->batch, y.all, a.all, 0, 0);
    fold_axis(&f, w->in_y, y.row, a.row, 0, 0);
    fold_axis(&f, w->in_x * g->groups * g->in, 1, 1, 0, 0);
    d->kernels->fold(d, &f);
}

static struct image plain_image(const struct grouped *g)
{
    const int64_t row = g->window.in_x * g->groups * g->in;
    return (struct image){row, g->window.in_y * row};
}

static struct image padded_image(const struct grouped *g)
{
    const int64_t row = padded_x(&g->window) * g->groups * g->in;
    return (struct image){row, padded_y(&g->window) * row};
}

/* Where the image begins within the padded one */
static float *inside(const struct grouped *g)
{
    const int64_t channels = g->groups * g->in;
    return g->padded + g->window.pad_top * padded_image(g).row + g->window.pad_left * channels;
}

static void clear(struct device *d, const struct grouped *g)
{
    d->kernels->fill(d, g->padded, 0, g->window.batch * padded_image(g).all);
}

/* Which of the fold's operands y, a, b are the padded image and which are the result, for loops
 * over the windows */
struct roles {
    bool y_is_result, a_is_image, b_is_result, y_is_image, a_is_result;
};

static int64_t step(bool is_result, int64_t result, bool is_image, int64_t image)
{
    return is_result ? result : is_image ? image : 0;
}

static void over_windows(const struct grouped *g, struct fold *f, struct roles r)
{
    const struct window2d *w = &g->window;
    const struct image padded = padded_image(g);
    const int64_t pixel = g->groups * g->in, outs = g->groups * g->out;
    const int64_t n[] = {w->batch, w->out_y, w->out_x};
    const int64_t image[] = {padded.all, w->stride_y * padded.row, w->stride_x * pixel};
    const int64_t result[] = {w->out_y * w->out_x * outs, w->out_x * outs, outs};
    for (int i = 0; i < 3; i++)
        fold_axis(f, n[i], step(r.y_is_result, result[i], r.y_is_image, image[i]),
                  step(r.a_is_result, result[i], r.a_is_image, image[i]),
                  step(r.b_is_result, result[i], false, 0), 0);
}

/* y = sum over cells and the group's channels of x kernel */
void grouped_forward(struct device *d, const struct grouped *g, float *y, const float *x,
                     const float *kernel)
{
    const struct window2d *w = &g->window;
    const int64_t pixel = g->groups * g->in, outs = g->groups * g->out;
    clear(d, g);
    move(d, g, (struct fold){FOLD_A, .scale = 1, .y = inside(g), .a = x}, padded_image(g),
         plain_image(g));
    struct fold f = {FOLD_MULTIPLY, .scale = 1, .y = y, .a = g->padded, .b = kernel};
    over_windows(g, &f, (struct roles){.y_is_result = true, .a_is_image = true});
    fold_axis(&f, g->groups, g->out, g->in, g->out, 0);
    fold_axis(&f, g->out, 1, 0, 1, 0);
    fold_axis(&f, w->kernel_y, 0, w->dilation_y * padded_image(g).row, w->kernel_x * g->in * outs,
              0);
    fold_axis(&f, w->kernel_x, 0, w->dilation_x * pixel, g->in * outs, 0);
    fold_axis(&f, g->in, 0, 1, outs, 0);
    d->kernels->fold(d, &f);
}

/* dkernel (+)= sum over windows of x dy */
void grouped_back_kernel(struct device *d, const struct grouped *g, float *dkernel, const float *dy,
                         const float *x, bool add)
{
    const struct window2d *w = &g->window;
    const int64_t pixel = g->groups * g->in, outs = g->groups * g->out;
    struct fold f = {FOLD_MULTIPLY, .add = add, .scale = 1, .y = dkernel, .a = g->padded, .b = dy};
    fold_axis(&f, w->kernel_y, w->kernel_x * g->in * outs, w->dilation_y * padded_image(g).row, 0,
              0);
    fold_axis(&f, w->kernel_x, g->in * outs, w->dilation_x * pixel, 0, 0);
    fold_axis(&f, g->in, outs, 1, 0, 0);
    fold_axis(&f, g->groups, g->out, g->in, g->out, 0);
    fold_axis(&f, g->out, 1, 0, 1, 0);
    over_windows(g, &f, (struct roles){.a_is_image = true, .b_is_result = true});
    d->kernels->fold(d, &f);
}

/* One cell of the kernel at a time, since windows overlap: image += dy kernel, summed over the
 * group's outputs */
static void back_cell(struct device *d, const struct grouped *g, const float *dy,
                      const float *kernel, int64_t y, int64_t x)
{
    const struct window2d *w = &g->window;
    const int64_t pixel = g->groups * g->in, outs = g->groups * g->out;
    float *image = g->padded + y * w->dilation_y * padded_image(g).row + x * w->dilation_x * pixel;
    const float *cell = kernel + (y * w->kernel_x + x) * g->in * outs;
    struct fold f = {FOLD_MULTIPLY, .add = true, .scale = 1, .y = image, .a = dy, .b = cell};
    over_windows(g, &f, (struct roles){.y_is_image = true, .a_is_result = true});
    fold_axis(&f, g->groups, g->in, g->out, g->out, 0);
    fold_axis(&f, g->in, 1, 0, outs, 0);
    fold_axis(&f, g->out, 0, 1, 1, 0);
    d->kernels->fold(d, &f);
}

void grouped_back_data(struct device *d, const struct grouped *g, float *dx, const float *dy,
                       const float *kernel, bool add)
{
    clear(d, g);
    for (int64_t y = 0; y < g->window.kernel_y; y++)
        for (int64_t x = 0; x < g->window.kernel_x; x++) back_cell(d, g, dy, kernel, y, x);
    move(d, g, (struct fold){FOLD_A, .add = add, .scale = 1, .y = dx, .a = inside(g)},
         plain_image(g), padded_image(g));
}
