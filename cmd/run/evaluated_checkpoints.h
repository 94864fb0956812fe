/* evaluated_checkpoints.h - the checkpoints listed in a run's folder, and which of them were
 * evaluated.
 *
 * Kept in <folder>/evaluated.json, beside the summaries of the evaluations, so that a restarted
 * evaluator does not repeat them. With a larger --keep_best than before all are evaluated again.
 */
#ifndef CMD_RUN_EVALUATED_CHECKPOINTS_H
#define CMD_RUN_EVALUATED_CHECKPOINTS_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "core/train/checkpoint/checkpoints.h"

/* After a recovery the same step may be written again, at another time. */
struct evaluated_checkpoint {
    int64_t step;
    struct timespec written;
    bool is_tried, is_done; /* tried but not done: it could not be evaluated */
};

struct evaluated_checkpoints {
    char path[CHECKPOINT_PATH_MAX];
    int keep;                        /* --keep_best */
    struct evaluated_checkpoint *at; /* listed ones, oldest first; owned */
    int count;
};

/* Reads the file; if it cannot be parsed, logs a warning and starts with none. ERR_IO. */
err evaluated_checkpoints_open(struct evaluated_checkpoints *, const char *folder, int keep);
void evaluated_checkpoints_close(struct evaluated_checkpoints *);

/* Replaces the list by these; keeps what is known of them. */
err evaluated_checkpoints_follow(struct evaluated_checkpoints *, char **prefixes, int count);
/* Whether it still exists; true if storage fails to answer */
bool evaluated_checkpoints_has(const char *prefix);
/* Notes that one was tried. ERR_IO: it is done, but the file could not be written. */
err evaluated_checkpoints_note(struct evaluated_checkpoints *, int index, bool is_done);

#endif
