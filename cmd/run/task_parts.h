/* task_parts.h - what the roles' commands share: the device, the options of a task, and how a task
 * ends. */
#ifndef CMD_RUN_TASK_PARTS_H
#define CMD_RUN_TASK_PARTS_H

#include "cmd/cmd.h"
#include "cmd/device.h"
#include "core/train/session/towers.h"

/* Where this task computes; says so, or why it is no GPU. A CPU has as many threads as the task may
 * use: --threads, or the cores divided by the workers on this host. A ps never has a GPU, and may
 * use all cores: it works most while workers wait for it. */
err open_device(const struct run *, struct device *ret);

/* The same of a task that trains, with the devices of its towers. Stays where it was opened. */
struct task_devices {
    struct device device;
    struct tower_devices towers;
    struct device *at[TOWERS_MAX]; /* of the towers: the one above, or */
    struct device own[TOWERS_MAX];
    int own_count;
};
err open_training_devices(const struct run *, struct task_devices *ret);
err task_devices_open(const struct device_request *, struct task_devices *ret,
                      struct device_answer *ret_answer); /* and says nothing */
void task_devices_close(struct task_devices *);

struct device_request request_of(const struct run *); /* a ps: a CPU */
/* is_first: of several tasks of a job that would say the same. spec: NULL where there is none. */
void report_device(const struct device_answer *, bool is_first);

struct task_options task_options_of(const struct run *, struct loop *);

/* For a task that reached nobody: whether the job had already ended, which the last checkpoint
 * shows if the spec has a last_step. Logs that. */
bool job_had_ended(const struct run *);

/* What becomes of this process as a task of it has ended, and is closed. */
struct next_life {
    struct membership membership; /* of no tasks: there is none */
    bool goes_on;                 /* another task, in that membership */
};
/* The cluster as it is from then on; a task that has no place in it says so. ERR_INPUT. */
err run_resize(struct run *, struct next_life *);

/* Which program writes the lines below, for whoever reads them later: once, as soon as it can do
 * what it is asked to. Tasks of a launcher are the same one. */
void report_version(const struct run *);
/* Logs why a job ended, unless it is done; an end that was asked for is not logged as an error. */
void report_end(int code, const char *text);
/* Says why the task ended unless it is done; returns its exit code. */
int report_verdict(const struct task *);

#endif
