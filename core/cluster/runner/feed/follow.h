/* follow.h - a worker that waits for batches, because followed files have not come yet
 * (core/data/follow/followed.h) or storage is slow or down. It handles messages meanwhile. */
#ifndef CORE_CLUSTER_RUNNER_FEED_FOLLOW_H
#define CORE_CLUSTER_RUNNER_FEED_FOLLOW_H

#include "core/cluster/runner/runner_worker_inside.h"

/* Called before a step. ERR_PEER: its batches have not come yet, return to the loop and try again;
 * ERR_STOPPED: the wait was given up; ERR_TIMEOUT: none came for BATCH_WAIT_S_MAX, without followed
 * files. */
err follow_await(struct runner_worker *);

/* Called during an evaluation (struct interlude of core/train/session/session.h), which blocks the
 * loop: a signal or the loss of a ps ends it; while its rows do not come the others are told. */
err follow_evaluation(void *worker, bool is_absent);

#endif
