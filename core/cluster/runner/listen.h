/* listen.h - a task listens at its own address.
 *
 * A pod's name may resolve only after it has started, and its port may still be in use by the
 * previous incarnation after a kill. So errors that may pass are retried, with the same pauses as a
 * connection, until --start_timeout; the reason is logged at once and then now and then.
 */
#ifndef CORE_CLUSTER_RUNNER_LISTEN_H
#define CORE_CLUSTER_RUNNER_LISTEN_H

#include "core/cluster/runner/task.h"

/* Waits in clock_pause(): signals still end the process (tasks_prepare). ERR_INPUT: the address is
 * not valid, or not allowed; ERR_TIMEOUT: it was not available in time; the text has the address
 * and the reason. Calls options->listens with the address from the lists, an open port replaced by
 * the actual one; its error is returned. */
err task_listen(const struct task_options *, const struct link_events *, void *context,
                struct listener **ret);

/* The address to listen at: `bind`, with the port of `own` if it has none ("0.0.0.0", "[::]",
 * "::"); NULL: `own`. ERR_INPUT: too long. */
err listen_address(const char *bind, const char *own, char ret[ADDRESS_MAX]);
/* The same for a task: from options->listen and its address in the lists. */
err task_listen_address(const struct task_options *, char ret[ADDRESS_MAX]);

#endif
