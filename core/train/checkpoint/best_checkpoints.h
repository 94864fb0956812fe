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

enum { BEST_MAX = 100 };

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
    int64_t since;           /* those of this step and before count no more; -1: all count */
    int64_t stale[BEST_MAX]; /* their steps: they stay until another one is kept */
    int stale_count;
};

/* Goes on with what best.json says. keep 0: nothing is ever kept, and no folder is made. A
 * disk that does not give that now is asked again by the next offer. ERR_INPUT: it cannot be read,
 * or is about another metric. */
err best_checkpoints_open(struct best_checkpoints *, const char *checkpoint_dir, const char *metric,
                          enum better, int keep);

/* What was kept up to this step was measured by other data, and is not compared with what comes. */
void best_checkpoints_begin(struct best_checkpoints *, int64_t step);

/* Keeps the checkpoint if it is good enough, and lets the worst one go. The same step again takes
 * the place of the one before. ERR_IO. */
err best_checkpoints_offer(struct best_checkpoints *, const char *prefix,
                           const struct best_checkpoint *);

/* One with this value would be kept. */
bool best_checkpoints_wants(const struct best_checkpoints *, double value);

/* Where the one of this step is kept. ERR_INPUT: the path is too long. */
err best_checkpoints_prefix(const struct best_checkpoints *, int64_t step,
                            char ret[CHECKPOINT_PATH_MAX]);

#endif
