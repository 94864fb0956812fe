/* async.c - copies on separate streams: incoming batches and values, outgoing gradients.
 *
 * Each stream is in order; streams wait for each other by events. An event may be recorded again
 * once all waits for it have been queued.
 */
#include <stdlib.h>

#include "kernels/cuda/cuda.h"

struct inlet {
    void *host, *memory; /* pinned; of the device */
    size_t bytes;
    cudaEvent_t sent, taken;
};

struct mark {
    cudaEvent_t event;
    bool is_recorded; /* set in a recording, and so by its replays; may also be set outside */
};

/* Not every driver supports it. */
static bool enlist(void *host, size_t bytes, unsigned flags)
{
    if (cudaHostRegister(host, bytes, flags) == cudaSuccess) return true;
    (void)cudaGetLastError();
    return false;
}

/* Failing to pin is no error. Read-only only if nothing else is allowed, as for memory of another
 * process: private pages that are pinned read-only before they are first written would be left
 * behind by copy-on-write. */
static bool pin(struct device *d, void *host, size_t bytes, bool is_written)
{
    if (bytes == 0) return false;
    cuda_select(d);
    if (enlist(host, bytes, cudaHostRegisterDefault)) return true;
    return !is_written && enlist(host, bytes, cudaHostRegisterReadOnly);
}

/* No copy may be under way. */
static void unpin(struct device *d, void *host)
{
    const struct cuda_state *state = d->state;
    cuda_select(d);
    cuda_join(d);
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

/* Makes the second stream wait for the work queued so far in the first. */
static bool follow(struct device *d, cudaStream_t first, cudaEvent_t event, cudaStream_t second)
{
    return cuda_check(d, cudaEventRecord(event, first), "cudaEventRecord") &&
           cuda_check(d, cudaStreamWaitEvent(second, event, 0), "cudaStreamWaitEvent");
}

/* A copy beside the queue, after all work queued so far */
static void copy_beside(struct device *d, struct beside *by, void *to, const void *from,
                        size_t bytes, enum cudaMemcpyKind kind)
{
    struct cuda_state *state = d->state;
    if (bytes == 0 || !cuda_may_queue(d)) return;
    if (!follow(d, state->stream, by->before, by->stream)) return;
    by->is_used = true;
    if (kind == cudaMemcpyHostToDevice) state->up.last = NULL; /* its mark follows */
    cuda_check(d, cudaMemcpyAsync(to, from, bytes, kind, by->stream), "cudaMemcpyAsync");
}

static void download_pinned(struct device *d, void *host, const void *device_memory, size_t bytes)
{
    struct cuda_state *state = d->state;
    copy_beside(d, &state->out, host, device_memory, bytes, cudaMemcpyDeviceToHost);
}

static void upload_beside(struct device *d, void *device_memory, const void *host, size_t bytes)
{
    struct cuda_state *state = d->state;
    copy_beside(d, &state->up, device_memory, host, bytes, cudaMemcpyHostToDevice);
}

static void join(struct device *d, struct beside *by)
{
    const struct cuda_state *state = d->state;
    if (by->is_used) by->is_used = !follow(d, by->stream, by->behind, state->stream);
}

void cuda_join(struct device *d)
{
    struct cuda_state *state = d->state;
    if (state->is_silent) return; /* its queue may be full */
    join(d, &state->up);
    join(d, &state->out);
}

/* --- marks --- */

static err open_event(cudaEvent_t *ret)
{
    return cuda_demand(cudaEventCreateWithFlags(ret, cudaEventDisableTiming),
                       "cudaEventCreateWithFlags");
}

static void mark_close(struct device *d, struct mark *mark)
{
    if (!mark) return;
    cuda_select(d);
    cuda_check(d, cudaEventDestroy(mark->event), "cudaEventDestroy");
    free(mark);
}

static err mark_open(struct device *d, struct mark **ret)
{
    struct mark *mark = calloc(1, sizeof *mark);
    if (!mark) return fail(ERR_MEMORY, "no memory for a mark");
    cuda_select(d);
    err e = open_event(&mark->event);
    if (e) {
        free(mark);
        return e;
    }
    e = cuda_replays_try(d);
    if (e)
        mark_close(d, mark);
    else
        *ret = mark;
    return e;
}

/* A mark set in a recording is visible outside of it, too. */
static void mark_set(struct device *d, struct mark *mark, enum mark_of of)
{
    struct cuda_state *state = d->state;
    const unsigned flags =
        state->recording.is_on ? cudaEventRecordExternal : cudaEventRecordDefault;
    const struct beside *by = of == MARK_UPLOADS ? &state->up : &state->out;
    if (!cuda_may_queue(d)) return;
    if (of == MARK_UPLOADS) state->up.last = mark;
    mark->is_recorded |= state->recording.is_on;
    cuda_check(d, cudaEventRecordWithFlags(mark->event, by->stream, flags),
               "cudaEventRecordWithFlags");
}

/* After the last mark no uploads are left to join. */
static void mark_follow(struct device *d, struct mark *mark)
{
    struct cuda_state *state = d->state;
    const unsigned flags = state->recording.is_on ? cudaEventWaitExternal : cudaEventWaitDefault;
    if (!cuda_may_queue(d) ||
        !cuda_check(d, cudaStreamWaitEvent(state->stream, mark->event, flags),
                    "cudaStreamWaitEvent") ||
        mark != state->up.last)
        return;
    if (state->recording.is_on)
        state->recording.follows = mark;
    else
        state->up.is_used = false;
}

/* If replays do not hold (replays.c), the event may have the state of the replay before until this
 * one is done; a recording's copies are joined at its end. */
static bool mark_await(struct device *d, struct mark *mark)
{
    const struct cuda_state *state = d->state;
    const bool may_be_old = mark->is_recorded && !state->replays.hold;
    cuda_select(d);
    return !state->failure && (!may_be_old || cuda_await_stream(d, state->stream)) &&
           cuda_await_event(d, mark->event) && !state->failure;
}

/* --- inlets --- */

/* Waits for the streams, not the events: a batch whose event could not be recorded may be under
 * way. */
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
    TRY(open_event(&inlet->sent));
    TRY(open_event(&inlet->taken));
    TRY(cuda_demand(cudaHostAlloc(&inlet->host, bytes, cudaHostAllocDefault), "cudaHostAlloc"));
    TRY(d->kernels->allocate(d, bytes, &inlet->memory));
    return d->kernels->synchronize(d); /* another stream cleared it than will write it */
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

static err open_stream(cudaStream_t *ret)
{
    return cuda_demand(cudaStreamCreateWithFlags(ret, cudaStreamNonBlocking),
                       "cudaStreamCreateWithFlags");
}

static err open_beside(struct beside *by)
{
    TRY(open_stream(&by->stream));
    TRY(open_event(&by->before));
    return open_event(&by->behind);
}

static void close_beside(struct beside *by)
{
    if (by->stream) (void)cudaStreamDestroy(by->stream);
    if (by->before) (void)cudaEventDestroy(by->before);
    if (by->behind) (void)cudaEventDestroy(by->behind);
}

err cuda_async_init(struct cuda_state *state)
{
    TRY(open_stream(&state->in));
    TRY(open_beside(&state->up));
    return open_beside(&state->out);
}

void cuda_async_fini(struct cuda_state *state)
{
    if (state->in) (void)cudaStreamDestroy(state->in);
    close_beside(&state->up);
    close_beside(&state->out);
}

/* A watched device must not overlap anything. */
void cuda_async_fill(struct cuda_state *state)
{
    static const struct async async = {
        .pin = pin,
        .unpin = unpin,
        .upload_pinned = upload_pinned,
        .download_pinned = download_pinned,
        .upload_beside = upload_beside,
        .mark_open = mark_open,
        .mark_close = mark_close,
        .mark_set = mark_set,
        .mark_follow = mark_follow,
        .mark_await = mark_await,
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
