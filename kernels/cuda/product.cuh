/* product.cuh - a matrix product in tiles, whatever its operands are read from.
 *
 * A block makes a tile of the result, TILE_ROWS x COLUMNS, in steps of TILE_TERMS: the operands of
 * a step are gathered into shared memory, each number once for the whole block, while those of the
 * next are on their way in registers. A thread keeps COLUMNS / 2 sums: of float32, or, where less
 * precision is enough, of what the tensor cores make of rounded operands. Every sum is taken in an
 * order that the shape gives, so the result has the same bits in every run.
 *
 * What is multiplied is an Operands:
 *     rows, columns, terms      sizes, int64_t
 *     LEFT_ALONG_TERMS, RIGHT_ALONG_TERMS
 *                               whether neighbours in memory are terms; else rows and columns
 *     Row row(i)                what reading row i of the left operand takes; i may be >= rows
 *     Term term(k)              the same of a term; k may be >= terms
 *     left(Row, Term), right(Term, column)
 *                               the numbers; 0 where either is beyond the end
 *     store(row, column, slice, sum)
 */
#ifndef KERNELS_CUDA_PRODUCT_CUH
#define KERNELS_CUDA_PRODUCT_CUH

#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/tensor.cuh"

enum {
    TILE_ROWS = 128,
    TILE_TERMS = 16,
    SIDE = 16, /* threads along the rows and along the columns of a tile */
    QUAD = 4,  /* numbers that are read from shared memory at once */
    /* numbers that a thread brings of the left operand */
    LEFT_SHARE = TILE_ROWS * TILE_TERMS / BLOCK
};

static_assert(SIDE * SIDE == BLOCK, "a thread for each part of a tile");

/* The pads keep a warp that goes down a column from hitting one bank of shared memory. */
template <int COLUMNS, int ROW_PAD, int COLUMN_PAD> struct tiles {
    alignas(16) float left[2][TILE_TERMS][TILE_ROWS + ROW_PAD];
    alignas(16) float right[2][TILE_TERMS][COLUMNS + COLUMN_PAD];
};

/* Where the numbers that a thread brings stand in a tile of `length` rows or columns: the j-th */
template <bool ALONG_TERMS> ON_GPU int place_across(int length, int j)
{
    const int thread = (int)threadIdx.x;
    return ALONG_TERMS ? thread / TILE_TERMS + j * (BLOCK / TILE_TERMS) : thread % length;
}

template <bool ALONG_TERMS> ON_GPU int place_of_term(int length, int j)
{
    const int thread = (int)threadIdx.x;
    return ALONG_TERMS ? thread % TILE_TERMS : thread / length + j * (BLOCK / length);
}

/* The numbers of one step that this thread brings; what ends with the slice ends here as 0. */
template <typename Operands, typename Sums> struct brought {
    enum {
        COLUMNS = Sums::COLUMNS,
        SHARE = COLUMNS * TILE_TERMS / BLOCK,
        LEFT_ALONG = Operands::LEFT_ALONG_TERMS,
        RIGHT_ALONG = Operands::RIGHT_ALONG_TERMS,
        ROWS = LEFT_ALONG ? LEFT_SHARE : 1 /* different ones among the numbers */
    };
    typename Operands::Row row[ROWS];
    int64_t first_column;
    float left[LEFT_SHARE], right[SHARE];

    __device__ void start(const Operands &o, int64_t first_row, int64_t column)
    {
        first_column = column;
#pragma unroll
        for (int j = 0; j < ROWS; j++)
            row[j] = o.row(first_row + place_across<LEFT_ALONG>(TILE_ROWS, j));
    }

    __device__ void fetch(const Operands &o, int64_t first_term, int64_t end)
    {
#pragma unroll
        for (int j = 0; j < LEFT_SHARE; j++) {
            const int64_t k = first_term + place_of_term<LEFT_ALONG>(TILE_ROWS, j);
            left[j] = o.left(row[LEFT_ALONG ? j : 0], o.term(k < end ? k : o.terms));
        }
#pragma unroll
        for (int j = 0; j < SHARE; j++) {
            const int64_t k = first_term + place_of_term<RIGHT_ALONG>(COLUMNS, j);
            const int64_t column = first_column + place_across<RIGHT_ALONG>(COLUMNS, j);
            right[j] = k < end && column < o.columns ? o.right(o.term(k), column) : 0.0f;
        }
    }

    __device__ void put(typename Sums::Tiles &to, int side) const
    {
#pragma unroll
        for (int j = 0; j < LEFT_SHARE; j++)
            to.left[side][place_of_term<LEFT_ALONG>(TILE_ROWS, j)]
                   [place_across<LEFT_ALONG>(TILE_ROWS, j)] = Sums::rounded(left[j]);
#pragma unroll
        for (int j = 0; j < SHARE; j++)
            to.right[side][place_of_term<RIGHT_ALONG>(COLUMNS, j)]
                    [place_across<RIGHT_ALONG>(COLUMNS, j)] = Sums::rounded(right[j]);
    }
};

/* The sums of a thread in float32: rows and columns in groups of neighbours, SIDE groups apart, so
 * that a warp reads shared memory without waiting for itself. */
template <int WIDTH> struct float_sums {
    enum {
        COLUMNS = WIDTH,
        HEIGHT = TILE_ROWS / SIDE, /* of a thread's own sums */
        BREADTH = COLUMNS / SIDE,
        GROUP = BREADTH < QUAD ? BREADTH : QUAD,
        QUAD_BYTES = QUAD * sizeof(float),
        GROUP_BYTES = GROUP * sizeof(float)
    };
    typedef tiles<COLUMNS, 4, 0> Tiles;
    float at[HEIGHT][BREADTH];

    static __device__ float rounded(float x)
    {
        return x;
    }

    static __device__ int row(int i)
    {
        return i / QUAD * (SIDE * QUAD) + (int)threadIdx.x / SIDE * QUAD + i % QUAD;
    }

    static __device__ int column(int j)
    {
        return j / GROUP * (SIDE * GROUP) + (int)threadIdx.x % SIDE * GROUP + j % GROUP;
    }

    __device__ void add(const Tiles &from, int side)
    {
#pragma unroll
        for (int k = 0; k < TILE_TERMS; k++) {
            float left[HEIGHT], right[BREADTH];
#pragma unroll
            for (int i = 0; i < HEIGHT; i += QUAD)
                memcpy(left + i, __builtin_assume_aligned(&from.left[side][k][row(i)], QUAD_BYTES),
                       QUAD_BYTES);
#pragma unroll
            for (int j = 0; j < BREADTH; j += GROUP)
                memcpy(right + j,
                       __builtin_assume_aligned(&from.right[side][k][column(j)], GROUP_BYTES),
                       GROUP_BYTES);
#pragma unroll
            for (int i = 0; i < HEIGHT; i++)
#pragma unroll
                for (int j = 0; j < BREADTH; j++) at[i][j] += left[i] * right[j];
        }
    }
};

/* The same on the tensor cores. Of the eight warps four share the rows and two the columns; a warp
 * multiplies blocks of 16 rows by blocks of 8 columns, 8 terms at a time, and a thread holds of
 * each result what tensor.cuh says. */
template <int WIDTH, precision PRECISION> struct tensor_sums {
    enum {
        COLUMNS = WIDTH,
        WARP_ROWS = TILE_ROWS / 4,
        WARP_COLUMNS = COLUMNS / 2,
        HEIGHT = WARP_ROWS / (TENSOR_ROWS / 2), /* of a thread's own sums */
        BREADTH = WARP_COLUMNS / (TENSOR_COLUMNS / 2)
    };
    typedef tiles<COLUMNS, 8, 8> Tiles;
    float at[HEIGHT][BREADTH];

    static __device__ float rounded(float x)
    {
        return PRECISION == PRECISION_BF16 ? tensor_rounded_bf16(x) : tensor_rounded(x);
    }

    static __device__ int warp_row()
    {
        return (int)threadIdx.x / WARP / 2 * WARP_ROWS;
    }

    static __device__ int warp_column()
    {
        return (int)threadIdx.x / WARP % 2 * WARP_COLUMNS;
    }

    static __device__ int row(int i)
    {
        return warp_row() + i / 2 * TENSOR_ROWS + tensor_row(i % 2);
    }

    static __device__ int column(int j)
    {
        return warp_column() + j / 2 * TENSOR_COLUMNS + tensor_column(j % 2);
    }

    __device__ void add(const Tiles &from, int side)
    {
#pragma unroll
        for (int k = 0; k < TILE_TERMS; k += TENSOR_TERMS)
#pragma unroll
            for (int i = 0; i < HEIGHT; i += 2) {
                float left[TENSOR_LEFT];
                tensor_left(left, &from.left[side][k][warp_row() + i / 2 * TENSOR_ROWS],
                            TILE_ROWS + 8);
#pragma unroll
                for (int j = 0; j < BREADTH; j += 2) {
                    float right[TENSOR_RIGHT];
                    tensor_right(right,
                                 &from.right[side][k][warp_column() + j / 2 * TENSOR_COLUMNS],
                                 COLUMNS + 8);
                    tensor_multiply(&at[i][j], &at[i + 1][j], left, right);
                }
            }
    }
};

template <typename Operands, typename Sums>
static __global__ void __launch_bounds__(BLOCK) product_tiles(Operands o, int64_t slice_terms)
{
    enum { COLUMNS = Sums::COLUMNS };
    __shared__ typename Sums::Tiles shared;
    const int64_t column_tiles = (o.columns + COLUMNS - 1) / COLUMNS;
    const int64_t row_tiles = (o.rows + TILE_ROWS - 1) / TILE_ROWS;
    const int64_t slice = blockIdx.x / (column_tiles * row_tiles);
    const int64_t tile = blockIdx.x - slice * column_tiles * row_tiles;
    const int64_t first_row = tile / column_tiles * TILE_ROWS;
    const int64_t first_column = tile % column_tiles * COLUMNS;
    const int64_t begin = slice * slice_terms;
    const int64_t end = begin + slice_terms < o.terms ? begin + slice_terms : o.terms;

    brought<Operands, Sums> next;
    Sums sum = {};
    next.start(o, first_row, first_column);
    next.fetch(o, begin, end);
    int side = 0;
    for (int64_t k = begin; k < end; k += TILE_TERMS, side ^= 1) {
        next.put(shared, side);
        __syncthreads(); /* one a step: whoever is late still reads the other side */
        if (k + TILE_TERMS < end) next.fetch(o, k + TILE_TERMS, end);
        sum.add(shared, side);
    }
#pragma unroll
    for (int i = 0; i < Sums::HEIGHT; i++)
#pragma unroll
        for (int j = 0; j < Sums::BREADTH; j++) {
            const int64_t row = first_row + sum.row(i), column = first_column + sum.column(j);
            if (row < o.rows && column < o.columns) o.store(row, column, slice, sum.at[i][j]);
        }
}

/* Columns of a tile: no more than the result has, as far as there are such tiles */
static inline int64_t tile_columns(int64_t columns)
{
    return columns <= 32 ? 32 : columns <= 64 ? 64 : 128;
}

static inline int64_t tile_count(int64_t rows, int64_t columns)
{
    const int64_t width = tile_columns(columns);
    return (rows + TILE_ROWS - 1) / TILE_ROWS * ((columns + width - 1) / width);
}

template <typename Operands, int COLUMNS>
static void launch_product(struct device *d, const struct launch &where, const Operands &o,
                           int64_t slice_terms)
{
    const struct cuda_state *state = (const struct cuda_state *)d->state;
    switch (state->precision) {
    case PRECISION_TF32:
        launch(d, where, product_tiles<Operands, tensor_sums<COLUMNS, PRECISION_TF32>>, o,
               slice_terms);
        break;
    case PRECISION_BF16:
        launch(d, where, product_tiles<Operands, tensor_sums<COLUMNS, PRECISION_BF16>>, o,
               slice_terms);
        break;
    case PRECISION_FLOAT32:
        launch(d, where, product_tiles<Operands, float_sums<COLUMNS>>, o, slice_terms);
        break;
    }
}

/* slices: the terms are shared out between so many blocks, each of which stores sums of its own */
template <typename Operands>
static void product(struct device *d, const char *name, const Operands &o, int64_t slices)
{
    const int64_t blocks = tile_count(o.rows, o.columns) * slices;
    const int64_t slice_terms = (o.terms + slices - 1) / slices;
    if (blocks == 0) return;
    if (blocks > INT32_MAX) {
        cuda_refuse(d, "a product of too many tiles");
        return;
    }
    const struct launch where = {name, (unsigned)blocks, 1};
    const int64_t width = tile_columns(o.columns);
    if (width == 32)
        launch_product<Operands, 32>(d, where, o, slice_terms);
    else if (width == 64)
        launch_product<Operands, 64>(d, where, o, slice_terms);
    else
        launch_product<Operands, 128>(d, where, o, slice_terms);
}

#endif
