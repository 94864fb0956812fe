/* record.c - queued work as a CUDA graph: launched as a whole, where each kernel alone would take
 * longer to launch than to run.
 *
 * The stream is captured: its calls make nodes of a graph, those of the stream for downloads too,
 * which forks from it by an event and is joined before the end. Library calls that may not be made
 * meanwhile break the capture, and then nothing was done.
 */
#include <stdio.h>
#include <stdlib.h>

#include "kernels/cuda/cuda.h"

struct recording {
    cudaGraphExec_t graph;
    const struct mark *follows; /* NULL: no upload that was marked last */
};

/* A GPU that broke is no matter of the recording: synchronize() is to tell it too. */
static err keep_lost(struct cuda_state *state, err e)
{
    if (e == ERR_LOST) state->failure = e; /* its text is still there */
    return e;
}

/* In this thread alone; others are free to call CUDA meanwhile. What failed before is not for
 * whoever can do without a recording: synchronize() has yet to tell it. */
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

/* What failed while it was captured comes from here and not from synchronize(). */
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
    (void)cudaGetLastError(); /* a capture that was broken leaves one behind */
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

/* One that is under way is done first. */
void cuda_recording_close(struct device *d, struct recording *recording)
{
    const struct cuda_state *state = d->state;
    if (!recording) return;
    cuda_select(d);
    if (cuda_await_stream(d, state->stream) || !state->is_silent)
        cuda_check(d, cudaGraphExecDestroy(recording->graph), "cudaGraphExecDestroy");
    free(recording);
}
