/* pool.cu - max and average pooling of images [batch, y, x, channel].
 *
 * Forward has a thread for each output, backward one for each input, which collects what the
 * windows over it give: nothing is added by two threads, and the order is always the same.
 */
#include "kernels/cuda/launch.cuh"

/* One number of an image: which image, where, which channel */
struct place {
    int64_t image, y, x, channel;
};

ON_GPU struct place place_of(int64_t i, int64_t height, int64_t width, int64_t channels)
{
    const int64_t pixel = quotient_of(i, channels), row = quotient_of(pixel, width);
    const int64_t image = quotient_of(row, height);
    return {image, row - image * height, pixel - row * width, i - pixel * channels};
}

/* [first, end) */
struct range {
    int64_t first, end;
};

/* The cells of a window that lie inside the image, in one direction */
ON_GPU struct range cells_of(int64_t out, int64_t stride, int64_t pad, int64_t kernel, int64_t in)
{
    int64_t start = out * stride - pad;
    return {start < 0 ? 0 : start, start + kernel < in ? start + kernel : in};
}

/* The windows over a cell, in one direction */
ON_GPU struct range windows_of(int64_t cell, int64_t stride, int64_t pad, int64_t kernel,
                               int64_t out)
{
    int64_t last = quotient_of(cell + pad, stride), before = cell + pad - kernel;
    int64_t first = before < 0 ? 0 : quotient_of(before, stride) + 1;
    return {first, last + 1 < out ? last + 1 : out};
}

struct pooling {
    struct pool2d shape;
    float *out;               /* the result: y, or dx of a gradient */
    const float *in, *dy, *y; /* x; what a gradient needs besides */
    bool add;
};

ON_GPU int64_t in_index(const struct pooling &p, int64_t image, int64_t y, int64_t x, int64_t c)
{
    const struct window2d &w = p.shape.window;
    return ((image * w.in_y + y) * w.in_x + x) * p.shape.channels + c;
}

ON_GPU int64_t out_index(const struct pooling &p, int64_t image, int64_t y, int64_t x, int64_t c)
{
    const struct window2d &w = p.shape.window;
    return ((image * w.out_y + y) * w.out_x + x) * p.shape.channels + c;
}

ON_GPU struct range rows_in(const struct window2d &w, int64_t out_y)
{
    return cells_of(out_y, w.stride_y, w.pad_top, w.kernel_y, w.in_y);
}

ON_GPU struct range columns_in(const struct window2d &w, int64_t out_x)
{
    return cells_of(out_x, w.stride_x, w.pad_left, w.kernel_x, w.in_x);
}

ON_GPU int64_t cell_count(const struct range &rows, const struct range &columns)
{
    if (rows.end <= rows.first || columns.end <= columns.first) return 0;
    return (rows.end - rows.first) * (columns.end - columns.first);
}

struct max_element {
    struct pooling p;
    __device__ void operator()(int64_t i) const
    {
        const struct window2d &w = p.shape.window;
        const struct place at = place_of(i, w.out_y, w.out_x, p.shape.channels);
        const struct range rows = rows_in(w, at.y), columns = columns_in(w, at.x);
        float top = cell_count(rows, columns) ? -INFINITY : 0.0f;
        for (int64_t y = rows.first; y < rows.end; y++)
            for (int64_t x = columns.first; x < columns.end; x++) {
                float cell = p.in[in_index(p, at.image, y, x, at.channel)];
                top = top > cell ? top : cell;
            }
        p.out[i] = top;
    }
};

struct avg_element {
    struct pooling p;
    __device__ void operator()(int64_t i) const
    {
        const struct window2d &w = p.shape.window;
        const struct place at = place_of(i, w.out_y, w.out_x, p.shape.channels);
        const struct range rows = rows_in(w, at.y), columns = columns_in(w, at.x);
        const int64_t cells = cell_count(rows, columns);
        float sum = 0;
        for (int64_t y = rows.first; y < rows.end; y++)
            for (int64_t x = columns.first; x < columns.end; x++)
                sum += p.in[in_index(p, at.image, y, x, at.channel)];
        p.out[i] = sum / (cells ? (float)cells : 1.0f);
    }
};

/* What the window over output (y, x) gives to the cell: all of dy to its first maximum */
struct max_share {
    static __device__ float of(const struct pooling &p, const struct place &cell, int64_t out_y,
                               int64_t out_x)
    {
        const int64_t out = out_index(p, cell.image, out_y, out_x, cell.channel);
        const float top = p.y[out];
        const struct range rows = rows_in(p.shape.window, out_y);
        const struct range columns = columns_in(p.shape.window, out_x);
        if (p.in[in_index(p, cell.image, cell.y, cell.x, cell.channel)] != top) return 0.0f;
        for (int64_t y = rows.first; y <= cell.y; y++)
            for (int64_t x = columns.first; x < (y < cell.y ? columns.end : cell.x); x++)
                if (p.in[in_index(p, cell.image, y, x, cell.channel)] == top) return 0.0f;
        return p.dy[out];
    }
};

struct avg_share {
    static __device__ float of(const struct pooling &p, const struct place &cell, int64_t out_y,
                               int64_t out_x)
    {
        const struct range rows = rows_in(p.shape.window, out_y);
        const struct range columns = columns_in(p.shape.window, out_x);
        return p.dy[out_index(p, cell.image, out_y, out_x, cell.channel)] /
               (float)cell_count(rows, columns);
    }
};

template <typename Share> struct pool_back_element {
    struct pooling p;
    __device__ void operator()(int64_t i) const
    {
        const struct window2d &w = p.shape.window;
        const struct place at = place_of(i, w.in_y, w.in_x, p.shape.channels);
        const struct range ys = windows_of(at.y, w.stride_y, w.pad_top, w.kernel_y, w.out_y);
        const struct range xs = windows_of(at.x, w.stride_x, w.pad_left, w.kernel_x, w.out_x);
        float sum = p.add ? p.out[i] : 0.0f;
        for (int64_t y = ys.first; y < ys.end; y++)
            for (int64_t x = xs.first; x < xs.end; x++) sum += Share::of(p, at, y, x);
        p.out[i] = sum;
    }
};

static int64_t in_count(const struct pool2d *s)
{
    return s->window.batch * s->window.in_y * s->window.in_x * s->channels;
}

static int64_t out_count(const struct pool2d *s)
{
    return s->window.batch * s->window.out_y * s->window.out_x * s->channels;
}

static void max_pool(struct device *d, const struct pool2d *shape, float *y, const float *x)
{
    each(d, "max_pool", max_element{{*shape, y, x, NULL, NULL, false}}, out_count(shape));
}

static void max_pool_back(struct device *d, const struct pool2d *shape, float *dx, const float *dy,
                          const float *y, const float *x, bool add)
{
    each(d, "max_pool_back", pool_back_element<max_share>{{*shape, dx, x, dy, y, add}},
         in_count(shape));
}

static void avg_pool(struct device *d, const struct pool2d *shape, float *y, const float *x)
{
    each(d, "avg_pool", avg_element{{*shape, y, x, NULL, NULL, false}}, out_count(shape));
}

static void avg_pool_back(struct device *d, const struct pool2d *shape, float *dx, const float *dy,
                          bool add)
{
    each(d, "avg_pool_back", pool_back_element<avg_share>{{*shape, dx, NULL, dy, NULL, add}},
         in_count(shape));
}

void cuda_pool_fill(struct kernels *table)
{
    table->max_pool = max_pool;
    table->max_pool_back = max_pool_back;
    table->avg_pool = avg_pool;
    table->avg_pool_back = avg_pool_back;
}
