/* key.h - the key of a cluster that is started by ssh: made for it where the user gives none.
 *
 * It goes to each task by what ssh reads, before any letter (keeper.h), and is in no command line,
 * environment or log. Who visits the job has it from a file in a folder that only this user may
 * look into, which goes with the launcher.
 */
#ifndef CMD_LAUNCH_KEY_H
#define CMD_LAUNCH_KEY_H

#include <limits.h>
#include <stddef.h>

#include "cmd/cmd.h"
#include "net/tls.h"

/* What says it to a task: a descriptor that its keeper opens. */
enum { KEY_DESCRIPTOR = 9 };
extern const char key_word[];

struct launch_key {
    unsigned char text[TLS_KEY_BYTES_MAX];
    size_t bytes;                          /* 0: there is none */
    char folder[PATH_MAX], path[PATH_MAX]; /* "": the file is the user's */
};

/* None where tasks are of this host, or have certificates, or shall do without. */
err launch_key_open(const struct run *, struct launch_key *ret);
void launch_key_close(struct launch_key *);

/* Through a pipe with room for it. */
err launch_key_send(const struct launch_key *, int pipe);
/* The other end: a descriptor of a file that holds it; closed by exec. ERR_PEER: it has not come.
 */
err launch_key_receive(int pipe, int *ret);

#endif
