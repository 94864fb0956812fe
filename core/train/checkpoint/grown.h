/* grown.h - the rows of a table that grows, by their keys, from a checkpoint that is not read
 * whole.
 *
 * What is kept in memory says where every GROWN_BLOCK-th key stands; a key is then looked up in its
 * block, and its row read alone.
 */
#ifndef CORE_TRAIN_CHECKPOINT_GROWN_H
#define CORE_TRAIN_CHECKPOINT_GROWN_H

#include "core/train/checkpoint/bundle/bundle.h"
#include "core/train/variables/layout.h"

enum { GROWN_BLOCK = 64 };

struct grown;

/* Reads all keys once, and holds keys and rows against their checksums. The bundle, and what the
 * slice and the table name, are borrowed. ERR_INPUT: there is no such table, or it is damaged. */
err grown_open(struct bundle *, const struct slice *, const struct table_spec *,
               struct grown **ret);
void grown_close(struct grown *); /* NULL is fine */

/* Keys ascend, each once; ret [count, width]: zeros for who has no row, as an evaluation of the run
 * reads it that continues from there. */
err grown_read(struct grown *, const int64_t *keys, int64_t count, float *ret);

#endif
