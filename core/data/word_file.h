/* word_file.h - a file with one word per line, plain or packed: blanks around a word are dropped,
 * empty lines are skipped. */
#ifndef CORE_DATA_WORD_FILE_H
#define CORE_DATA_WORD_FILE_H

#include "core/base/arena.h"
#include "core/data/columns/items.h"
#include "core/data/data.h"

enum { WORD_FILE_BYTES_MAX = 1 << 30 };

struct word_file {
    const char *path; /* for messages */
    size_t lines;     /* upper limit of the number of words */
    const char *at, *end;
};

/* Reads the whole file into the arena. ERR_INPUT: as input_open; or more than WORD_FILE_BYTES_MAX.
 */
err word_file_read(const struct format_context *, const char *path, struct arena *,
                   struct word_file *ret);
/* false: no more words. */
bool word_file_next(struct word_file *, struct item *ret);

#endif
