/* play.h - what tests of roles have in common: usual clusters, and what must hold at the end. */
#ifndef TESTS_CORE_CLUSTER_ROLE_PLAY_H
#define TESTS_CORE_CLUSTER_ROLE_PLAY_H

#include "tests/core/cluster/role/stage.h"

enum {
    SEEDS = 200,
    WORKER_TIMEOUT_MS = 2000, /* train.worker_timeout_secs of the usual clusters */
};

struct stage_options async_options(int ps, int workers, uint64_t last_step, uint64_t seed);
struct stage_options sync_options(int ps, int workers, uint64_t last_step, uint64_t seed);

/* Opens the stage and greets everybody. */
void begin(struct stage *, const struct stage_options *);
/* Until nothing is left to happen. */
void settle(struct stage *);
void end_with(struct stage *, int code); /* likewise, and everybody that is alive has ended so */
void play(struct stage *, const struct stage_options *); /* all of it, and all is well */

/* Until the worker computes; it takes part in a generation; ps/0 has applied so many updates. */
void run_until_computing(struct stage *, int worker);
void run_until_adopted(struct stage *, int worker);
void run_until_applied(struct stage *, int count);
/* Any link, after fewer events than these, for a moment. */
void cut_somewhere(struct stage *, uint64_t within_events);

void nobody_ended(const struct stage *);

/* Each push of each worker is in at most one update. */
void nothing_twice(const struct stage *, int ps);
/* So many updates, and each ps that has variables has the same pushes in them. */
void all_ps_applied(const struct stage *, int count);
/* Round after round with every worker's push of it. */
void all_rounds_are_whole(const struct stage *, int rounds);

#endif
