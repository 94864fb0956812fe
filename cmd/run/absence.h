/* absence.h - a worker that cannot take part says so, so that nobody waits for it. Of the chief,
 * too: whoever waits for it learns why. And what a signal asks of the job that ends a worker before
 * it takes part. */
#ifndef CMD_RUN_ABSENCE_H
#define CMD_RUN_ABSENCE_H

#include "cmd/cmd.h"

/* This process has ended, or never became a task, by a code that the same command would end with
 * again: every ps that is there, or comes within two seconds, is told why, as by a visitor. One
 * that is not waits for this worker as for any that is gone. Of other codes, and what is no worker
 * of a cluster, nothing is told. */
void run_tell_absence(const struct run *, int code, const char *why);

/* From now on, until NULL is said: where a signal ends this process at once, which reads data, the
 * ps that are there are told what the signal asks for: that the job is to end, or that this worker
 * leaves, which ends a job that has not begun and cannot without it. A ps that has not answered
 * within a moment is not told; a line says how many were. Of one run, which stays until NULL is
 * said: that returns when nobody reads it any more. */
void run_tell_signal(const struct run *);

#endif
