/* memory.h - memory in bytes, as the system tells it. */
#ifndef CORE_BASE_MEMORY_H
#define CORE_BASE_MEMORY_H

#include <stdbool.h>

double memory_resident(void); /* of this process; 0: it is not told */
/* Of this host, as /proc/meminfo calls it: "MemTotal"; "MemAvailable", what could be given without
 * pushing anybody out. false: it is not told. */
bool memory_of_host(const char *name, double *ret);

/* What this process may use: the least limit of its control groups (control_groups.h, with root),
 * or else the host's memory; is_of_group: which. left: bytes until one of the groups, or the host,
 * has none; files in a group's cache that can be dropped count as left. */
struct memory_room {
    double limit, left; /* 0: not told */
    bool is_of_group;
};
struct memory_room memory_room(const char *root);

#endif
