/* place.h - a task that is listed and takes no part yet. */
#ifndef CMD_LAUNCH_PLACE_H
#define CMD_LAUNCH_PLACE_H

#include "cmd/cmd.h"

/* Waits until the job is resized to a membership with a place for this task, which it then is of.
 * Returns at once where it has one. ret_has_place: false: the job has ended before, with *ret_code.
 * ERR_TIMEOUT: ps/0 was never there; ERR_PEER: it was lost. */
err run_await_place(struct run *, bool *ret_has_place, int *ret_code);

#endif
