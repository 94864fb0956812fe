/* notify.h - a word to whoever watches over this process: systemd, or a scheduler that does it in
 * the same way, by a datagram to the socket that NOTIFY_SOCKET of the environment names.
 */
#ifndef NET_NOTIFY_H
#define NET_NOTIFY_H

#include "core/base/error.h"

/* "READY=1". Also OK where nobody is named. ERR_IO: the socket is named. */
err notify(const char *words);

#endif
