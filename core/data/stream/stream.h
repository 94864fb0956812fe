/* stream.h - rows of files that need not fit into memory: shuffle buffers, filled ahead by threads.
 *
 * Two buffers of rows are in memory: the one that batches are made of, and the next one. Readers,
 * each a thread with a file open, fill them; a row's place in a buffer is known before it is read,
 * so they do not wait for each other, and their number does not change the result. Memory: the two
 * buffers, the index (stream/row_index.h), and about 1.5 MB per reader, plus UNPACKED_AHEAD_BYTES
 * if files are packed, plus FILE_AHEAD_BYTES if they are behind a URL.
 */
#ifndef CORE_DATA_STREAM_STREAM_H
#define CORE_DATA_STREAM_STREAM_H

#include "core/data/source.h"

enum { STREAM_READERS_MAX = 64 };

struct row_stream;

/* Whether the source is to be read as a stream: "stream" is always, or is large and the files
 * exceed memory_mb. ERR_INPUT: always, but it cannot be. */
err stream_is_wanted(const struct source_spec *, const struct format_context *, bool *ret);

/* Borrows the source and what the context refers to. ERR_INPUT: as row_files_open. */
err stream_open(const struct source_spec *, const struct format_context *, struct row_stream **ret);
void stream_close(struct row_stream *); /* may be NULL */
/* Broken rows of all its files; lives as long as the stream. */
const struct left_out *stream_left_out(const struct row_stream *);
/* Columns have `at` NULL. Its texts live as long as the stream. */
void stream_describe(struct row_stream *, struct dataset *ret);
/* Digest of where the rows are in its files, of the first 64 KiB of each, and of the order of rows.
 */
uint64_t stream_digest(const struct row_stream *);

/* Called once. Starts the readers. ERR_INPUT: buffers exceed memory_mb, or labels have the wrong
 * shape. */
err stream_begin(struct row_stream *, const struct stream_options *);
/* Waits for the rows of this worker's positions from `position` on, at most max. rows[*ret_count]:
 * their indices in *ret_from, which is valid until the next call. ERR_INPUT: a row is broken, or a
 * file has changed; later calls return the same. */
err stream_rows(struct row_stream *, uint64_t position, int64_t max, int64_t *rows,
                int64_t *ret_count, const struct dataset **ret_from);
/* If batches are handed out: which ones come next, so that they are read ahead. From any thread. */
void stream_plan(struct row_stream *, const struct reading_plan *);
struct stream_size {
    const struct source_spec *source;
    int64_t rows, row_bytes; /* rows 0: no stream */
    bool is_packed;          /* some files can only be read sequentially */
};
void stream_measure(const struct row_stream *, struct stream_size *ret);
/* As batch_source_stretch, for a stream of this size. */
int64_t stream_stretch(const struct stream_size *, const struct stream_options *, int workers);
/* Present and later calls of stream_rows return ERR_STOPPED. */
void stream_stop(struct row_stream *);

#endif
