/* storage.c - see storage.h. */
#include "core/cluster/runner/storage.h"

#include "core/base/clock.h"
#include "core/base/files/url.h"
#include "core/base/log.h"

enum {
    PAUSE_MS = 1000,
    DISK_AWAY_MAX_MS = 60000, /* if a disk fails for longer, its data are damaged */
};

uint64_t storage_wait_ms(const char *path, const struct wait_limits *limits)
{
    const bool is_short = path_is_url(path) || limits->restart_ms < DISK_AWAY_MAX_MS;
    return is_short ? limits->restart_ms : DISK_AWAY_MAX_MS;
}

bool storage_is_asked_again(err e, const char *path, const struct wait_limits *limits,
                            uint64_t since_ms)
{
    if (e != ERR_IO) return false;
    const uint64_t waited_ms = clock_ms() - since_ms, limit_ms = storage_wait_ms(path, limits);
    if (waited_ms >= limit_ms) return false;
    if (log_again(waited_ms / PAUSE_MS + 1))
        log_line(LOG_WARNING, "%s; tries again, %llu s of %llu s (--restart_timeout)", error_text(),
                 (unsigned long long)waited_ms / 1000, (unsigned long long)limit_ms / 1000);
    clock_pause(PAUSE_MS);
    return true;
}
