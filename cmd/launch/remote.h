/* remote.h - tasks on the hosts of a file: `dtrain --ssh=ps=2 --hostfile=HOSTS SPEC.json`.
 *
 * The first slots of the file (host_file.h) are parameter servers, the others workers. ssh starts
 * each in the folder that the launcher runs in, by the path that this program has here, so both
 * must be there; no variable of the environment goes along.
 */
#ifndef CMD_LAUNCH_REMOTE_H
#define CMD_LAUNCH_REMOTE_H

#include "cmd/cmd.h"

enum { SSH_FAILED = 255 }; /* exit code of ssh if the connection failed */

/* Reads the host file; sets slots, local_ps and local_workers, as for a local cluster. */
err remote_open(struct run *);

/* ERR_INPUT: a flag is given that only means something beside --ssh. */
err remote_check_absent(const struct run *);

/* Where the task in a slot listens: "host:port", from base_port on; in the arena. */
err remote_address(struct run *, const struct host_slot *, const char **ret);

/* Chooses base_port if none was given: between 10000 and 32000. */
void remote_choose_ports(struct run *);

/* argv of ssh for a task whose own argv is given; NULL-terminated, in the arena. */
err remote_words(struct run *, const struct host_slot *, char **task, char ***ret);

#endif
