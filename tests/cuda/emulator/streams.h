/* streams.h - the emulated GPU's queues, and work that is captured from them.
 *
 * What is queued in a stream is done in its order, and between streams only as events say. Streams
 * of kernels do nothing until somebody waits for them; those that carry copies alone do what they
 * may at once (or, on demand, as late as the others). So whoever forgets an event sees it. A
 * captured stream is one of them again wherever its graph is launched.
 */
#ifndef TESTS_CUDA_EMULATOR_STREAMS_H
#define TESTS_CUDA_EMULATOR_STREAMS_H

#include "tests/cuda/emulator/emulation.h"
#include "tests/cuda/emulator/grid.h"

enum work_kind { WORK_COPY, WORK_SET, WORK_GRID, WORK_RECORD, WORK_WAIT, WORK_GRAPH };

struct work {
    enum work_kind kind;
    void *to;
    const void *from;
    size_t bytes;
    enum cudaMemcpyKind direction; /* COPY */
    int value;
    struct grid grid;
    grid_body *body;
    void *arguments;              /* owned */
    struct emulated_event *event; /* RECORD, WAIT */
    uint64_t count;               /* WAIT: how often it must have been reached */
    struct emulated_graph *graph; /* GRAPH */
    bool *is_done;                /* owned; GRAPH: of what it holds */
    int left;                     /* the same: not done yet */
    /* of captured work: its stream; WAIT: the stream it waits for, and that one's work up to here
     */
    struct emulated_stream *stream, *awaited;
    int awaited_end;
};

/* Queues it, or captures it. The stream must be of the GPU that this thread has chosen. */
cudaError_t streams_put(cudaStream_t, struct work);

/* Does what is queued there, and whatever that waits for. */
void streams_finish(cudaStream_t);
void streams_finish_all(void);
void streams_finish_event(cudaEvent_t);

/* Whether work that is queued and not done copies from or to that memory of the host. */
bool streams_use(const void *host, size_t bytes);

/* What may not be called while this thread captures a stream breaks the capture. */
cudaError_t streams_forbid_in_capture(void);

#endif
