/* progress.h - a worker's progress output, and its --metrics_file and --result.
 *
 * On a terminal it redraws one line, in a log it writes a line every log_every_steps global steps;
 * --metrics_file gets a JSON line at the same steps. At the end the chief prints the evaluation
 * and writes --result. All of it is a hook.
 */
#ifndef CMD_RUN_PROGRESS_H
#define CMD_RUN_PROGRESS_H

#include <jansson.h>
#include <stdio.h>

#include "cmd/run/epoch_lines.h"
#include "cmd/run/task_parts.h"
#include "core/base/log.h"
#include "core/cluster/runner/runner_worker.h"

struct progress {
    const struct run *run;
    bool draws;          /* a status line on a terminal */
    FILE *metrics;       /* NULL: none */
    int metrics_error;   /* errno of the first line that could not be written, or 0 */
    uint64_t started_ns; /* of the process */
    uint64_t own_steps;
    uint64_t step, step_ns; /* of the newest step */
    struct step_time begun; /* beginning of the newest step; end of the first */
    struct step_time first; /* where the speed is measured from */
    bool has_logged;
    struct log_pace pace;
    uint64_t logged_step, drawn_ns;
    struct step_time logged;
    double first_step_unix; /* when the first step was done */
    uint64_t final_step;
    struct evaluation evaluation; /* the chief's last; rows 0: none */
    struct rows_seen covered;     /* the chief's last; rows 0: none */
    struct epoch_lines rows;
};

err progress_open(const struct run *, struct progress *ret);
void progress_close(struct progress *); /* a zeroed one is fine */

extern const struct hook hook_progress; /* its state is a struct progress */

/* Options of a worker with these devices and progress; all are borrowed. */
struct runner_worker_options worker_options_of(struct run *, struct loop *, struct task_devices *,
                                               struct progress *);

enum { COUNT_TEXT_MAX = 32 };
/* null for NaN and infinities, which JSON does not have */
json_t *value_json(double);

/* 1234567 -> "1,234,567" */
const char *count_text(double value, char text[COUNT_TEXT_MAX]);

#endif
