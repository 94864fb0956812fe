/* planned.h - prepares a run up to its first step, without taking it: for `dtrain check` and
 * `dtrain plan`. */
#ifndef CMD_PLANNED_H
#define CMD_PLANNED_H

#include "cmd/cmd.h"
#include "cmd/run/task_parts.h"
#include "core/train/session/session.h"

struct planned {
    struct run run;
    struct task_devices devices;
    struct device_answer answer;
    struct session session;
    bool has_device, has_session;
    int ps_count, workers; /* as the command line speaks of; alone, a process is one of each */
    bool is_spread;        /* each task has a host of its own, whatever the command line says */
};

/* The session is the one that a worker opens, so that it finds what a run would find: files,
 * shapes, labels out of range, memory, the device. One thread, since nothing is computed. Of
 * ps_count and workers those that are not 0, and is_spread, are as they were before. The words are
 * those of a run; command: for messages. */
err planned_open(struct planned *, const char *command, int argc, char **argv);
void planned_close(struct planned *); /* a zeroed one is fine */

#endif
