/* evaluated_checkpoints.h - the checkpoints that a run's folder names, and which of them were
 * evaluated.
 *
 * <folder>/evaluated.json, beside the summaries of the evaluations, keeps this, so that a restarted
 * evaluator does not repeat them. With a larger --keep_best than before all are evaluated again.
 */
#ifndef CMD_RUN_EVALUATED_CHECKPOINTS_H
#define CMD_RUN_EVALUATED_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/train/checkpoint/checkpoints.h"

/* The same step may come again after a recovery, written at another time. */
struct evaluated_checkpoint {
    int64_t step;
    struct timespec written;
    bool is_tried, is_done; /* tried but not done: it could not be evaluated */
};

struct evaluated_checkpoints {
    char path[CHECKPOINT_PATH_MAX];
    int keep;                        /* --keep_best */
    struct evaluated_checkpoint *at; /* those that are named, oldest first; owned */
    int count;
};

/* Goes on with what the file says. One that cannot be understood is a warning in the log. ERR_IO.
 */
err evaluated_checkpoints_open(struct evaluated_checkpoints *, const char *folder, int keep);
void evaluated_checkpoints_close(struct evaluated_checkpoints *);

/* What is named now; others are forgotten, so the list does not grow. */
err evaluated_checkpoints_follow(struct evaluated_checkpoints *, char **prefixes, int count);
/* It is there still; also where a disk does not say. */
bool evaluated_checkpoints_has(const char *prefix);
/* One was tried. ERR_IO: that it is done could not be written down. */
err evaluated_checkpoints_note(struct evaluated_checkpoints *, int index, bool is_done);

#endif
