/* rows.cu - softmax of rows and its gradient, and the sum over rows. */
#include "kernels/cuda/rows.cuh"

struct softmax_row {
    enum { IS_SUM = false, BLOCKS = 3 };
    float *y;
    const float *x;

    template <typename Row> __device__ double operator()(const Row &row) const
    {
        float held[HELD], top = -INFINITY;
        double sum = 0;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            row.read(held, x, at);
            row.each(at, [&](int i, int64_t) { top = held[i] > top ? held[i] : top; });
        }
        top = row.group.max(top); /* NaN does not count */
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            if (Row::IS_WIDE) row.read(held, x, at);
            row.each(at, [&](int i, int64_t) { sum += held[i] = mathf_exp(held[i] - top); });
        }
        const float factor = 1.0f / (float)row.group.sum(sum);
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            if (Row::IS_WIDE) row.read(held, x, at);
            row.each(at, [&](int i, int64_t) {
                held[i] = (Row::IS_WIDE ? mathf_exp(held[i] - top) : held[i]) * factor;
            });
            row.write(y, held, at);
        }
        return 0;
    }
};

void cuda_softmax(struct device *d, float *y, const float *x, int64_t rows, int64_t columns)
{
    if (rows == 0 || columns == 0) return;
    each_row(d, "softmax", softmax_row{y, x}, {rows, columns}, is_packed(y) && is_packed(x));
}

/* dx = y (dy - sum(dy y)) */
struct softmax_back_row {
    enum { IS_SUM = false, BLOCKS = 2 };
    float *dx;
    const float *dy, *y;
    bool add;

    template <typename Row> __device__ double operator()(const Row &row) const
    {
        float slopes[HELD], values[HELD], before[HELD];
        double sum = 0;
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            row.read(slopes, dy, at);
            row.read(values, y, at);
            row.each(at, [&](int i, int64_t) { sum += (double)slopes[i] * values[i]; });
        }
        const float dot = (float)row.group.sum(sum);
        for (int64_t at = 0; at < row.span(); at += row.step()) {
            if (Row::IS_WIDE) row.read(slopes, dy, at);
            if (Row::IS_WIDE) row.read(values, y, at);
            if (add) row.read(before, dx, at);
            row.each(at, [&](int i, int64_t) {
                const float gradient = values[i] * (slopes[i] - dot);
                slopes[i] = add ? before[i] + gradient : gradient;
            });
            row.write(dx, slopes, at);
        }
        return 0;
    }
};

void cuda_softmax_back(struct device *d, float *dx, const float *dy, const float *y, int64_t rows,
                       int64_t columns, bool add)
{
    if (rows == 0 || columns == 0) return;
    each_row(d, "softmax_back", softmax_back_row{dx, dy, y, add}, {rows, columns},
             is_packed(dx) && is_packed(dy) && is_packed(y));
}

/* Sums over rows: neighbouring threads sum neighbouring columns, and as many rows at once as fit
 * into a block; the rows are split among blocks in slices, whose number depends on the shape, and
 * which leave sums in double. Columns are processed in cells of WIDTH numbers. */
enum { SLICE_LOADS_MIN = 4 /* of a thread */ };

struct column_sums {
    const float *x; /* [rows, columns] */
    int64_t rows, columns, slice_rows;
    int cells, block_rows; /* of a block */
    bool is_whole;         /* each cell can be read by one access */
    double *partials;      /* [columns, slices] */
    float *sums;           /* [columns] */
    bool add;
};

template <int WIDTH> ON_GPU void read_cell(const struct column_sums &c, float *x, int64_t at)
{
    if (WIDTH == PACK)
        pack_read_any(x, c.x + at, c.is_whole);
    else
        x[0] = c.x[at];
}

/* Sums the rows row, row + block_rows ..., LOADS of them at once */
template <int WIDTH>
ON_GPU void add_rows(const struct column_sums &c, double *sum, int64_t row, int64_t end,
                     int64_t column)
{
    float x[LOADS][WIDTH];
    for (; row + (LOADS - 1) * c.block_rows < end; row += LOADS * c.block_rows) {
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            read_cell<WIDTH>(c, x[k], (row + k * c.block_rows) * c.columns + column);
#pragma unroll
        for (int k = 0; k < LOADS; k++)
            for (int j = 0; j < WIDTH; j++) sum[j] += x[k][j];
    }
#pragma unroll 1
    for (; row < end; row += c.block_rows) {
        read_cell<WIDTH>(c, x[0], row * c.columns + column);
        for (int j = 0; j < WIDTH; j++) sum[j] += x[0][j];
    }
}

template <int WIDTH>
static __global__ void __launch_bounds__(BLOCK, RESIDENT_BLOCKS) sum_columns(struct column_sums c)
{
    __shared__ double part[BLOCK * WIDTH]; /* [block_rows, cells * WIDTH] */
    const int own_row = (int)threadIdx.x / c.cells, cell = (int)threadIdx.x - own_row * c.cells;
    const int64_t first = (int64_t)blockIdx.x * c.cells * WIDTH, column = first + cell * WIDTH;
    const int64_t begin = blockIdx.y * c.slice_rows;
    const int64_t end = begin + c.slice_rows < c.rows ? begin + c.slice_rows : c.rows;
    double sum[WIDTH] = {};
    if (own_row < c.block_rows && column < c.columns)
        add_rows<WIDTH>(c, sum, begin + own_row, end, column);
    for (int j = 0; j < WIDTH; j++) part[threadIdx.x * WIDTH + j] = sum[j];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < c.cells * WIDTH && first + i < c.columns; i += BLOCK) {
        double all = part[i];
        for (int row = 1; row < c.block_rows; row++) all += part[row * c.cells * WIDTH + i];
        if (gridDim.y > 1)
            c.partials[(first + i) * gridDim.y + blockIdx.y] = all;
        else
            c.sums[first + i] = (c.add ? c.sums[first + i] : 0.0f) + (float)all;
    }
}

/* One warp per column */
static __global__ void add_slices(struct column_sums c, int slices)
{
    for (int64_t column = grid_warp(); column < c.columns; column += grid_warps()) {
        double sum = 0;
        for (int slice = lane_index(); slice < slices; slice += WARP)
            sum += c.partials[column * slices + slice];
        sum = warp_sum(sum);
        if (lane_index() == 0) c.sums[column] = (c.add ? c.sums[column] : 0.0f) + (float)sum;
    }
}

/* Enough to keep a large GPU busy, limited by the rows and by the room for partial sums */
static unsigned slices_of(const struct column_sums &c, unsigned blocks_x)
{
    const int64_t room = PARTIALS_MAX / c.columns, wanted = BLOCKS_AT_ONCE / blocks_x;
    const int64_t most = room < wanted ? room : wanted;
    return blocks_for(c.rows, c.block_rows * SLICE_LOADS_MIN, most > 1 ? (unsigned)most : 1);
}

void cuda_sum_rows(struct device *d, float *sums, const float *x, int64_t rows, int64_t columns,
                   bool add)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    if (columns == 0) return;
    const int width = columns % PACK == 0 ? PACK : 1;
    const int cells = columns / width < BLOCK ? (int)(columns / width) : BLOCK;
    struct column_sums c = {
        x, rows, columns, rows, cells, BLOCK / cells, is_packed(x), state->partials, sums, add};
    const unsigned blocks_x = blocks_for(columns, cells * width, INT32_MAX);
    const unsigned slices = slices_of(c, blocks_x);
    c.slice_rows = (rows + slices - 1) / slices;
    launch(d, {"sum_rows", blocks_x, slices}, width == PACK ? sum_columns<PACK> : sum_columns<1>,
           c);
    if (slices > 1) launch(d, {"add_slices", row_blocks(columns), 1}, add_slices, c, slices);
}
