/* chunks.h - reads a range of a data file in chunks: a thread reads ahead while the caller
 * processes the last chunk. Without a thread, or for a single chunk, each is read on demand. */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_CHUNKS_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_CHUNKS_H

#include "core/train/checkpoint/bundle/file.h"

enum { CHUNKS_MAX = 8 };

struct chunks;
/* No other reads of the file until chunks_close. ERR_MEMORY */
err chunks_open(const struct file_reader *, int64_t offset, int64_t bytes, int64_t chunk_bytes,
                struct chunks **ret);
void chunks_close(struct chunks *); /* NULL is fine */
/* The next chunk_bytes, or fewer at the end; valid until the next call. *ret_bytes 0: no more.
 * Fails like file_reader_read. */
err chunks_next(struct chunks *, const uint8_t **ret, int64_t *ret_bytes);

#endif
