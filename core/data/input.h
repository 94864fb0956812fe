/* input.h - an input file as a stream of bytes, plain or packed.
 *
 * How is told by the first bytes, not by the name. Offsets in messages count unpacked
 * bytes from 0. A reader that knows how much must come says so first (input_announce), so that no
 * header makes the program ask for memory that its file cannot fill; after the last byte it calls
 * input_end.
 */
#ifndef CORE_DATA_INPUT_H
#define CORE_DATA_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/files/file_system.h"
#include "core/data/storage.h"

struct input;

/* Unpacked bytes per packed one, where somebody has to guess: text packs so. */
enum { PACKED_RATIO = 4 };

/* path is relative to the context's directory; either may be a URL. ERR_INPUT: missing, not a
 * file, empty. */
err input_open(const struct format_context *, const char *path, struct input **ret);
/* The same, of a file that may be empty. */
err input_open_any(const struct format_context *, const char *path, struct input **ret);
/* ERR_INPUT: the error so far, of a relative path that is not there, and where it was looked for */
err input_fail_absent(const struct format_context *);
/* Whether the file is there, can be read, and has no byte, unpacked. */
bool input_is_empty(const struct format_context *, const char *path);
void input_close(struct input *); /* NULL is fine */

const char *input_path(const struct input *); /* for messages; lives as long as the input */
bool input_is_packed(const struct input *);
uint64_t input_offset(const struct input *);     /* of the next byte, unpacked */
uint64_t input_file_bytes(const struct input *); /* as stored: packed where it is */

/* For formats whose first bytes tell what they are: these, of the file as stored; and before
 * anything is read, that the file is packed by zlib. */
size_t input_head(const struct input *, void *to, size_t max);
err input_is_zlib(struct input *);
/* ERR_INPUT where the first bytes are those of something else that is neither text nor records: of
 * a packer, a table or a text that is not read here. */
err input_is_known(const struct input *);
err input_is_text(const struct input *); /* likewise, of what is to be text */
/* Likewise, of what is to be a table or a list of words, by the first bytes of the text, of which
 * INPUT_TOLD_BYTES tell. */
enum { INPUT_TOLD_BYTES = 263 };
err input_is_table(const struct input *, const char *head, size_t bytes);

/* At most max bytes; 0 only at the end. ERR_INPUT when packed data is corrupt or cut off,
 * or the file has become shorter. */
err input_some(struct input *, void *to, size_t max, size_t *ret_bytes);
/* Seeks to an offset of the unpacked data. A packed file is read forward to it, from its beginning
 * if the offset lies before the current one. */
err input_seek(struct input *, uint64_t offset);
/* What is asked for before this offset ends there: bytes behind it are not read in vain. */
void input_pause_at(struct input *, uint64_t offset);

/* Of the file, now. ERR_IO. */
err input_state(const struct input *, struct file_state *ret);

/* Exactly that many; `what` they are stands in the message when the file is short. */
err input_exact(struct input *, void *to, size_t bytes, const char *what);
/* ERR_INPUT when that many more bytes cannot be in the file. */
err input_announce(const struct input *, uint64_t bytes, const char *what);
/* ERR_INPUT when anything is left. */
err input_end(struct input *);

/* The next bytes, which must be the last, as memory. Announces and ends. A copy, never a mapping: a
 * file that is made shorter while it is mapped would take the task down. */
err input_block(struct input *, uint64_t bytes, const char *what, struct block *ret);

#endif
