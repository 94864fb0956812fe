/* job.h - tasks of a job in this process, for targets that have a peer beside them: specs, the
 * cluster that they are of, and the driver that has its turn before each look at the links.
 */
#ifndef TESTS_FUZZ_JOB_H
#define TESTS_FUZZ_JOB_H

#include "core/cluster/runner/runner_ps.h"
#include "core/cluster/runner/runner_worker.h"
#include "core/cluster/runner/task.h"
#include "core/train/spec/spec.h"
#include "tests/fuzz/peer.h"

enum { JOB_WORKERS = 2, JOB_LAST_STEP = 8 };

/* By the lowest bits of `kind`: with a table of rows or without, asynchronous or not. Loaded once.
 */
struct spec *job_spec(uint8_t kind);
struct device *job_device(void);

struct cluster_spec job_cluster(enum job, int task);
struct peer_place job_place(enum job, int task);
struct task_options job_options(const struct cluster_spec *, struct loop *, const struct spec *);

/* Until all tasks have left. drive: once before each look at the links; the turn, from 0. Time
 * passes by a millisecond a turn, and nothing is waited for but what `waits` says: while threads
 * read or write files time stands still, and turns are not counted, so that it does not matter how
 * fast they are. The target is linked with --wrap=loop_poll. */
struct job_turns {
    void (*drive)(void *context, int turn);
    void *context;
    int count, most;              /* most: the job has ended by then */
    uint64_t waiting_ms;          /* since when, by the machine's clock; 0: it does not */
    bool (*waits)(void *context); /* do threads have files in hand? NULL: never */
};
/* Threads of the ps or of the chief do. */
bool job_has_files_in_hand(const struct runner_ps *, const struct runner_worker *chief);
void job_run(struct job_turns *, struct task *const tasks[], int count);
void job_remove(const char *folder); /* that a job has saved to */

#endif
