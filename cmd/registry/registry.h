/* registry.h - lets the tasks of a named cluster find each other through a coordinator.
 *
 * Each task claims a place: a key such as CLUSTER/worker/1 at the coordinator, whose value is the
 * task's address and the membership that it knows. Then it waits until all places are taken. The
 * membership (membership.h) says how many places there are. At first it is that of --tasks, on
 * which all must agree: a task that names others than the tasks that have joined, or than the
 * majority, is refused. When the job is resized, each task writes the new membership into its
 * value; a newcomer uses the one with most resizes that it finds, and waits if that has no free
 * place. As the job is running then, it waits only for the ps to be found.
 *
 * A task keeps its place as long as it lives; the place of a lost task is free COORDINATOR_LEASE_S
 * later at the latest. So a task that is restarted, on whatever host, takes the place of the lost
 * one, and the others find it there. In a running job a place is claimed only after it has been
 * free for a while, since its task may live and only its key have been removed; for longer if the
 * coordinator was unreachable. A task whose place is nevertheless taken by one that has joined
 * reports it (has_lost), and ends.
 */
#ifndef CMD_REGISTRY_REGISTRY_H
#define CMD_REGISTRY_REGISTRY_H

#include "core/cluster/description/cluster_spec.h"

struct registry_options { /* borrowed until registry_leave */
    const char *coordinator;
    struct cluster_spec *cluster; /* named.h; task -1: the lowest free place */
    const char *address;          /* where this task listens; NULL: claims no place */
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
void registry_leave(struct registry *);   /* releases the place; NULL is fine */
/* The same for the process's registry, if any; called in a separate thread just before the process
 * ends (tasks_end_by). */
void registry_leave_at_once(int signo);

#endif
