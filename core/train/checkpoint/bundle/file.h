/* file.h - the files of a bundle: read at any place, written under a temporary name. */
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
    int64_t until;     /* a sequential reader ends here; 0: at the end of the file */
};

/* Regular files only. What a person can mend (an absent file) is ERR_INPUT. */
err file_reader_open(const char *path, struct file_reader *ret);
/* ERR_INPUT where the file ends before. */
err file_reader_read(const struct file_reader *, int64_t offset, void *ret, size_t bytes);
void file_reader_close(struct file_reader *);
/* The whole of a file of at most this many bytes, freed by the caller; NULL of an empty one. */
err bundle_file_load(const char *path, size_t bytes_max, uint8_t **ret, size_t *ret_bytes);

/* ---- writing ---- */

/* An output file; zeroed: none. Behind a URL there is no temporary name: the file exists from
 * output_publish on. */
struct output {
    char *path, *temporary; /* NULL where nothing of that name is left to remove */
    int file;
    struct file_writer *writer; /* behind a URL, instead of file */
    int64_t bytes;              /* so far, from the beginning on */
    int ahead;                  /* with a writer: what was written beyond these, a file; 0: none */
};

/* A new file beside `beside`, to be called path later. */
err output_open(const char *path, const char *beside, struct output *ret);
err output_write(struct output *, const void *, size_t bytes);
/* Writes at any offset, also beyond what was written so far; output_join follows once all is there
 * up to `end`. */
err output_write_at(struct output *, int64_t offset, const void *, size_t bytes);
err output_join(struct output *, int64_t end);
err output_sync(struct output *); /* what was written is on the disk; closes the file */
err output_publish(struct output *);
/* Gives the file its name, as bundle_rename_new. Behind a URL it replaces what is there. */
err output_publish_new(struct output *, bool *ret_is_taken);
void output_drop(struct output *); /* also removes a file that was not published */
/* Replaces a file by a new one beside it, which is synced first: readers find the old one or the
 * new one. Once it is renamed, a folder that cannot be synced is only logged. */
err output_replace(const char *path, const void *, size_t bytes);

/* Writes a piece of a file that comes in several, each on the disk when this returns; makes the
 * file where it is absent. ERR_INPUT behind a URL. */
err bundle_file_piece(const char *path, int64_t offset, const void *, size_t bytes);

/* An absent file is no error. */
err bundle_unlink(const char *path);
err bundle_rename(const char *from, const char *to);
/* Renames to a name that is free, on this host's file systems; otherwise fails, and the file stays
 * as it was. */
err bundle_rename_new(const char *from, const char *to, bool *ret_is_taken);

#endif
