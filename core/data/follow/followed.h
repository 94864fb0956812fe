/* followed.h - rows of files that others still write, file by file as they arrive.
 *
 * Row p of the stream that workers share (core/data/source.h) is row p of all files in the order of
 * the list of arrivals; with shuffle, rows are permuted within each file. There is one endless
 * epoch. The last rows, if they do not fill a push of every worker (or one batch, if batches are
 * handed out), are not used. At most two files are open: the one in use and the next one. A file
 * larger than memory_mb is read as a stream (stream/stream.h), of which each worker has a stretch,
 * or all of it if batches are handed out.
 */
#ifndef CORE_DATA_FOLLOW_FOLLOWED_H
#define CORE_DATA_FOLLOW_FOLLOWED_H

#include "core/data/source.h"

struct followed;

/* Waits for the first file, and logs that it does. ERR_TIMEOUT: none within silent_secs; ERR_INPUT:
 * see arrivals.h. Borrows the source and what the context refers to. */
err followed_open(const struct source_spec *, const struct format_context *, struct followed **ret);
void followed_close(struct followed *); /* may be NULL */
/* Columns have `at` NULL; rows is 0, for unknown. Its texts live as long as `followed`. */
void followed_describe(const struct followed *, struct dataset *ret);

/* Called once. ERR_INPUT: the list was made with another number of workers or other batches, or
 * options do not suit. */
err followed_begin(struct followed *, const struct stream_options *);
/* Whether the rows for the whole round of pushes that contains this position have arrived, for all
 * workers, so that none waits long for another. Does not wait, but may read a file. ERR_TIMEOUT: no
 * file arrived for silent_secs. */
err followed_look(struct followed *, uint64_t position, bool *ret_is_there);
/* As stream_rows, for rows that have arrived. ERR_INPUT: the file is gone or has changed. */
err followed_rows(struct followed *, uint64_t position, int64_t max, int64_t *rows,
                  int64_t *ret_count, const struct dataset **ret_from);
/* If batches are handed out: which ones come next. From any thread. */
void followed_plan(struct followed *, const struct reading_plan *);
/* As batch_source_stretch; 0: the example file is read into memory. */
int64_t followed_stretch(const struct followed *, int workers);
/* Which file has that position, and how many rows have arrived. */
void followed_place(const struct followed *, uint64_t position, struct source_place *ret);
/* Whether the last look found the end: as has_ended of source_calls. */
bool followed_has_ended(const struct followed *, int64_t *ret_rows, int64_t *ret_used);

#endif
