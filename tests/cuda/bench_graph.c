/* bench_graph.c - a CUDA graph of calls, and events around its starts. */
#include "tests/cuda/bench_graph.h"

#include <stdlib.h>

struct recorded {
    cudaGraphExec_t executable;
    cudaEvent_t begin, end;
};

static err demand(cudaError_t status, const char *call)
{
    if (status == cudaSuccess) return OK;
    (void)cudaGetLastError();
    return fail(ERR_DEVICE, "%s: %s", call, cudaGetErrorString(status));
}

/* Of the calling thread alone: other threads of a library may go on allocating. */
static err capture(struct bench *b, const struct timed *timed, int calls, cudaGraph_t *ret)
{
    cudaStream_t stream = b->state->stream;
    *ret = NULL;
    TRY(demand(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
               "cudaStreamBeginCapture"));
    for (int i = 0; i < calls; i++) timed->body(b, timed->arguments, i);
    const err captured = demand(cudaStreamEndCapture(stream, ret), "cudaStreamEndCapture");
    const err queued = b->d.kernels->synchronize(&b->d); /* what the calls themselves have met */
    return captured ? captured : queued;
}

static err make(struct bench *b, const struct timed *timed, int calls, struct recorded *r)
{
    cudaGraph_t graph;
    err e = capture(b, timed, calls, &graph);
    if (!e) e = demand(cudaGraphInstantiate(&r->executable, graph, 0), "cudaGraphInstantiate");
    if (graph) (void)cudaGraphDestroy(graph);
    if (!e) e = demand(cudaEventCreate(&r->begin), "cudaEventCreate");
    if (!e) e = demand(cudaEventCreate(&r->end), "cudaEventCreate");
    return e;
}

err recorded_open(struct bench *b, const struct timed *timed, int calls, struct recorded **ret)
{
    struct recorded *r = calloc(1, sizeof *r);
    if (!r) return fail(ERR_MEMORY, "no memory for a recording");
    const err e = make(b, timed, calls, r);
    if (e) {
        recorded_close(r);
        return e;
    }
    *ret = r;
    return OK;
}

double recorded_us(struct bench *b, struct recorded *r, int starts)
{
    cudaStream_t stream = b->state->stream;
    float ms = 0;
    cuda_check(&b->d, cudaEventRecord(r->begin, stream), "cudaEventRecord");
    for (int i = 0; i < starts; i++)
        cuda_check(&b->d, cudaGraphLaunch(r->executable, stream), "cudaGraphLaunch");
    cuda_check(&b->d, cudaEventRecord(r->end, stream), "cudaEventRecord");
    bench_wait(b);
    cuda_check(&b->d, cudaEventElapsedTime(&ms, r->begin, r->end), "cudaEventElapsedTime");
    bench_wait(b);
    return ms * 1e3;
}

void recorded_close(struct recorded *r)
{
    if (r->executable) (void)cudaGraphExecDestroy(r->executable);
    if (r->begin) (void)cudaEventDestroy(r->begin);
    if (r->end) (void)cudaEventDestroy(r->end);
    free(r);
}
