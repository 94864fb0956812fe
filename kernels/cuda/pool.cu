/* pool.cu - max and average pooling of images [batch, y, x, channel].
 *
 * Forward has one thread per output; backward one per input, which sums the gradients of the
 * windows that contain it: so no two threads add to the same number, and the order is always the
 * same. If channels are a multiple of four, a thread computes four of them.
 */
#include "kernels/cuda/product/packs.cuh"

ON_GPU int32_t quotient_of(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a / (uint32_t)b); /* neither is negative */
}

/* Index: an integer type for indices into both images; 32-bit divisions are several times as fast
 */
template <typename Index> struct pooling {
    Index in_y, in_x, out_y, out_x, kernel_y, kernel_x, stride_y, stride_x, pad_top, pad_left,
        channels;
    float *out;               /* the result: y, or dx */
    const float *in, *dy, *y; /* x; dy and y for gradients */
    bool add;
};

/* An element of an image: which image, position, channel */
template <typename Index> struct place {
    Index image, y, x, channel;
};

template <typename Index>
ON_GPU struct place<Index> place_of(Index i, Index height, Index width, Index channels) {
    const Index pixel = quotient_of(i, channels), row = quotient_of(pixel, width);
    const Index image = quotient_of(row, height);
    return {image, row - image *height, pixel - row *width, i - pixel *channels};
}

/* [first, end) */
template <typename Index>
struct index_range {
    Index first, end;
};

/* The cells of a window that lie inside the image, in one direction */
template <typename Index>
ON_GPU struct index_range<Index> cells_of(Index out, Index stride, Index pad, Index kernel, Index in) {
    const Index start = out * stride - pad;
    return {start < 0 ? 0 : start, start + kernel < in ? start + kernel : in};
}

/* The windows over a cell, in one direction */
template <typename Index>
ON_GPU struct index_range<Index> windows_of(Index cell, Index stride, Index pad, Index kernel,
                                      Index out) {
    const Index last = quotient_of(cell + pad, stride), before = cell + pad - kernel;
    const Index first = before < 0 ? 0 : quotient_of(before, stride) + 1;
    return {first, last + 1 < out ? last + 1 : out};
}

template <typename Index>
ON_GPU struct index_range<Index> rows_in(const struct pooling<Index> &p, Index out_y) {
    return cells_of(out_y, p.stride_y, p.pad_top, p.kernel_y, p.in_y);
}

template <typename Index>
ON_GPU struct index_range<Index> columns_in(const struct pooling<Index> &p, Index out_x) {
    return cells_of(out_x, p.stride_x, p.pad_left, p.kernel_x, p.in_x);
}

template <typename Index>
ON_GPU Index cell_count(const struct index_range<Index> &rows, const struct index_range<Index> &columns)
{
    if (rows.end <= rows.first || columns.end <= columns.first) return 0;
    return (rows.end - rows.first) * (columns.end - columns.first);
}

/* The channel at (0, 0) of its image, of what is read and of the other side */
template <typename Index>
ON_GPU Index in_corner(const struct pooling<Index> &p, const struct place<Index> &at)
{
    return at.image * p.in_y * p.in_x * p.channels + at.channel;
}

template <typename Index>
ON_GPU Index out_corner(const struct pooling<Index> &p, const struct place<Index> &at)
{
    return at.image * p.out_y * p.out_x * p.channels + at.channel;
}

/* How a window's cells are combined: initial value, combination, final step. Without cells the
 * result is 0. */
struct largest {
    static __device__ float begin(bool has_cells)
    {
        return has_cells ? -INFINITY : 0.0f;
    }

    static __device__ float join(float top, float cell)
    {
        return top > cell ? top : cell;
    }

    static __device__ float end(float top, float)
    {
        return top;
    }
};

struct mean {
    static __device__ float begin(bool)
    {
        return 0.0f;
    }

    static __device__ float join(float sum, float cell)
    {
        return sum + cell;
    }

    static __device__ float end(float sum, float cells)
    {
        return sum / cells;
    }
};

template <typename Rule, typename Index> struct pool_body {
    enum { COUNT = 1, BLOCKS = RESIDENT_BLOCKS };
    struct pooling<Index> p;

    template <int WIDTH, int> __device__ void take(int64_t i, int64_t) const
    {
        const struct place<Index> at = place_of((Index)i, p.out_y, p.out_x, p.channels);
        const struct index_range<Index> rows = rows_in(p, at.y), columns = columns_in(p, at.x);
        const float *in = p.in + in_corner(p, at);
        const Index cells = cell_count(rows, columns);
        float all[WIDTH], cell[WIDTH];
        for (int j = 0; j < WIDTH; j++) all[j] = Rule::begin(cells != 0);
        for (Index y = rows.first; y < rows.end; y++)
            for (Index x = columns.first; x < columns.end; x++) {
                pack_read<WIDTH>(cell, in + (y * p.in_x + x) * p.channels);
                for (int j = 0; j < WIDTH; j++) all[j] = Rule::join(all[j], cell[j]);
            }
        for (int j = 0; j < WIDTH; j++) all[j] = Rule::end(all[j], cells ? (float)cells : 1.0f);
        pack_write<WIDTH>(p.out + i, all);
    }
};

/* The gradient that a cell gets from the window of output (y, x): all of dy for its first maximum
 */
template <typename Index, int WIDTH> struct max_share {
    const struct pooling<Index> &p;
    const struct place<Index> &cell;
    float own[WIDTH];

    __device__ max_share(const struct pooling<Index> &of_p, const struct place<Index> &of_cell,
                         int64_t i)
        : p(of_p), cell(of_cell)
    {
        pack_read<WIDTH>(own, p.in + i);
    }

    /* Whether one of the cells before this one is the maximum too */
    __device__ void look_before(bool *wins, const float *top, Index out_y, Index out_x) const
    {
        const struct index_range<Index> rows = rows_in(p, out_y), columns = columns_in(p, out_x);
        const float *in = p.in + in_corner(p, cell);
        for (Index y = rows.first; y <= cell.y; y++)
            for (Index x = columns.first; x < (y < cell.y ? columns.end : cell.x); x++) {
                float before[WIDTH];
                pack_read<WIDTH>(before, in + (y * p.in_x + x) * p.channels);
                for (int j = 0; j < WIDTH; j++) wins[j] = wins[j] && before[j] != top[j];
            }
    }

    __device__ void add(float *sum, Index out_y, Index out_x) const
    {
        const Index out = out_corner(p, cell) + (out_y * p.out_x + out_x) * p.channels;
        float top[WIDTH], slope[WIDTH];
        bool wins[WIDTH], any = false;
        pack_read<WIDTH>(top, p.y + out);
        pack_read<WIDTH>(slope, p.dy + out);
        for (int j = 0; j < WIDTH; j++) any |= wins[j] = own[j] == top[j];
        if (any) look_before(wins, top, out_y, out_x);
        for (int j = 0; j < WIDTH; j++) sum[j] += wins[j] ? slope[j] : 0.0f;
    }
};

template <typename Index, int WIDTH> struct avg_share {
    const struct pooling<Index> &p;
    const struct place<Index> &cell;

    __device__ avg_share(const struct pooling<Index> &of_p, const struct place<Index> &of_cell,
                         int64_t)
        : p(of_p), cell(of_cell)
    {
    }

    __device__ void add(float *sum, Index out_y, Index out_x) const
    {
        const Index out = out_corner(p, cell) + (out_y * p.out_x + out_x) * p.channels;
        const float cells = (float)cell_count(rows_in(p, out_y), columns_in(p, out_x));
        float slope[WIDTH];
        pack_read<WIDTH>(slope, p.dy + out);
        for (int j = 0; j < WIDTH; j++) sum[j] += slope[j] / cells;
    }
};

template <template <typename, int> typename Share, typename Index> struct pool_back_body {
    enum { COUNT = 1, BLOCKS = sizeof(Index) == sizeof(int32_t) ? RESIDENT_BLOCKS : 2 };
    struct pooling<Index> p;

    template <int WIDTH, int> __device__ void take(int64_t i, int64_t) const
    {
        const struct place<Index> at = place_of((Index)i, p.in_y, p.in_x, p.channels);
        const struct index_range<Index> ys = windows_of(at.y, p.stride_y, p.pad_top, p.kernel_y, p.out_y);
        const struct index_range<Index> xs =
            windows_of(at.x, p.stride_x, p.pad_left, p.kernel_x, p.out_x);
        const Share<Index, WIDTH> share(p, at, i);
        float sum[WIDTH] = {};
        if (p.add) pack_read<WIDTH>(sum, p.out + i);
        for (Index y = ys.first; y < ys.end; y++)
            for (Index x = xs.first; x < xs.end; x++) share.add(sum, y, x);
        pack_write<WIDTH>(p.out + i, sum);
    }
};

static int64_t in_count(const struct pool2d *s)
{
    return window_inputs(&s->window) * s->channels;
}

static int64_t out_count(const struct pool2d *s)
{
    return window_outputs(&s->window) * s->channels;
}

/* The arguments of a call; in, dy and y may be NULL. */
struct pool_call {
    const char *name;
    const struct pool2d *shape;
    float *out;
    const float *in, *dy, *y;
    bool add;
};

template <typename Index> static struct pooling<Index> pooling_of(const struct pool_call &c) {
    const struct window2d &w = c.shape->window;
    return {(Index)w.in_y,
            (Index)w.in_x,
            (Index)w.out_y,
            (Index)w.out_x,
            (Index)w.kernel_y,
            (Index)w.kernel_x,
            (Index)w.stride_y,
            (Index)w.stride_x,
            (Index)w.pad_top,
            (Index)w.pad_left,
            (Index)c.shape->channels,
            c.out,
            c.in,
            c.dy,
            c.y,
            c.add};
}

/* n: elements of c.out */
template <template <typename> typename Body>
static void run_pool(struct device *d, const struct pool_call &c, int64_t n)
{
    const bool has_packs = c.shape->channels % PACK == 0 && is_packed(c.out) && is_packed(c.in) &&
                           is_packed(c.dy) && is_packed(c.y);
    const struct pack_cut cut = has_packs ? cut_of(0, n) : uncut(n);
    if (in_count(c.shape) <= INT32_MAX && out_count(c.shape) <= INT32_MAX)
        each_pack(d, c.name, Body<int32_t>{pooling_of<int32_t>(c)}, cut);
    else
        each_pack(d, c.name, Body<int64_t>{pooling_of<int64_t>(c)}, cut);
}

template <typename Index> using max_body = pool_body<largest, Index>;
template <typename Index> using avg_body = pool_body<mean, Index>;
template <typename Index> using max_back_body = pool_back_body<max_share, Index>;
template <typename Index> using avg_back_body = pool_back_body<avg_share, Index>;

void cuda_max_pool(struct device *d, const struct pool2d *shape, float *y, const float *x)
{
    run_pool<max_body>(d, {"max_pool", shape, y, x, NULL, NULL, false}, out_count(shape));
}

void cuda_max_pool_back(struct device *d, const struct pool2d *shape, float *dx, const float *dy,
                        const float *y, const float *x, bool add)
{
    run_pool<max_back_body>(d, {"max_pool_back", shape, dx, x, dy, y, add}, in_count(shape));
}

void cuda_avg_pool(struct device *d, const struct pool2d *shape, float *y, const float *x)
{
    run_pool<avg_body>(d, {"avg_pool", shape, y, x, NULL, NULL, false}, out_count(shape));
}

void cuda_avg_pool_back(struct device *d, const struct pool2d *shape, float *dx, const float *dy,
                        bool add)
{
    run_pool<avg_back_body>(d, {"avg_pool_back", shape, dx, NULL, dy, NULL, add}, in_count(shape));
}
