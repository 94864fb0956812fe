/* text.h - texts in lists, endings of texts, and where characters of UTF-8 begin. */
#ifndef CORE_BASE_TEXT_H
#define CORE_BASE_TEXT_H

#include <stdbool.h>
#include <string.h>

/* Where in the list it stands first; -1: nowhere. */
static inline int text_find(const char *const *texts, int count, const char *text)
{
    for (int i = 0; i < count; i++)
        if (strcmp(texts[i], text) == 0) return i;
    return -1;
}

/* And has something before that. */
static inline bool text_ends_with(const char *text, const char *ending)
{
    const size_t length = strlen(text), wanted = strlen(ending);
    return length > wanted && strcmp(text + length - wanted, ending) == 0;
}

/* Where the character of UTF-8 begins that this byte is of: a text may end there. */
static inline size_t text_begin_of_character(const char *text, size_t at)
{
    while (at > 0 && (text[at] & 0xc0) == 0x80) at--;
    return at;
}

#endif
