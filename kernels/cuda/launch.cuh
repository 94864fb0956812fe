/* launch.cuh - how kernels are written and launched, shared by the kernels' files. C++ only.
 *
 * The formulas of elements.h and mathf.h are compiled for the GPU, too, so that an element has the
 * same code on both devices.
 */
#ifndef KERNELS_CUDA_LAUNCH_CUH
#define KERNELS_CUDA_LAUNCH_CUH

#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

extern "C" {
#include "kernels/cuda/cuda.h"
}

#define MATHF static __host__ __device__ __forceinline__
#define ELEMENT static __host__ __device__ __forceinline__
#include "kernels/elements.h"

#define ON_GPU static __device__ __forceinline__

enum { WARP = 32, BLOCK = 256, BLOCK_WARPS = BLOCK / WARP, EACH_BLOCKS_MAX = 8192 };

struct launch_shape {
    const char *name;
    unsigned blocks, blocks_y;
    unsigned threads = BLOCK; /* of a block */
};

/* Converts the arguments to the kernel's parameter types. */
template <typename... Takes, typename... Gets>
static void launch(struct device *d, const struct launch_shape &l, void (*kernel)(Takes...), Gets... gets)
{
    struct cuda_state *state = (struct cuda_state *)d->state;
    cudaLaunchConfig_t config = {};
    if (!cuda_may_queue(d)) return;
    config.gridDim = dim3(l.blocks, l.blocks_y ? l.blocks_y : 1, 1);
    config.blockDim = dim3(l.threads, 1, 1);
    config.stream = state->stream;
    cuda_launched(d, l.name, cudaLaunchKernelEx(&config, kernel, (Takes)gets...));
}

/* Number of blocks so that each has `share` of n, at most `most` and at least one */
static inline unsigned blocks_for(int64_t n, int64_t share, unsigned most)
{
    int64_t blocks = (n + share - 1) / share;
    return blocks < 1 ? 1 : blocks > most ? most : (unsigned)blocks;
}

/* Calls body(i) for every i below n: neighbours in memory by neighbours in a warp */
template <typename Body> static __global__ void each_element(Body body, int64_t n)
{
    const int64_t step = (int64_t)gridDim.x * blockDim.x;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) body(i);
}

template <typename Body> static void each(struct device *d, const char *name, Body body, int64_t n)
{
    if (n <= 0) return;
    launch(d, {name, blocks_for(n, BLOCK, EACH_BLOCKS_MAX), 1}, each_element<Body>, body, n);
}

/* a / b of non-negative numbers. Most fit 32 bits, whose division is several times as fast. */
ON_GPU int64_t quotient_of(int64_t a, int64_t b)
{
    const bool is_short = ((uint64_t)(a | b) >> 32) == 0;
    return is_short ? (int64_t)((uint32_t)a / (uint32_t)b) : a / b;
}

/* Sum and maximum over a warp, in a fixed order: every lane gets the same bits. */
template <typename Number> ON_GPU Number warp_sum(Number x)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2)
        x += __shfl_xor_sync(0xffffffffu, x, distance);
    return x;
}

ON_GPU float warp_max(float x)
{
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        float other = __shfl_xor_sync(0xffffffffu, x, distance);
        x = other > x ? other : x;
    }
    return x;
}

/* Sum over the block, in a tree; lane: shared memory of BLOCK doubles. All threads must call it. */
ON_GPU double block_sum(double *lane, double own)
{
    lane[threadIdx.x] = own;
    for (unsigned half = BLOCK / 2; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) lane[threadIdx.x] += lane[threadIdx.x + half];
    }
    __syncthreads();
    return lane[0];
}

/* Index of this thread's warp within the grid, and the number of warps */
ON_GPU int64_t grid_warp()
{
    return (int64_t)blockIdx.x * BLOCK_WARPS + threadIdx.x / WARP;
}

ON_GPU int64_t grid_warps()
{
    return (int64_t)gridDim.x * BLOCK_WARPS;
}

ON_GPU int lane_index()
{
    return (int)(threadIdx.x % WARP);
}

/* Sums the partials of `blocks` blocks, in order, into one of the device's results (below
 * RESULTS_MAX). In reduce.cu. */
void cuda_sum_partials(struct device *, unsigned blocks, int result);

/* Blocks of a reduction over n: depends only on n, so that the sum has the same bits in every run,
 * and enough to keep the memory of the largest GPU busy */
static inline unsigned reduction_blocks(int64_t n)
{
    return blocks_for(n, BLOCK * 16, 2048);
}

/* Blocks if each row has its own warp */
static inline unsigned row_blocks(int64_t rows)
{
    return blocks_for(rows, BLOCK_WARPS, EACH_BLOCKS_MAX);
}

#endif
