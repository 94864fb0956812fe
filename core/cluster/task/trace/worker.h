/* worker.h - a worker's part of a timeline (trace.h), and the chief's gathering. */
#ifndef CORE_CLUSTER_TASK_TRACE_WORKER_H
#define CORE_CLUSTER_TASK_TRACE_WORKER_H

#include "core/cluster/task/worker_inside.h"

/* MESSAGE_TRACE of a ps. */
void worker_trace_message(struct worker_task *, int ps, const struct message *);

/* All of these only where a timeline has been planned (worker->trace). */
void worker_trace_step(struct worker_task *, uint64_t step); /* before it is computed */
/* Before a message leaves. */
void worker_trace_sending(struct worker_task *, int ps, const struct message *);
void worker_trace_values(struct worker_task *, int ps, const struct message *); /* they came */
void worker_trace_back(struct worker_task *, int ps, const struct message *);   /* a part of them */
void worker_trace_pump(struct worker_task *);                                   /* what has left? */
void worker_trace_tick(struct worker_task *, uint64_t now_ms);                  /* patience */
void worker_trace_abandon(struct worker_task *); /* the ps begin again */
/* Of the chief: `steps` steps from first_step on, of all tasks, told as OCCASION_TRACED. Before a
 * step of its own. false: another one is being made, or there is no memory. */
bool worker_trace_begin(struct worker_task *, uint64_t first_step, int steps);
void worker_trace_finish(struct worker_task *); /* after the last step: with what has come */
void worker_trace_close(struct worker_task *);

#endif
