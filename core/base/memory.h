/* memory.h - memory in bytes, as the system tells it. */
#ifndef CORE_BASE_MEMORY_H
#define CORE_BASE_MEMORY_H

#include <stdbool.h>

double memory_resident(void); /* of this process; 0: it is not told */
/* Of this host, as /proc/meminfo calls it: "MemTotal"; "MemAvailable", what could be given without
 * pushing anybody out. false: it is not told. */
bool memory_of_host(const char *name, double *ret);

#endif
