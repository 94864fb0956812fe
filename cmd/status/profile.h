/* profile.h - where the time of steps went: a timeline (core/train/summary/timeline.h), summed. */
#ifndef CMD_STATUS_PROFILE_H
#define CMD_STATUS_PROFILE_H

#include <jansson.h>

#include "core/base/error.h"

/* {"first_step": 7, "steps": 5, "tasks": [{"task": "worker/0", "steps": 5, "ms_a_step": 12.1, "ms":
 * {"compute": 9, ...}}], "nodes": [{"node", "op", "forward_ms", "backward_ms"}], "missing": [...]}:
 * all of a step, in the mean; what goes on at the same time counts once. nodes: of a worker's step;
 * the longest first. ERR_PROTOCOL: it is no timeline. */
err profile_sum(json_t *timeline, json_t **ret);
void profile_print(json_t *profile, int nodes_max);

#endif
