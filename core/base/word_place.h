/* word_place.h - a hash table of words with open addressing, whose entries begin with a struct
 * word. The caller owns the array of entries and keeps at least one of them free. */
#ifndef CORE_BASE_WORD_PLACE_H
#define CORE_BASE_WORD_PLACE_H

#include <stddef.h>
#include <string.h>

#include "core/base/fingerprint.h"

struct word {
    const char *text; /* NULL: the entry is free. Need not end with a NUL */
    size_t length;
};

/* The entry of the word, or the free one where it belongs. size: number of entries, a power of two;
 * place_bytes: of each. */
static inline void *word_place(void *places, size_t size, size_t place_bytes, struct word word)
{
    size_t at = fingerprint(word.text, word.length) & (size - 1);
    for (;;) {
        struct word *there = (struct word *)((char *)places + at * place_bytes);
        if (!there->text ||
            (there->length == word.length && memcmp(there->text, word.text, word.length) == 0))
            return there;
        at = (at + 1) & (size - 1);
    }
}

#endif
