/* trace_ps.h - a ps' part of a timeline (trace.h): what it records and forwards. */
#ifndef CORE_CLUSTER_RUNNER_TRACE_TRACE_PS_H
#define CORE_CLUSTER_RUNNER_TRACE_TRACE_PS_H

#include "core/cluster/runner/runner_ps_inside.h"

/* Handles MESSAGE_TRACE from a worker. */
void runner_ps_trace_message(struct runner_ps *, int worker, const struct message *);

/* Records an action of the role that began at begin_ns and ends now. Only while recording. */
void runner_ps_trace_acted(struct runner_ps *, const struct action *, uint64_t begin_ns);
void runner_ps_trace_held(struct runner_ps *); /* since held_ns, until now */
void runner_ps_trace_took(struct runner_ps *, int worker, const struct message *part);
void runner_ps_trace_received(struct runner_ps *, int worker, const struct message *push);

void runner_ps_trace_pump(struct runner_ps *); /* sends parts that are due */
void runner_ps_trace_close(struct runner_ps *);

#endif
