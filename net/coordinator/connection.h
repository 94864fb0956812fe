/* connection.h - bytes to and from a server, each wait with an end. After an error nothing is left
 * but to close it.
 */
#ifndef NET_COORDINATOR_CONNECTION_H
#define NET_COORDINATOR_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct server_connection {
    int fd; /* -1: closed */
};

/* until_ms: of clock_ms. ERR_IO. */
err connection_open(struct server_connection *, const char *address, uint64_t until_ms);
void connection_close(struct server_connection *); /* also of one that is closed */
err connection_send(struct server_connection *, const void *from, size_t bytes, uint64_t until_ms);
err connection_receive(struct server_connection *, void *to, size_t bytes, uint64_t until_ms);

#endif
