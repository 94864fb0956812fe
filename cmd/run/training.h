/* training.h - a worker with all that happens beside its steps: progress and hooks. */
#ifndef CMD_RUN_TRAINING_H
#define CMD_RUN_TRAINING_H

#include "cmd/run/progress.h"
#include "core/train/hooks/hook.h"

struct training {
    struct run *run;
    struct progress progress;
    struct worker_task *worker;
    struct hooks *hooks;
    struct run_view view;
    struct arena arena;
};

/* ret must stay where it is while the worker lives. */
err training_open(struct run *, const struct task_options *, struct device *, struct training *ret);
/* After tasks_run: the hooks' end, and the last words. */
err training_finish(struct training *);
void training_close(struct training *);

#endif
