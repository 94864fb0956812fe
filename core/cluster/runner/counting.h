/* counting.h - what a task counts (core/base/counters.h) goes to its board, and of a worker to
 * ps/0, COUNTING_EVERY_MS after the last time; the chief tells every ps, which answers with what it
 * counts itself. What does not leave at once is not sent at all. */
#ifndef CORE_CLUSTER_RUNNER_COUNTING_H
#define CORE_CLUSTER_RUNNER_COUNTING_H

#include "core/cluster/runner/board.h"
#include "core/cluster/runner/task.h"

enum {
    COUNTING_EVERY_MS = 1000,
    COUNTING_FRESH_MS = 3 * COUNTING_EVERY_MS, /* what ps/0 has heard since is passed on */
    COUNTING_ROOM_MS = 10 * COUNTING_EVERY_MS, /* between looks at what control groups allow */
    COUNTING_QUEUE_MAX = 64 << 10, /* bytes that wait for a peer, who is told nothing more */
};

err counting_open(struct task *); /* with peer_count, job and index */
void counting_close(struct task *);
void counting_tick(struct task *, uint64_t now_ms);
void counting_complete(struct task *);     /* the board has what the task has counted until now */
void counting_report(const struct task *); /* to the log */

/* To the peer: of this task, or, from ps/0, of a worker. */
void counting_tell(struct task *, int peer, bool of_worker, int index, const struct task_status *);
/* A COUNTERS of the peer. */
void counting_hear(struct task *, int peer, const struct message *);
/* A worker has left the job, which is its state until it comes back, at no steps a second. */
void counting_note_left(struct task *, int worker);
void counting_note_back(struct task *, int worker);

#endif
