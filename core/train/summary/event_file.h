/* event_file.h - a file of records: each is a length, its checksum, the data, their checksum.
 *
 * Records gather in memory and are written together. What the disk refuses is cut off again, so
 * that the file ends with a whole record at any time, and stays in memory to be tried with the
 * next flush, up to a limit.
 *
 * Behind a URL a file cannot grow: a flush writes it anew, all of it, and when it has a megabyte
 * the next flush begins another one, <name>.00001, whose first record is the first one's, too.
 */
#ifndef CORE_TRAIN_SUMMARY_EVENT_FILE_H
#define CORE_TRAIN_SUMMARY_EVENT_FILE_H

#include "core/base/error.h"
#include "core/base/proto.h"

struct event_file {
    char *path;
    int fd;
    int64_t good_bytes;    /* whole records in the file */
    bool is_torn;          /* something may stand behind them */
    bool is_gone;          /* nobody finds it under its name any more, which was told */
    struct buffer pending; /* records not written yet */
    int pending_records;

    struct event_thread *thread; /* that writes; NULL: whoever flushes does */

    /* behind a URL */
    char *name;           /* of the first file; path is that of the one that is written */
    struct buffer stored; /* what that file has */
    size_t first_bytes;   /* of the first record of all */
    int number;           /* of the file, from 0 */
};

/* Makes directory (with its parents) and in it a new file <prefix><seconds>.<host><suffix>; seconds
 * go up by one until the name is new. ret_seconds: those of the name. Behind a URL nothing is
 * asked: <host> is followed by a random number, and the file is there from the first flush on. */
err event_file_create(const char *directory, int64_t seconds, const char *suffix,
                      struct event_file *ret, int64_t *ret_seconds);
/* Closes without flushing. */
void event_file_close(struct event_file *);
void event_file_remove(struct event_file *); /* closes, and removes the file */

err event_file_append(struct event_file *, const void *data, size_t bytes);
/* ERR_IO says too what was lost; once, where the file has no longer its name. */
err event_file_flush(struct event_file *);

/* From now on a thread writes: a flush gives it what is pending, if it is done with what came
 * before (else it is for the next flush), and tells, as ERR_IO, what has failed there since the
 * last one. */
err event_file_write_beside(struct event_file *);
/* Waits for the thread and ends it; what is pending is as without one. */
void event_file_write_here(struct event_file *);

#endif
