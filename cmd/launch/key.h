/* key.h - the key of a cluster that is started by ssh: generated if the user gives none.
 *
 * It is sent to each task through ssh's standard input, before any letter (keeper.h), and appears
 * in no command line, environment or log. Visitors of the job read it from a file in a folder that
 * only this user can access, which the launcher removes at its end.
 */
#ifndef CMD_LAUNCH_KEY_H
#define CMD_LAUNCH_KEY_H

#include <limits.h>
#include <stddef.h>

#include "cmd/cmd.h"
#include "net/tls.h"

/* The descriptor on which the keeper gives it to the task. */
enum { KEY_DESCRIPTOR = 9 };
extern const char key_word[];

struct launch_key {
    unsigned char text[TLS_KEY_BYTES_MAX];
    size_t bytes;                          /* 0: no key */
    char folder[PATH_MAX], path[PATH_MAX]; /* folder "": the file is the user's own */
};

/* No key if tasks run on this host, have certificates, or --insecure is given. */
err launch_key_open(const struct run *, struct launch_key *ret);
void launch_key_close(struct launch_key *);

/* Writes it to a pipe, which must have room for it. */
err launch_key_send(const struct launch_key *, int pipe);
/* The other end: *ret is a close-on-exec descriptor of a file that holds it. ERR_PEER: the key has
 * not come. */
err launch_key_receive(int pipe, int *ret);

#endif
