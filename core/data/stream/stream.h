/* stream.h - rows of files that memory need not hold: shuffle buffers of them, read ahead by
 * threads.
 *
 * Two buffers of rows are in memory: one that batches are made of, and the next one. Readers, each
 * a thread with a file open, fill what is not full yet; where in a buffer a row goes is known
 * before it is read, so they do not wait for each other, and how many there are changes nothing.
 * Memory is that of the two buffers, of the index (stream/row_index.h), and of each reader
 * about 1.5 MB, where files are packed UNPACKED_AHEAD_BYTES more, and where they are behind a URL
 * FILE_AHEAD_BYTES.
 */
#ifndef CORE_DATA_STREAM_STREAM_H
#define CORE_DATA_STREAM_STREAM_H

#include "core/data/source.h"

enum { STREAM_READERS_MAX = 64 };

struct row_stream;

/* Whether the source is read in this way: it says so, or its files are larger than it allows. */
err stream_is_wanted(const struct source_spec *, const struct format_context *, bool *ret);

/* Borrows the source, and what the context names. ERR_INPUT: stream/row_files.h */
err stream_open(const struct source_spec *, const struct format_context *, struct row_stream **ret);
void stream_close(struct row_stream *); /* NULL is fine */
/* Of all its files; it lives as long as the stream. */
const struct left_out *stream_left_out(const struct row_stream *);
/* Columns are at NULL. Its texts live as long as the stream. */
void stream_describe(struct row_stream *, struct dataset *ret);
/* Of where the rows of its files lie. */
uint64_t stream_digest(const struct row_stream *);

/* Once. Starts the readers. ERR_INPUT: the memory is more than the source allows, or labels have
 * the wrong shape. */
err stream_begin(struct row_stream *, const struct stream_options *);
/* Rows of the positions of this worker from `position` on, at most max of them: where they are in
 * what *ret_from is, which stays until the next call. Waits for them. ERR_INPUT: a row is broken,
 * or a file has changed; every later call says the same. */
err stream_rows(struct row_stream *, uint64_t position, int64_t max, int64_t *rows,
                int64_t *ret_count, const struct dataset **ret_from);
/* Of batches that are handed out: what comes next, and is read ahead. From any thread. */
void stream_plan(struct row_stream *, const struct reading_plan *);
struct stream_size {
    const struct source_spec *source;
    int64_t rows, row_bytes; /* rows 0: there is no stream */
    bool is_packed;          /* of its files some can only be read on */
};
void stream_measure(const struct row_stream *, struct stream_size *ret);
/* As batch_source_stretch, of a stream of this size. */
int64_t stream_stretch(const struct stream_size *, const struct stream_options *, int workers);
/* Whoever waits in stream_rows, and all who come, get ERR_STOPPED. */
void stream_stop(struct row_stream *);

#endif
