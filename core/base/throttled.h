/* throttled.h - how long this process was throttled by the CPU quota of a control group, as
 * containers have (docker run --cpus=1.5, limits.cpu of Kubernetes). */
#ifndef CORE_BASE_THROTTLED_H
#define CORE_BASE_THROTTLED_H

/* Seconds since the group began: the sum of all quota periods in which the quota was used up before
 * their end. Of several groups the one that was throttled most. root: as in control_groups.h. */
double throttled_s(const char *root);

#endif
