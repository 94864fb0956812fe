/* word_file.h - a file with a word a line, plain or packed: blanks around a word count for nothing,
 * empty lines are passed over.
 */
#ifndef CORE_DATA_WORD_FILE_H
#define CORE_DATA_WORD_FILE_H

#include "core/base/arena.h"
#include "core/data/columns/items.h"
#include "core/data/data.h"

enum { WORD_FILE_BYTES_MAX = 1 << 30 };

struct word_file {
    const char *path; /* for messages */
    size_t lines;     /* words at most */
    const char *at, *end;
};

/* All of it into the arena. ERR_INPUT, as of input_open; too large. */
err word_file_read(const struct format_context *, const char *path, struct arena *,
                   struct word_file *ret);
/* false: there are no more. */
bool word_file_next(struct word_file *, struct item *ret);

#endif
