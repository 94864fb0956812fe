/* runtime.c - the calls of CUDA on the emulated GPU. Work is queued, and done in order when
 * somebody waits for it or for what was queued after it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/emulated.h"
#include "tests/cuda/emulation.h"
#include "tests/cuda/grid.h"

enum { QUEUE_MAX = 256 };

enum work_kind { WORK_COPY, WORK_SET, WORK_GRID };

struct work {
    enum work_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    int value;
    struct grid grid;
    grid_body *body;
    void *arguments; /* owned */
};

struct emulated_event {
    uint64_t at; /* the work that was queued before it was recorded */
};

struct emulated_stream {
    int unused;
};

static struct work queue[QUEUE_MAX];
static uint64_t queued, done; /* counts since the beginning */
static int gpus = 1;
static const char *broken_call;
static int calls_until_broken;
static cudaError_t breaks_by = cudaErrorLaunchFailure;
static cudaError_t last_error;

cudaError_t emulated_launch(const struct grid *, grid_body *, void *arguments);

void emulated_break(const char *call, int after)
{
    broken_call = call;
    calls_until_broken = after;
    last_error = cudaSuccess;
}

void emulated_break_by(int error)
{
    breaks_by = (cudaError_t)error;
}

__attribute__((constructor)) static void read_environment(void)
{
    static char call[64];
    int after, error;
    const char *text = getenv("EMULATED_BREAK");
    if (!text || sscanf(text, "%63[^,],%d,%d", call, &after, &error) != 3) return;
    emulated_break(call, after);
    emulated_break_by(error);
}

void emulated_set_gpus(int count)
{
    gpus = count;
}

cudaError_t emulated_status(const char *call)
{
    if (!broken_call || strcmp(call, broken_call) != 0 || calls_until_broken-- > 0)
        return cudaSuccess;
    calls_until_broken = 0;
    return last_error = breaks_by;
}

static void do_work(struct work *w)
{
    switch (w->kind) {
    case WORK_COPY:
        memcpy(w->to, w->from, w->bytes);
        break;
    case WORK_SET:
        memset(w->to, w->value, w->bytes);
        break;
    case WORK_GRID:
        grid_run(&w->grid, w->body, w->arguments);
        free(w->arguments);
        break;
    }
}

static void do_until(uint64_t end)
{
    if (done >= end) return;
    emulated_memory_open();
    for (; done < end; done++) do_work(&queue[done % QUEUE_MAX]);
    emulated_memory_close();
}

void emulated_finish(void)
{
    do_until(queued);
}

static void put(struct work w)
{
    if (queued - done == QUEUE_MAX) do_until(done + 1);
    queue[queued++ % QUEUE_MAX] = w;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    put((struct work){.kind = WORK_COPY, .to = to, .from = from, .bytes = bytes});
    return emulated_status("cudaMemcpyAsync");
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    put((struct work){.kind = WORK_SET, .to = to, .bytes = bytes, .value = value});
    return emulated_status("cudaMemsetAsync");
}

static bool is_grid(const struct grid *grid)
{
    return grid->blocks_x > 0 && grid->blocks_x <= INT32_MAX && grid->blocks_y > 0 &&
           grid->blocks_y <= UINT16_MAX && grid->threads > 0 && grid->threads <= GRID_THREADS_MAX;
}

cudaError_t emulated_launch(const struct grid *grid, grid_body *body, void *arguments)
{
    cudaError_t status = emulated_status("cudaLaunchKernelEx");
    if (!status && !is_grid(grid)) status = cudaErrorInvalidConfiguration;
    if (status) {
        free(arguments);
        return last_error = status;
    }
    put((struct work){.kind = WORK_GRID, .grid = *grid, .body = body, .arguments = arguments});
    return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int *ret)
{
    *ret = gpus;
    return gpus > 0 ? emulated_status("cudaGetDeviceCount") : cudaErrorNoDevice;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *ret, int index)
{
    size_t left, all;
    const cudaError_t status = cudaMemGetInfo(&left, &all);
    *ret = (struct cudaDeviceProp){"emulated", all, 9, 0};
    return status ? status : emulated_status("cudaGetDeviceProperties");
}

cudaError_t cudaSetDevice(int index)
{
    if (index < 0 || index >= gpus) return last_error = cudaErrorInvalidDevice;
    return emulated_status("cudaSetDevice");
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
    last_error = cudaSuccess;
    return status;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? emulated_status("cudaStreamCreateWithFlags") : cudaErrorMemoryAllocation;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    emulated_finish();
    return emulated_status("cudaStreamSynchronize");
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    emulated_finish();
    free(stream);
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags)
{
    *ret = calloc(1, sizeof **ret);
    return *ret ? emulated_status("cudaEventCreateWithFlags") : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    event->at = queued;
    return emulated_status("cudaEventRecord");
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    do_until(event->at);
    return emulated_status("cudaEventSynchronize");
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    free(event);
    return cudaSuccess;
}
