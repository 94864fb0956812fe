/* best_checkpoints.h - the best checkpoints of a run, by one metric of their evaluations, kept
 * independently of the run's retention.
 *
 * <checkpoint_dir>/best/ holds their files (hard links to the run's where the file system supports
 * them, else copies; behind a URL they are downloaded and uploaded by this host), a state file
 * `checkpoint` that TensorFlow can read, whose last entry is the best one, and best.json with the
 * metric of each.
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
    bool is_loaded;                          /* best.json has been read, or does not exist */
    struct best_checkpoint at[BEST_MAX + 1]; /* best first */
    int count;
    int64_t since; /* checkpoints up to this step are not compared any more; -1: all are */
    int64_t stale[BEST_STALE_MAX]; /* steps of checkpoints no longer compared: they stay until
                                      another one is kept */
    int stale_count;
};

/* Continues from best.json. keep 0: keeps nothing, and creates no folder. If the disk does not
 * answer, the next offer reads the file. ERR_INPUT: best.json is invalid, or for another metric. */
err best_checkpoints_open(struct best_checkpoints *, const char *checkpoint_dir, const char *metric,
                          enum better, int keep);

/* Checkpoints kept up to this step were evaluated on other data: they are not compared with later
 * ones. */
void best_checkpoints_begin(struct best_checkpoints *, int64_t step);

/* Keeps the checkpoint if it is good enough, and removes the worst one. An earlier one of the same
 * step is replaced. ERR_IO. */
err best_checkpoints_offer(struct best_checkpoints *, const char *prefix,
                           const struct best_checkpoint *);

/* Removes what killed tasks copied but did not list: temporary files, and checkpoints whose leases
 * are left among those of the run, of which `prefix` is one; only what is older than LEASE_MAX_S at
 * now_s (unix time). */
void best_checkpoints_sweep(const struct best_checkpoints *, const char *prefix, double now_s);

/* Whether a checkpoint with this value would be kept. */
bool best_checkpoints_wants(const struct best_checkpoints *, double value);

/* The prefix under which the checkpoint of this step is kept. ERR_INPUT: the path is too long. */
err best_checkpoints_prefix(const struct best_checkpoints *, int64_t step,
                            char ret[CHECKPOINT_PATH_MAX]);

#endif
