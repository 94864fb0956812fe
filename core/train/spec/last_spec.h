/* last_spec.h - the spec with which a folder of checkpoints was last trained, so that a run that
 * resumes can say what has changed. */
#ifndef CORE_TRAIN_SPEC_LAST_SPEC_H
#define CORE_TRAIN_SPEC_LAST_SPEC_H

#include "core/train/spec/spec.h"

/* One line per changed key, "optimizer.learning_rate: 0.001 -> 0.0003", at most LAST_SPEC_LINES_MAX
 * of them, then the number of further ones. A list of texts, freed with json_decref(); NULL: out of
 * memory. */
enum { LAST_SPEC_LINES_MAX = 20 };
json_t *last_spec_changes(const json_t *before, const json_t *now);

/* If the folder has a checkpoint, logs the changes since; then stores this spec there, without the
 * secrets of URLs. ERR_IO: it could not be stored. */
err last_spec_keep(const struct spec *, const char *folder);

#endif
