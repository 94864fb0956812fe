/* log_limited.c - see log_limited.h. */
#include "core/base/log_limited.h"

#include <stdarg.h>
#include <stdio.h>

enum { TEXT_MAX = 2048 };

void log_limited(struct log_limit *limit, uint64_t now_ms, enum log_level level, const char *format,
                 ...)
{
    char text[TEXT_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (limit->has_said && now_ms - limit->said_ms < LOG_LIMITED_MS) {
        limit->left_out++;
        log_line(LOG_DEBUG, "%s", text);
        return;
    }
    if (limit->left_out)
        log_line(level, "%s (and %llu more like this since the last such line)", text,
                 (unsigned long long)limit->left_out);
    else
        log_line(level, "%s", text);
    *limit = (struct log_limit){.has_said = true, .said_ms = now_ms};
}
