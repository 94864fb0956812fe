/* trace_ps.h - a ps' part of a timeline (trace.h): what it records, and what it passes on. */
#ifndef CORE_CLUSTER_RUNNER_TRACE_TRACE_PS_H
#define CORE_CLUSTER_RUNNER_TRACE_TRACE_PS_H

#include "core/cluster/runner/runner_ps_inside.h"

/* MESSAGE_TRACE of a worker. */
void runner_ps_trace_message(struct runner_ps *, int worker, const struct message *);

/* After an action of the role, or anything else that took time since begin_ns. Only while something
 * is recorded. */
void runner_ps_trace_acted(struct runner_ps *, const struct action *, uint64_t begin_ns);
void runner_ps_trace_held(struct runner_ps *); /* since held_ns, until now */
void runner_ps_trace_took(struct runner_ps *, int worker, const struct message *part);
void runner_ps_trace_received(struct runner_ps *, int worker, const struct message *push);

void runner_ps_trace_pump(struct runner_ps *); /* sends what is due */
void runner_ps_trace_close(struct runner_ps *);

#endif
