/* error.c - the text of the last failure, one buffer per thread. */
#include "core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/files/url.h"
#include "core/base/printable.h"
#include "core/base/text.h"

enum {
    WHOLE_TEXT_MAX = 16 << 10, /* before it is shortened to ERROR_TEXT_MAX */
    WORD_KEPT_MIN = 160,       /* bytes left of a word, such as a path, that is too long */
};
static _Thread_local char last_text[ERROR_TEXT_MAX];

/* Marks a text that did not fit by "..." after its last whole character. */
static void mark_cut(char text[ERROR_TEXT_MAX])
{
    const size_t kept = text_begin_of_character(text, strnlen(text, ERROR_TEXT_MAX - 4));
    memcpy(text + kept, "...", 4);
}

/* The longest word: a path, most often */
static char *longest_word(char *text, size_t *ret_length)
{
    char *longest = text;
    *ret_length = 0;
    for (char *at = text; *at;) {
        const size_t length = strcspn(at, " \n");
        if (length > *ret_length) longest = at;
        if (length > *ret_length) *ret_length = length;
        at += length + strspn(at + length, " \n");
    }
    return longest;
}

/* What is wrong follows where it is wrong: so long words lose bytes in their middle, rather than
 * the text its end. */
static void shorten_words(char *text)
{
    size_t length = strlen(text), word_length;
    while (length >= ERROR_TEXT_MAX) {
        char *word = longest_word(text, &word_length);
        if (word_length <= WORD_KEPT_MIN) return;
        const size_t over = length - (ERROR_TEXT_MAX - 1) + 3,
                     most = word_length - WORD_KEPT_MIN + 3;
        size_t cut = over < most ? over : most;
        char *from = word + (word_length - cut) / 3, *to = from + cut;
        from = word + text_begin_of_character(word, (size_t)(from - word));
        while ((*to & 0xc0) == 0x80) to++;
        memcpy(from, "...", 3);
        memmove(from + 3, to, strlen(to) + 1);
        length = strlen(text);
    }
}

/* The format's text, then ": more" unless more is NULL. A second buffer, so that the arguments may
 * be the text that is replaced. Arguments may be names of files or words of a peer. A URL that the
 * buffer cut is dropped: its secrets cannot be found any more. */
__attribute__((format(printf, 2, 0))) static void set_text(const char *more, const char *format,
                                                           va_list arguments)
{
    char text[WHOLE_TEXT_MAX];
    int wanted = vsnprintf(text, sizeof text, format, arguments);
    if (wanted < 0) wanted = 0, text[0] = '\0';
    if (more && wanted < WHOLE_TEXT_MAX)
        wanted += snprintf(text + wanted, sizeof text - (size_t)wanted, ": %s", more);
    char *url = urls_hide(text);
    if (wanted >= WHOLE_TEXT_MAX && url) *url = '\0';
    shorten_words(text);
    if (strlen(text) >= ERROR_TEXT_MAX) mark_cut(text);
    if (!printable_copy(last_text, sizeof last_text, text)) mark_cut(last_text);
}

err fail(err kind, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(NULL, format, arguments);
    va_end(arguments);
    return kind;
}

err fail_prefix(err kind, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    set_text(last_text, format, arguments);
    va_end(arguments);
    return kind;
}

const char *error_text(void)
{
    return last_text;
}

const char *error_kind_name(err kind)
{
    static const char *const names[] = {
        [OK] = "no error",
        [ERR_INPUT] = "bad input",
        [ERR_MEMORY] = "out of memory",
        [ERR_IO] = "input/output error",
        [ERR_PEER] = "lost peer",
        [ERR_PROTOCOL] = "protocol error",
        [ERR_DEVICE] = "device error",
        [ERR_LOST] = "lost device",
        [ERR_NUMBER] = "not a finite number",
        [ERR_TIMEOUT] = "timeout",
        [ERR_STOPPED] = "stopped",
    };
    unsigned index = kind;
    return index < sizeof names / sizeof *names ? names[index] : "unknown error";
}
