/* streams.c - see streams.h. */
#include "tests/cuda/emulator/streams.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/emulator/emulated.h"

enum { QUEUE_MAX = 256, STREAMS_MAX = 64, GRAPH_MAX = 1 << 16 };

struct emulated_event {
    uint64_t recorded, reached; /* how often */
    int uses;                   /* in queues */
    bool is_destroyed;          /* goes when nobody uses it any more */
    struct emulated_stream *captured_in;
    int captured_end; /* what had been captured then */
};

struct emulated_stream {
    struct work queue[QUEUE_MAX];
    uint64_t queued, done; /* counts since the beginning */
    int gpu;
    bool has_grids;
    struct emulated_graph *capture; /* NULL: it is not captured */
    int joined_end; /* of captured work: how far the stream that began has waited for this one */
    int last;       /* the last captured work, -1: none */
};

/* Work of one capture, in the order of the calls */
struct emulated_graph {
    struct work *at;
    int count, room, owners;
};

static struct emulated_stream *streams[STREAMS_MAX];
static _Thread_local struct emulated_graph *capture; /* NULL: this thread captures nothing */
static _Thread_local struct emulated_stream *capture_began;
static _Thread_local bool is_capture_broken;
static bool is_hasty = true, is_late, is_hung;
static emulated_witness *witness;

void emulated_set_hasty_copies(bool is)
{
    is_hasty = is;
}

void emulated_set_late_events(bool is)
{
    is_late = is;
}

void emulated_tell(emulated_witness *of)
{
    witness = of;
}

void emulated_set_hung(bool is)
{
    is_hung = is;
}

static _Noreturn void give_up(const char *why)
{
    fprintf(stderr, "emulated GPU: %s\n", why);
    abort();
}

/* ---- doing ---- */

static void tell(const struct work *w)
{
    const bool is_up = w->direction == cudaMemcpyHostToDevice;
    const bool is_down = w->direction == cudaMemcpyDeviceToHost;
    if (!witness) return;
    if (w->kind == WORK_GRID) witness(&(struct emulated_done){.what = EMULATED_KERNEL});
    if (w->kind == WORK_COPY && is_up) witness(&(struct emulated_done){EMULATED_UP, w->from});
    if (w->kind == WORK_COPY && is_down) witness(&(struct emulated_done){EMULATED_DOWN, w->to});
}

static void do_work(const struct work *w)
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
        break;
    case WORK_RECORD:
        w->event->reached++;
        break;
    case WORK_GRAPH:
    case WORK_WAIT:
        break;
    }
}

static bool do_piece(struct work *);

/* It, or of a graph the next piece that can be done; false: it waits. */
static bool do_some(struct work *w)
{
    if (w->kind == WORK_GRAPH) return do_piece(w);
    if (w->kind == WORK_WAIT && w->event->reached < w->count) return false;
    do_work(w);
    tell(w);
    return true;
}

static void drop_event(struct emulated_event *event)
{
    if (event && --event->uses == 0 && event->is_destroyed) free(event);
}

/* The next of the stream's work, unless it waits or there is none. */
static bool do_next(struct emulated_stream *s)
{
    struct work *w = &s->queue[s->done % QUEUE_MAX];
    if (s->done == s->queued) return false;
    emulated_memory_open(s->gpu);
    const bool is_some_done = do_some(w);
    emulated_memory_close();
    if (!is_some_done || w->left > 0) return is_some_done;
    free(w->arguments);
    free(w->is_done);
    drop_event(w->event);
    s->done++;
    return true;
}

/* One piece of work of each that can, in turn. */
static bool do_one_of_each(void)
{
    bool is_done = false;
    for (int i = 0; i < STREAMS_MAX; i++) is_done |= streams[i] && do_next(streams[i]);
    return is_done;
}

static void do_until(struct emulated_stream *s, uint64_t end)
{
    if (is_hung) give_up("somebody waits for a GPU that hangs");
    while (s->done < end)
        if (!do_next(s) && !do_one_of_each()) give_up("streams wait for each other");
}

/* Copies whose turn has come */
static void hurry(void)
{
    for (int i = 0; i < STREAMS_MAX && is_hasty && !is_hung; i++)
        while (streams[i] && !streams[i]->has_grids && do_next(streams[i])) continue;
}

void streams_finish(cudaStream_t s)
{
    do_until(s, s->queued);
    hurry();
}

void streams_finish_all(void)
{
    for (int i = 0; i < STREAMS_MAX; i++)
        if (streams[i]) streams_finish(streams[i]);
}

void streams_finish_event(cudaEvent_t event)
{
    while (event->reached < event->recorded)
        if (!do_one_of_each()) give_up("an event never comes");
    hurry();
}

/* ---- counting ---- */

static struct emulated_work given;

struct emulated_work emulated_work(void)
{
    EMULATED_TURN;
    return given;
}

/* Behind kernels, and before them: nothing is computed meanwhile. */
static void count_copy(const struct work *w, bool is_serial)
{
    const bool is_up = w->direction == cudaMemcpyHostToDevice;
    const bool is_down = w->direction == cudaMemcpyDeviceToHost;
    given.up += is_up;
    given.down += is_down;
    given.within += !is_up && !is_down;
    if (is_up) given.bytes_up += (int64_t)w->bytes;
    if (is_down) given.bytes_down += (int64_t)w->bytes;
    given.serial += is_serial && (is_up || is_down);
    if (is_serial && (is_up || is_down)) given.bytes_serial += (int64_t)w->bytes;
}

/* Events of a graph count as recorded from the moment on when it is launched, unless they are late.
 */
static void record_events(const struct emulated_graph *g)
{
    for (int i = 0; i < g->count && !is_late; i++)
        if (g->at[i].kind == WORK_RECORD) g->at[i].event->recorded++;
}

static void count_recording(const struct emulated_graph *g)
{
    given.recordings++;
    for (int i = 0; i < g->count; i++) {
        given.recorded += g->at[i].kind == WORK_GRID;
        if (g->at[i].kind == WORK_COPY) count_copy(&g->at[i], g->at[i].stream == g->at[0].stream);
    }
}

static void count(const struct emulated_stream *s, const struct work *w)
{
    given.kernels += w->kind == WORK_GRID;
    if (w->kind == WORK_COPY) count_copy(w, s->has_grids);
    if (w->kind == WORK_GRAPH) count_recording(w->graph);
}

static cudaError_t queue(struct emulated_stream *s, const struct work *w)
{
    count(s, w);
    if (s->queued - s->done == QUEUE_MAX) do_until(s, s->done + 1);
    s->queue[s->queued++ % QUEUE_MAX] = *w;
    if (w->event) w->event->uses++;
    s->has_grids |= w->kind == WORK_GRID || w->kind == WORK_GRAPH;
    hurry();
    return cudaSuccess;
}

static bool overlaps(const void *a, size_t a_bytes, const void *b, size_t b_bytes)
{
    return (const char *)a < (const char *)b + b_bytes &&
           (const char *)b < (const char *)a + a_bytes;
}

static bool uses(const struct work *w, const void *host, size_t bytes)
{
    bool is = w->kind == WORK_COPY &&
              (overlaps(w->to, w->bytes, host, bytes) || overlaps(w->from, w->bytes, host, bytes));
    for (int i = 0; w->kind == WORK_GRAPH && i < w->graph->count; i++)
        is |= uses(&w->graph->at[i], host, bytes);
    return is;
}

static bool launches(const struct work *w, const void *graph, size_t bytes)
{
    return w->graph == graph;
}

typedef bool question(const struct work *, const void *what, size_t bytes);

/* Of work that is queued and not done */
static bool any(question *is, const void *what, size_t bytes)
{
    bool found = false;
    for (int i = 0; i < STREAMS_MAX; i++) {
        const struct emulated_stream *s = streams[i];
        for (uint64_t at = s ? s->done : 0; s && at < s->queued; at++)
            found |= is(&s->queue[at % QUEUE_MAX], what, bytes);
    }
    return found;
}

bool streams_use(const void *host, size_t bytes)
{
    return any(uses, host, bytes);
}

/* ---- captured work ---- */

static bool is_awaited_done(const struct emulated_graph *g, const bool *done, const struct work *w)
{
    for (int i = 0; i < w->awaited_end; i++)
        if (g->at[i].stream == w->awaited && !done[i]) return false;
    return true;
}

/* For other work of the graph, or for an event of somebody else */
static bool waits(const struct emulated_graph *g, const bool *done, const struct work *w)
{
    if (w->kind != WORK_WAIT) return false;
    return w->event ? w->event->reached < w->event->recorded : !is_awaited_done(g, done, w);
}

/* The first that is not done of one stream, whose turn it is */
static int next_of(const struct emulated_graph *g, const bool *done,
                   const struct emulated_stream *s)
{
    for (int i = 0; i < g->count; i++)
        if (g->at[i].stream == s && !done[i]) return waits(g, done, &g->at[i]) ? -1 : i;
    return -1;
}

/* A stream that the first one has forked goes before it where that is allowed, or after it. */
static int next_of_any(const struct emulated_graph *g, const bool *done)
{
    const int of_first = next_of(g, done, g->at[0].stream);
    if (!is_hasty && of_first >= 0) return of_first;
    for (int i = 0; i < STREAMS_MAX; i++) {
        if (!streams[i] || streams[i] == g->at[0].stream) continue;
        const int at = next_of(g, done, streams[i]);
        if (at >= 0) return at;
    }
    return of_first;
}

static bool do_piece(struct work *w)
{
    const int at = next_of_any(w->graph, w->is_done);
    if (at < 0) return false;
    if (is_late && w->graph->at[at].kind == WORK_RECORD) w->graph->at[at].event->recorded++;
    do_work(&w->graph->at[at]);
    tell(&w->graph->at[at]);
    w->is_done[at] = true;
    w->left--;
    return true;
}

static cudaError_t append(struct emulated_stream *s, struct work w)
{
    struct emulated_graph *g = s->capture;
    if (g->count == GRAPH_MAX) give_up("more work than a graph may have");
    if (g->count == g->room) {
        g->room = 2 * g->room + 64;
        g->at = realloc(g->at, (size_t)g->room * sizeof *g->at);
    }
    w.stream = s;
    if (w.awaited) w.event = NULL; /* known by the stream and its work */
    if (w.event) w.event->uses++;
    s->last = g->count;
    g->at[g->count++] = w;
    return cudaSuccess;
}

cudaError_t streams_put(cudaStream_t s, struct work w)
{
    if (s->gpu != emulated_gpu()) return cudaErrorInvalidResourceHandle;
    return s->capture ? append(s, w) : queue(s, &w);
}

cudaError_t streams_forbid_in_capture(void)
{
    if (!capture) return cudaSuccess;
    is_capture_broken = true;
    return cudaErrorStreamCaptureUnsupported;
}

static void drop(struct emulated_graph *g)
{
    if (--g->owners > 0) return;
    for (int i = 0; i < g->count; i++) {
        free(g->at[i].arguments);
        drop_event(g->at[i].event);
    }
    free(g->at);
    free(g);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode)
{
    EMULATED_TURN;
    const cudaError_t status = emulated_status("cudaStreamBeginCapture");
    if (status || capture) return status ? status : cudaErrorIllegalState;
    capture = calloc(1, sizeof *capture);
    capture->owners = 1;
    capture_began = s;
    is_capture_broken = false;
    s->capture = capture;
    s->last = -1;
    return cudaSuccess;
}

/* Whether all that other streams have captured is waited for. */
static bool end_streams(void)
{
    bool is_joined = true;
    for (int i = 0; i < STREAMS_MAX; i++) {
        struct emulated_stream *s = streams[i];
        if (!s || s->capture != capture) continue;
        s->capture = NULL;
        is_joined &= s == capture_began || s->joined_end > s->last;
    }
    return is_joined;
}

cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *ret)
{
    EMULATED_TURN;
    struct emulated_graph *g = capture;
    cudaError_t status = emulated_status("cudaStreamEndCapture");
    *ret = NULL;
    if (!g || s != capture_began) return cudaErrorIllegalState;
    if (!end_streams()) status = cudaErrorStreamCaptureUnjoined;
    if (is_capture_broken) status = cudaErrorStreamCaptureInvalidated;
    capture = NULL;
    if (status)
        drop(g);
    else
        *ret = g;
    return status;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *ret, cudaGraph_t graph, unsigned long long flags)
{
    EMULATED_TURN;
    const cudaError_t status = emulated_status("cudaGraphInstantiate");
    if (status) return status;
    graph->owners++;
    *ret = graph;
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    EMULATED_TURN;
    drop(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    EMULATED_TURN;
    if (any(launches, graph, 0)) give_up("a graph goes that is not done");
    drop(graph);
    return emulated_status("cudaGraphExecDestroy");
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t s)
{
    EMULATED_TURN;
    const cudaError_t status = emulated_status("cudaGraphLaunch");
    if (status || graph->count == 0) return status;
    record_events(graph);
    return streams_put(s, (struct work){.kind = WORK_GRAPH,
                                        .graph = graph,
                                        .is_done = calloc((size_t)graph->count, sizeof(bool)),
                                        .left = graph->count});
}

/* ---- streams and events ---- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *ret, unsigned flags)
{
    EMULATED_TURN;
    int i = 0;
    while (i < STREAMS_MAX && streams[i]) i++;
    if (i == STREAMS_MAX) give_up("too many streams");
    *ret = streams[i] = calloc(1, sizeof **ret);
    streams[i]->gpu = emulated_gpu();
    return emulated_status("cudaStreamCreateWithFlags");
}

cudaError_t cudaStreamQuery(cudaStream_t s)
{
    EMULATED_TURN;
    if (streams_forbid_in_capture()) return cudaErrorStreamCaptureUnsupported;
    if (s->done == s->queued) return emulated_status("cudaStreamQuery");
    given.waits++;
    if (!is_hung) streams_finish(s);
    return emulated_not_ready();
}

cudaError_t cudaStreamDestroy(cudaStream_t s)
{
    EMULATED_TURN;
    streams_finish_all();
    for (int i = 0; i < STREAMS_MAX; i++)
        if (streams[i] == s) streams[i] = NULL;
    free(s);
    return cudaSuccess;
}

/* An event that was captured last takes the stream that waits into the capture. */
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t event, unsigned flags)
{
    EMULATED_TURN;
    const cudaError_t status = emulated_status("cudaStreamWaitEvent");
    struct work w = {.kind = WORK_WAIT, .event = event, .count = event->recorded};
    if (status) return status;
    if (flags == cudaEventWaitExternal) {
        if (!s->capture) return cudaErrorInvalidValue;
    } else if (event->captured_in && capture) {
        if (!s->capture) s->last = -1, s->joined_end = 0;
        s->capture = capture;
        w.awaited = event->captured_in;
        w.awaited_end = event->captured_end;
        if (s == capture_began) event->captured_in->joined_end = event->captured_end;
    } else if (s->capture) {
        is_capture_broken = true; /* of what is not part of it */
        return cudaErrorStreamCaptureIsolation;
    }
    return streams_put(s, w);
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *ret, unsigned flags)
{
    EMULATED_TURN;
    *ret = calloc(1, sizeof **ret);
    return *ret ? emulated_status("cudaEventCreateWithFlags") : cudaErrorMemoryAllocation;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t s)
{
    EMULATED_TURN;
    const cudaError_t status = emulated_status("cudaEventRecord");
    if (status) return status;
    event->captured_in = s->capture ? s : NULL;
    if (s->capture) {
        event->captured_end = s->capture->count;
    } else {
        event->recorded++;
        (void)streams_put(s, (struct work){.kind = WORK_RECORD, .event = event});
    }
    return cudaSuccess;
}

/* Outside of a capture no event is external. */
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t s, unsigned flags)
{
    EMULATED_TURN;
    if (flags == cudaEventRecordDefault) return cudaEventRecord(event, s);
    const cudaError_t status = emulated_status("cudaEventRecord");
    if (status) return status;
    if (!s->capture) return cudaErrorInvalidValue;
    return streams_put(s, (struct work){.kind = WORK_RECORD, .event = event});
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    EMULATED_TURN;
    if (event->captured_in && streams_forbid_in_capture()) return cudaErrorCapturedEvent;
    if (event->reached == event->recorded) return emulated_status("cudaEventQuery");
    given.waits++;
    if (!is_hung) streams_finish_event(event);
    return emulated_not_ready();
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    EMULATED_TURN;
    event->is_destroyed = true;
    event->uses++;
    drop_event(event);
    return cudaSuccess;
}
