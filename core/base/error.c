/* error.c - the text of the last failure, one buffer per thread. */
#include "core/base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/files/url.h"
#include "core/base/printable.h"

static _Thread_local char last_text[ERROR_TEXT_MAX];

/* Marks a text that did not fit by "..." after its last whole character. */
static void mark_cut(char text[ERROR_TEXT_MAX])
{
    size_t kept = strnlen(text, ERROR_TEXT_MAX - 4);
    while (kept > 0 && (text[kept] & 0xc0) == 0x80) kept--; /* not inside a UTF-8 sequence */
    memcpy(text + kept, "...", 4);
}

/* The format's text, then ": more" unless more is NULL. A second buffer, so that the arguments may
 * be the text that is replaced. Arguments may be names of files or words of a peer. Of a URL that
 * is cut nobody can say what is secret. */
__attribute__((format(printf, 2, 0))) static void set_text(const char *more, const char *format,
                                                           va_list arguments)
{
    char text[ERROR_TEXT_MAX];
    int wanted = vsnprintf(text, sizeof text, format, arguments);
    if (wanted < 0) wanted = 0, text[0] = '\0';
    if (more && wanted < ERROR_TEXT_MAX)
        wanted += snprintf(text + wanted, sizeof text - (size_t)wanted, ": %s", more);
    char *url = urls_hide(text);
    if (wanted >= ERROR_TEXT_MAX && url) *url = '\0';
    if (wanted >= ERROR_TEXT_MAX) mark_cut(text);
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
