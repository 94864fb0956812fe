/* trace_worker_inside.h - what the two files of a worker's timeline share: its own spans
 * (trace_worker.c), and what the chief gathers (trace_worker_gather.c).
 */
#ifndef CORE_CLUSTER_RUNNER_TRACE_TRACE_WORKER_INSIDE_H
#define CORE_CLUSTER_RUNNER_TRACE_TRACE_WORKER_INSIDE_H

#include "core/cluster/runner/trace/trace.h"
#include "core/cluster/runner/trace/trace_worker.h"

struct traced_server {         /* the exchange with one ps */
    struct clock_bounds clock; /* the ps' against this task's */
    uint64_t pushed_ns;        /* when the current push began; 0: none */
    uint64_t left_ns;          /* when it was sent completely; 0: not yet */
    uint64_t push, bytes;      /* number and size of it */
};

struct gathered_part {
    struct trace_part part;
    bool is_here;
    const char *trouble; /* why it is unusable; NULL: it is not */
};

struct runner_worker_trace {
    struct trace spans;
    enum { RESTING, PLANNED, RECORDING, GATHERING } phase; /* GATHERING: chief only */
    uint64_t first_step, generation;
    int steps_left;
    uint64_t begin_ns;             /* of the first step */
    uint64_t step_ns;              /* when the current step began; 0: none */
    struct traced_server *servers; /* [ps] */

    /* of the chief */
    int steps;
    struct gathered_part *parts; /* [workers, then ps]; NULL: nothing is gathered */
    int gathered_spans;
    uint64_t deadline_ms; /* GATHERING */
    bool has_collected;   /* COLLECT was sent to all ps */
};

/* false: another one is being made, or there is no memory */
bool runner_worker_trace_plan(struct runner_worker *, uint64_t first_step, int steps);

/* what: the message without generation and first step, which this fills in. */
void runner_worker_trace_send(struct runner_worker *, int ps, const struct message *what);
void runner_worker_trace_send_all(struct runner_worker *, enum trace_code);

void trace_gather_part(struct runner_worker *, int ps, const struct message *);
void trace_gather_wait(struct runner_worker *);  /* the chief's own steps are over */
void trace_gather_close(struct runner_worker *); /* discards what has come */

#endif
