/* task_parts.h - what the roles' commands share: the device, the options of a task, and how a task
 * ends. */
#ifndef CMD_RUN_TASK_PARTS_H
#define CMD_RUN_TASK_PARTS_H

#include "cmd/cmd.h"
#include "cmd/device.h"
#include "core/train/session/towers.h"

/* Opens the device that this task computes on, and logs it, or why it is no GPU. A CPU has
 * --threads threads, or the cores divided by the workers on this host. A ps never uses a GPU, and
 * may use all cores, since it works most while workers wait for it. */
err open_device(const struct run *, struct device *ret);

/* The devices of a task that trains, with those of its towers; must not be moved once opened. */
struct task_devices {
    struct device device;
    struct tower_devices towers;
    struct device *at[TOWERS_MAX]; /* per tower: `device`, or one of these: */
    struct device own[TOWERS_MAX];
    int own_count;
};
err open_training_devices(const struct run *, struct task_devices *ret);
err task_devices_open(const struct device_request *, struct task_devices *ret,
                      struct device_answer *ret_answer); /* logs nothing */
void task_devices_close(struct task_devices *);

struct device_request request_of(const struct run *); /* for a ps, a CPU */
/* is_first: the first of several tasks of a host that would log the same */
void report_device(const struct device_answer *, bool is_first);

struct task_options task_options_of(const struct run *, struct loop *);

/* For a task that reached no other: whether the job had already ended, which the last checkpoint
 * shows if the spec has a last_step. Logs it. */
bool job_had_ended(const struct run *);

/* What this process does after its task has ended and is closed */
struct next_life {
    struct membership membership; /* without tasks: none */
    bool goes_on;                 /* with another task, in that membership */
};
/* Updates the run's cluster to the new membership; logs if this task is not in it. ERR_INPUT */
err run_resize(struct run *, struct next_life *);

/* Logs the program's version, for later readers of the log: once, when the task can start. Tasks of
 * a launcher leave it to that. */
void report_version(const struct run *);
/* Logs why a job ended, unless it is done; as an error unless the end was requested. */
void report_end(int code, const char *text);
/* Logs why the task ended, unless it is done; returns its exit code. */
int report_verdict(const struct task *);

#endif
