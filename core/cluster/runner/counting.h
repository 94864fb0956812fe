/* counting.h - reports a task's counters (core/base/counters.h) every COUNTING_EVERY_MS to its
 * board, and a worker's to ps/0; the chief's go to every ps, which answers with its own. Reports
 * that cannot be sent at once are dropped. */
#ifndef CORE_CLUSTER_RUNNER_COUNTING_H
#define CORE_CLUSTER_RUNNER_COUNTING_H

#include "core/cluster/runner/board.h"
#include "core/cluster/runner/task.h"

enum {
    COUNTING_EVERY_MS = 1000,
    COUNTING_FRESH_MS = 3 * COUNTING_EVERY_MS, /* ps/0 passes on reports no older than this */
    COUNTING_ROOM_MS = 10 * COUNTING_EVERY_MS, /* between reads of the limits of control groups */
    COUNTING_QUEUE_MAX = 64 << 10, /* bytes queued for a peer, above which it gets no reports */
};

err counting_open(struct task *); /* with peer_count, job and index */
void counting_close(struct task *);
void counting_tick(struct task *, uint64_t now_ms);
void counting_complete(struct task *);     /* updates the board now */
void counting_report(const struct task *); /* to the log */

/* Sends a status to the peer: this task's, or, from ps/0, a worker's. */
void counting_tell(struct task *, int peer, bool of_worker, int index, const struct task_status *);
/* Handles COUNTERS from the peer. */
void counting_hear(struct task *, int peer, const struct message *);
/* Shows a worker as having left, at 0 steps per second, until it comes back. */
void counting_note_left(struct task *, int worker);
void counting_note_back(struct task *, int worker);

#endif
