/* memory.h - memory use and limits in bytes, as the system reports them. */
#ifndef CORE_BASE_MEMORY_H
#define CORE_BASE_MEMORY_H

#include <stdbool.h>

double memory_resident(void); /* of this process; 0: not known */
/* Of this host, as /proc/meminfo calls it: "MemTotal"; "MemAvailable", what can be allocated
 * without swapping. false: not known. */
bool memory_of_host(const char *name, double *ret);

/* What this process may use: the least limit of its control groups (control_groups.h, with root),
 * or else the host's memory; is_of_group: the former. left: bytes until one of the groups, or the
 * host, is out of memory; files in a group's cache that can be dropped count as left. */
struct memory_room {
    double limit, left; /* 0: not known */
    bool is_of_group;
};
struct memory_room memory_room(const char *root);

#endif
