/* pool.c - max and average pooling of images [batch, y, x, channel].
 *
 * A window is walked cell by cell in raster order, CHANNELS channels at a time, so that the inner
 * loops run over neighbours in memory. Images are independent: threads share the batch.
 */
#include "kernels/cpu/isa.h"
#include "kernels/elements.h"

enum { CHANNELS = 64 };

struct pooling {
    struct pool2d shape;
    float *out;               /* the result: y, or dx */
    const float *in, *dy, *y; /* x; dy and y for gradients */
    bool add;
    bool is_tiling; /* windows touch, do not overlap and cover the image */
};

/* The part of a window that lies inside the image */
struct pool_cells {
    int64_t y, x; /* of the first, in the image */
    int64_t rows, columns;
};

/* Clips [start, start + length) to [0, limit) */
static void clip(int64_t start, int64_t length, int64_t limit, int64_t *ret_first,
                 int64_t *ret_count)
{
    int64_t end = start + length < limit ? start + length : limit;
    *ret_first = start < 0 ? 0 : start;
    *ret_count = end > *ret_first ? end - *ret_first : 0;
}

static struct pool_cells window_cells(const struct window2d *w, int64_t out_y, int64_t out_x)
{
    struct pool_cells c;
    clip(out_y * w->stride_y - w->pad_top, w->kernel_y, w->in_y, &c.y, &c.rows);
    clip(out_x * w->stride_x - w->pad_left, w->kernel_x, w->in_x, &c.x, &c.columns);
    return c;
}

/* Index of a channel of a pixel; image_row: row within the batch */
static int64_t cell_index(const struct pooling *p, int64_t image_row, int64_t column,
                          int64_t channel)
{
    return (image_row * p->shape.window.in_x + column) * p->shape.channels + channel;
}

/* One output pixel, count channels from `channel`; image_row: of the window's first cell, within
 * the batch; at: index of the output */
typedef void pixel_body(const struct pooling *, const struct pool_cells *, int64_t image_row,
                        int64_t channel, int64_t at);

static int channels_from(const struct pooling *p, int64_t channel)
{
    int64_t left = p->shape.channels - channel;
    return left < CHANNELS ? (int)left : CHANNELS;
}

ELEMENT void each_pixel(const struct pooling *p, int64_t image, pixel_body *body)
{
    const struct window2d *w = &p->shape.window;
    for (int64_t out_y = 0; out_y < w->out_y; out_y++)
        for (int64_t out_x = 0; out_x < w->out_x; out_x++) {
            struct pool_cells c = window_cells(w, out_y, out_x);
            int64_t pixel = (image * w->out_y + out_y) * w->out_x + out_x;
            for (int64_t channel = 0; channel < p->shape.channels; channel += CHANNELS)
                body(p, &c, image * w->in_y + c.y, channel, pixel * p->shape.channels + channel);
        }
}

/* Loops whose number of channels is a compile-time constant are several times as fast. */
#define WITH_KNOWN_COUNT(count, call)                                                              \
    switch (count) {                                                                               \
    case 64:                                                                                       \
        call(64);                                                                                  \
        break;                                                                                     \
    case 32:                                                                                       \
        call(32);                                                                                  \
        break;                                                                                     \
    case 16:                                                                                       \
        call(16);                                                                                  \
        break;                                                                                     \
    default:                                                                                       \
        call(count);                                                                               \
    }

ELEMENT void max_cells(const struct pooling *p, const struct pool_cells *c, int64_t first, float *y,
                       int count)
{
    const int64_t channels = p->shape.channels, row_step = p->shape.window.in_x * channels;
    float top[CHANNELS];
    for (int i = 0; i < count; i++) top[i] = c->rows && c->columns ? -INFINITY : 0.0f;
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t column = 0; column < c->columns; column++) {
            const float *x = p->in + first + row * row_step + column * channels;
            for (int i = 0; i < count; i++) top[i] = top[i] > x[i] ? top[i] : x[i];
        }
    memcpy(y, top, (size_t)count * sizeof(float));
}

ELEMENT void max_pixel(const struct pooling *p, const struct pool_cells *c, int64_t image_row,
                       int64_t channel, int64_t at)
{
    const int64_t first = cell_index(p, image_row, c->x, channel);
#define MAX_CELLS(count) max_cells(p, c, first, p->out + at, count)
    WITH_KNOWN_COUNT(channels_from(p, channel), MAX_CELLS)
}

/* dy goes to the first cell that equals the maximum, and is then 0 for the others. */
ELEMENT void max_back_cells(const struct pooling *p, const struct pool_cells *c, int64_t first,
                            int64_t at, int count)
{
    const bool overwrites = p->is_tiling && !p->add;
    const int64_t channels = p->shape.channels, row_step = p->shape.window.in_x * channels;
    const float *y = p->y + at;
    float left[CHANNELS];
    memcpy(left, p->dy + at, (size_t)count * sizeof(float));
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t column = 0; column < c->columns; column++) {
            const int64_t cell = first + row * row_step + column * channels;
            const float *x = p->in + cell;
            float *dx = p->out + cell, taken[CHANNELS];
            for (int i = 0; i < count; i++) {
                taken[i] = x[i] == y[i] ? left[i] : 0.0f;
                left[i] = x[i] == y[i] ? 0.0f : left[i];
            }
            if (overwrites)
                memcpy(dx, taken, (size_t)count * sizeof(float));
            else
                for (int i = 0; i < count; i++) dx[i] += taken[i];
        }
}

ELEMENT void max_back_pixel(const struct pooling *p, const struct pool_cells *c, int64_t image_row,
                            int64_t channel, int64_t at)
{
    const int64_t first = cell_index(p, image_row, c->x, channel);
#define MAX_BACK_CELLS(count) max_back_cells(p, c, first, at, count)
    WITH_KNOWN_COUNT(channels_from(p, channel), MAX_BACK_CELLS)
}

ELEMENT void avg_pixel(const struct pooling *p, const struct pool_cells *c, int64_t image_row,
                       int64_t channel, int64_t at)
{
    const int count = channels_from(p, channel);
    const int64_t cells = c->rows * c->columns;
    float sum[CHANNELS] = {0};
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t column = 0; column < c->columns; column++) {
            const float *x = p->in + cell_index(p, image_row + row, c->x + column, channel);
            for (int i = 0; i < count; i++) sum[i] += x[i];
        }
    const float divisor = cells ? (float)cells : 1.0f;
    for (int i = 0; i < count; i++) p->out[at + i] = sum[i] / divisor;
}

ELEMENT void avg_back_pixel(const struct pooling *p, const struct pool_cells *c, int64_t image_row,
                            int64_t channel, int64_t at)
{
    const int count = channels_from(p, channel);
    const float divisor = (float)(c->rows * c->columns), *dy = p->dy + at;
    for (int64_t row = 0; row < c->rows; row++)
        for (int64_t column = 0; column < c->columns; column++) {
            float *dx = p->out + cell_index(p, image_row + row, c->x + column, channel);
#pragma omp simd
            for (int i = 0; i < count; i++) dx[i] += dy[i] / divisor;
        }
}

static void max_images(const void *arguments, int64_t begin, int64_t end)
{
    for (int64_t image = begin; image < end; image++) each_pixel(arguments, image, max_pixel);
}

static void avg_images(const void *arguments, int64_t begin, int64_t end)
{
    for (int64_t image = begin; image < end; image++) each_pixel(arguments, image, avg_pixel);
}

/* Gradients of overlapping windows are summed, from zero. */
static void clear_image(const struct pooling *p, int64_t image)
{
    const struct window2d *w = &p->shape.window;
    size_t size = (size_t)(w->in_y * w->in_x * p->shape.channels);
    memset(p->out + (size_t)image * size, 0, size * sizeof(float));
}

static void max_back_images(const void *arguments, int64_t begin, int64_t end)
{
    const struct pooling *p = arguments;
    for (int64_t image = begin; image < end; image++) {
        if (!p->add && !p->is_tiling) clear_image(p, image);
        each_pixel(p, image, max_back_pixel);
    }
}

static void avg_back_images(const void *arguments, int64_t begin, int64_t end)
{
    const struct pooling *p = arguments;
    for (int64_t image = begin; image < end; image++) {
        if (!p->add) clear_image(p, image);
        each_pixel(p, image, avg_back_pixel);
    }
}

static bool tiles(const struct window2d *w)
{
    return w->kernel_y == w->stride_y && w->kernel_x == w->stride_x && w->pad_top == 0 &&
           w->pad_left == 0 && w->out_y * w->stride_y == w->in_y &&
           w->out_x * w->stride_x == w->in_x;
}

static void run(const struct device *d, struct pooling p, range_body *body)
{
    const struct window2d *w = &p.shape.window;
    p.is_tiling = tiles(w);
    int64_t image = w->in_y * w->in_x * p.shape.channels;
    spread(d, w->batch, SPREAD_GRAIN / (image + 1) + 1, body, &p);
}

void ISA(max_pool)(struct device *d, const struct pool2d *shape, float *y, const float *x)
{
    run(d, (struct pooling){.shape = *shape, .out = y, .in = x}, max_images);
}

void ISA(max_pool_back)(struct device *d, const struct pool2d *shape, float *dx, const float *dy,
                        const float *y, const float *x, bool add)
{
    run(d, (struct pooling){.shape = *shape, .out = dx, .in = x, .dy = dy, .y = y, .add = add},
        max_back_images);
}

void ISA(avg_pool)(struct device *d, const struct pool2d *shape, float *y, const float *x)
{
    run(d, (struct pooling){.shape = *shape, .out = y, .in = x}, avg_images);
}

void ISA(avg_pool_back)(struct device *d, const struct pool2d *shape, float *dx, const float *dy,
                        bool add)
{
    run(d, (struct pooling){.shape = *shape, .out = dx, .dy = dy, .add = add}, avg_back_images);
}
