/* address.h - parsing and resolving "host:port". */
#ifndef NET_ADDRESS_H
#define NET_ADDRESS_H

#include "core/base/error.h"
#include "net/transport.h"

struct address {
    char host[ADDRESS_MAX]; /* without brackets */
    char port[6];           /* decimal, 0 to 65535 */
};

err address_split(const char *address, struct address *ret); /* ERR_INPUT says why not */

/* Numeric addresses and "localhost" (always 127.0.0.1) return at once; a name may block in the
 * system's resolver, within the timeouts of resolv.conf. The caller frees the result with
 * freeaddrinfo. ERR_PEER. */
struct addrinfo;
err address_resolve(const struct address *, struct addrinfo **ret);

/* Also for an IPv4-mapped IPv6 address. */
struct sockaddr;
bool address_is_loopback(const struct sockaddr *);

/* "pid 4242 (python3)"; process: its pid as text. */
void process_text(const char *process, char *ret, size_t size);

#endif
