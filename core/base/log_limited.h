/* log_limited.h - lines that others can cause as often as they like.
 *
 * Each place that says such a thing has a limit of its own, whatever the words are: they may be a
 * stranger's. Between two lines of one place LOG_LIMITED_MS pass; what is left out is counted, told
 * with the next line, and written at --log_level=debug.
 */
#ifndef CORE_BASE_LOG_LIMITED_H
#define CORE_BASE_LOG_LIMITED_H

#include <stdint.h>

#include "core/base/log.h"

enum { LOG_LIMITED_MS = 10000 };

struct log_limit { /* of one place; zeroed: nothing has been said */
    bool has_said;
    uint64_t said_ms, left_out;
};

/* now_ms: of clock_ms(), or of a test. */
void log_limited(struct log_limit *, uint64_t now_ms, enum log_level, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
