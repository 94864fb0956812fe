/* named.h - a cluster that has a name in the place of lists of hosts: its tasks find each other
 * through a coordinator (net/coordinator). */
#ifndef CORE_CLUSTER_DESCRIPTION_NAMED_H
#define CORE_CLUSTER_DESCRIPTION_NAMED_H

#include "core/cluster/description/cluster_spec.h"

/* What flags say of it, before anybody is asked: cluster_spec_make, of flags with a coordinator.
 * ERR_INPUT. */
err named_cluster_make(const struct cluster_flags *, struct arena *, struct cluster_spec *ret);

/* The same of a visitor, who needs no number of tasks: there are no hosts until tasks are found,
 * and one of them says how many there are. */
err named_cluster_visit(const struct cluster_flags *, struct cluster_spec *ret);

/* "ps=2,worker=3": so many hosts. ERR_INPUT. */
err named_cluster_tasks(const char *tasks, struct arena *, struct cluster_spec *ret);

/* ERR_INPUT: of flags without a coordinator, one that goes with it. */
err named_cluster_check_absent(const struct cluster_flags *);

#endif
