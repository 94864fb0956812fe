/* async.c - copies on streams of their own: batches that come in, gradients that go out.
 *
 * A stream keeps its order alone; events tell another where it stands. An event may be recorded
 * again as soon as everybody who waits for it has been queued.
 */
#include <stdlib.h>

#include "kernels/cuda/cuda.h"

struct inlet {
    void *host, *memory; /* pinned; of the device */
    size_t bytes;
    cudaEvent_t sent, taken;
};

/* Not every driver can. */
static bool enlist(void *host, size_t bytes, unsigned flags)
{
    if (cudaHostRegister(host, bytes, flags) == cudaSuccess) return true;
    (void)cudaGetLastError();
    return false;
}

/* What can be pinned is the system's affair, and memory that cannot is no failure. For reading
 * alone only where nothing else is allowed, as in another process' memory: private pages that are
 * taken so before they are first written would stay behind when that happens. */
static bool pin(struct device *d, void *host, size_t bytes, bool is_written)
{
    if (bytes == 0) return false;
    cuda_select(d);
    if (enlist(host, bytes, cudaHostRegisterDefault)) return true;
    return !is_written && enlist(host, bytes, cudaHostRegisterReadOnly);
}

/* Nothing may still be on its way. */
static void unpin(struct device *d, void *host)
{
    const struct cuda_state *state = d->state;
    cuda_select(d);
    cuda_join_out(d);
    if (!cuda_await_stream(d, state->stream) && state->is_silent) return;
    cuda_check(d, cudaHostUnregister(host), "cudaHostUnregister");
}

static void upload_pinned(struct device *d, void *device_memory, const void *host, size_t bytes)
{
    const struct cuda_state *state = d->state;
    if (bytes == 0 || !cuda_may_queue(d)) return;
    cuda_check(d,
               cudaMemcpyAsync(device_memory, host, bytes, cudaMemcpyHostToDevice, state->stream),
               "cudaMemcpyAsync");
}

/* The second stream goes on when the first has come to where it is now. */
static bool follow(struct device *d, cudaStream_t first, cudaEvent_t event, cudaStream_t second)
{
    return cuda_check(d, cudaEventRecord(event, first), "cudaEventRecord") &&
           cuda_check(d, cudaStreamWaitEvent(second, event, 0), "cudaStreamWaitEvent");
}

static void download_pinned(struct device *d, void *host, const void *device_memory, size_t bytes)
{
    struct cuda_state *state = d->state;
    if (bytes == 0 || !cuda_may_queue(d)) return;
    if (!follow(d, state->stream, state->computed, state->out)) return;
    state->has_out = true;
    cuda_check(d, cudaMemcpyAsync(host, device_memory, bytes, cudaMemcpyDeviceToHost, state->out),
               "cudaMemcpyAsync");
}

void cuda_join_out(struct device *d)
{
    struct cuda_state *state = d->state;
    if (state->is_silent) return; /* its queue may be full */
    if (state->has_out) state->has_out = !follow(d, state->out, state->left, state->stream);
}

/* --- inlets --- */

/* The streams are waited for, not the events: a batch whose event could not be recorded may be
 * under way. */
static void empty(struct device *d, const struct inlet *inlet)
{
    const struct cuda_state *state = d->state;
    (void)(cuda_await_stream(d, state->in) && cuda_await_stream(d, state->stream));
    if (state->is_silent) return;
    if (inlet->sent) cuda_check(d, cudaEventDestroy(inlet->sent), "cudaEventDestroy");
    if (inlet->taken) cuda_check(d, cudaEventDestroy(inlet->taken), "cudaEventDestroy");
    if (inlet->host) cuda_check(d, cudaFreeHost(inlet->host), "cudaFreeHost");
    if (inlet->memory) d->kernels->release(d, inlet->memory);
}

static void inlet_close(struct device *d, struct inlet *inlet)
{
    if (!inlet) return;
    cuda_select(d);
    empty(d, inlet);
    free(inlet);
}

static err fill(struct device *d, size_t bytes, struct inlet *inlet)
{
    inlet->bytes = bytes;
    TRY(cuda_demand(cudaEventCreateWithFlags(&inlet->sent, cudaEventDisableTiming),
                    "cudaEventCreateWithFlags"));
    TRY(cuda_demand(cudaEventCreateWithFlags(&inlet->taken, cudaEventDisableTiming),
                    "cudaEventCreateWithFlags"));
    TRY(cuda_demand(cudaHostAlloc(&inlet->host, bytes, cudaHostAllocDefault), "cudaHostAlloc"));
    TRY(d->kernels->allocate(d, bytes, &inlet->memory));
    return d->kernels->synchronize(d); /* it was cleared by another stream than writes it */
}

static err inlet_open(struct device *d, size_t bytes, struct inlet **ret)
{
    struct inlet *inlet = calloc(1, sizeof *inlet);
    if (!inlet) return fail(ERR_MEMORY, "no memory for an inlet");
    cuda_select(d);
    err e = fill(d, bytes, inlet);
    if (e)
        inlet_close(d, inlet);
    else
        *ret = inlet;
    return e;
}

static void *inlet_room(struct device *d, struct inlet *inlet)
{
    cuda_select(d);
    const bool is_free = cuda_await_event(d, inlet->sent);
    return is_free ? inlet->host : NULL;
}

static void inlet_send(struct device *d, struct inlet *inlet, size_t bytes)
{
    const struct cuda_state *state = d->state;
    if (!cuda_may_queue(d)) return;
    (void)(cuda_check(d, cudaStreamWaitEvent(state->in, inlet->taken, 0), "cudaStreamWaitEvent") &&
           cuda_check(d,
                      cudaMemcpyAsync(inlet->memory, inlet->host, bytes, cudaMemcpyHostToDevice,
                                      state->in),
                      "cudaMemcpyAsync") &&
           cuda_check(d, cudaEventRecord(inlet->sent, state->in), "cudaEventRecord"));
}

static void inlet_take(struct device *d, struct inlet *inlet, const struct inlet_part *parts,
                       int count)
{
    const struct cuda_state *state = d->state;
    if (!cuda_may_queue(d)) return;
    if (!cuda_check(d, cudaStreamWaitEvent(state->stream, inlet->sent, 0), "cudaStreamWaitEvent"))
        return;
    for (int i = 0; i < count; i++)
        cuda_check(d,
                   cudaMemcpyAsync(parts[i].to, (const char *)inlet->memory + parts[i].offset,
                                   parts[i].bytes, cudaMemcpyDeviceToDevice, state->stream),
                   "cudaMemcpyAsync");
    cuda_check(d, cudaEventRecord(inlet->taken, state->stream), "cudaEventRecord");
}

/* --- streams --- */

err cuda_async_init(struct cuda_state *state)
{
    cudaStream_t *const streams[] = {&state->in, &state->out};
    cudaEvent_t *const events[] = {&state->computed, &state->left};
    for (int i = 0; i < 2; i++) {
        TRY(cuda_demand(cudaStreamCreateWithFlags(streams[i], cudaStreamNonBlocking),
                        "cudaStreamCreateWithFlags"));
        TRY(cuda_demand(cudaEventCreateWithFlags(events[i], cudaEventDisableTiming),
                        "cudaEventCreateWithFlags"));
    }
    return OK;
}

void cuda_async_fini(struct cuda_state *state)
{
    if (state->in) (void)cudaStreamDestroy(state->in);
    if (state->out) (void)cudaStreamDestroy(state->out);
    if (state->computed) (void)cudaEventDestroy(state->computed);
    if (state->left) (void)cudaEventDestroy(state->left);
}

/* Whoever watches each kernel wants nothing to go on beside it. */
void cuda_async_fill(struct cuda_state *state)
{
    static const struct async async = {
        .pin = pin,
        .unpin = unpin,
        .upload_pinned = upload_pinned,
        .download_pinned = download_pinned,
        .inlet_open = inlet_open,
        .inlet_close = inlet_close,
        .inlet_room = inlet_room,
        .inlet_send = inlet_send,
        .inlet_take = inlet_take,
        .record = cuda_record,
        .record_end = cuda_record_end,
        .replay = cuda_replay,
        .recording_close = cuda_recording_close,
    };
    state->table.async = state->is_watched ? NULL : &async;
}
