/* day.h - a run that trains on each day's files once, in one folder.
 *
 * With "daily" a run that finds a checkpoint of other files continues from its values, slots and
 * global step, and begins these files at their first row. Which files a folder is at, and the step
 * at which they were begun, is kept beside the checkpoints (day.json), so that a restart in the
 * middle of them continues there.
 */
#ifndef CORE_TRAIN_SPEC_DAY_H
#define CORE_TRAIN_SPEC_DAY_H

#include "core/train/spec/spec.h"

/* Of a chief that has chosen a checkpoint, or none: the step. *ret_begins: the files are begun,
 * which is kept in the folder; else they are gone on with. ERR_INPUT, ERR_IO. */
err day_begin(const struct spec *, const char *folder, uint64_t step, bool *ret_begins);
/* The step at which the files that a folder is at were begun; -1: it is at none. */
err day_step(const char *folder, int64_t *ret);

#endif
