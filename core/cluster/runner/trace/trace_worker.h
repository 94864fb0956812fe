/* trace_worker.h - a worker's part of a timeline (trace.h), and the chief's gathering. */
#ifndef CORE_CLUSTER_RUNNER_TRACE_TRACE_WORKER_H
#define CORE_CLUSTER_RUNNER_TRACE_TRACE_WORKER_H

#include "core/cluster/runner/runner_worker_inside.h"

/* Handles MESSAGE_TRACE from a ps. */
void runner_worker_trace_message(struct runner_worker *, int ps, const struct message *);

/* Only call these if a timeline has been planned (worker->trace). */
void runner_worker_trace_step(struct runner_worker *, uint64_t step); /* before it is computed */
/* Before a message leaves. */
void runner_worker_trace_sending(struct runner_worker *, int ps, const struct message *);
void runner_worker_trace_values(struct runner_worker *, int ps,
                                const struct message *); /* they came */
void runner_worker_trace_back(struct runner_worker *, int ps,
                              const struct message *);                  /* a part of them */
void runner_worker_trace_pump(struct runner_worker *);                  /* what has left? */
void runner_worker_trace_tick(struct runner_worker *, uint64_t now_ms); /* patience */
void runner_worker_trace_abandon(struct runner_worker *);               /* the ps begin again */
/* trace_asked.c: on the chief: a timeline that a visitor has requested begins before a step of the
 * chief's own, and is sent when it is complete; a failed one is started over. */
void runner_worker_trace_ask(struct runner_worker *, const struct message_request *);
void runner_worker_trace_asked(struct runner_worker *, uint64_t step);
void runner_worker_trace_reply(struct runner_worker *, const struct timeline *);
void runner_worker_trace_ask_again(struct runner_worker *);
void runner_worker_trace_refuse_asked(struct runner_worker *, const char *why); /* if any is */
/* On the chief, before a step of its own: begins a timeline of `steps` steps of all tasks from
 * first_step on; hooks get it as OCCASION_TRACED. false: another one is being made, or no memory.
 */
bool runner_worker_trace_begin(struct runner_worker *, uint64_t first_step, int steps);
void runner_worker_trace_finish(
    struct runner_worker *); /* after the last step: with what has come */
void runner_worker_trace_close(struct runner_worker *);

#endif
