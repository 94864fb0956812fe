/* named.h - a cluster that has a name instead of lists of hosts: its tasks find each other through
 * a coordinator (net/coordinator). It has a place for each possible task; the first ones of each
 * job take part. */
#ifndef CORE_CLUSTER_DESCRIPTION_NAMED_H
#define CORE_CLUSTER_DESCRIPTION_NAMED_H

#include "core/cluster/description/cluster_spec.h"

/* From flags with a coordinator, before that is asked; called by cluster_spec_make. ERR_INPUT. */
err named_cluster_make(const struct cluster_flags *, struct arena *, struct cluster_spec *ret);

/* The same for a visitor, which needs no number of tasks: no task takes part until some are found.
 */
err named_cluster_visit(const struct cluster_flags *, struct arena *, struct cluster_spec *ret);

/* What a task writes to its key at the coordinator: its address and its membership (membership.h):
 * "10.0.0.5:4021 ps=2,worker=3", after resizes "10.0.0.5:4021 ps=2,worker=5 resizes=1"; then "
 * joined" if it has found the others. */
enum { NAMED_TASKS_BYTES = 32, NAMED_PLACE_BYTES = ADDRESS_MAX + NAMED_TASKS_BYTES + 48 };
struct named_place {
    char address[ADDRESS_MAX];
    struct membership membership;
    bool has_joined;
};
const char *named_place_text(const struct named_place *, char ret[NAMED_PLACE_BYTES]);
bool named_place_read(const char *text, struct named_place *ret);
const char *named_tasks_text(const struct membership *,
                             char ret[NAMED_TASKS_BYTES]); /* as --tasks */

/* ERR_INPUT: flags that need a coordinator are given without one. */
err named_cluster_check_absent(const struct cluster_flags *);

#endif
