/* place.h - a task that is in the list of hosts but not yet in the membership. */
#ifndef CMD_LAUNCH_PLACE_H
#define CMD_LAUNCH_PLACE_H

#include "cmd/cmd.h"

/* Waits until the job is resized to a membership that includes this task, and adopts it. Returns at
 * once if it is included. ret_has_place false: the job ended first, with *ret_code. ERR_TIMEOUT:
 * ps/0 never answered; ERR_PEER: it was lost. */
err run_await_place(struct run *, bool *ret_has_place, int *ret_code);

#endif
