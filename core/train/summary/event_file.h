/* event_file.h - a file of records: each is a length, its checksum, the data, their checksum.
 *
 * Records gather in memory and are written together. What the disk refuses is cut off again, so
 * that the file always ends with a whole record, and stays in memory until the next flush, up to a
 * limit.
 *
 * Files behind URLs cannot grow: a flush writes the whole file again, and after a megabyte the next
 * flush begins another one, <name>.00001, which starts with the same first record.
 */
#ifndef CORE_TRAIN_SUMMARY_EVENT_FILE_H
#define CORE_TRAIN_SUMMARY_EVENT_FILE_H

#include "core/base/error.h"
#include "core/base/proto.h"

struct event_file {
    char *path;
    int fd;
    int64_t good_bytes;    /* whole records in the file */
    bool is_torn;          /* the file may have more behind them */
    bool is_gone;          /* it was removed or renamed, and that was reported */
    struct buffer pending; /* records not written yet */
    int pending_records;

    struct event_thread *thread; /* the thread that writes; NULL: flushes write */

    /* behind a URL */
    char *name;           /* of the first file; path is that of the one that is written */
    struct buffer stored; /* what that file has */
    size_t first_bytes;   /* of the first record of every file */
    int number;           /* of the file, from 0 */
};

/* Makes the directory (with its parents) and in it a new file <prefix><seconds>.<host><suffix>;
 * seconds go up by one until the name is new. ret_seconds: those of the name. Behind a URL nothing
 * is looked up: <host> is followed by a random number, and the file appears with the first flush.
 */
err event_file_create(const char *directory, int64_t seconds, const char *suffix,
                      struct event_file *ret, int64_t *ret_seconds);
/* Closes without flushing. */
void event_file_close(struct event_file *);
void event_file_remove(struct event_file *); /* closes, and removes the file */

err event_file_append(struct event_file *, const void *data, size_t bytes);
/* ERR_IO says what was lost, too; only once, if the file was removed or renamed. */
err event_file_flush(struct event_file *);

/* From now on a thread writes. A flush hands it what is pending, if the thread is done with what
 * came before (else the next flush does), and returns, as ERR_IO, what has failed there since the
 * last one. */
err event_file_write_beside(struct event_file *);
/* Waits for the thread and ends it; what is pending is kept for a flush without it. */
void event_file_write_here(struct event_file *);

#endif
