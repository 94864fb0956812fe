/* runtime.c - the calls of CUDA on the emulated GPU, but for those of memory and of streams. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/emulator/emulated.h"
#include "tests/cuda/emulator/streams.h"

enum { CALLS_MAX = 64 };

static int gpus = 1;
static const char *broken_call;
static int calls_until_broken;
static bool is_idle;
static bool is_announced; /* for who started the process, and sees no more of it */
static cudaError_t breaks_by = cudaErrorLaunchFailure;
static _Thread_local int gpu;
static _Thread_local cudaError_t last_error;
static cudaError_t ruin; /* the one that has broken the context, or success */
static pthread_mutex_t turns = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static struct {
    const char *call;
    int count;
} calls[CALLS_MAX];

cudaError_t emulated_launch(cudaStream_t, const struct grid *, grid_body *, void *arguments);

void emulated_begin_turn(void)
{
    pthread_mutex_lock(&turns);
}

void emulated_end_turn(const char *turn)
{
    pthread_mutex_unlock(&turns);
}

int emulated_gpu(void)
{
    return gpu;
}

void emulated_break(const char *call, int after)
{
    broken_call = call;
    calls_until_broken = after;
    last_error = ruin = cudaSuccess;
}

void emulated_break_by(int error)
{
    breaks_by = (cudaError_t)error;
}

__attribute__((constructor)) static void read_environment(void)
{
    static char call[64];
    int after, error;
    const char *count = getenv("EMULATED_GPUS"), *text = getenv("EMULATED_BREAK");
    if (count) emulated_set_gpus(atoi(count));
    if (!text || sscanf(text, "%63[^,],%d,%d", call, &after, &error) != 3) return;
    emulated_break(call, after);
    emulated_break_by(error);
    is_announced = true;
}

void emulated_set_gpus(int count)
{
    gpus = count < GPUS_MAX ? count : GPUS_MAX;
}

/* Those after which "any further CUDA work will return the same error", or that say as much */
static bool ruins(cudaError_t error)
{
    static const int ruinous[] = {214, 220, 226, 700, 702, 714, 715, 716, 717, 718, 719, 911, 999};
    for (size_t i = 0; i < sizeof ruinous / sizeof *ruinous; i++)
        if ((int)error == ruinous[i]) return true;
    return false;
}

cudaError_t emulated_ruin(void)
{
    return ruin;
}

cudaError_t emulated_not_ready(void)
{
    return last_error = ruin ? ruin : cudaErrorNotReady;
}

/* Names are literals, but not the same one in each file. */
static int *count_of(const char *call)
{
    int i = 0;
    while (i < CALLS_MAX - 1 && calls[i].call && strcmp(calls[i].call, call) != 0) i++;
    calls[i].call = call;
    return &calls[i].count;
}

int emulated_calls(const char *call)
{
    return *count_of(call);
}

cudaError_t emulated_status(const char *call)
{
    (*count_of(call))++;
    if (ruin) return last_error = ruin;
    if (!broken_call || strcmp(call, broken_call) != 0 || calls_until_broken-- > 0)
        return cudaSuccess;
    if (is_announced) fprintf(stderr, "emulated GPU: breaks in %s\n", call);
    is_announced = false;
    calls_until_broken = 0;
    if (ruins(breaks_by)) ruin = breaks_by;
    return last_error = breaks_by;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    EMULATED_TURN;
    const cudaError_t status = emulated_status("cudaMemcpyAsync");
    if (kind == cudaMemcpyHostToDevice) emulated_memory_check_pinned(from, bytes, false);
    if (kind == cudaMemcpyDeviceToHost) emulated_memory_check_pinned(to, bytes, true);
    if (status) return status;
    return streams_put(
        stream, (struct work){
                    .kind = WORK_COPY, .to = to, .from = from, .bytes = bytes, .direction = kind});
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    EMULATED_TURN;
    const cudaError_t status = emulated_status("cudaMemsetAsync");
    if (status) return status;
    return streams_put(stream,
                       (struct work){.kind = WORK_SET, .to = to, .bytes = bytes, .value = value});
}

static bool is_grid(const struct grid *grid)
{
    return grid->blocks_x > 0 && grid->blocks_x <= INT32_MAX && grid->blocks_y > 0 &&
           grid->blocks_y <= UINT16_MAX && grid->threads > 0 && grid->threads <= GRID_THREADS_MAX;
}

void emulated_set_idle(bool is)
{
    is_idle = is;
}

cudaError_t emulated_launch(cudaStream_t stream, const struct grid *grid, grid_body *body,
                            void *arguments)
{
    EMULATED_TURN;
    cudaError_t status = emulated_status("cudaLaunchKernelEx");
    if (!status && !is_grid(grid)) status = cudaErrorInvalidConfiguration;
    if (status || is_idle) {
        free(arguments);
        return status ? last_error = status : cudaSuccess;
    }
    return streams_put(
        stream,
        (struct work){.kind = WORK_GRID, .grid = *grid, .body = body, .arguments = arguments});
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    EMULATED_TURN;
    *ret = gpus;
    return gpus > 0 ? emulated_status("cudaGetDeviceCount") : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int index)
{
    EMULATED_TURN;
    size_t left, all;
    const cudaError_t status = cudaMemGetInfo(&left, &all); /* all have as much */
    *ret = (struct cudaDeviceProp){"emulated", all, 9, 0, 0x3b, 2, 1};
    return status ? status : emulated_status("cudaGetDeviceProperties");
}

cudaError_t cudaSetDevice(int index)
{
    EMULATED_TURN;
    if (index < 0 || index >= gpus) return last_error = cudaErrorInvalidDevice;
    const cudaError_t status = emulated_status("cudaSetDevice");
    if (!status) gpu = index;
    return status;
}

const char *cudaGetErrorString(cudaError_t status)
{
    switch (status) {
    case cudaErrorMemoryAllocation:
        return "out of memory";
    case cudaErrorLaunchFailure:
        return "unspecified launch failure";
    case cudaErrorInvalidConfiguration:
        return "invalid configuration argument";
    default:
        return "another error";
    }
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t status = last_error;
    last_error = ruin;
    return status;
}
