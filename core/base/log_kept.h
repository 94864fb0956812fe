/* log_kept.h - the last lines of this process's log, for requests from outside.
 *
 * Lines are numbered from 1. A reader asks for those after the last one that it has.
 */
#ifndef CORE_BASE_LOG_KEPT_H
#define CORE_BASE_LOG_KEPT_H

#include <jansson.h>

#include "core/base/log.h"

enum {
    LOG_KEPT_LINES = 500,
    LOG_KEPT_BYTES = 512,    /* of one line, longer ones are cut */
    LOG_KEPT_PAGE_MAX = 200, /* lines in one answer */
};

void log_keep(enum log_level, const char *text);

/* {"lines": [{"number": 17, "unix_ms": 1795433160695, "time": "2026-11-23T12:26:00.695+01:00",
 * "level": "info", "task": "worker/3", "text": "..."}], "next": 18} from line number `from` on, or
 * from the oldest one kept if that is later; next: the `from` of the next request. last: only this
 * many of the newest, 0: all. At most LOG_KEPT_PAGE_MAX. NULL: no memory. New reference. */
json_t *log_kept_json(uint64_t from, uint64_t last);

#endif
