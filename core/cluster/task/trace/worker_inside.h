/* worker_inside.h - what the two files of a worker's timeline share: its own spans
 * (worker.c), and what the chief gathers (worker_gather.c).
 */
#ifndef CORE_CLUSTER_TASK_TRACE_WORKER_INSIDE_H
#define CORE_CLUSTER_TASK_TRACE_WORKER_INSIDE_H

#include "core/cluster/task/trace/trace.h"
#include "core/cluster/task/trace/worker.h"

struct traced_server {         /* the exchange with one ps */
    struct clock_bounds clock; /* the ps' against this task's */
    uint64_t pushed_ns;        /* when the last push began; 0: none is under way */
    uint64_t left_ns;          /* when it had left; 0: not yet */
    uint64_t sequence, bytes;  /* of it */
};

struct gathered_part {
    struct trace_part part;
    bool is_here;
    const char *trouble; /* why it is of no use; NULL: none */
};

struct worker_trace {
    struct trace spans;
    enum { RESTING, PLANNED, RECORDING, GATHERING } phase; /* GATHERING: of the chief only */
    uint64_t first_step, generation;
    int steps_left;
    uint64_t begin_ns;             /* of the first step */
    uint64_t step_ns;              /* when the step that runs began; 0: none does */
    struct traced_server *servers; /* [ps] */

    /* of the chief */
    int steps;
    struct gathered_part *parts; /* [workers, then ps]; NULL: nothing is gathered */
    int gathered_spans;
    uint64_t deadline_ms; /* GATHERING */
    bool has_collected;   /* and said so to all ps */
};

/* false: another one is being made, or there is no memory */
bool worker_trace_plan(struct worker_task *, uint64_t first_step, int steps);

/* What the message says beside its code: body, sequence, version. */
void worker_trace_send(struct worker_task *, int ps, const struct message *what);
void worker_trace_send_all(struct worker_task *, enum trace_code);

void trace_gather_part(struct worker_task *, int ps, const struct message *);
void trace_gather_wait(struct worker_task *);  /* the chief's own steps are over */
void trace_gather_close(struct worker_task *); /* what has come is not wanted */

#endif
