/* error.c - the text of the last failure, one buffer per thread. */
#include "core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local char last_text[ERROR_TEXT_MAX];

/* Formats through a second buffer, so that arguments may be error_text() itself. */
__attribute__((format(printf, 2, 0))) static void format_text(char text[ERROR_TEXT_MAX],
                                                              const char *format, va_list arguments)
{
    if (vsnprintf(text, ERROR_TEXT_MAX, format, arguments) < 0) text[0] = '\0';
}

/* Appends to text of `length` bytes; what does not fit is replaced by "..." after a whole
 * character. */
static void append(char text[ERROR_TEXT_MAX], size_t length, const char *more)
{
    size_t space = ERROR_TEXT_MAX - 1 - length;
    size_t bytes = strlen(more);
    if (bytes <= space) {
        memcpy(text + length, more, bytes + 1);
        return;
    }
    if (space < 3) return;
    size_t kept = space - 3;
    while (kept > 0 && (more[kept] & 0xc0) == 0x80) kept--; /* not inside a UTF-8 sequence */
    memcpy(text + length, more, kept);
    memcpy(text + length + kept, "...", 4);
}

err fail(err kind, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    format_text(text, format, arguments);
    va_end(arguments);
    memcpy(last_text, text, ERROR_TEXT_MAX);
    return kind;
}

err fail_prefix(err kind, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    format_text(text, format, arguments);
    va_end(arguments);

    size_t length = strlen(text);
    append(text, length, ": ");
    append(text, strlen(text), last_text);
    memcpy(last_text, text, ERROR_TEXT_MAX);
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
        [ERR_NUMBER] = "not a finite number",
        [ERR_TIMEOUT] = "timeout",
        [ERR_STOPPED] = "stopped",
    };
    unsigned index = kind;
    return index < sizeof names / sizeof *names ? names[index] : "unknown error";
}
