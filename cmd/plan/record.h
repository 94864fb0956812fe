/* record.h - measured costs of steps: from the --result of a run that has ended, or from a short
 * run on this host. */
#ifndef CMD_PLAN_RECORD_H
#define CMD_PLAN_RECORD_H

#include <stdint.h>

#include "cmd/plan/cost.h"
#include "core/base/error.h"

struct run_record {
    struct plan_costs costs;
    double steps;    /* of all workers, over which costs are means */
    int ps, workers; /* number of tasks with known costs */
};

/* ERR_IO; ERR_INPUT: not a result file, or too few steps for meaningful times. */
err record_read(const char *path, struct run_record *ret);

/* Runs the job on this host, without checkpoints and summaries, for at least this many steps: one
 * ps and one worker, whose warnings and errors are shown. Arguments are those of a run without a
 * cluster. ERR_INPUT: it failed, and has logged why. */
err record_measure(int argc, char **argv, int64_t steps, struct run_record *ret);

#endif
