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

struct timespec clock_in_ms(uint64_t ms)
{
    const uint64_t ns = clock_ns() + ms * 1000000u;
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

void clock_pause(uint64_t ms)
{
    const struct timespec pause = {(time_t)(ms / 1000u), (long)(ms % 1000u) * 1000000L};
    nanosleep(&pause, NULL);
}

uint64_t clock_backoff_ms(uint64_t first_ms, uint64_t most_ms, uint64_t times)
{
    enum { DOUBLINGS_MAX = 20 };
    const uint64_t ms = first_ms << (times < DOUBLINGS_MAX ? times : DOUBLINGS_MAX);
    return ms < most_ms ? ms : most_ms;
}

double clock_unix_s(void)
{
    const struct timespec now = read_clock(CLOCK_REALTIME);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
