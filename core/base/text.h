/* text.h - texts in lists, suffixes, and where UTF-8 characters begin. */
#ifndef CORE_BASE_TEXT_H
#define CORE_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

/* The index of its first occurrence in the list; -1: none. */
static inline int text_find(const char *const *texts, int count, const char *text)
{
    for (int i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0) return i;
    return -1;
}

/* true only if something precedes the ending. */
static inline bool text_ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), wanted = strlen(ending);
    return length > wanted && strcmp(text + length - wanted, ending) == 0;
}

/* The begin of the UTF-8 character that has byte `at`: a text may be cut there. */
static inline size_t text_begin_of_character(const char *text, size_t at)
{
    while (at > 0 && (text[at] & 0xc0) == 0x80) at--;
    return at;
}

#endif
