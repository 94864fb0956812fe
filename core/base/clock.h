/* clock.h - the current time. Roles never call this: their callers pass the time. */
#ifndef CORE_BASE_CLOCK_H
#define CORE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t clock_ns(void); /* CLOCK_MONOTONIC */
uint64_t clock_ms(void);
struct timespec clock_in_ms(uint64_t ms); /* CLOCK_MONOTONIC, for pthread_cond_clockwait */
double clock_unix_s(void);                /* CLOCK_REALTIME: since 1970, for files and people */
void clock_pause(uint64_t ms);            /* sleeps; a signal may end it earlier */
/* How long to wait after `times` earlier failures: first_ms, doubled for each, at most most_ms. */
uint64_t clock_backoff_ms(uint64_t first_ms, uint64_t most_ms, uint64_t times);

#endif
