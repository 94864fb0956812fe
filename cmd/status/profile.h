/* profile.h - sums up where the time of steps went (core/train/summary/timeline.h). */
#ifndef CMD_STATUS_PROFILE_H
#define CMD_STATUS_PROFILE_H

#include <jansson.h>

#include "core/base/error.h"

/* {"first_step": 7, "steps": 5, "tasks": [{"task": "worker/0", "steps": 5, "ms_a_step": 12.1, "ms":
 * {"compute": 9, ...}}], "nodes": [{"node", "op", "forward_ms", "backward_ms"}], "missing": [...]}:
 * means per step; spans of the same part that overlap count once. nodes: per worker step, longest
 * first. ERR_PROTOCOL: not a timeline. */
err profile_sum(json_t *timeline, json_t **ret);
void profile_print(json_t *profile, int nodes_max);

#endif
