/* words.h - how often each word comes, in bounded memory.
 *
 * When there are too many words the rarer half of them is forgotten. One that comes again begins
 * anew: so a count may be too small, and a word may be absent, by at most `short_by`.
 */
#ifndef CORE_DATA_STATS_WORDS_H
#define CORE_DATA_STATS_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/word_place.h"

enum { WORD_BYTES_MAX = 1024 };

struct word_count {
    struct word word; /* owned, with a NUL behind */
    int64_t count;
};

struct word_counts { /* zeroed but for max */
    int64_t max;     /* at least 2 */
    struct word_count *places;
    size_t size; /* a power of two; 0 at first */
    int64_t count;
    int64_t forgotten; /* words, each time that one was */
    int64_t short_by;
    int64_t too_long; /* values of more than WORD_BYTES_MAX bytes, which are not counted */
};

err words_add(struct word_counts *, const char *text, size_t length); /* ERR_MEMORY */

/* [words->count], the most frequent first, else by their bytes; as long as nothing is added. For
 * free(). ERR_MEMORY. */
err words_list(const struct word_counts *, const struct word_count ***ret);
void words_free(struct word_counts *);

#endif
