/* best_keeper.h - copies the best checkpoints to where they are kept, one at a time, in a thread of
 * its own: a disk may not answer, and behind a URL all bytes are copied.
 *
 * The list of what is kept (`kept`) is that of the last call: only calls of its owner change it.
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
    const char *checkpoint_dir; /* borrowed; measured.json comes from there, too */
    struct best_copy *copy;     /* under way, or done since the last call; NULL: none */
};

/* As best_checkpoints_offer, now, and with measured.json. The checkpoint is leased meanwhile, so
 * that nobody removes it; then what killed tasks have left is removed. */
err best_keep(struct best_checkpoints *, const char *checkpoint_dir, const struct best_offer *);

/* kept was opened. */
void best_keeper_open(struct best_keeper *, const char *checkpoint_dir);
void best_keeper_close(struct best_keeper *); /* waits, and logs what that one says */

/* Like best_checkpoints_offer, but done later, in the order of the calls. ERR_IO: this one, or one
 * offered before, could not be kept. */
err best_keeper_offer(struct best_keeper *, const struct best_offer *);
/* Waits until all that was offered is kept. ERR_IO: something could not be kept; the rest is. */
err best_keeper_wait(struct best_keeper *);

#endif
