/* rows.cu - kernels on the rows of a matrix: softmax, with a warp for each row, and the sum over
 * rows. */
#include "kernels/cuda/rows.cuh"

static __global__ void softmax_rows(float *y, const float *x, int64_t rows, int64_t columns)
{
    for (int64_t row = grid_warp(); row < rows; row += grid_warps()) {
        const float *from = x + row * columns;
        float *to = y + row * columns;
        const float top = row_max(from, columns);
        const float factor = 1.0f / row_exp(to, from, top, columns);
        for (int64_t i = lane_index(); i < columns; i += WARP) to[i] *= factor;
    }
}

static void softmax(struct device *d, float *y, const float *x, int64_t rows, int64_t columns)
{
    if (rows == 0) return;
    launch(d, {"softmax", row_blocks(rows), 1}, softmax_rows, y, x, rows, columns);
}

struct softmax_gradient {
    float *dx;
    const float *dy, *y;
    int64_t rows, columns;
    bool add;
};

/* dx = y (dy - sum(dy y)) */
static __global__ void softmax_back_rows(struct softmax_gradient s)
{
    for (int64_t row = grid_warp(); row < s.rows; row += grid_warps()) {
        const float *y = s.y + row * s.columns, *dy = s.dy + row * s.columns;
        float *dx = s.dx + row * s.columns;
        double sum = 0;
        for (int64_t i = lane_index(); i < s.columns; i += WARP) sum += (double)dy[i] * y[i];
        const float dot = (float)warp_sum(sum);
        for (int64_t i = lane_index(); i < s.columns; i += WARP) {
            float gradient = y[i] * (dy[i] - dot);
            dx[i] = s.add ? dx[i] + gradient : gradient;
        }
    }
}

static void softmax_back(struct device *d, float *dx, const float *dy, const float *y, int64_t rows,
                         int64_t columns, bool add)
{
    struct softmax_gradient s = {dx, dy, y, rows, columns, add};
    if (rows == 0) return;
    launch(d, {"softmax_back", row_blocks(rows), 1}, softmax_back_rows, s);
}

/* Sums over rows: a warp reads 32 neighbours of a row, the warps of a block take turns at the rows
 * of their slice. Slices are as many as the shape says and leave doubles behind. */
enum { ROW_SLICE_MIN = 256, ROW_SLICES_MAX = 256 };

struct column_sums {
    const float *x; /* [rows, columns] */
    int64_t rows, columns, slice_rows;
    double *partials; /* [slices, columns] */
    float *sums;      /* [columns] */
    bool add;
};

static __global__ void sum_columns(struct column_sums c)
{
    __shared__ double part[BLOCK_WARPS][WARP];
    const int64_t column = (int64_t)blockIdx.x * WARP + lane_index();
    const int64_t begin = blockIdx.y * c.slice_rows;
    const int64_t end = begin + c.slice_rows < c.rows ? begin + c.slice_rows : c.rows;
    const int warp = (int)(threadIdx.x / WARP);
    double sum = 0;
    if (column < c.columns)
        for (int64_t row = begin + warp; row < end; row += BLOCK_WARPS)
            sum += c.x[row * c.columns + column];
    part[warp][lane_index()] = sum;
    __syncthreads();
    if (warp > 0 || column >= c.columns) return;
    for (int i = 1; i < BLOCK_WARPS; i++) sum += part[i][lane_index()];
    if (gridDim.y > 1)
        c.partials[blockIdx.y * c.columns + column] = sum;
    else
        c.sums[column] = (c.add ? c.sums[column] : 0.0f) + (float)sum;
}

struct slices_element {
    struct column_sums c;
    unsigned slices;
    __device__ void operator()(int64_t column) const
    {
        double sum = 0;
        for (unsigned slice = 0; slice < slices; slice++)
            sum += c.partials[slice * c.columns + column];
        c.sums[column] = (c.add ? c.sums[column] : 0.0f) + (float)sum;
    }
};

static void sum_rows(struct device *d, float *sums, const float *x, int64_t rows, int64_t columns,
                     bool add)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    if (columns == 0) return;
    int64_t most = PARTIALS_MAX / columns;
    if (most > ROW_SLICES_MAX) most = ROW_SLICES_MAX;
    unsigned slices = blocks_for(rows, ROW_SLICE_MIN, most > 1 ? (unsigned)most : 1);
    struct column_sums c = {x,    rows, columns, (rows + slices - 1) / slices, state->partials,
                            sums, add};
    launch(d, {"sum_rows", blocks_for(columns, WARP, INT32_MAX), slices}, sum_columns, c);
    if (slices > 1) each(d, "sum_slices", slices_element{c, slices}, columns);
}

void cuda_rows_fill(struct kernels *table)
{
    table->softmax = softmax;
    table->softmax_back = softmax_back;
    table->sum_rows = sum_rows;
}
