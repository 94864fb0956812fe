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

/* Amid an evaluation (struct interlude of core/train/session/session.h), which has the loop: a
 * signal ends it; while its rows do not come the others hear so, and a ps that is gone ends it,
 * too. */
err follow_evaluation(void *worker, bool is_absent);

#endif
