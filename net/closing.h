/* closing.h - how a Unix socket that another user has reached is given back.
 *
 * A name that stands in no folder is open to every user of the host, and what he passes there
 * (SCM_RIGHTS) belongs to this process until it is closed, taken or not. The last close of a TCP
 * connection takes as long as he has it linger (SO_LINGER): no loop may wait for that.
 */
#ifndef NET_CLOSING_H
#define NET_CLOSING_H

#include <stdbool.h>

enum { CLOSING_MAX = 16 }; /* that wait at a time */

/* Of any kind, whoever the peer is. false: too many wait, it stays open. */
bool close_accepted(int fd);
/* Of a socket that listens, with all who have not been accepted yet; or it stays open, too. */
void close_listening(int fd);

#endif
