/* transpose.cu - matrices by columns instead of rows: kernels of convolutions as cuDNN has them.
 *
 * A block carries a square through shared memory, so that both ways neighbours in memory are read
 * and written by neighbours in a warp.
 */
#include "kernels/cuda/launch.cuh"

enum { SIDE = WARP, SIDE_STEP = BLOCK / SIDE };

/* to [columns, rows] from [rows, columns]; squares: how many lie side by side in `from` */
static __global__ void transpose_squares(struct transposition t, int64_t squares)
{
    __shared__ float square[SIDE][SIDE + 1]; /* so that a column lies in all banks of the memory */
    const int64_t square_row = quotient_of(blockIdx.x, squares);
    const int64_t top = square_row * SIDE, left = (blockIdx.x - square_row * squares) * SIDE;
    const int lane = (int)threadIdx.x % SIDE, first = (int)threadIdx.x / SIDE;

    for (int i = first; i < SIDE; i += SIDE_STEP)
        if (top + i < t.rows && left + lane < t.columns)
            square[i][lane] = t.from[(top + i) * t.columns + left + lane];
    __syncthreads();
    for (int i = first; i < SIDE; i += SIDE_STEP)
        if (left + i < t.columns && top + lane < t.rows) {
            float *to = t.to + (left + i) * t.rows + top + lane;
            *to = t.add ? *to + square[lane][i] : square[lane][i];
        }
}

static int64_t squares_along(int64_t extent)
{
    return (extent + SIDE - 1) / SIDE;
}

void cuda_transpose(struct device *d, const struct transposition *t)
{
    const int64_t across = squares_along(t->columns);
    const unsigned blocks = (unsigned)(squares_along(t->rows) * across);
    launch(d, {"transpose", blocks, 1}, transpose_squares, *t, across);
}
