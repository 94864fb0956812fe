/* trace.h - what a task did, and when: spans of some requested steps.
 *
 * A task that takes part in a trace owns one struct trace, allocated once; code that records spans
 * holds a pointer to it, which is NULL while nothing is recorded, at the cost of one branch. Spans
 * that do not fit are counted. Times are of the task's CLOCK_MONOTONIC. For one thread.
 */
#ifndef CORE_BASE_TRACE_H
#define CORE_BASE_TRACE_H

#include <stdbool.h>

#include "core/base/clock.h"
#include "core/base/error.h"

enum { TRACE_SPANS_MAX = 16384 }; /* of one task in one trace */

/* What a span shows, and what its subject is. */
enum span_kind {
    /* of a worker */
    SPAN_STEP,     /* until all values for the next step are there */
    SPAN_HOOKS,    /* hooks */
    SPAN_DATA,     /* waiting for the batch */
    SPAN_AWAIT,    /* subject: ps; waiting for its values that the next node needs */
    SPAN_FORWARD,  /* subject: index of the node */
    SPAN_LOSS,     /* with its gradient */
    SPAN_BACKWARD, /* subject: index of the node */
    SPAN_CLIP,
    SPAN_PUSH, /* subject: ps; until the gradient has left */
    SPAN_WAIT, /* subject: ps; from then until its answer came */
    SPAN_PART, /* subject: ps; an instant: a part of the gradient leaves, before its PUSH */
    SPAN_BACK, /* subject: ps; an instant: a part of the new values has come */
    /* of a ps */
    SPAN_RECEIVE,  /* subject: worker; from the announcement of a push until all of it has come */
    SPAN_TAKE,     /* subject: worker; an instant: a part of its push has come */
    SPAN_APPLY,    /* subject: the first of `count` workers */
    SPAN_ADVANCE,  /* an update of a part that has come from all workers, before their PUSH */
    SPAN_REFRESH,  /* subject: worker; copying the values for it */
    SPAN_SNAPSHOT, /* copying the values for a checkpoint */
    SPAN_HOLD,     /* workers are held for a snapshot */
    SPAN_KINDS
};

struct span {
    uint64_t begin_ns, end_ns;
    uint64_t step;  /* global step that it belongs to, from 1; asynchronous, on a ps: number of its
                       own update */
    uint64_t bytes; /* bytes moved or read; 0: not counted */
    uint32_t subject;
    uint16_t kind;  /* enum span_kind */
    uint16_t count; /* FORWARD, LOSS, BACKWARD: index of the tower */
};

struct trace {
    struct span *spans;
    int count, capacity;
    uint64_t dropped; /* spans that did not fit */
    uint64_t step;    /* the step of spans that trace_end adds */
};

err trace_open(struct trace *, int capacity);
void trace_close(struct trace *); /* a zeroed one is fine */
void trace_clear(struct trace *);
void trace_add(struct trace *, const struct span *);

/* The index of the tower that computed it (core/train/session/towers.h) */
static inline int span_tower(const struct span *span)
{
    const bool computes =
        span->kind == SPAN_FORWARD || span->kind == SPAN_LOSS || span->kind == SPAN_BACKWARD;
    return computes ? span->count : 0;
}

/* Called around what is to be recorded; trace NULL: no effect. */
static inline uint64_t trace_begin(const struct trace *trace)
{
    return trace ? clock_ns() : 0;
}

static inline void trace_end(struct trace *trace, enum span_kind kind, int subject,
                             uint64_t begin_ns)
{
    if (!trace) return;
    trace_add(trace, &(struct span){.begin_ns = begin_ns,
                                    .end_ns = clock_ns(),
                                    .step = trace->step,
                                    .subject = (uint32_t)subject,
                                    .kind = (uint16_t)kind});
}

#endif
