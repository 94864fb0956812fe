/* replays.c - tests whether a GPU reports an event of a graph as not reached from the graph's
 * launch until the event's own node has run.
 *
 * NVIDIA's reference does not promise it. A GPU that updates the event only when its node runs
 * would report the state after the launch before, and the host would take data downloaded by that
 * one for this one's. So each GPU is tested once, with an event after work that takes the GPU
 * longer than the query takes the host. Errors here are no failure: then the answer is unknown, and
 * waiting for a mark in a recording waits for all queued work.
 */
#include <stdio.h>

#include "kernels/cuda/cuda.h"

/* Together they take 0.1 ms, because each has to be started: ten times as long as a launch and a
 * query. */
enum { WORK_BYTES = 1 << 20, WORK_TIMES = 64 };

/* The host may be delayed between launch and query. */
enum { TRIES_MAX = 8 };

enum replay_answer { ASKED_TOO_LATE, HOLDS, TOLD_EARLY, BROKEN };

struct trial {
    void *memory;
    cudaEvent_t event;
    cudaGraphExec_t graph;
};

static bool queue_work(const struct trial *t, cudaStream_t stream)
{
    for (int i = 0; i < WORK_TIMES; i++)
        if (cudaMemsetAsync(t->memory, 0, WORK_BYTES, stream) != cudaSuccess) return false;
    return cudaEventRecordWithFlags(t->event, stream, cudaEventRecordExternal) == cudaSuccess;
}

static bool capture(const struct trial *t, cudaStream_t stream, cudaGraph_t *ret)
{
    if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) != cudaSuccess)
        return false;
    const bool is_queued = queue_work(t, stream);
    const bool is_ended = cudaStreamEndCapture(stream, ret) == cudaSuccess;
    if (!is_ended) *ret = NULL;
    return is_queued && is_ended;
}

static bool open_trial(struct trial *t, cudaStream_t stream)
{
    cudaGraph_t graph = NULL;
    if (cudaMalloc(&t->memory, WORK_BYTES) != cudaSuccess) {
        t->memory = NULL;
        return false;
    }
    if (cudaEventCreateWithFlags(&t->event, cudaEventDisableTiming) != cudaSuccess) return false;
    const bool is_made =
        capture(t, stream, &graph) && cudaGraphInstantiate(&t->graph, graph, 0) == cudaSuccess;
    if (!is_made) t->graph = NULL;
    if (graph) (void)cudaGraphDestroy(graph);
    return is_made;
}

/* The first launch leaves the event reached. */
static enum replay_answer ask(struct device *d, const struct trial *t)
{
    const struct cuda_state *state = d->state;
    if (cudaGraphLaunch(t->graph, state->stream) != cudaSuccess ||
        !cuda_await_stream(d, state->stream) ||
        cudaGraphLaunch(t->graph, state->stream) != cudaSuccess)
        return BROKEN;
    const cudaError_t event = cudaEventQuery(t->event);
    if (event == cudaErrorNotReady) return HOLDS;
    if (event != cudaSuccess) return BROKEN;
    const cudaError_t stream = cudaStreamQuery(state->stream);
    if (stream == cudaErrorNotReady) return TOLD_EARLY;
    return stream == cudaSuccess ? ASKED_TOO_LATE : BROKEN;
}

static void close_trial(struct device *d, const struct trial *t)
{
    const struct cuda_state *state = d->state;
    (void)cudaGetLastError(); /* of a query that came in time, or of a failure */
    (void)cuda_await_stream(d, state->stream);
    if (state->is_silent) return;
    if (t->graph) (void)cudaGraphExecDestroy(t->graph);
    if (t->event) (void)cudaEventDestroy(t->event);
    if (t->memory) (void)cudaFree(t->memory);
    (void)cudaGetLastError();
}

err cuda_replays_try(struct device *d)
{
    struct cuda_state *state = d->state;
    struct trial trial = {0};
    enum replay_answer answer = BROKEN;
    if (state->replays.is_tried || state->failure || state->is_silent || state->recording.is_on)
        return OK;
    state->replays.is_tried = true;
    if (open_trial(&trial, state->stream)) {
        answer = ASKED_TOO_LATE;
        for (int i = 0; i < TRIES_MAX && answer == ASKED_TOO_LATE; i++) answer = ask(d, &trial);
    }
    close_trial(d, &trial);
    state->replays.hold = answer == HOLDS;
    if (answer == TOLD_EARLY)
        snprintf(state->replays.note, sizeof state->replays.note,
                 "GPU %d tells too early that a part of a recorded step is done: gradients leave "
                 "when the step is over",
                 state->index);
    return cuda_failure(state);
}
