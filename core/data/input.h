/* input.h - an input file as a stream of bytes, plain or packed.
 *
 * The packing is detected by the first bytes, not by the name. Offsets in messages count unpacked
 * bytes from 0. A reader that knows how much must follow calls input_announce first, so that a
 * header cannot make the program allocate more memory than the file can fill; after the last byte
 * it calls input_end.
 */
#ifndef CORE_DATA_INPUT_H
#define CORE_DATA_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/files/file_system.h"
#include "core/data/storage.h"

struct input;

/* Estimate of unpacked bytes per packed one, typical of text. */
enum { PACKED_RATIO = 4 };

/* path is relative to the context's directory; either may be a URL. ERR_INPUT: missing, empty, or
 * neither a file nor a pipe. */
err input_open(const struct format_context *, const char *path, struct input **ret);
/* The same, but the file may be empty. */
err input_open_any(const struct format_context *, const char *path, struct input **ret);
/* Returns ERR_INPUT: the current error, about a missing relative path, and the folder it is
 * relative to */
err input_fail_absent(const struct format_context *);
/* Whether the file can be read and has 0 bytes when unpacked; false also if it is missing. */
bool input_is_empty(const struct format_context *, const char *path);
void input_close(struct input *); /* may be NULL */

const char *input_path(const struct input *); /* for messages; lives as long as the input */
bool input_is_packed(const struct input *);
uint64_t input_offset(const struct input *);     /* of the next byte, unpacked */
uint64_t input_file_bytes(const struct input *); /* as stored, so packed bytes of a packed file */

/* For formats that are detected by their first bytes. input_head: copies up to max bytes from the
 * beginning of the stored file and returns how many. input_is_zlib: before anything is read,
 * declares the file packed by zlib. */
size_t input_head(const struct input *, void *to, size_t max);
err input_is_zlib(struct input *);
/* ERR_INPUT: the first bytes are those of an unsupported file type: another packer, a Parquet file,
 * UTF-16 and so on. */
err input_is_known(const struct input *);
err input_is_text(const struct input *); /* likewise, for files that must be text */
/* Likewise, for files that must be a table or a list of words; head: the first bytes, unpacked, of
 * which INPUT_TOLD_BYTES suffice. */
enum { INPUT_TOLD_BYTES = 263 };
err input_is_table(const struct input *, const char *head, size_t bytes);

/* Reads at most max bytes; 0 only at the end. ERR_INPUT: packed data is corrupt or truncated, or
 * the file has become shorter. */
err input_some(struct input *, void *to, size_t max, size_t *ret_bytes);
/* Seeks to an offset of the unpacked data. A packed file is read forward to it, from the beginning
 * if the offset is before the current one. */
err input_seek(struct input *, uint64_t offset);
/* Reads that begin before this offset end there, so that bytes after it are not fetched in vain. */
void input_pause_at(struct input *, uint64_t offset);

/* The file's size, times and inode, as of now. ERR_IO. */
err input_state(const struct input *, struct file_state *ret);

/* Reads exactly that many bytes. ERR_INPUT: the file ends before; the message calls them `what`. */
err input_exact(struct input *, void *to, size_t bytes, const char *what);
/* ERR_INPUT: the file cannot hold that many more bytes. */
err input_announce(const struct input *, uint64_t bytes, const char *what);
/* ERR_INPUT: any bytes are left. */
err input_end(struct input *);

/* Reads the remaining bytes of the file, which must be this many, into memory. Includes
 * input_announce and input_end. A copy rather than a mapping: truncating a mapped file would kill
 * the task. */
err input_block(struct input *, uint64_t bytes, const char *what, struct block *ret);

#endif
