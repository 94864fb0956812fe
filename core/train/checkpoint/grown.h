/* grown.h - looks up rows of a growing table by key in a checkpoint, without loading all of it.
 *
 * Memory holds the position of every GROWN_BLOCK-th key; a lookup reads the key's block, and then
 * only its row.
 */
#ifndef CORE_TRAIN_CHECKPOINT_GROWN_H
#define CORE_TRAIN_CHECKPOINT_GROWN_H

#include "core/train/checkpoint/bundle/bundle.h"
#include "core/train/variables/layout.h"

enum { GROWN_BLOCK = 64 };

struct grown;

/* Reads everything once, to check the checksums of keys and rows. The bundle, and what the slice
 * and the table point to, are borrowed. ERR_INPUT: no such table, or it is damaged. */
err grown_open(struct bundle *, const struct slice *, const struct table_spec *,
               struct grown **ret);
void grown_close(struct grown *); /* NULL is fine */

/* Keys ascend, each once; ret [count, width]: zeros for keys without a row, as in an evaluation by
 * the run that resumes from there. */
err grown_read(struct grown *, const int64_t *keys, int64_t count, float *ret);

#endif
