/* not_utf8.c - see not_utf8.h. */
#include "core/data/not_utf8.h"

#include <string.h>

#include "core/base/fingerprint.h"
#include "core/base/log.h"
#include "core/base/printable.h"
#include "core/data/said_once.h"

enum { SHOWN_BYTES = 12 }; /* on each side */

static bool ends_word(char c)
{
    return (unsigned char)c <= ' ' || strchr(",;|\"", c);
}

void not_utf8_warn(const char *path, int64_t line, const char *text, size_t at, size_t bytes)
{
    char word[2 * SHOWN_BYTES + 1] = "", shown[PRINTABLE_BYTES_MAX * sizeof word];
    size_t from = at, to = at;
    if (!said_first(SAID_NOT_UTF8, fingerprint(path, strlen(path)))) return;
    while (from > 0 && at - from < SHOWN_BYTES && !ends_word(text[from - 1])) from--;
    while (to < bytes && to - at < SHOWN_BYTES && !ends_word(text[to])) to++;
    memcpy(word, text + from, to - from);
    printable_copy(shown, sizeof shown, word);
    for (size_t i = 0; i < at; i++) line += text[i] == '\n';
    log_line(LOG_WARNING,
             "%s: line %lld: \"%s\" is no UTF-8, and words are compared by their bytes: write the "
             "file in UTF-8 (of Latin-1: iconv -f LATIN1 -t UTF-8)",
             path, (long long)line, shown);
}
