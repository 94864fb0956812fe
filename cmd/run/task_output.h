/* task_output.h - passes on what the tasks of a local cluster print, line by line.
 *
 * Each stream of a task is a pipe. All whole lines in it are passed on in one write, each after the
 * task's name, so that lines of several tasks never mix; a line longer than LINE_BYTES_MAX is
 * split. On a terminal a line that a task redraws (log_status) is redrawn here, too.
 */
#ifndef CMD_RUN_TASK_OUTPUT_H
#define CMD_RUN_TASK_OUTPUT_H

#include <stddef.h>

#include "net/loop.h"

enum { LINE_BYTES_MAX = 4096 };

struct task_output {
    int from, to;       /* descriptors: the pipe, owned and non-blocking; -1 when it has ended */
    const char *prefix; /* "ps/0: ", borrowed */
    struct loop *loop;  /* watches the pipe; borrowed; NULL: none does */
    size_t used;        /* bytes of the incomplete line */
    char at[LINE_BYTES_MAX];
};

/* Lets loop_poll pass on new output until the stream ends or is closed. */
err task_output_watch(struct task_output *, struct loop *);

/* Passes on what the pipe has now. At the end of the stream an incomplete line is passed on, too,
 * and `from` is closed and set to -1. */
void task_output_pass(struct task_output *);
void task_output_close(struct task_output *);

#endif
