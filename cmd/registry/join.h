/* join.h - `dtrain --coordinator=URL --cluster=NAME --tasks=ps=2,worker=3 --job_name=worker`. */
#ifndef CMD_REGISTRY_JOIN_H
#define CMD_REGISTRY_JOIN_H

#include "cmd/cmd.h"

/* Where the run's flags name a coordinator: listens, takes a place there and waits for the other
 * tasks; the run's cluster and --bind are then as if everything had been said. Does nothing else.
 * run_close gives the place up. */
err run_join(struct run *);

#endif
