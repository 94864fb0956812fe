/* throttled.h - how long the CPU quota of a control group has held this process up, as that of a
 * container does (docker run --cpus=1.5, limits.cpu of Kubernetes). */
#ifndef CORE_BASE_THROTTLED_H
#define CORE_BASE_THROTTLED_H

/* Seconds since the group began: all periods of the quota in which it was used up before their end.
 * Of several groups it is the one that was held up most. root: as in control_groups.h. */
double throttled_s(const char *root);

#endif
