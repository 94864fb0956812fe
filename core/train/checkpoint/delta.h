/* delta.h - how a model's values have changed since the last checkpoint or delta.
 *
 * A delta is a bundle (bundle/bundle.h) beside its checkpoint. It has all dense variables whole,
 * under their names, of slots only their averages, global_step, and of each table the rows that
 * changed: <variable>/changed_KKKKK/ids, int64 [n], and .../rows [n, width], of part K of it; a row
 * of zeros may also be one that a growing table has evicted. dtrain/delta/ps_KKKKK is the step that
 * ps K was at, which is the same for all. */
#ifndef CORE_TRAIN_CHECKPOINT_DELTA_H
#define CORE_TRAIN_CHECKPOINT_DELTA_H

#include "core/train/checkpoint/shard.h"

/* Writes what one ps adds to a delta: slices, values, global_step and ps of the shard; changes are
 * those of its tables [table_count]. */
err delta_write(const struct shard *, const struct table_changes *changes, const char *prefix);

/* All rows of a table that a delta brings, in no order: freed by table_changes_free. ERR_INPUT: it
 * is no delta of such a table. */
err delta_read_rows(struct bundle *, const struct slice *, struct table_changes *ret);
/* The delta's step. ERR_INPUT: there is none, or its parts are of several. */
err delta_read_step(struct bundle *, int64_t *ret);

#endif
