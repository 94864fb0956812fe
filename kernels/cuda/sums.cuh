/* sums.cuh - the sums of one block, in the registers of its threads, and what is added to them of a
 * step whose operands are in shared memory.
 *
 *     COLUMNS, TERMS, THREADS  of a tile of TILE_ROWS rows, and of a step
 *     BLOCKS                   that share a multiprocessor: this many registers are left to each
 *     left_layout, right_layout
 *                              of the tiles, by whether neighbours in memory are terms
 *     at[HEIGHT][BREADTH]      of a thread, whose rows and columns row() and column() say; GROUP
 *                              columns follow each other
 *     fetch                    how operands come
 */
#ifndef KERNELS_CUDA_SUMS_CUH
#define KERNELS_CUDA_SUMS_CUH

#include "kernels/cuda/product/fetch.cuh"
#include "kernels/cuda/product/tensor.cuh"

enum { TILE_ROWS = 128 };

/* In float32. A thread has eight rows and up to eight columns, in groups of four, so that it reads
 * quads; a warp has 4 x 8 threads, which read a line of shared memory at most. */
template <int WIDTH> struct float_sums {
    enum {
        COLUMNS = WIDTH,
        TERMS = 16,
        WORDS = TERMS,
        THREADS = WIDTH == 128 ? 256 : 128,
        BLOCKS = WIDTH == 128  ? 2
                 : WIDTH == 64 ? 3
                               : 4,
        HEIGHT = 8,
        WARP_DOWN = 4, /* threads of a warp along the rows, and along the columns */
        WARP_ALONG = 8,
        DOWN = TILE_ROWS / HEIGHT, /* threads along the rows, and along the columns */
        ALONG = THREADS / DOWN,
        BREADTH = COLUMNS / ALONG,
        UNROLLED = 8, /* terms; all of a step would take more registers than there are */
        GROUP = QUAD
    };
    template <bool ALONG_TERMS, int LENGTH> struct choose_layout {
        typedef layout_across<LENGTH, QUAD> type; /* units of four terms are written */
    };
    template <int LENGTH> struct choose_layout<false, LENGTH> {
        typedef layout_plain<LENGTH> type;
    };
    template <bool ALONG_TERMS>
    using left_layout = typename choose_layout<ALONG_TERMS, TILE_ROWS>::type;
    template <bool ALONG_TERMS>
    using right_layout = typename choose_layout<ALONG_TERMS, COLUMNS>::type;
    template <typename Operands, bool WIDE>
    using fetch = streaming<Operands, float_sums, TILE_ROWS, WIDE>;
    float at[HEIGHT][BREADTH];

    static __device__ int row(int i)
    {
        const int warp = (int)threadIdx.x / WARP / (ALONG / WARP_ALONG);
        return i / QUAD * (DOWN * QUAD) + (warp * WARP_DOWN + lane_index() / WARP_ALONG) * QUAD +
               i % QUAD;
    }

    static __device__ int column(int j)
    {
        const int warp = (int)threadIdx.x / WARP % (ALONG / WARP_ALONG);
        return j / QUAD * (ALONG * QUAD) + (warp * WARP_ALONG + lane_index() % WARP_ALONG) * QUAD +
               j % QUAD;
    }

    template <typename Left, typename Right>
    __device__ void add(const uint32_t *left_tile, const uint32_t *right_tile)
    {
#pragma unroll UNROLLED
        for (int k = 0; k < TERMS; k++) {
            alignas(16) float left[HEIGHT], right[BREADTH];
#pragma unroll
            for (int i = 0; i < HEIGHT; i += QUAD)
                move_together<QUAD>(left + i, &left_tile[Left::at(row(i), k)]);
#pragma unroll
            for (int j = 0; j < BREADTH; j += QUAD)
                move_together<QUAD>(right + j, &right_tile[Right::at(column(j), k)]);
#pragma unroll
            for (int i = 0; i < HEIGHT; i++)
#pragma unroll
                for (int j = 0; j < BREADTH; j++) at[i][j] += left[i] * right[j];
        }
    }
};

/* What the tensor cores multiply: words of one term or two */
struct tf32_words {
    enum { PACKED = 1 };

    static __device__ uint32_t packed(float x, float)
    {
        return tensor_tf32(x);
    }

    static __device__ void multiply(float *upper, float *lower, const uint32_t *left,
                                    const uint32_t *right)
    {
        tensor_multiply_tf32(upper, lower, left, right);
    }
};

struct bf16_words {
    enum { PACKED = 2 };

    static __device__ uint32_t packed(float first, float second)
    {
        return tensor_bf16(first, second);
    }

    static __device__ void multiply(float *upper, float *lower, const uint32_t *left,
                                    const uint32_t *right)
    {
        tensor_multiply_bf16(upper, lower, left, right);
    }
};

/* On the tensor cores, in steps of STEP terms. Each of the four warps has 64 x 64 sums of the
 * widest tile, so that a word is read twice from shared memory; a warp multiplies blocks of 16 rows
 * by blocks of 8 columns, and a thread holds of each result what tensor.cuh says. */
template <int WIDTH, typename Kind, int STEP> struct tensor_sums {
    enum {
        COLUMNS = WIDTH,
        PACKED = Kind::PACKED,
        TERMS = STEP,
        WORDS = TERMS / PACKED,
        THREADS = 128,
        BLOCKS = WIDTH == 128 || STEP > 16 ? 2 : 3,
        WARPS_ALONG = WIDTH == 32 ? 1 : 2,
        WARPS_DOWN = THREADS / WARP / WARPS_ALONG,
        WARP_ROWS = TILE_ROWS / WARPS_DOWN,
        WARP_COLUMNS = COLUMNS / WARPS_ALONG,
        HEIGHT = WARP_ROWS / (TENSOR_ROWS / 2),
        BREADTH = WARP_COLUMNS / (TENSOR_COLUMNS / 2),
        UNROLLED = WIDTH == 128 ? 1 : WORDS / TENSOR_WORDS, /* words of more take all registers */
        GROUP = 2
    };
    template <bool ALONG_TERMS, int LENGTH> struct choose_layout {
        typedef layout_along<WORDS> type;
    };
    template <int LENGTH> struct choose_layout<false, LENGTH> {
        typedef layout_across<LENGTH, 1> type;
    };
    template <bool ALONG_TERMS>
    using left_layout = typename choose_layout<ALONG_TERMS, TILE_ROWS>::type;
    template <bool ALONG_TERMS>
    using right_layout = typename choose_layout<ALONG_TERMS, COLUMNS>::type;
    template <typename Operands, bool WIDE>
    using fetch = carrying<Operands, tensor_sums, TILE_ROWS>; /* of quads */
    float at[HEIGHT][BREADTH];

    static __device__ uint32_t packed(float first, float second)
    {
        return Kind::packed(first, second);
    }

    static __device__ int warp_row()
    {
        return (int)threadIdx.x / WARP / WARPS_ALONG * WARP_ROWS;
    }

    static __device__ int warp_column()
    {
        return (int)threadIdx.x / WARP % WARPS_ALONG * WARP_COLUMNS;
    }

    static __device__ int row(int i)
    {
        return warp_row() + i / 2 * TENSOR_ROWS + tensor_row(i % 2);
    }

    static __device__ int column(int j)
    {
        return warp_column() + j / 2 * TENSOR_COLUMNS + tensor_column(j % 2);
    }

    template <typename Left, typename Right>
    __device__ void add(const uint32_t *left_tile, const uint32_t *right_tile)
    {
#pragma unroll UNROLLED
        for (int k = 0; k < WORDS; k += TENSOR_WORDS) {
            uint32_t right[BREADTH]; /* as many words as blocks of columns have */
#pragma unroll
            for (int j = 0; j < BREADTH; j += 4)
                tensor_right_pair<Right>(right + j, right_tile,
                                         warp_column() + j / 2 * TENSOR_COLUMNS, k);
#pragma unroll
            for (int i = 0; i < HEIGHT; i += 2) {
                uint32_t left[TENSOR_LEFT];
                tensor_left<Left>(left, left_tile, warp_row() + i / 2 * TENSOR_ROWS, k);
#pragma unroll
                for (int j = 0; j < BREADTH; j += 2)
                    Kind::multiply(&at[i][j], &at[i + 1][j], left, right + j);
            }
        }
    }
};

#endif
