/* rows.cuh - kernels on the rows of a matrix, each of which is read once and stays in registers.
 *
 *     columns        a row belongs to           its numbers come
 *     up to 512      1, 2, 4 ... 32 lanes       16 bytes at a time where every row begins at a
 *     up to 4096     a block                    multiple of 16 bytes, one by one otherwise
 *     more           a block                    the same, piece by piece and in each pass again
 *
 * Rows that begin anywhere and are too short for a warp go through shared memory, so that a warp
 * reads and writes the GPU's memory in one stretch whatever the number of columns. Which lane adds
 * which number follows from the shape and from whether rows are packed, so that sums have the same
 * bits in every run, but not where a matrix lies differently to a multiple of 16 bytes.
 */
#ifndef KERNELS_CUDA_ROWS_CUH
#define KERNELS_CUDA_ROWS_CUH

#include "kernels/cuda/product/packs.cuh"

enum {
    HELD = 16, /* numbers of a row that a thread has in registers */
    LANES_COLUMNS_MAX = WARP * HELD,
    BLOCK_COLUMNS_MAX = BLOCK * HELD,
    PACKED_LANES = 4,       /* of a row at least, where they read packs: neighbours fill 64 bytes */
    STAGED_HELD = HELD - 1, /* odd: lanes that are so far apart never share a bank of memory */
};

/* Neighbouring lanes of a warp, a power of two of them. All lanes of the warp call together. */
struct lane_group {
    int rank, size;

    template <typename Number> __device__ Number sum(Number x) const
    {
        for (int distance = size / 2; distance > 0; distance /= 2)
            x += __shfl_xor_sync(0xffffffffu, x, distance);
        return x;
    }

    __device__ float max(float x) const
    {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            const float other = __shfl_xor_sync(0xffffffffu, x, distance);
            x = other > x ? other : x;
        }
        return x;
    }

    __device__ void wait() const
    {
        __syncwarp();
    }
};

struct warp_group : lane_group {
    enum { size = WARP }; /* so that distances are constants */
};

/* The whole block; lane: shared, a number for each warp */
struct block_group {
    enum { size = BLOCK };
    int rank;
    double *lane;

    __device__ void share(double x) const
    {
        wait(); /* what was shared before has been read */
        if (lane_index() == 0) lane[rank / WARP] = x;
        wait();
    }

    template <typename Number> __device__ Number sum(Number x) const
    {
        share((double)warp_sum(x));
        double all = lane[0];
        for (int i = 1; i < BLOCK_WARPS; i++) all += lane[i];
        return (Number)all;
    }

    __device__ float max(float x) const
    {
        share(warp_max(x));
        double top = lane[0];
        for (int i = 1; i < BLOCK_WARPS; i++) top = lane[i] > top ? lane[i] : top;
        return (float)top;
    }

    __device__ void wait() const
    {
        __syncthreads();
    }
};

/* A row as its group sees it: numbers are read into `held` from the column `start` on. Where it is
 * not wide, they are read once and start is 0. */
template <int WIDTH, typename Group, bool IS_WIDE_> struct direct_row {
    static constexpr bool IS_WIDE = IS_WIDE_;
    Group group;
    int64_t row, columns; /* columns 0: there is no such row */

    __device__ int64_t span() const
    {
        return IS_WIDE ? columns : 1;
    }

    __device__ int step() const
    {
        return IS_WIDE ? (int)group.size * HELD : 1;
    }

    /* How many columns there are from this thread's first one on: those of this piece at most */
    __device__ int left(int64_t start) const
    {
        const int64_t behind = columns - start;
        const bool is_last = !IS_WIDE || behind < step();
        return (is_last ? (int)behind : step()) - group.rank * WIDTH;
    }

    /* visit(which of the held, its column) */
    template <typename Visit> __device__ void each(int64_t start, const Visit &visit) const
    {
        const int64_t first = start + group.rank * WIDTH;
#pragma unroll
        for (int k = 0; k < HELD / WIDTH; k++)
            if (k * (int)group.size * WIDTH < left(start))
                for (int j = 0; j < WIDTH; j++)
                    visit(k * WIDTH + j, first + k * (int)group.size * WIDTH + j);
    }

    __device__ void read(float *held, const float *matrix, int64_t start) const
    {
        const float *from = matrix + row * columns + start + group.rank * WIDTH;
#pragma unroll
        for (int k = 0; k < HELD / WIDTH; k++)
            if (k * (int)group.size * WIDTH < left(start))
                pack_read<WIDTH>(held + k * WIDTH, from + k * (int)group.size * WIDTH);
    }

    __device__ void write(float *matrix, const float *held, int64_t start) const
    {
        float *to = matrix + row * columns + start + group.rank * WIDTH;
#pragma unroll
        for (int k = 0; k < HELD / WIDTH; k++)
            if (k * (int)group.size * WIDTH < left(start))
                pack_write<WIDTH>(to + k * (int)group.size * WIDTH, held + k * WIDTH);
    }
};

/* A row of which each lane has neighbouring columns; the warp's rows cross in one stretch, by way
 * of its part of shared memory. */
struct staged_row {
    static constexpr bool IS_WIDE = false;
    struct lane_group group;
    int64_t row, columns; /* columns 0: there is no such row */
    int first, count;     /* columns of this lane */
    int64_t begin;        /* of the warp's rows, in the matrix */
    int crossing;         /* numbers of all these rows from this lane's first one on */
    float *stage;         /* [WARP * STAGED_HELD], and where this lane's columns are in it */
    float *own;

    __device__ int span() const
    {
        return 1;
    }

    __device__ int step() const
    {
        return 1;
    }

    template <typename Visit> __device__ void each(int, const Visit &visit) const
    {
#pragma unroll
        for (int k = 0; k < STAGED_HELD; k++)
            if (k < count) visit(k, first + k);
    }

    __device__ void read(float *held, const float *matrix, int) const
    {
        const float *from = matrix + begin + lane_index();
        float x[STAGED_HELD];
#pragma unroll
        for (int k = 0; k < STAGED_HELD; k++)
            if (k * WARP < crossing) x[k] = from[k * WARP];
        __syncwarp(); /* the stage is free */
#pragma unroll
        for (int k = 0; k < STAGED_HELD; k++)
            if (k * WARP < crossing) stage[lane_index() + k * WARP] = x[k];
        __syncwarp();
        each(0, [&](int k, int) { held[k] = own[k]; });
    }

    __device__ void write(float *matrix, const float *held, int) const
    {
        float *to = matrix + begin + lane_index();
        __syncwarp();
        each(0, [&](int k, int) { own[k] = held[k]; });
        __syncwarp();
#pragma unroll
        for (int k = 0; k < STAGED_HELD; k++)
            if (k * WARP < crossing) to[k * WARP] = stage[lane_index() + k * WARP];
    }
};

struct row_matrix {
    int64_t rows, columns;
    int lanes = WARP; /* of a group */
    double *partials = NULL;
};

/* What the threads of a block have counted, for sum_partials */
template <typename Body> ON_GPU void leave_sum(const struct row_matrix &m, double sum)
{
    if constexpr (Body::IS_SUM) {
        __shared__ double lane[BLOCK];
        sum = block_sum(lane, sum);
        if (threadIdx.x == 0) m.partials[blockIdx.x] = sum;
    }
}

/* Rows of a warp, walked through by all warps; beyond the last a group has none. */
template <typename Body>
static __global__ void __launch_bounds__(BLOCK, Body::BLOCKS)
    each_packed_row(Body body, struct row_matrix m)
{
    const struct lane_group group = {lane_index() % m.lanes, m.lanes};
    const int warp_rows = WARP / m.lanes;
    double sum = 0;
    for (int64_t first = grid_warp() * warp_rows; first < m.rows;
         first += grid_warps() * warp_rows) {
        const int64_t row = first + lane_index() / m.lanes;
        sum += body(direct_row<PACK, lane_group, false>{group, row, row < m.rows ? m.columns : 0});
    }
    leave_sum<Body>(m, sum);
}

template <typename Body> static __global__ void each_warp_row(Body body, struct row_matrix m)
{
    double sum = 0;
    for (int64_t row = grid_warp(); row < m.rows; row += grid_warps())
        sum += body(direct_row<1, warp_group, false>{{{lane_index(), WARP}}, row, m.columns});
    leave_sum<Body>(m, sum);
}

/* The warp's rows from `first` on, as this lane sees them */
ON_GPU struct staged_row staged_row_of(const struct row_matrix &m, int64_t first, float *stage)
{
    const int columns = (int)m.columns, warp_rows = WARP / m.lanes;
    const int own_row = lane_index() / m.lanes, rank = lane_index() % m.lanes;
    const int share = ((columns + m.lanes - 1) / m.lanes) | 1, before = rank * share;
    const int rows = m.rows - first < warp_rows ? (int)(m.rows - first) : warp_rows;
    const bool has_row = own_row < rows;
    const int behind = has_row && before < columns ? columns - before : 0;
    return {{rank, m.lanes},
            first + own_row,
            has_row ? m.columns : 0,
            before,
            behind < share ? behind : share,
            first * columns,
            rows * columns - lane_index(),
            stage,
            stage + own_row * columns + before};
}

template <typename Body>
static __global__ void __launch_bounds__(BLOCK, Body::BLOCKS)
    each_staged_row(Body body, struct row_matrix m)
{
    __shared__ float stage[BLOCK_WARPS][WARP * STAGED_HELD];
    const int warp_rows = WARP / m.lanes;
    double sum = 0;
    for (int64_t first = grid_warp() * warp_rows; first < m.rows; first += grid_warps() * warp_rows)
        sum += body(staged_row_of(m, first, stage[threadIdx.x / WARP]));
    leave_sum<Body>(m, sum);
}

template <int WIDTH, bool IS_WIDE, typename Body>
static __global__ void each_block_row(Body body, struct row_matrix m)
{
    __shared__ double lane[BLOCK_WARPS];
    double sum = 0;
    for (int64_t row = blockIdx.x; row < m.rows; row += gridDim.x)
        sum +=
            body(direct_row<WIDTH, block_group, IS_WIDE>{{(int)threadIdx.x, lane}, row, m.columns});
    leave_sum<Body>(m, sum);
}

/* The fewest lanes that a row fits into */
static inline int row_lanes(int64_t columns, bool is_packed)
{
    const int held = is_packed ? HELD : STAGED_HELD;
    int lanes = 1;
    while (lanes < WARP && lanes * held < columns) lanes *= 2;
    while (is_packed && lanes < PACKED_LANES && lanes * PACK < columns) lanes *= 2;
    return lanes;
}

template <typename Body> static auto row_kernel(const struct row_matrix &m, bool is_packed)
{
    if (m.columns > BLOCK_COLUMNS_MAX)
        return is_packed ? each_block_row<PACK, true, Body> : each_block_row<1, true, Body>;
    if (m.columns > LANES_COLUMNS_MAX)
        return is_packed ? each_block_row<PACK, false, Body> : each_block_row<1, false, Body>;
    if (is_packed) return each_packed_row<Body>;
    return m.lanes < WARP ? each_staged_row<Body> : each_warp_row<Body>;
}

/* body(row): once for each row, by all threads of its group; what it returns is added up where it
 * says IS_SUM. BLOCKS: those that a multiprocessor must have registers for at the same time.
 * Returns how many blocks there are. rows > 0 */
template <typename Body>
static unsigned each_row(struct device *d, const char *name, const Body &body, struct row_matrix m,
                         bool is_packed)
{
    const bool has_packs = is_packed && m.columns % PACK == 0;
    const bool by_block = m.columns > LANES_COLUMNS_MAX;
    m.partials = ((struct cuda_state *)d->state)->partials;
    m.lanes = by_block ? WARP : row_lanes(m.columns, has_packs);
    const unsigned blocks = blocks_for(m.rows, by_block ? 1 : BLOCK / m.lanes, EACH_BLOCKS_MAX);
    launch(d, {name, blocks, 1}, row_kernel<Body>(m, has_packs), body, m);
    return blocks;
}

#endif
