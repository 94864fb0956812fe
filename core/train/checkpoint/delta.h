/* delta.h - how a model's values have changed since the last checkpoint or delta.
 *
 * A delta is a bundle (bundle/bundle.h) beside its checkpoint. It has all dense variables whole,
 * under their names, of their slots only the averages, global_step, and of each table the changed
 * rows: <variable>/changed_KKKKK/ids, int64 [n], and .../rows [n, width], for part K; a row of
 * zeros may also mean that a growing table has evicted it. dtrain/delta/ps_KKKKK is the step of ps
 * K's snapshot, the same for all.
 */
#ifndef CORE_TRAIN_CHECKPOINT_DELTA_H
#define CORE_TRAIN_CHECKPOINT_DELTA_H

#include "core/train/checkpoint/shard.h"

/* Writes the part of one ps: slices, values, global_step and ps of the shard; changes are those of
 * its tables [table_count]. */
err delta_write(const struct shard *, const struct table_changes *changes, const char *prefix);

/* All rows of a table in a delta, in no order, freed by table_changes_free. ERR_INPUT: not a delta
 * of such a table. */
err delta_read_rows(struct bundle *, const struct slice *, struct table_changes *ret);
/* The delta's step. ERR_INPUT: it has none, or its parts differ in it. */
err delta_read_step(struct bundle *, int64_t *ret);

#endif
