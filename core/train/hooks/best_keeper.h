/* best_keeper.h - copies the best checkpoints to their folder, one at a time, in a thread of its
 * own: a disk may not respond, and behind a URL all bytes are copied.
 *
 * `kept` is the list after the last call: it changes only in calls of its owner, not in the thread.
 */
#ifndef CORE_TRAIN_HOOKS_BEST_KEEPER_H
#define CORE_TRAIN_HOOKS_BEST_KEEPER_H

#include "core/train/checkpoint/best_checkpoints.h"

struct best_copy;

struct best_offer {
    char prefix[CHECKPOINT_PATH_MAX];
    struct best_checkpoint entry;
};

struct best_keeper {
    struct best_checkpoints kept;
    const char *checkpoint_dir; /* borrowed; measured.json is copied from there, too */
    struct best_copy *copy;     /* running, or done since the last call; NULL: none */
};

/* Like best_checkpoints_offer, at once, and with measured.json. Leases the checkpoint meanwhile, so
 * that it is not removed; then removes what killed tasks have left. */
err best_keep(struct best_checkpoints *, const char *checkpoint_dir, const struct best_offer *);

/* Call after best_checkpoints_open of `kept`. */
void best_keeper_open(struct best_keeper *, const char *checkpoint_dir);
void best_keeper_close(struct best_keeper *); /* waits, and logs errors of the thread */

/* Like best_checkpoints_offer, but done later, in the order of the calls. ERR_IO: this one, or one
 * offered before, could not be kept. */
err best_keeper_offer(struct best_keeper *, const struct best_offer *);
/* Waits until all offered ones are kept. ERR_IO: one could not be kept; the others are. */
err best_keeper_wait(struct best_keeper *);

#endif
