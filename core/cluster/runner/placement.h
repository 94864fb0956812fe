/* placement.h - the placement of variables as JSON, for web pages. */
#ifndef CORE_CLUSTER_RUNNER_PLACEMENT_H
#define CORE_CLUSTER_RUNNER_PLACEMENT_H

#include "core/train/variables/layout.h"

enum { PLACEMENT_VARIABLES_MAX = 1000, PLACEMENT_PARTS_MAX = 64 };

/* {"variables": [{"name": "w", "shape": [5, 2], "kind": "dense", "parts": 2, "bytes": {"0": 24,
 * "1": 16}}], "left_out": 3}; kind: "dense", "table", or "growing", whose bytes only its ps know:
 * 0; bytes: of values, without slots, by ps, for the first PLACEMENT_PARTS_MAX parts; left_out:
 * variables beyond PLACEMENT_VARIABLES_MAX. malloc'ed; NULL: no memory. */
char *placement_text(const struct layout *);

#endif
