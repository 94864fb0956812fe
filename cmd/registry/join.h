/* join.h - `dtrain --coordinator=URL --cluster=NAME --tasks=ps=2,worker=3 --job_name=worker`. */
#ifndef CMD_REGISTRY_JOIN_H
#define CMD_REGISTRY_JOIN_H

#include "cmd/cmd.h"

/* If the run's flags name a coordinator: listens, claims a place there and waits for the other
 * tasks; sets the run's cluster and --bind as if the flags had given them. Otherwise does nothing.
 * run_close releases the place. */
err run_join(struct run *);

#endif
