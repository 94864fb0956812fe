/* words.h - counts occurrences of words in bounded memory.
 *
 * When there are too many words, the rarer half is forgotten. A forgotten word that occurs again is
 * counted from 0: so a count may be too small by at most `short_by`, and a word that occurred up to
 * that often may be absent.
 */
#ifndef CORE_DATA_STATS_WORDS_H
#define CORE_DATA_STATS_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"
#include "core/base/word_place.h"

enum { WORD_BYTES_MAX = 1024 };

struct word_count {
    struct word word; /* owned, NUL-terminated */
    int64_t count;
};

struct word_counts { /* initially zeroed, except max */
    int64_t max;     /* of words kept, at least 2 */
    struct word_count *places;
    size_t size; /* a power of two; 0 at first */
    int64_t count;
    int64_t forgotten; /* how many words were forgotten, each time */
    int64_t short_by;
    int64_t too_long; /* values of more than WORD_BYTES_MAX bytes, which are not counted */
};

err words_add(struct word_counts *, const char *text, size_t length); /* ERR_MEMORY */

/* *ret: [words->count], the most frequent first, equal counts by their bytes; valid until words are
 * added. For free(). ERR_MEMORY. */
err words_list(const struct word_counts *, const struct word_count ***ret);
void words_free(struct word_counts *);

#endif
