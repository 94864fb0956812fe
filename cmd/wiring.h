/* wiring.h - what the roles' commands share: the device, the options of a task, and how a task
 * ends. */
#ifndef CMD_WIRING_H
#define CMD_WIRING_H

#include "cmd/cmd.h"

/* instruction_set: --cpu_kernels, or NULL; ERR_INPUT tells which there are. */
err open_cpu(int threads, const char *instruction_set, struct device *ret);
/* The CPU with as many threads as this task may use: --threads, or the cores divided by the workers
 * on this host. A ps may use all cores: it works most while workers wait for it. */
err open_device(const struct run *, struct device *ret);

struct task_options task_options_of(const struct run *, struct loop *);

/* Says why the task ended unless it is done; returns its exit code. */
int report_verdict(const struct task *);

#endif
