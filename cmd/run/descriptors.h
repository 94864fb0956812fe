/* descriptors.h - how many files and connections a task may have open (ulimit -n). */
#ifndef CMD_RUN_DESCRIPTORS_H
#define CMD_RUN_DESCRIPTORS_H

#include <stdint.h>

#include "core/cluster/description/cluster_spec.h"

/* Raises the soft limit towards the hard one, at most to what the loop can watch. Returns the
 * limit; UINT64_MAX: unknown. */
uint64_t descriptors_raise(void);

/* An upper estimate of what a task needs when all its peers are connected over shared memory. */
int task_descriptors_needed(const struct cluster_spec *);

/* Raises the limit, and warns if it is less than the cluster needs: then the last connections are
 * refused or use tcp. */
void task_descriptors_raise(const struct cluster_spec *);

/* Before a cluster is started on this host: raises the limit as above. ERR_IO: a task or the
 * launcher needs more; tasks would wait for each other until they time out. */
err task_descriptors_check_local(int ps, int workers);

#endif
