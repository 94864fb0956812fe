/* ready.h - tells whoever has started this task that it is there: by the file of --ready_file, and
 * as services of systemd do, by a datagram to NOTIFY_SOCKET.
 *
 *     {"task": "ps/0", "address": "gpu7:40123", "pid": 4242, "http_port": 8080}
 *
 * The file is there when the task listens, and whole; what a life before has left is removed when
 * the task starts, the file itself when it ends, unless it is another one by then. SIGKILL leaves
 * it.
 */
#ifndef CMD_LAUNCH_READY_H
#define CMD_LAUNCH_READY_H

#include <limits.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "cmd/cmd.h"

struct ready {
    const struct run *run;  /* until it is closed */
    char path[PATH_MAX];    /* "": no file */
    atomic_bool is_written; /* or is about to be; until it is closed */
    _Atomic(ino_t) file;    /* as it was written; 0: not known yet */
};

/* ERR_INPUT: the task takes any free port and nobody would learn which. */
err ready_check(const struct run *);

/* Once, and there is nothing to free. ERR_INPUT: a device is there, say; ERR_IO: what is left
 * cannot be removed. */
err ready_open(const struct run *, struct ready **ret);
/* address: how others reach it; NULL: it listens nowhere. ERR_IO: the file. */
err ready_tell(struct ready *, const char *address);
/* The file goes; again is fine, and in a signal's handler, and NULL: it was never opened. */
void ready_close(struct ready *);

#endif
