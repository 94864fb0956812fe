/* clock.h - monotonic time. Roles never call this: time is given to them. */
#ifndef CORE_BASE_CLOCK_H
#define CORE_BASE_CLOCK_H

#include <stdint.h>

uint64_t clock_ns(void); /* CLOCK_MONOTONIC */
uint64_t clock_ms(void);

#endif
