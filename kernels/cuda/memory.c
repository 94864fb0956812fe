/* memory.c - GPU memory, copies to and from it, and failures of queued work.
 *
 * The host's memory is not pinned, so copies go through two pinned buffers: while one is being
 * copied the other is filled or emptied. An upload returns when the host's memory may change again;
 * a download returns when all data have arrived.
 */
#include <stdio.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

enum { ALIGNMENT = 64 };

/* Our kernels and those of libraries are loaded on first use, tens of megabytes or more for cuBLAS;
 * and CUDA allocates memory in pages of 2 MiB, whose ends are wasted. */
enum { RESERVED_BYTES = 256 << 20 };

enum { /* cudaError..., which older headers lack */
       CONTAINED = 226,
       MPS_CLIENT_TERMINATED = 810,
};

/* Errors of a GPU with failing memory or links, that has fallen off the bus, was taken away or
 * stalled a display, and of services that restart. Invalid accesses and the like are bugs of the
 * program and will recur. */
static const int lost[] = {
    cudaErrorNoDevice,
    cudaErrorDevicesUnavailable,
    cudaErrorDeviceUninitialized,
    cudaErrorECCUncorrectable,
    cudaErrorNvlinkUncorrectable,
    cudaErrorLaunchTimeout,
    cudaErrorContextIsDestroyed,
    cudaErrorSystemNotReady,
    cudaErrorMpsConnectionFailed,
    cudaErrorMpsRpcFailure,
    cudaErrorMpsServerNotReady,
    MPS_CLIENT_TERMINATED,
    cudaErrorExternalDevice,
    cudaErrorLaunchFailure,
    cudaErrorUnknown,
    CONTAINED,
};
enum { LOST = sizeof lost / sizeof *lost };

err cuda_kind(cudaError_t status)
{
    for (int i = 0; i < LOST; i++)
        if ((int)status == lost[i]) return ERR_LOST;
    return status == cudaErrorMemoryAllocation ? ERR_MEMORY : ERR_DEVICE;
}

/* Queued work may have failed long before it is noticed, unless each kernel is waited for. */
void cuda_remember(struct device *d, err kind, const char *call, const char *why)
{
    struct cuda_state *state = d->state;
    char place[FAILURE_MAX / 2] = "";
    if (state->failure) return;
    state->failure = kind;
    if (state->queued.mark)
        snprintf(place, sizeof place, ", %s %s \"%s\"", state->is_watched ? "in" : "at or before",
                 state->queued.mark, state->queued.mark_name);
    snprintf(state->failure_text, sizeof state->failure_text, "%s%s%s%s%s%s", call ? call : "",
             call ? ": " : "", why, state->queued.kernel ? ", last kernel: " : "",
             state->queued.kernel ? state->queued.kernel : "", place);
}

static void mark(struct device *d, const char *what, const char *name)
{
    struct cuda_state *state = d->state;
    state->queued.mark = what;
    state->queued.mark_name = name;
}

bool cuda_check(struct device *d, cudaError_t status, const char *call)
{
    if (status == cudaSuccess) return true;
    cuda_remember(d, cuda_kind(status), call, cudaGetErrorString(status));
    (void)cudaGetLastError(); /* a non-sticky error must not be reported by another call */
    return false;
}

void cuda_refuse(struct device *d, const char *why)
{
    cuda_remember(d, ERR_DEVICE, d->kernels->name, why);
}

void cuda_select(struct device *d)
{
    const struct cuda_state *state = d->state;
    cuda_check(d, cudaSetDevice(state->index), "cudaSetDevice");
}

bool cuda_may_queue(struct device *d)
{
    const struct cuda_state *state = d->state;
    cuda_select(d);
    return !state->is_silent || cuda_await_stream(d, state->stream); /* which fails at once */
}

/* A watched device waits for every kernel, to attribute a failure to it. */
void cuda_launched(struct device *d, const char *kernel, cudaError_t status)
{
    struct cuda_state *state = d->state;
    if (!state->failure) state->queued.kernel = kernel;
    if (!cuda_check(d, status, "cudaLaunchKernelEx") || !state->is_watched) return;
    (void)cuda_await_stream(d, state->stream);
}

const double *cuda_results(struct device *d, int count)
{
    struct cuda_state *state = d->state;
    const size_t bytes = (size_t)count * sizeof(double);
    const bool is_here = cuda_may_queue(d) &&
                         cuda_check(d,
                                    cudaMemcpyAsync(state->host_results, state->results, bytes,
                                                    cudaMemcpyDeviceToHost, state->stream),
                                    "cudaMemcpyAsync") &&
                         cuda_await_stream(d, state->stream);
    if (!is_here) memset(state->host_results, 0, bytes);
    return state->host_results;
}

err cuda_failure(struct cuda_state *state)
{
    const err failure = state->failure;
    if (!failure) return OK;
    state->failure = OK;
    return fail(failure, "GPU %d: %s", state->index, state->failure_text);
}

static err synchronize(struct device *d)
{
    struct cuda_state *state = d->state;
    cuda_select(d);
    cuda_join(d);
    (void)cuda_await_stream(d, state->stream);
    return cuda_failure(state);
}

/* A watched device uses managed memory, which the host accesses at the same address while nothing
 * is queued, and which is in GPU memory otherwise: libraries treat it like ordinary memory. */
static cudaError_t take(const struct cuda_state *state, size_t bytes, void **ret)
{
    return state->is_watched ? cudaMallocManaged(ret, bytes, cudaMemAttachGlobal)
                             : cudaMalloc(ret, bytes);
}

/* Asks CUDA for the free memory directly; a failure of that is not reported as well. */
static err refuse(const struct cuda_state *state, size_t bytes, cudaError_t status)
{
    size_t free_bytes = 0, all;
    const bool is_known = cudaMemGetInfo(&free_bytes, &all) == cudaSuccess;
    (void)cudaGetLastError();
    if (status != cudaErrorMemoryAllocation)
        return fail(cuda_kind(status), "GPU %d: %s: %s", state->index,
                    state->is_watched ? "cudaMallocManaged" : "cudaMalloc",
                    cudaGetErrorString(status));
    if (!is_known)
        return fail(ERR_MEMORY, "no memory for %zu bytes on GPU %d", bytes, state->index);
    return fail(ERR_MEMORY, "no memory for %zu bytes on GPU %d, where %zu are free", bytes,
                state->index, free_bytes);
}

static err allocate(struct device *d, size_t bytes, void **ret)
{
    struct cuda_state *state = d->state;
    const size_t whole = bytes ? bytes : ALIGNMENT;
    void *memory;
    if (state->is_silent) return fail(ERR_LOST, "GPU %d does not answer any more", state->index);
    cuda_select(d);
    /* Some calls reject sizes above the address space. */
    const bool is_possible = whole <= PTRDIFF_MAX;
    const cudaError_t status =
        is_possible ? take(state, whole, &memory) : cudaErrorMemoryAllocation;
    if (status != cudaSuccess) return refuse(state, whole, status);
    if (state->is_watched)
        memset(memory, 0, whole);
    else
        cuda_check(d, cudaMemsetAsync(memory, 0, whole, state->stream), "cudaMemsetAsync");
    *ret = memory;
    return OK;
}

static size_t available(struct device *d)
{
    size_t free_bytes, all;
    cuda_select(d);
    if (!cuda_check(d, cudaMemGetInfo(&free_bytes, &all), "cudaMemGetInfo")) return SIZE_MAX;
    return free_bytes;
}

static void release(struct device *d, void *memory)
{
    const struct cuda_state *state = d->state;
    if (!memory) return;
    cuda_select(d);
    (void)cuda_await_stream(d, state->stream); /* freeing waits, too, but without a limit */
    if (state->is_silent) return;
    cuda_check(d, cudaFree(memory), "cudaFree");
}

/* A piece of a copy, and its staging buffer */
struct staged_piece {
    size_t at, bytes;
    int staging;
};

/* Alternates over all copies: a second small upload does not wait for the first. */
static struct staged_piece piece_at(struct cuda_state *state, size_t at, size_t bytes)
{
    const size_t left = bytes - at;
    const int staging = state->next_staging;
    state->next_staging = (staging + 1) % STAGINGS;
    return (struct staged_piece){at, left < STAGING_BYTES ? left : STAGING_BYTES, staging};
}

/* Waits until the last copy from or to the staging buffer is done. */
static bool staging_ready(struct device *d, const struct staged_piece *p)
{
    const struct cuda_state *state = d->state;
    return cuda_await_event(d, state->staged[p->staging]);
}

static bool send(struct device *d, const struct staged_piece *p, void *to, const void *from,
                 enum cudaMemcpyKind kind)
{
    const struct cuda_state *state = d->state;
    return cuda_may_queue(d) &&
           cuda_check(d, cudaMemcpyAsync(to, from, p->bytes, kind, state->stream),
                      "cudaMemcpyAsync") &&
           cuda_check(d, cudaEventRecord(state->staged[p->staging], state->stream),
                      "cudaEventRecord");
}

static void upload(struct device *d, void *device_memory, const void *host, size_t bytes)
{
    struct cuda_state *state = d->state;
    if (state->is_watched) { /* nothing is queued */
        memcpy(device_memory, host, bytes);
        return;
    }
    cuda_select(d);
    for (size_t at = 0; at < bytes; at += STAGING_BYTES) {
        const struct staged_piece p = piece_at(state, at, bytes);
        void *staging = state->staging[p.staging];
        if (!staging_ready(d, &p)) return;
        memcpy(staging, (const char *)host + at, p.bytes);
        if (!send(d, &p, (char *)device_memory + at, staging, cudaMemcpyHostToDevice)) return;
    }
}

static bool fetch(struct device *d, const struct staged_piece *p, const void *device_memory)
{
    const struct cuda_state *state = d->state;
    return send(d, p, state->staging[p->staging], (const char *)device_memory + p->at,
                cudaMemcpyDeviceToHost);
}

/* The next piece is copied while this one is taken out of its staging buffer. */
static void download(struct device *d, void *host, const void *device_memory, size_t bytes)
{
    struct cuda_state *state = d->state;
    if (bytes == 0) return;
    if (state->is_watched) {
        memcpy(host, device_memory, bytes);
        return;
    }
    cuda_select(d);
    struct staged_piece p = piece_at(state, 0, bytes);
    if (!fetch(d, &p, device_memory)) return;
    while (p.bytes > 0) {
        const size_t next_at = p.at + p.bytes;
        const struct staged_piece next = piece_at(state, next_at, bytes);
        if (next.bytes > 0 && !fetch(d, &next, device_memory)) return;
        if (!staging_ready(d, &p)) return;
        memcpy((char *)host + p.at, state->staging[p.staging], p.bytes);
        p = next;
    }
}

err cuda_demand(cudaError_t status, const char *call)
{
    if (status == cudaSuccess) return OK;
    (void)cudaGetLastError();
    return fail(cuda_kind(status), "%s: %s", call, cudaGetErrorString(status));
}

err cuda_memory_init(struct device *d)
{
    struct cuda_state *state = d->state;
    TRY(cuda_demand(cudaStreamCreateWithFlags(&state->stream, cudaStreamNonBlocking),
                    "cudaStreamCreateWithFlags"));
    for (int i = 0; i < STAGINGS; i++) {
        TRY(cuda_demand(cudaEventCreateWithFlags(&state->staged[i], cudaEventDisableTiming),
                        "cudaEventCreateWithFlags"));
        TRY(cuda_demand(cudaHostAlloc(&state->staging[i], STAGING_BYTES, cudaHostAllocDefault),
                        "cudaHostAlloc"));
    }
    void *results;
    TRY(cuda_demand(cudaHostAlloc(&results, RESULTS_MAX * sizeof(double), cudaHostAllocDefault),
                    "cudaHostAlloc"));
    state->host_results = results;
    void *partials;
    TRY(cuda_demand(cudaMalloc(&partials, (PARTIALS_MAX + RESULTS_MAX) * sizeof(double)),
                    "cudaMalloc"));
    state->partials = partials;
    state->results = state->partials + PARTIALS_MAX;
    return cuda_async_init(state);
}

/* Failures to free are ignored: the context is broken then. */
void cuda_memory_fini(struct cuda_state *state)
{
    cuda_async_fini(state);
    if (state->partials) (void)cudaFree(state->partials);
    if (state->host_results) (void)cudaFreeHost(state->host_results);
    for (int i = 0; i < STAGINGS; i++) {
        if (state->staging[i]) (void)cudaFreeHost(state->staging[i]);
        if (state->staged[i]) (void)cudaEventDestroy(state->staged[i]);
    }
    if (state->stream) (void)cudaStreamDestroy(state->stream);
}

void cuda_memory_fill(struct kernels *table)
{
    table->reserved = RESERVED_BYTES;
    table->allocate = allocate;
    table->available = available;
    table->release = release;
    table->upload = upload;
    table->download = download;
    table->synchronize = synchronize;
    table->mark = mark;
}
