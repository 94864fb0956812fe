/* listen.h - a task takes its own address.
 *
 * A pod's name may resolve only after it has started, and the port of a task that was killed may
 * still be held by the life before. So what may mend itself is tried again, with the same pauses as
 * a connection, until --start_timeout; why is said at once and then now and then.
 */
#ifndef CORE_CLUSTER_TASK_LISTEN_H
#define CORE_CLUSTER_TASK_LISTEN_H

#include "core/cluster/task/task.h"

/* Waits in nanosleep: signals still end the process (tasks_prepare). ERR_INPUT: the address is no
 * address, or not allowed; ERR_TIMEOUT: it could not be had in time; the text names it and why. */
err task_listen(const struct task_options *, const struct link_events *, void *context,
                struct listener **ret);

/* Where a task listens: options->listen, which may leave the port to the own address of the list
 * ("0.0.0.0", "[::]"), or that own address. ERR_INPUT: too long. */
err task_listen_address(const struct task_options *, char ret[ADDRESS_MAX]);

#endif
