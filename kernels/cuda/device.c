/* device.c - lists GPUs, and opens one. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/library/dnn.h"
#include "kernels/note.h"

/* The oldest compute capability that the compiled code supports: as machine code, or through the
 * driver's compiler. */
enum { OLDEST_MAJOR = 8 };

enum { LIBRARY_TEXT_MAX = 256 };

#define UNKNOWN "unknown" /* name of a GPU that does not return its own */

/* Optional libraries, and what our own kernels do without them */
static const struct library_use {
    const char *name, *work;
} blas_use = {"cuBLAS", "products"}, dnn_use = {"cuDNN", "convolutions"};

/* The runtime's error text does not mention that the user may have hidden the GPUs. */
static err no_gpu(cudaError_t status)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    (void)cudaGetLastError();
    if (status != cudaSuccess && status != cudaErrorNoDevice)
        return fail(ERR_LOST, "cudaGetDeviceCount: %s%s%s", cudaGetErrorString(status),
                    visible ? ", with CUDA_VISIBLE_DEVICES=" : "", visible ? visible : "");
    if (visible) return fail(ERR_DEVICE, "none left by CUDA_VISIBLE_DEVICES=%s", visible);
    return fail(ERR_DEVICE, "the driver sees no GPU");
}

const bool gpus_are_built_in = true;

err gpu_count(int *ret)
{
    TRY(cuda_driver_find());
    int count = 0;
    cudaError_t status = cudaGetDeviceCount(&count);
    if (status != cudaSuccess || count < 1) return no_gpu(status);
    *ret = count < GPUS_MAX ? count : GPUS_MAX;
    return OK;
}

/* Does not open the GPU; the error does not name it. */
static err describe(int index, struct gpu *ret)
{
    struct cudaDeviceProp properties;
    TRY(cuda_demand(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties"));
    *ret = (struct gpu){
        .major = properties.major, .minor = properties.minor, .bytes = properties.totalGlobalMem};
    snprintf(ret->name, sizeof ret->name, "%s", properties.name);
    snprintf(ret->bus, sizeof ret->bus, "%04x:%02x:%02x.0", properties.pciDomainID,
             properties.pciBusID, properties.pciDeviceID);
    if (ret->major >= OLDEST_MAJOR) return OK;
    return fail(ERR_DEVICE, "is of compute capability %d.%d, needs %d.0", ret->major, ret->minor,
                OLDEST_MAJOR);
}

/* Creates a context on the GPU, which fails if it is in exclusive use. */
static err ask_free(int index, size_t *ret)
{
    size_t all;
    TRY(cuda_demand(cudaSetDevice(index), "cudaSetDevice"));
    return cuda_demand(cudaMemGetInfo(ret, &all), "cudaMemGetInfo");
}

static void look_at(int index, struct gpu *ret)
{
    *ret = (struct gpu){.name = UNKNOWN};
    err e = describe(index, ret);
    if (!e) e = ask_free(index, &ret->free_bytes);
    if (e) snprintf(ret->trouble, sizeof ret->trouble, "%s", error_text());
    (void)cudaGetLastError();
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
    for (int i = 0; i < gpus.count; i++) look_at(i, &gpus.at[i]);
    cuda_driver_describe(gpus.driver, sizeof gpus.driver);
    describe_libraries(gpus.libraries, sizeof gpus.libraries);
    *ret = gpus;
    return OK;
}

static void close_gpu(struct device *d)
{
    struct cuda_state *state = d->state;
    if (state->stream) { /* created first: without it there is no context */
        (void)cudaSetDevice(state->index);
        (void)cuda_await_stream(d, state->stream);
    }
    if (state->stream &&
        !state->is_silent) { /* otherwise the process' exit frees its memory: freeing waits for it
                              */
        cuda_product_fini(state);
        cuda_dnn_close(state);
        cuda_blas_close(state);
        cuda_memory_fini(state);
    }
    (void)cudaGetLastError(); /* a failure to free must not be reported by another call */
    free(state);
    *d = (struct device){0};
}

/* Host loops: this device has no host threads. */
static void spread(struct device *d, int64_t n, int64_t grain, spread_body *body,
                   const void *arguments)
{
    body(arguments, 0, n);
}

void dnn_note(struct cuda_dnn *dnn, const char *format, ...)
{
    const size_t at = strlen(dnn->notes);
    va_list arguments;
    va_start(arguments, format);
    const int separator = snprintf(dnn->notes + at, sizeof dnn->notes - at, "%s", at ? "; " : "");
    if (at + (size_t)separator < sizeof dnn->notes)
        (void)vsnprintf(dnn->notes + at + separator, sizeof dnn->notes - at - (size_t)separator,
                        format, arguments);
    va_end(arguments);
}

/* Other devices have no messages. */
const char *device_note(struct device *d)
{
    if (d->kernels->close != close_gpu) return "";
    struct cuda_state *state = d->state;
    struct cuda_dnn *dnn = state->dnn;
    if (*state->replays.note) {
        memcpy(state->replays.told, state->replays.note, sizeof state->replays.told);
        state->replays.note[0] = '\0';
        return state->replays.told;
    }
    if (!dnn) return "";
    memcpy(dnn->told, dnn->notes, sizeof dnn->told);
    dnn->notes[0] = '\0';
    return dnn->told;
}

static void fill_table(struct cuda_state *state)
{
    struct kernels *const table = &state->table;
    cuda_async_fill(state);
    cuda_memory_fill(table);
    table->spread = spread;
    table->close = close_gpu;
#define KERNEL(returns, name, ...) table->name = cuda_##name;
#include "kernels/kernels.def"
}

/* The name says which libraries are used, or why our own kernels replace them; those opened on
 * demand are not in it. */
static void name_library(struct cuda_state *state, const struct library_use *use, err missing,
                         const struct cuda_library *library)
{
    const size_t at = strlen(state->name), left = sizeof state->name - at;
    char version[LIBRARY_VERSION_MAX];
    if (missing) {
        snprintf(state->name + at, left, ", own %s: %s", use->work, error_text());
    } else if (library) {
        cuda_library_version(library, use->name, version);
        snprintf(state->name + at, left, ", %s", version);
    }
}

/* A missing library is noted, and is no failure. */
static void open_libraries(struct device *d, const struct gpu_options *options)
{
    struct cuda_state *state = d->state;
    const err unwanted = options->is_bare ? fail(ERR_DEVICE, "no library is wanted") : OK;
    const err no_blas = unwanted ? unwanted : cuda_blas_open(d, options->precision);
    name_library(state, &blas_use, no_blas, &state->blas.library);
    const err no_dnn = unwanted ? unwanted : cuda_dnn_open(d, options->precision);
    name_library(state, &dnn_use, no_dnn, NULL);
}

/* Fails if queued work failed. The error does not name the GPU; the caller that opens it does. */
static err finish(struct device *d)
{
    const struct cuda_state *state = d->state;
    const err e = d->kernels->synchronize(d);
    return e ? fail(e, "%s", state->failure_text) : OK;
}

/* Runs two of our kernels and checks the result: CUDA loads kernels at their first launch, so that
 * machine code which this GPU or its driver cannot run would otherwise fail only in the first step.
 */
static err probe(struct device *d)
{
    enum { NUMBERS = 64 };
    const struct cuda_state *state = d->state;
    float *numbers = (float *)(state->partials + PARTIALS_MAX / 2); /* not used by the sum */
    d->kernels->fill(d, numbers, 1.0f, NUMBERS);
    const double sum = kernels_sum(d, numbers, NUMBERS);
    err e = finish(d);
    if (!e && sum != NUMBERS) e = fail(ERR_DEVICE, "%d ones add up to %g", NUMBERS, sum);
    return e ? fail_prefix(e, "cannot run this build's kernels") : OK;
}

static err set_up(struct device *d, const struct gpu_options *options, const struct gpu *gpu)
{
    struct cuda_state *state = d->state;
    TRY(cuda_demand(cudaSetDevice(options->index), "cudaSetDevice"));
    TRY(cuda_memory_init(d));
    TRY(probe(d));
    snprintf(state->name, sizeof state->name, "cuda %s", gpu->name);
    state->table.name = state->name;
    open_libraries(d, options);
    TRY(cuda_product_init(d));
    return finish(d);
}

static err open_described(const struct gpu_options *options, const struct gpu *gpu,
                          struct device *ret)
{
    struct cuda_state *state = calloc(1, sizeof *state);
    if (!state) return fail(ERR_MEMORY, "no memory for a device");
    state->index = options->index;
    state->is_watched = options->is_watched;
    state->precision = options->precision;
    fill_table(state);
    cuda_wait_init(state);
    struct device d = {.kernels = &state->table,
                       .threads = 1,
                       .state = state,
                       .is_separate = true,
                       .index = options->index};
    err e = set_up(&d, options, gpu);
    if (e)
        close_gpu(&d);
    else
        *ret = d;
    return e;
}

/* A GPU that cannot be opened is ERR_DEVICE even if it is broken: no work is lost. */
err device_open_gpu(const struct gpu_options *options, struct device *ret)
{
    int count = 0;
    struct gpu gpu = {.name = UNKNOWN};
    err e = gpu_count(&count);
    if (e) return e == ERR_LOST ? ERR_DEVICE : e;
    if (options->index < 0 || options->index >= count)
        return fail(ERR_INPUT, "there is no GPU %d: they are 0 to %d", options->index, count - 1);
    e = describe(options->index, &gpu);
    if (!e) e = open_described(options, &gpu, ret);
    if (e == ERR_LOST) e = ERR_DEVICE;
    return e ? fail_prefix(e, "GPU %d (%s)", options->index, gpu.name) : OK;
}
