/* last_spec.h - the spec that a folder of checkpoints was last trained with, so that a run which
 * resumes says what is another now.
 */
#ifndef CORE_TRAIN_SPEC_LAST_SPEC_H
#define CORE_TRAIN_SPEC_LAST_SPEC_H

#include "core/train/spec/spec.h"

/* A line for each key whose value is not what it was, "optimizer.learning_rate: 0.001 -> 0.0003",
 * at most LAST_SPEC_LINES_MAX of them. Freed with json_decref(): a list of these lines, then where
 * there are more, how many. NULL: no memory. */
enum { LAST_SPEC_LINES_MAX = 20 };
json_t *last_spec_changes(const json_t *before, const json_t *now);

/* Where the folder has a checkpoint, tells these changes; then keeps this spec there, without the
 * secrets of URLs. ERR_IO: it could not be kept. */
err last_spec_keep(const struct spec *, const char *folder);

#endif
