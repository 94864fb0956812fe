/* cuda_runtime.h - stands in for CUDA's header of that name: makes C++ of a .cu file whose kernels
 * run on the processor. The blocks of a grid run one after another, the threads of a block as
 * fibres, which change places where they wait for each other.
 */
#ifndef TESTS_CUDA_EMULATION_RUNTIME_H
#define TESTS_CUDA_EMULATION_RUNTIME_H

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>

#include "tests/cuda/emulator/grid.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __shared__ static /* blocks follow each other, so each finds what the last has left */

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1) : x(of_x), y(of_y), z(of_z)
    {
    }
};

/* Four floats by one access, which a GPU refuses where they do not lie at a multiple of 16 bytes */
struct alignas(16) float4 {
    float x, y, z, w;
    float4() = default;
    float4(float of_x, float of_y, float of_z, float of_w) : x(of_x), y(of_y), z(of_z), w(of_w)
    {
    }
    float4(const float4 &from)
    {
        *this = from;
    }
    float4 &operator=(const float4 &from)
    {
        volatile uintptr_t place = (uintptr_t)this | (uintptr_t)&from; /* not known from the type */
        if (place % 16 != 0) {
            fprintf(stderr, "emulated GPU: 16 bytes at a place that is no multiple of 16\n");
            abort();
        }
        memcpy((void *)this, (const void *)&from, sizeof *this);
        return *this;
    }
};

struct cudaLaunchConfig_t {
    struct dim3 gridDim, blockDim;
    cudaStream_t stream;
};

static const struct grid_index &threadIdx = grid_now.thread, &blockIdx = grid_now.block;
static const struct grid_index &blockDim = grid_now.threads, &gridDim = grid_now.blocks;

static inline void __syncthreads()
{
    grid_wait_for_block();
}

static inline void __syncwarp()
{
    grid_wait_for_warp();
}

/* mask: kernels/cuda/ always means the whole warp, which is what is waited for. */
template <typename Number> Number __shfl_xor_sync(unsigned mask, Number own, int distance)
{
    const unsigned lane = grid_now.thread.x % GRID_WARP;
    Number other;
    grid_give(&own, sizeof own);
    memcpy(&other, grid_given(lane ^ (unsigned)distance), sizeof other);
    return other;
}

static inline unsigned __ballot_sync(unsigned mask, bool own)
{
    unsigned ret = 0;
    grid_give(&own, sizeof own);
    for (unsigned lane = 0; lane < GRID_WARP; lane++)
        ret |= (unsigned)*(const bool *)grid_given(lane) << lane;
    return ret;
}

static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

/* Queues a kernel; takes its arguments, which malloc() has given. */
extern "C" cudaError_t emulated_launch(cudaStream_t, const struct grid *, grid_body *,
                                       void *arguments);

template <typename Body> void emulated_run(const void *body)
{
    (*(const Body *)body)();
}

template <typename... Takes, typename... Gets>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(Takes...),
                               Gets... gets)
{
    auto body = [=]() { kernel(gets...); };
    void *copy = malloc(sizeof body);
    if (!copy) return cudaErrorMemoryAllocation;
    new (copy) auto(body);
    const struct grid grid = {config->gridDim.x, config->gridDim.y, config->blockDim.x};
    return emulated_launch(config->stream, &grid, emulated_run<decltype(body)>, copy);
}

#endif
