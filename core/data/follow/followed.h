/* followed.h - rows of files that others still write, file by file as they come.
 *
 * Row p of the stream that workers share (core/data/source.h) is a row of the file that has place p
 * in the list of arrivals; shuffled, it is one of the rows of that file in an order of its own.
 * There is one epoch, which has no end. Rows at the end of all files that do not fill a push of
 * every worker, or one batch where batches are handed out, are not used. Two files are open at
 * most, one that is used and the next one; one that is larger than the source's memory_mb is read
 * as a stream (stream/stream.h), of which each worker has a stretch; where batches are handed out
 * it reads all of it.
 */
#ifndef CORE_DATA_FOLLOW_FOLLOWED_H
#define CORE_DATA_FOLLOW_FOLLOWED_H

#include "core/data/source.h"

struct followed;

/* Waits for the first file, which it says, as long as the source allows. ERR_TIMEOUT, ERR_INPUT:
 * arrivals.h. Borrows the source, and what the context names. */
err followed_open(const struct source_spec *, const struct format_context *, struct followed **ret);
void followed_close(struct followed *); /* NULL is fine */
/* Columns are at NULL, of rows nothing is known: 0. Its texts live as long as it. */
void followed_describe(const struct followed *, struct dataset *ret);

/* Once. ERR_INPUT: the list is of another number of workers, or of other batches. */
err followed_begin(struct followed *, const struct stream_options *);
/* Are the rows of the push there that this position is part of, and those of the other workers'
 * pushes beside it, so that none waits long for another one? Does not wait, but may read a file.
 * ERR_TIMEOUT: no file came for longer than the source allows. */
err followed_look(struct followed *, uint64_t position, bool *ret_is_there);
/* As stream_rows, of rows that are there. ERR_INPUT: the file is gone, or has changed. */
err followed_rows(struct followed *, uint64_t position, int64_t max, int64_t *rows,
                  int64_t *ret_count, const struct dataset **ret_from);
/* Of batches that are handed out: what comes next. From any thread. */
void followed_plan(struct followed *, const struct reading_plan *);
/* As batch_source_stretch; 0: the file that it was described by is held in memory. */
int64_t followed_stretch(const struct followed *, int workers);
/* How far that position is. */
void followed_place(const struct followed *, uint64_t position, struct source_place *ret);
/* No more will come than the last look has seen: as has_ended of source_calls. */
bool followed_has_ended(const struct followed *, int64_t *ret_rows, int64_t *ret_used);

#endif
