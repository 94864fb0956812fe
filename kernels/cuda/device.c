/* device.c - which GPUs there are, and opening one. */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/cuda.h"

/* Multiprocessors of this and newer generations run what was compiled: machine code, or code that
 * the driver compiles. */
enum { OLDEST_MAJOR = 8 };

/* The runtime's words for a failure do not say that the user may have hidden the GPUs. */
static err no_gpu(cudaError_t status)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    (void)cudaGetLastError();
    if (status != cudaSuccess && status != cudaErrorNoDevice)
        return fail(ERR_DEVICE, "cudaGetDeviceCount: %s", cudaGetErrorString(status));
    if (visible) return fail(ERR_DEVICE, "none left by CUDA_VISIBLE_DEVICES=%s", visible);
    return fail(ERR_DEVICE, "the driver sees no GPU");
}

err gpu_count(int *ret)
{
    TRY(cuda_driver_find());
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count < 1) return no_gpu(status);
    *ret = count < GPUS_MAX ? count : GPUS_MAX;
    return OK;
}

static err describe(int index, struct gpu *ret)
{
    struct cudaDeviceProp properties;
    cudaError_t status = cudaGetDeviceProperties(&properties, index);
    if (status != cudaSuccess)
        return fail(ERR_DEVICE, "GPU %d: cudaGetDeviceProperties: %s", index,
                    cudaGetErrorString(status));
    *ret = (struct gpu){
        .major = properties.major, .minor = properties.minor, .bytes = properties.totalGlobalMem};
    snprintf(ret->name, sizeof ret->name, "%s", properties.name);
    return OK;
}

/* Asking takes a context on the GPU, which a GPU in exclusive use refuses: 0 then. */
static size_t free_bytes(int index)
{
    size_t left = 0, all;
    if (cudaSetDevice(index) != cudaSuccess || cudaMemGetInfo(&left, &all) != cudaSuccess) left = 0;
    (void)cudaGetLastError();
    return left;
}

static void describe_libraries(char *ret, size_t size)
{
    enum { MAJOR = CUDART_VERSION / 1000, MINOR = CUDART_VERSION % 1000 / 10 };
    struct cuda_blas blas;
    if (cuda_blas_find(&blas)) {
        snprintf(ret, size, "CUDA %d.%d, products of our own, slower: %s", MAJOR, MINOR,
                 error_text());
        return;
    }
    snprintf(ret, size, "CUDA %d.%d, cuBLAS %d.%d.%d (%s)", MAJOR, MINOR, blas.version / 10000,
             blas.version / 100 % 100, blas.version % 100, blas.path);
    cuda_blas_drop(&blas);
}

err gpu_list(struct gpus *ret)
{
    struct gpus gpus = {0};
    TRY(gpu_count(&gpus.count));
    for (int i = 0; i < gpus.count; i++) {
        TRY(describe(i, &gpus.at[i]));
        gpus.at[i].free_bytes = free_bytes(i);
    }
    cuda_driver_release(gpus.driver, sizeof gpus.driver);
    describe_libraries(gpus.libraries, sizeof gpus.libraries);
    *ret = gpus;
    return OK;
}

static void close_gpu(struct device *d)
{
    struct cuda_state *state = d->state;
    (void)cudaSetDevice(state->index);
    cuda_product_fini(state);
    cuda_blas_close(state);
    cuda_memory_fini(state);
    free(state);
    *d = (struct device){0};
}

static void fill_table(struct kernels *table)
{
    table->close = close_gpu;
    cuda_memory_fill(table);
    cuda_vector_fill(table);
    cuda_reduce_fill(table);
    cuda_activate_fill(table);
    cuda_rows_fill(table);
    cuda_losses_fill(table);
    cuda_metrics_fill(table);
    cuda_pool_fill(table);
    cuda_update_fill(table);
    cuda_gemm_fill(table);
    cuda_conv_fill(table);
}

/* Without cuBLAS the products are our own kernel's, and the name says why. */
static void name_device(struct cuda_state *state, const struct gpu *gpu, err blas)
{
    const int version = state->blas.version;
    if (blas)
        snprintf(state->name, sizeof state->name, "cuda %s, own products: %s", gpu->name,
                 error_text());
    else
        snprintf(state->name, sizeof state->name, "cuda %s, cuBLAS %d.%d.%d", gpu->name,
                 version / 10000, version / 100 % 100, version % 100);
    state->table.name = state->name;
}

static err set_up(struct device *d, const struct gpu_options *options, const struct gpu *gpu)
{
    struct cuda_state *state = d->state;
    cudaError_t status = cudaSetDevice(options->index);
    if (status != cudaSuccess)
        return fail(cuda_kind(status), "GPU %d: cudaSetDevice: %s", options->index,
                    cudaGetErrorString(status));
    TRY(cuda_memory_init(d));
    name_device(state, gpu, cuda_blas_open(d, options->precision));
    TRY(cuda_product_init(d));
    return d->kernels->synchronize(d);
}

err device_open_gpu(const struct gpu_options *options, struct device *ret)
{
    int count = 0;
    struct gpu gpu;
    TRY(gpu_count(&count));
    if (options->index < 0 || options->index >= count)
        return fail(ERR_INPUT, "there is no GPU %d: they are 0 to %d", options->index, count - 1);
    TRY(describe(options->index, &gpu));
    if (gpu.major < OLDEST_MAJOR)
        return fail(ERR_DEVICE, "GPU %d (%s) is of compute capability %d.%d: needs %d.0",
                    options->index, gpu.name, gpu.major, gpu.minor, OLDEST_MAJOR);

    struct cuda_state *state = calloc(1, sizeof *state);
    if (!state) return fail(ERR_MEMORY, "no memory for a GPU device");
    state->index = options->index;
    state->is_watched = options->is_watched;
    state->precision = options->precision;
    fill_table(&state->table);
    struct device d = {.kernels = &state->table, .threads = 1, .state = state, .is_separate = true};
    err e = set_up(&d, options, &gpu);
    if (e) {
        close_gpu(&d);
        return e == ERR_LOST ? ERR_DEVICE : e; /* it was broken before */
    }
    *ret = d;
    return OK;
}
