/* device_choice.h - which device a task computes on, as users write it: "auto", "cpu", "gpu",
 * "gpu:N". */
#ifndef CORE_TRAIN_SESSION_DEVICE_CHOICE_H
#define CORE_TRAIN_SESSION_DEVICE_CHOICE_H

#include "core/base/error.h"

enum device_kind {
    DEVICE_AUTO, /* a working GPU, else the CPU */
    DEVICE_CPU,
    DEVICE_GPU, /* a GPU, else an error */
};

struct device_choice {
    enum device_kind kind;
    int index; /* "gpu:N"; -1: the tasks of one host are distributed over its GPUs */
};

/* ERR_INPUT: expected auto, cpu, gpu or gpu:N, got "..." */
err device_choice_parse(const char *text, struct device_choice *ret);

/* Which of the `gpus` GPUs (at least 1) a task computes on; local_index counts the computing tasks
 * of this host. ERR_INPUT: there is no GPU of that number. */
err device_choice_gpu(const struct device_choice *, int local_index, int gpus, int *ret_index);

#endif
