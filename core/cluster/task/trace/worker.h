/* worker.h - a worker's part of a timeline (core/cluster/trace/trace.h), and the chief's gathering.
 */
#ifndef CORE_CLUSTER_TASK_TRACE_WORKER_H
#define CORE_CLUSTER_TASK_TRACE_WORKER_H

#include "core/cluster/task/worker_inside.h"

/* MESSAGE_TRACE of a ps. */
void worker_trace_message(struct worker_task *, int ps, const struct message *);

/* All of these only where a timeline has been planned (worker->trace). */
void worker_trace_step(struct worker_task *, const struct action *); /* before it is computed */
/* Before a message leaves. */
void worker_trace_sending(struct worker_task *, int ps, const struct message *);
void worker_trace_values(struct worker_task *, int ps, const struct message *); /* they came */
void worker_trace_pump(struct worker_task *);                                   /* what has left? */
void worker_trace_tick(struct worker_task *, uint64_t now_ms);                  /* patience */
void worker_trace_abandon(struct worker_task *); /* the ps begin again */
void worker_trace_close(struct worker_task *);

#endif
