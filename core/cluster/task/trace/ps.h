/* ps.h - a ps' part of a timeline (trace.h): what it records, and what it passes
 * on. */
#ifndef CORE_CLUSTER_TASK_TRACE_PS_H
#define CORE_CLUSTER_TASK_TRACE_PS_H

#include "core/cluster/task/ps_inside.h"

/* MESSAGE_TRACE of a worker. */
void ps_task_trace_message(struct ps_task *, int worker, const struct message *);

/* After an action of the role, or anything else that took time since begin_ns. Only while something
 * is recorded. */
void ps_task_trace_acted(struct ps_task *, const struct action *, uint64_t begin_ns);
void ps_task_trace_held(struct ps_task *); /* since held_ns, until now */
void ps_task_trace_took(struct ps_task *, int worker, const struct message *part);
void ps_task_trace_received(struct ps_task *, int worker, const struct message *push);

void ps_task_trace_pump(struct ps_task *); /* sends what is due */
void ps_task_trace_close(struct ps_task *);

#endif
