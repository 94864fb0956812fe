/* listen.h - a task takes its own address.
 *
 * A pod's name may resolve only after it has started, and the port of a task that was killed may
 * still be held by the life before. So what may mend itself is tried again, with the same pauses as
 * a connection, until --start_timeout; why is said at once and then now and then.
 */
#ifndef CORE_CLUSTER_RUNNER_LISTEN_H
#define CORE_CLUSTER_RUNNER_LISTEN_H

#include "core/cluster/runner/task.h"

/* Waits in clock_pause(): signals still end the process (tasks_prepare). ERR_INPUT: the address is
 * none, or not allowed; ERR_TIMEOUT: it could not be had in time; the text names it and why.
 * options->listens hears of the address in the lists, with the port that was taken where it is open
 * there; its error ends this. */
err task_listen(const struct task_options *, const struct link_events *, void *context,
                struct listener **ret);

/* Where whoever is told `bind` listens (NULL: nothing): there, at the port of its own address where
 * it says none ("0.0.0.0", "[::]", "::"), or at that own address. ERR_INPUT: too long. */
err listen_address(const char *bind, const char *own, char ret[ADDRESS_MAX]);
/* The same of a task: options->listen, and its address of the list. */
err task_listen_address(const struct task_options *, char ret[ADDRESS_MAX]);

#endif
