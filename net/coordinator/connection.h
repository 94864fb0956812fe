/* connection.h - a TCP connection to a server, every wait with a deadline. After an error the only
 * valid call is connection_close().
 */
#ifndef NET_COORDINATOR_CONNECTION_H
#define NET_COORDINATOR_CONNECTION_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/error.h"

struct server_connection {
    int fd; /* -1: closed */
};

/* until_ms: deadline by clock_ms(). ERR_IO. */
err connection_open(struct server_connection *, const char *address, uint64_t until_ms);
void connection_close(struct server_connection *); /* also if it is closed already */
err connection_send(struct server_connection *, const void *from, size_t bytes, uint64_t until_ms);
err connection_receive(struct server_connection *, void *to, size_t bytes, uint64_t until_ms);

#endif
