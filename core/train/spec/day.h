/* day.h - a run that trains on each day's files once, in one checkpoint folder.
 *
 * With "daily" a run that finds a checkpoint of other files continues from its values, slots and
 * global step, and starts these files at their first row. day.json, beside the checkpoints,
 * identifies the current files and the step at which they were started, so that a restart in the
 * middle of them continues there.
 */
#ifndef CORE_TRAIN_SPEC_DAY_H
#define CORE_TRAIN_SPEC_DAY_H

#include "core/train/spec/spec.h"

enum { DAY_DIGEST_BYTES = 17 };

struct day {
    enum {
        DAY_GOES_ON,      /* from the checkpoint */
        DAY_BEGINS,       /* these files are started for the first time */
        DAY_BEGINS_AGAIN, /* they were started, but the checkpoint has none of their rows */
    } begins;
    char files[DAY_DIGEST_BYTES];
    int64_t step; /* of the checkpoint */
};

/* For a chief that resumes from a checkpoint of this step (0: none). ERR_INPUT, ERR_IO. */
err day_look(const struct spec *, const char *folder, uint64_t step, struct day *ret);
/* Stores that these files are started at this step. */
err day_keep(const char *folder, const struct day *);
/* The step at which the current files of a folder were started; -1: not stored. */
err day_step(const char *folder, int64_t *ret);

#endif
