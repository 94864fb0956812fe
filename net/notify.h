/* notify.h - readiness notification for systemd (sd_notify) and schedulers that follow its
 * protocol: a datagram to the socket named by the environment variable NOTIFY_SOCKET.
 */
#ifndef NET_NOTIFY_H
#define NET_NOTIFY_H

#include "core/base/error.h"

/* words: "READY=1", for instance. OK if NOTIFY_SOCKET is not set. ERR_IO names the socket. */
err notify(const char *words);

#endif
