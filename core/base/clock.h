/* clock.h - what time it is. Roles never call this: time is given to them. */
#ifndef CORE_BASE_CLOCK_H
#define CORE_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

uint64_t clock_ns(void); /* CLOCK_MONOTONIC */
uint64_t clock_ms(void);
struct timespec clock_in_ms(uint64_t ms); /* as pthread_cond_clockwait takes it */
double clock_unix_s(void);                /* CLOCK_REALTIME: since 1970, for files and people */
void clock_pause(uint64_t ms);            /* this thread; a signal may end it earlier */
/* For how long something rests that has failed `times` times before: twice as long each time. */
uint64_t clock_backoff_ms(uint64_t first_ms, uint64_t most_ms, uint64_t times);

#endif
