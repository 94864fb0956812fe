/* file.h - the files of a bundle: random reads, writes under a temporary name. */
#ifndef CORE_TRAIN_CHECKPOINT_BUNDLE_FILE_H
#define CORE_TRAIN_CHECKPOINT_BUNDLE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/files/file_system.h"

/* prefix.index, prefix.data-KKKKK-of-NNNNN: freed by the caller. */
err bundle_index_path(const char *prefix, char **ret);
err bundle_data_path(const char *prefix, int shard, int shards, char **ret);

/* ---- reading ---- */

struct file_reader {
    const char *path;  /* borrowed */
    struct file *file; /* NULL: none is open */
    int64_t bytes;     /* when it was opened */
    int64_t until;     /* sequential reads end here; 0: at the end of the file */
};

/* Regular files only. ERR_INPUT: something that the user can correct, such as a missing file. */
err file_reader_open(const char *path, struct file_reader *ret);
/* ERR_INPUT: the file is too short. */
err file_reader_read(const struct file_reader *, int64_t offset, void *ret, size_t bytes);
void file_reader_close(struct file_reader *);
/* Reads a whole file of at most bytes_max; freed by the caller; NULL for an empty one. */
err bundle_file_load(const char *path, size_t bytes_max, uint8_t **ret, size_t *ret_bytes);

/* ---- writing ---- */

/* An output file; zeroed: none. Behind a URL there is no temporary name: the file appears at
 * output_publish. */
struct output {
    char *path, *temporary; /* NULL: no such file to remove */
    int file;
    struct file_writer *writer; /* behind a URL, instead of file */
    int64_t bytes;              /* written without a gap so far */
    int ahead;                  /* with a writer: a file that buffers bytes written past a gap; 0:
                                   none */
};

/* Creates a file under a temporary name beside `beside`, later renamed to path. */
err output_open(const char *path, const char *beside, struct output *ret);
err output_write(struct output *, const void *, size_t bytes);
/* Writes at any offset, also past the end; output_join must follow once all bytes up to `end` are
 * written. */
err output_write_at(struct output *, int64_t offset, const void *, size_t bytes);
err output_join(struct output *, int64_t end);
err output_sync(struct output *); /* syncs to disk and closes the file */
err output_publish(struct output *);
/* Renames the file like bundle_rename_new. Behind a URL it replaces an existing file. */
err output_publish_new(struct output *, bool *ret_is_taken);
void output_drop(struct output *); /* also removes a file that was not published */
/* Replaces a file atomically by a synced new one: readers see either the old or the new content. If
 * syncing the folder fails after the rename, that is only logged. */
err output_replace(const char *path, const void *, size_t bytes);

/* Writes and syncs one piece of a file that arrives in several; creates the file if it does not
 * exist. ERR_INPUT behind a URL. */
err bundle_file_piece(const char *path, int64_t offset, const void *, size_t bytes);

/* A missing file is no error. */
err bundle_unlink(const char *path);
err bundle_rename(const char *from, const char *to);
/* Renames without replacing an existing file of this host: then fails with *ret_is_taken. On
 * failure the file keeps its name. Behind a URL an existing file is replaced. */
err bundle_rename_new(const char *from, const char *to, bool *ret_is_taken);

#endif
