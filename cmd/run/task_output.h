/* task_output.h - what the tasks of a local cluster print, line by line.
 *
 * Each stream of a task is a pipe. Whole lines are passed on with the task's name in front, in one
 * write for all that was there, so that lines of several tasks never mix; a line longer than
 * LINE_BYTES_MAX continues as several. On a terminal a line that a task redraws (log_status) is
 * redrawn here too.
 */
#ifndef CMD_RUN_TASK_OUTPUT_H
#define CMD_RUN_TASK_OUTPUT_H

#include <stddef.h>

#include "net/loop.h"

enum { LINE_BYTES_MAX = 4096 };

struct task_output {
    int from, to;       /* descriptors: the pipe, owned and non-blocking; -1 when it has ended */
    const char *prefix; /* "ps/0: ", borrowed */
    struct loop *loop;  /* that watches the pipe, borrowed; NULL: none does */
    size_t used;        /* bytes of the line that is not whole yet */
    char at[LINE_BYTES_MAX];
};

/* From here on what comes is passed on by loop_poll, until the stream ends or is closed. */
err task_output_watch(struct task_output *, struct loop *);

/* Passes on what is there. At the end of the stream the rest of a line goes out too, and from is
 * closed and -1. */
void task_output_pass(struct task_output *);
void task_output_close(struct task_output *);

#endif
