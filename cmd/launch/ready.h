/* ready.h - tells whoever has started this task that it is ready: by the file of --ready_file, and
 * by a datagram to NOTIFY_SOCKET, as services of systemd do.
 *
 *     {"task": "ps/0", "address": "gpu7:40123", "pid": 4242, "http_port": 8080}
 *
 * The file appears, complete, when the task listens. A file left by an earlier process is removed
 * when the task starts, its own when it ends, unless that was replaced meanwhile. SIGKILL leaves it
 * behind.
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

/* ERR_INPUT: the task uses any free port, and without --ready_file nobody would learn which. */
err ready_check(const struct run *);

/* Call it once; nothing to free. ERR_INPUT: the path is, say, a device; ERR_IO: an old file cannot
 * be removed. */
err ready_open(const struct run *, struct ready **ret);
/* address: where others reach it; NULL: it does not listen. ERR_IO: cannot write the file. */
err ready_tell(struct ready *, const char *address);
/* Removes the file. May be called again, in a signal handler, and with NULL: never opened. */
void ready_close(struct ready *);

#endif
