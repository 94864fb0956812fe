/* runner_ps.h - a parameter server on the real loop: listeners, windows, and the store. */
#ifndef CORE_CLUSTER_RUNNER_RUNNER_PS_H
#define CORE_CLUSTER_RUNNER_RUNNER_PS_H

#include "core/cluster/runner/task.h"
#include "core/train/variables/store.h"
#include "kernels/kernels.h"

struct runner_ps;

/* The options say where it listens. device: borrowed. */
err runner_ps_open(const struct task_options *, struct device *, struct runner_ps **ret);
void runner_ps_close(struct runner_ps *); /* NULL is fine */
struct task *runner_ps_task(struct runner_ps *);

#endif
