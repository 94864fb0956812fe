/* newest.h - the newest published values of a run (publication.h), for export: a checkpoint with
 * its deltas applied in order, all of the same step. */
#ifndef CORE_TRAIN_CHECKPOINT_NEWEST_H
#define CORE_TRAIN_CHECKPOINT_NEWEST_H

#include "core/train/checkpoint/stored_table.h"

struct newest;
/* The checkpoint is borrowed. If its folder has another one published, or no deltas yet, the
 * checkpoint itself is the newest. ERR_INPUT: nothing is published in its folder, or a delta is not
 * the one that was published. */
err newest_open(struct bundle *checkpoint, struct newest **ret);
void newest_close(struct newest *); /* NULL is fine */

int newest_deltas(const struct newest *);
/* The bundle with the newest dense variables and the step: the last delta, or the checkpoint.
 * Borrowed */
struct bundle *newest_dense(const struct newest *);
/* Makes reads of a table of the checkpoint return the deltas' rows, which stay borrowed, instead of
 * older ones. */
err newest_lay_over(struct newest *, struct stored_table *);

#endif
