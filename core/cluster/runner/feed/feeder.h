/* feeder.h - the chief's side of feed.h: a thread with a loop of its own, so that workers are fed
 * while the chief computes. */
#ifndef CORE_CLUSTER_RUNNER_FEED_FEEDER_H
#define CORE_CLUSTER_RUNNER_FEED_FEEDER_H

#include "core/cluster/runner/task.h"
#include "core/train/session/session.h"

struct feeder;

/* Takes the chief's address (task_listen), whose callers wait until it is started. */
err feeder_open(const struct task_options *, struct feeder **ret);
/* Opens each worker's share of the data, and begins to answer. Borrows the session, which must be
 * open until the feeder is stopped. */
err feeder_start(struct feeder *, const struct session *);
void feeder_stop(struct feeder *);  /* NULL, or one that does not run, is fine */
void feeder_close(struct feeder *); /* NULL is fine */

#endif
