/* address.h - "host:port" taken apart. */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include "core/base/error.h"
#include "net/transport.h"

struct address {
    char host[ADDRESS_MAX]; /* without brackets */
    char port[6];           /* decimal, 0 to 65535 */
};

err address_split(const char *address, struct address *ret); /* ERR_INPUT says why not */

/* Numbers and "localhost" (always 127.0.0.1) are answered at once; a name may make the caller wait
 * for the system's resolver, which gives up by the limits of resolv.conf. The result is for
 * freeaddrinfo. ERR_PEER. */
struct addrinfo;
err address_resolve(const struct address *, struct addrinfo **ret);

/* Also a mapped one of version 4. */
struct sockaddr;
bool address_is_loopback(const struct sockaddr *);

/* "pid 4242 (python3)"; process: its number as /proc spells it. */
void process_text(const char *process, char *ret, size_t size);

#endif
