/* record.h - measured costs of steps: from the --result of a run that has ended, or from a short
 * run on this host. */
#ifndef CMD_PLAN_RECORD_H
#define CMD_PLAN_RECORD_H

#include <stdint.h>

#include "cmd/plan/cost.h"
#include "core/base/error.h"

struct run_record {
    struct plan_costs costs;
    double steps;    /* of all workers; costs are means over these */
    int ps, workers; /* tasks with known costs */
};

/* ERR_IO, ERR_INPUT: not a result file, or of too few steps for meaningful times. */
err record_read(const char *path, struct run_record *ret);

/* Runs it on this host, without checkpoints and summaries, for at least this many steps: one ps and
 * one worker, whose warnings and errors are seen. The words are those of a run without a cluster.
 * ERR_INPUT: it did not come to its end, and has said why. */
err record_measure(int argc, char **argv, int64_t steps, struct run_record *ret);

#endif
