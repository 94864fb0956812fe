/* best_checkpoints.h - the best checkpoints of a run, by one number of their evaluations, kept
 * apart from the run's own retention.
 *
 * <checkpoint_dir>/best/ holds their files (links to the run's where the file system can, else
 * copies, which behind a URL come and go through this host), a state file `checkpoint` as
 * TensorFlow reads it, whose last one is the best, and best.json, which says how good each of them
 * is.
 */
#ifndef CORE_TRAIN_CHECKPOINT_BEST_CHECKPOINTS_H
#define CORE_TRAIN_CHECKPOINT_BEST_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>

#include "core/graph/op.h"
#include "core/train/checkpoint/checkpoints.h"

enum { BEST_MAX = 100, BEST_STALE_MAX = 2 * BEST_MAX };
#define BEST_HOLDER "best" /* of the lease on what is being brought */

struct best_checkpoint {
    int64_t step;
    double value;
};

struct best_checkpoints {
    char folder[CHECKPOINT_PATH_MAX];
    const char *metric; /* borrowed */
    enum better better;
    int keep;
    bool is_loaded;                          /* best.json, or there is none */
    struct best_checkpoint at[BEST_MAX + 1]; /* best first */
    int count;
    int64_t since; /* checkpoints up to this step do not count any more; -1: all count */
    int64_t stale[BEST_STALE_MAX]; /* steps of checkpoints that do not count: they stay until
                                      another one is kept */
    int stale_count;
};

/* Continues with what best.json says. keep 0: nothing is kept, and no folder is made. If the disk
 * does not answer, the next offer reads it. ERR_INPUT: best.json cannot be read, or is about
 * another metric. */
err best_checkpoints_open(struct best_checkpoints *, const char *checkpoint_dir, const char *metric,
                          enum better, int keep);

/* Checkpoints kept up to this step were measured by other data: they are not compared with later
 * ones. */
void best_checkpoints_begin(struct best_checkpoints *, int64_t step);

/* Keeps the checkpoint if it is good enough, and drops the worst one. The same step again replaces
 * the earlier one. ERR_IO. */
err best_checkpoints_offer(struct best_checkpoints *, const char *prefix,
                           const struct best_checkpoint *);

/* Removes what whoever was killed had brought and not named: temporary files, and checkpoints whose
 * lease is left beside those of the run, which `prefix` is one of; all of it older than LEASE_MAX_S
 * at now_s (unix time). */
void best_checkpoints_sweep(const struct best_checkpoints *, const char *prefix, double now_s);

/* Whether a checkpoint with this value would be kept. */
bool best_checkpoints_wants(const struct best_checkpoints *, double value);

/* The prefix under which the checkpoint of this step is kept. ERR_INPUT: the path is too long. */
err best_checkpoints_prefix(const struct best_checkpoints *, int64_t step,
                            char ret[CHECKPOINT_PATH_MAX]);

#endif
