/* absence.h - a worker that cannot take part says so, so that nobody waits for it. Of the chief,
 * too: whoever waits for it learns why. */
#ifndef CMD_RUN_ABSENCE_H
#define CMD_RUN_ABSENCE_H

#include "cmd/cmd.h"

/* This process has ended, or never became a task, by a code that the same command would end with
 * again: every ps that is there, or comes within two seconds, is told why, as by a visitor. One
 * that is not waits for this worker as for any that is gone. Of other codes, and what is no worker
 * of a cluster, nothing is told. */
void run_tell_absence(const struct run *, int code, const char *why);

#endif
