/* best_keeper.h - who brings the best checkpoints where they are kept: at once on this host, and
 * behind a URL, where that is a copy of all their bytes, in a thread of its own, one at a time.
 *
 * What is kept (`kept`) is as of the last call, and changes in calls of its owner alone.
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
    struct best_copy *copy;     /* under way; NULL: none */
    struct best_offer next;     /* behind it */
    bool has_next;
};

/* kept was opened. */
void best_keeper_open(struct best_keeper *, const char *checkpoint_dir);
void best_keeper_close(struct best_keeper *); /* waits for what is under way */

/* As best_checkpoints_offer. Where another one is being copied it waits, and of two that wait the
 * better one stays: the other goes to ret_missed (step -1: none). ERR_IO also where a copy from
 * before has failed. */
err best_keeper_offer(struct best_keeper *, const struct best_offer *,
                      struct best_checkpoint *ret_missed);
/* Until all that was offered is kept. ERR_IO: something could not be, but the rest is. */
err best_keeper_wait(struct best_keeper *);

#endif
