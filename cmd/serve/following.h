/* following.h - applies, in order, the deltas that a run publishes beside the served checkpoint
 * (core/train/checkpoint/publication.h). If one is lost or damaged, the values stay as they are
 * until the next checkpoint.
 */
#ifndef CMD_SERVE_FOLLOWING_H
#define CMD_SERVE_FOLLOWING_H

#include "cmd/serve/version.h"
#include "core/train/checkpoint/publication.h"

struct following {
    char folder[CHECKPOINT_PATH_MAX], name[PUBLISHED_NAME_MAX]; /* of the checkpoint; "": none */
    uint32_t index;         /* of the checkpoint, which identifies it */
    struct published taken; /* the last delta applied; count 0: none */
    int count;              /* of deltas that were applied */
    bool is_lost;
    struct log_limit unseen;
    struct publication said;
};

/* Follows the checkpoint of that prefix, which is about to be opened, or is served now, instead of
 * another one. ERR_INPUT, ERR_IO: its index cannot be read. */
err following_begin(struct following *, const char *prefix);
/* Applies new deltas to the version, which serves that checkpoint. */
void following_turn(struct following *, struct version *, struct tally *);

#endif
