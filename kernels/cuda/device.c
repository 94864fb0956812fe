/* device.c - which GPUs there are, and opening one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/dnn.h"

/* Multiprocessors of this and newer generations run what was compiled: machine code, or code that
 * the driver compiles. */
enum { OLDEST_MAJOR = 8 };

enum { LIBRARY_TEXT_MAX = 256 };

/* Libraries that may be there, and what kernels of our own do where they are not */
static const struct library_use {
    const char *name, *work;
} blas_use = {"cuBLAS", "products"}, dnn_use = {"cuDNN", "convolutions"};

/* The runtime's words for a failure do not say that the user may have hidden the GPUs. */
static err no_gpu(cudaError_t status)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    (void)cudaGetLastError();
    if (status != cudaSuccess && status != cudaErrorNoDevice)
        return fail(ERR_DEVICE, "cudaGetDeviceCount: %s%s%s", cudaGetErrorString(status),
                    visible ? ", with CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
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
    snprintf(ret->bus, sizeof ret->bus, "%04x:%02x:%02x.0", properties.pciDomainID,
             properties.pciBusID, properties.pciDeviceID);
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

/* "cuBLAS 13.1.0 (/usr/lib/...)", or why there is none */
static void describe_library(const struct library_use *use, err missing,
                             const struct cuda_library *library, char ret[LIBRARY_TEXT_MAX])
{
    char version[LIBRARY_VERSION_MAX];
    if (missing) {
        snprintf(ret, LIBRARY_TEXT_MAX, "%s of our own: %s", use->work, error_text());
        return;
    }
    cuda_library_version(library, use->name, version);
    snprintf(ret, LIBRARY_TEXT_MAX, "%s (%s)", version, library->path);
}

static void describe_libraries(char *ret, size_t size)
{
    enum { MAJOR = CUDART_VERSION / 1000, MINOR = CUDART_VERSION % 1000 / 10 };
    struct cuda_library library;
    char blas[LIBRARY_TEXT_MAX], dnn[LIBRARY_TEXT_MAX];
    describe_library(&blas_use, cuda_blas_find(&library), &library, blas);
    describe_library(&dnn_use, cuda_dnn_find(&library), &library, dnn);
    snprintf(ret, size, "CUDA %d.%d, %s, %s", MAJOR, MINOR, blas, dnn);
}

err gpu_list(struct gpus *ret)
{
    struct gpus gpus = {0};
    TRY(gpu_count(&gpus.count));
    for (int i = 0; i < gpus.count; i++) {
        TRY(describe(i, &gpus.at[i]));
        gpus.at[i].free_bytes = free_bytes(i);
    }
    cuda_driver_describe(gpus.driver, sizeof gpus.driver);
    describe_libraries(gpus.libraries, sizeof gpus.libraries);
    *ret = gpus;
    return OK;
}

static void close_gpu(struct device *d)
{
    struct cuda_state *state = d->state;
    if (state->stream) { /* the first thing that is made: without it there is no context to ask */
        (void)cudaSetDevice(state->index);
        (void)cuda_await_stream(d, state->stream);
    }
    if (state->stream &&
        !state->is_silent) { /* else whatever it has goes with the process: freeing waits for it */
        cuda_product_fini(state);
        cuda_dnn_close(state);
        cuda_blas_close(state);
        cuda_memory_fini(state);
    }
    (void)cudaGetLastError(); /* what could not be freed is nobody else's failure */
    free(state);
    *d = (struct device){0};
}

static void fill_table(struct cuda_state *state)
{
    struct kernels *const table = &state->table;
    cuda_overlap_fill(state);
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

/* The name says which libraries are used, or why kernels of our own do their work. */
static void name_library(struct cuda_state *state, const struct library_use *use, err missing,
                         const struct cuda_library *library)
{
    const size_t at = strlen(state->name), left = sizeof state->name - at;
    char version[LIBRARY_VERSION_MAX];
    if (missing) {
        snprintf(state->name + at, left, ", own %s: %s", use->work, error_text());
        return;
    }
    cuda_library_version(library, use->name, version);
    snprintf(state->name + at, left, ", %s", version);
}

/* What is missing is told, and does no harm. */
static void open_libraries(struct device *d, const struct gpu_options *options)
{
    struct cuda_state *state = d->state;
    const err unwanted = options->is_bare ? fail(ERR_DEVICE, "no library is wanted") : OK;
    const err no_blas = unwanted ? unwanted : cuda_blas_open(d, options->precision);
    name_library(state, &blas_use, no_blas, &state->blas.library);
    const err no_dnn = unwanted ? unwanted : cuda_dnn_open(d, options->precision);
    name_library(state, &dnn_use, no_dnn, no_dnn ? NULL : &state->dnn->library);
}

/* Two kernels of ours and what comes of them: CUDA loads kernels when they are first launched, so
 * that machine code which this GPU or its driver cannot run would be found out in the first step.
 */
static err probe(struct device *d, const struct gpu *gpu)
{
    enum { NUMBERS = 64 };
    const struct cuda_state *state = d->state;
    float *numbers = (float *)(state->partials + PARTIALS_MAX / 2); /* away from the sum's own */
    d->kernels->fill(d, numbers, 1.0f, NUMBERS);
    const double sum = d->kernels->sum(d, numbers, NUMBERS);
    char why[FAILURE_MAX];
    snprintf(why, sizeof why, "%d ones add up to %g", NUMBERS, sum);
    const err e = d->kernels->synchronize(d);
    if (!e && sum == NUMBERS) return OK;
    return fail(ERR_DEVICE, "GPU %d (%s): cannot run this build's kernels: %s", state->index,
                gpu->name, e ? state->failure_text : why);
}

static err set_up(struct device *d, const struct gpu_options *options, const struct gpu *gpu)
{
    struct cuda_state *state = d->state;
    cudaError_t status = cudaSetDevice(options->index);
    if (status != cudaSuccess)
        return fail(cuda_kind(status), "GPU %d: cudaSetDevice: %s", options->index,
                    cudaGetErrorString(status));
    TRY(cuda_memory_init(d));
    TRY(probe(d, gpu));
    snprintf(state->name, sizeof state->name, "cuda %s", gpu->name);
    state->table.name = state->name;
    open_libraries(d, options);
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
    fill_table(state);
    cuda_wait_init(state);
    struct device d = {.kernels = &state->table, .threads = 1, .state = state, .is_separate = true};
    err e = set_up(&d, options, &gpu);
    if (e) {
        close_gpu(&d);
        return e == ERR_LOST ? ERR_DEVICE : e; /* it was broken before */
    }
    *ret = d;
    return OK;
}
