/* closing.h - closes Unix sockets that another user has connected to without blocking the loop.
 *
 * Every user of the host can connect to an abstract Unix socket and pass descriptors (SCM_RIGHTS),
 * which this process holds until it closes the socket, received or not. The last close of a TCP
 * connection may block for as long as that user has set (SO_LINGER): no loop may wait for that.
 */
#ifndef NET_CLOSING_H
#define NET_CLOSING_H

#include <stdbool.h>

enum { CLOSING_MAX = 16 }; /* threads blocked in close() at a time */

/* Any connected socket. false: CLOSING_MAX already block, it stays open. */
bool close_accepted(int fd);
/* A listening socket and all connections not yet accepted; stays open in the same case. */
void close_listening(int fd);

#endif
