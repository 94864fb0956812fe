/* clock.c - see clock.h. */
#include "core/base/clock.h"

#include <time.h>

static struct timespec read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now); /* cannot fail for these on Linux */
    return now;
}

uint64_t clock_ns(void)
{
    const struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t clock_ms(void)
{
    return clock_ns() / 1000000u;
}

double clock_unix_s(void)
{
    const struct timespec now = read_clock(CLOCK_REALTIME);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
