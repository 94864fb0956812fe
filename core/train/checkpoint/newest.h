/* newest.h - what a run has published last (publication.h), for whoever writes it elsewhere: a
 * checkpoint and, on top of it, what its deltas have brought, in order. All of it is of one step.
 */
#ifndef CORE_TRAIN_CHECKPOINT_NEWEST_H
#define CORE_TRAIN_CHECKPOINT_NEWEST_H

#include "core/train/checkpoint/stored_table.h"

struct newest;
/* The checkpoint is borrowed. Where another one is published there, or no delta yet, it is the
 * newest itself. ERR_INPUT: nothing is published in its folder, or a delta is not what was
 * published. */
err newest_open(struct bundle *checkpoint, struct newest **ret);
void newest_close(struct newest *); /* NULL is fine */

int newest_deltas(const struct newest *);
/* What has all dense variables, and the step: the last delta, or the checkpoint. Borrowed */
struct bundle *newest_dense(const struct newest *);
/* Lays the rows of the deltas, which stay borrowed, over a table that was found in the checkpoint.
 */
err newest_lay_over(struct newest *, struct stored_table *);

#endif
