/* record.c - records queued work as a CUDA graph, launched as a whole, because launching each
 * kernel would take longer than running it.
 *
 * The stream is captured: its calls become nodes of a graph, and so do those of the stream for
 * downloads, which forks from it by an event and is joined before the end. Library calls that are
 * not allowed meanwhile invalidate the capture, and then nothing was executed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/cuda.h"

struct recording {
    cudaGraphExec_t graph;
    const struct mark *follows; /* NULL: none */
};

/* A failed GPU is not only the recording's error: synchronize() must report it, too. */
static err keep_lost(struct cuda_state *state, err e)
{
    if (e == ERR_LOST) state->failure = e; /* its text is still stored */
    return e;
}

/* Captures this thread only; others may call CUDA meanwhile. Earlier failures are left for
 * synchronize(), because callers can do without a recording. */
err cuda_record(struct device *d)
{
    struct cuda_state *state = d->state;
    cuda_select(d);
    cuda_join(d);
    (void)cuda_await_stream(d, state->stream);
    if (state->failure) return fail(state->failure, "GPU %d failed before", state->index);
    TRY(cuda_demand(cudaStreamBeginCapture(state->stream, cudaStreamCaptureModeThreadLocal),
                    "cudaStreamBeginCapture"));
    state->recording.is_on = true;
    state->recording.follows = NULL;
    return OK;
}

/* Returns failures during the capture, which synchronize() then does not report. */
static err end_capture(struct device *d, cudaGraph_t *ret)
{
    struct cuda_state *state = d->state;
    cuda_join(d);
    state->recording.is_on = false;
    const cudaError_t status = cudaStreamEndCapture(state->stream, ret);
    if (status != cudaSuccess) *ret = NULL;
    TRY(keep_lost(state, cuda_failure(state)));
    return cuda_demand(status, "cudaStreamEndCapture");
}

err cuda_record_end(struct device *d, struct recording **ret)
{
    cudaGraph_t graph;
    cuda_select(d);
    err e = end_capture(d, &graph);
    struct recording *recording = e ? NULL : calloc(1, sizeof *recording);
    if (!e && !recording) e = fail(ERR_MEMORY, "no memory for a recording");
    if (!e)
        e = cuda_demand(cudaGraphInstantiate(&recording->graph, graph, 0), "cudaGraphInstantiate");
    if (graph) (void)cudaGraphDestroy(graph);
    (void)cudaGetLastError(); /* an invalidated capture leaves an error behind */
    if (e) {
        free(recording);
        return e;
    }
    recording->follows = ((const struct cuda_state *)d->state)->recording.follows;
    *ret = recording;
    return OK;
}

void cuda_replay(struct device *d, const struct recording *recording)
{
    struct cuda_state *state = d->state;
    if (!cuda_may_queue(d)) return;
    if (!state->failure) state->queued.kernel = "one of a recording";
    if (cuda_check(d, cudaGraphLaunch(recording->graph, state->stream), "cudaGraphLaunch") &&
        recording->follows && recording->follows == state->up.last)
        state->up.is_used = false;
}

/* Waits for a running replay. */
void cuda_recording_close(struct device *d, struct recording *recording)
{
    const struct cuda_state *state = d->state;
    if (!recording) return;
    cuda_select(d);
    if (cuda_await_stream(d, state->stream) || !state->is_silent)
        cuda_check(d, cudaGraphExecDestroy(recording->graph), "cudaGraphExecDestroy");
    free(recording);
}
