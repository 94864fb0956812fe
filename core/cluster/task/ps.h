/* ps.h - a parameter server on the real loop: listeners, windows, and the store. */
#ifndef CORE_CLUSTER_TASK_PS_H
#define CORE_CLUSTER_TASK_PS_H

#include "core/cluster/task/task.h"
#include "core/train/variables/store.h"
#include "kernels/kernels.h"

struct ps_task;

/* address NULL or: where it listens is chosen by options. device: borrowed. */
err ps_task_open(const struct task_options *, struct device *, struct ps_task **ret);
void ps_task_close(struct ps_task *); /* NULL is fine */
struct task *ps_task_task(struct ps_task *);

#endif
