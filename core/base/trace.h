/* trace.h - what a task did, and when: spans of a few chosen steps.
 *
 * A task that takes part in a trace owns one struct trace, whose memory is taken once; whoever does
 * something worth showing holds a pointer to it, which is NULL while nothing is recorded: that is
 * one branch. What does not fit is counted. Times are those of the task's own steady clock. One
 * thread.
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
    SPAN_STEP,     /* from its beginning until all values of the next one are there */
    SPAN_HOOKS,    /* what is done beside the step */
    SPAN_DATA,     /* waiting for the batch */
    SPAN_AWAIT,    /* subject: ps; waiting for values of it that the next node needs */
    SPAN_FORWARD,  /* subject: index of the node */
    SPAN_LOSS,     /* with its gradient */
    SPAN_BACKWARD, /* subject: index of the node */
    SPAN_CLIP,
    SPAN_PUSH, /* subject: ps; until the gradient has left */
    SPAN_WAIT, /* subject: ps; from then until its answer was there */
    SPAN_PART, /* subject: ps; a moment: a part of the gradient leaves, before its push */
    SPAN_BACK, /* subject: ps; a moment: a part of the new values has come */
    /* of a ps */
    SPAN_RECEIVE,  /* subject: worker; from the announcement of a push until all of it was there */
    SPAN_TAKE,     /* subject: worker; a moment: a part of its push has come */
    SPAN_APPLY,    /* subject: the first of `count` workers */
    SPAN_ADVANCE,  /* an update of what has come of all workers, before their pushes */
    SPAN_REFRESH,  /* subject: worker; a copy of the values for it */
    SPAN_SNAPSHOT, /* the copy for a checkpoint */
    SPAN_HOLD,     /* workers wait for a cut */
    SPAN_KINDS
};

struct span {
    uint64_t begin_ns, end_ns;
    uint64_t step;  /* number of the global step that it belongs to, from 1; what a ps does
                       asynchronously: of its own update */
    uint64_t bytes; /* that were moved or read; 0: not counted */
    uint32_t subject;
    uint16_t kind;  /* enum span_kind */
    uint16_t count; /* of FORWARD, LOSS and BACKWARD: which tower's */
};

struct trace {
    struct span *spans;
    int count, capacity;
    uint64_t dropped; /* did not fit */
    uint64_t step;    /* of the spans that trace_end adds */
};

err trace_open(struct trace *, int capacity);
void trace_close(struct trace *); /* a zeroed one is fine */
void trace_clear(struct trace *);
void trace_add(struct trace *, const struct span *);

/* Whose it is where several towers compute (core/train/session/towers.h) */
static inline int span_tower(const struct span *span)
{
    const bool computes =
        span->kind == SPAN_FORWARD || span->kind == SPAN_LOSS || span->kind == SPAN_BACKWARD;
    return computes ? span->count : 0;
}

/* Around what is to be shown; nothing where there is no trace. */
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
