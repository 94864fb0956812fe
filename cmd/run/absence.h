/* absence.h - tells the ps that a worker, or the chief, cannot take part, and why, so that nobody
 * waits for it; and forwards to the job a signal that ends a worker before it takes part. */
#ifndef CMD_RUN_ABSENCE_H
#define CMD_RUN_ABSENCE_H

#include "cmd/cmd.h"

/* To be called by a worker of a cluster that ends with `code`, also before it joined. If the same
 * command would end with that code again, it tells every ps that answers within two seconds why;
 * any other ps waits for this worker as for one that is gone. Otherwise does nothing. */
void run_tell_absence(const struct run *, int code, const char *why);

/* From now on, until it is called with NULL: if a signal ends this process while it reads data, the
 * ps that answer within a moment are told what the signal asks for: that the job stops, or that
 * this worker leaves (which ends a job that cannot begin without it). A log line says how many were
 * told. The run is borrowed until the call with NULL, which returns when nothing uses it any more.
 */
void run_tell_signal(const struct run *);

#endif
