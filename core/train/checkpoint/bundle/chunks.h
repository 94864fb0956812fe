/* chunks.h - a stretch of a data file in chunks: a thread of its own reads them ahead of who takes
 * them, so that reading continues while what was read is put where it belongs. Where no thread can
 * be had, or one chunk is all, they are read when they are asked for.
 */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_CHUNKS_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_CHUNKS_H

#include "core/train/checkpoint/bundle/file.h"

enum { CHUNKS_MAX = 8 };

struct chunks;
/* The file is nobody else's to read until chunks_close. ERR_MEMORY */
err chunks_open(const struct file_reader *, int64_t offset, int64_t bytes, int64_t chunk_bytes,
                struct chunks **ret);
void chunks_close(struct chunks *); /* NULL is fine */
/* chunk_bytes of them, or what is left; they stay until the next call. *ret_bytes 0: there are no
 * more. As file_reader_read fails. */
err chunks_next(struct chunks *, const uint8_t **ret, int64_t *ret_bytes);

#endif
