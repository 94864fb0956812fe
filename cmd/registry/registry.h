/* registry.h - lets the tasks of a named cluster find each other through a coordinator.
 *
 * A task takes a place of its job at the coordinator (CLUSTER/worker/1) by claiming its key, with
 * its address and what it says of the cluster for a value, and waits until all places are taken.
 * The membership (membership.h) says how many places there are. At first it is that of --tasks,
 * which all must say alike: who says something else than those that have joined, or than most, is
 * refused. When the job is resized, the value of each task says the new one; whoever comes goes by
 * that of the most resizes that it finds, and waits for a place where that has none that is free.
 * It takes but the parameter servers to be found then: the job is under way.
 *
 * It keeps its place as long as it lives; a place whose task is gone is free COORDINATOR_LEASE_S
 * later at the latest. So a task that is started again, on whatever host, takes the place of the
 * one that was lost, and the others find it there. A place of a job that runs is taken only after
 * it has been free for a while, as its task may live and its key have been removed; for longer
 * where the coordinator was away. Who finds its place taken nevertheless, by one that has joined,
 * says so (has_lost), and ends.
 */
#ifndef CMD_REGISTRY_REGISTRY_H
#define CMD_REGISTRY_REGISTRY_H

#include "core/cluster/description/cluster_spec.h"

struct registry_options { /* borrowed until registry_leave */
    const char *coordinator;
    struct cluster_spec *cluster; /* named.h; task -1: the lowest place that is free */
    const char *address;          /* where this task listens; NULL: it takes no place */
    bool only_ps;                 /* waits for the ps only */
    uint64_t limit_ms;            /* to wait for a place, and for the others */
    const char *limit_name;       /* "--start_timeout", for messages */
};

struct registry;

/* Sets task, hosts (in the arena), membership and find of the cluster. ERR_INPUT: other tasks were
 * started with a different cluster; ERR_IO: the coordinator does not answer; ERR_TIMEOUT names the
 * missing tasks. */
err registry_join(const struct registry_options *, struct arena *, struct registry **ret);
void registry_resized(struct registry *); /* the cluster has another membership; NULL is fine */
void registry_leave(struct registry *);   /* gives up the place; NULL is fine */
/* The same for the process's registry, if any; called in a separate thread just before the process
 * ends (tasks_end_by). */
void registry_leave_at_once(int signo);

#endif
