/* last_spec.h - the spec with which a folder of checkpoints was last trained, so that a run that
 * resumes can say what has changed. */
#ifndef CORE_TRAIN_SPEC_LAST_SPEC_H
#define CORE_TRAIN_SPEC_LAST_SPEC_H

#include "core/train/spec/spec.h"

/* A line for each key that has changed, "optimizer.learning_rate: 0.001 -> 0.0003", at most
 * LAST_SPEC_LINES_MAX of them and then how many more. A list of texts, freed with json_decref();
 * NULL: no memory. */
enum { LAST_SPEC_LINES_MAX = 20 };
json_t *last_spec_changes(const json_t *before, const json_t *now);

/* If the folder has a checkpoint, logs these changes; then stores this spec there, without the
 * secrets of URLs. ERR_IO: it could not be stored. */
err last_spec_keep(const struct spec *, const char *folder);

#endif
