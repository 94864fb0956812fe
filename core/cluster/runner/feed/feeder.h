/* feeder.h - the chief's side of feed.h: a thread with a loop of its own, so that workers are fed
 * while the chief computes. */
#ifndef CORE_CLUSTER_RUNNER_FEED_FEEDER_H
#define CORE_CLUSTER_RUNNER_FEED_FEEDER_H

#include "core/cluster/runner/task.h"
#include "core/train/session/session.h"

struct feeder;

/* Listens at the chief's address (task_listen); connections wait until feeder_start. */
err feeder_open(const struct task_options *, struct feeder **ret);
/* Opens each worker's share of the data, and starts to serve. Borrows the session, which must stay
 * open until feeder_stop. */
err feeder_start(struct feeder *, const struct session *);
void feeder_stop(struct feeder *);  /* NULL or not started: no effect */
void feeder_close(struct feeder *); /* NULL is fine */

#endif
