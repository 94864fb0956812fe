/* chunks.h - a stretch of a data file in chunks: a thread reads ahead of the caller, so that
 * reading continues while the caller puts what was read in its place. Without a thread, or with a
 * single chunk, chunks are read when they are asked for. */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_CHUNKS_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_CHUNKS_H

#include "core/train/checkpoint/bundle/file.h"

enum { CHUNKS_MAX = 8 };

struct chunks;
/* Nobody else may read the file until chunks_close. ERR_MEMORY */
err chunks_open(const struct file_reader *, int64_t offset, int64_t bytes, int64_t chunk_bytes,
                struct chunks **ret);
void chunks_close(struct chunks *); /* NULL is fine */
/* The next chunk_bytes, or what is left; valid until the next call. *ret_bytes 0: there are no
 * more. Fails as file_reader_read. */
err chunks_next(struct chunks *, const uint8_t **ret, int64_t *ret_bytes);

#endif
