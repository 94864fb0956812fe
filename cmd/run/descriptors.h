/* descriptors.h - how many files and connections a task may have open (ulimit -n). */
#ifndef CMD_RUN_DESCRIPTORS_H
#define CMD_RUN_DESCRIPTORS_H

#include <stdint.h>

#include "core/cluster/description/cluster_spec.h"

/* Raises the soft limit towards the hard one, to what the loop can watch at most. How many there
 * may be then: UINT64_MAX where nobody can say. */
uint64_t descriptors_raise(void);

/* With all its peers there, over shared memory: a little more than that takes. */
int task_descriptors_needed(const struct cluster_spec *);

/* The same. Warns where that is less than the cluster needs: what comes last is then turned away or
 * goes over tcp. */
void task_descriptors_raise(const struct cluster_spec *);

/* Before a cluster of this host is started, whose tasks would wait for each other in vain: raises
 * as above; ERR_IO where one of them, or their launcher, needs more. */
err task_descriptors_check_local(int ps, int workers);

#endif
