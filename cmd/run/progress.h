/* progress.h - what a worker shows while it runs, and what it leaves for scripts.
 *
 * On a terminal one line that is redrawn, in a log a line every log_every_steps global steps;
 * --metrics_file gets a JSON line at the same steps. At the end the chief prints the evaluation and
 * writes --result.
 */
#ifndef CMD_RUN_PROGRESS_H
#define CMD_RUN_PROGRESS_H

#include <stdio.h>

#include "cmd/cmd.h"
#include "core/cluster/task/worker.h"

struct progress {
    const struct run *run;
    bool is_chief, draws;          /* draws: a status line on a terminal */
    FILE *metrics;                 /* NULL: none */
    int metrics_error;             /* errno of the first line that could not be written, or 0 */
    uint64_t last_step;            /* of the run; 0: unknown */
    double examples_per_step;      /* of one global step, all workers together */
    uint64_t started_ns;           /* of the process */
    uint64_t first_ns, first_step; /* end of the first step of this worker */
    uint64_t own_steps;
    uint64_t step, step_ns; /* the newest */
    uint64_t logged_step, logged_ns, drawn_ns;
    double first_step_unix; /* when the first step had been taken */
    uint64_t final_step;
    double evaluation_loss, *evaluation_metrics; /* of the chief */
    int64_t evaluation_rows;
    const struct session *session;
};

err progress_open(const struct run *, struct progress *ret);
void progress_attach(struct progress *, struct worker_task *); /* once the worker is open */
void progress_close(struct progress *);
void progress_placed(struct progress *, const struct session *);
void progress_stepped(struct progress *, struct session *, uint64_t step, double loss);
void progress_evaluated(struct progress *, uint64_t global_step, const struct evaluation *);

enum { COUNT_TEXT_MAX = 32 };
/* 1234567 -> "1,234,567" */
const char *count_text(double value, char text[COUNT_TEXT_MAX]);

/* The last words, for a person (standard output) and for scripts (--result). */
err progress_finish(struct progress *, int code, const char *text);

#endif
