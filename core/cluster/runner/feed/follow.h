/* follow.h - a worker whose batches are not there yet: they are of files that still come
 * (core/data/follow/followed.h), or where they lie is slow, or does not answer. It listens
 * meanwhile. */
#ifndef CORE_CLUSTER_RUNNER_FEED_FOLLOW_H
#define CORE_CLUSTER_RUNNER_FEED_FOLLOW_H

#include "core/cluster/runner/runner_worker_inside.h"

/* Before a step. ERR_PEER: its batches are not there yet, and this worker is to listen again;
 * ERR_STOPPED: they are not waited for any more; ERR_TIMEOUT: where nothing is followed, none came
 * for BATCH_WAIT_S_MAX. */
err follow_await(struct runner_worker *);

#endif
