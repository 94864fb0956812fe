/* meter.h - measures latency and bandwidth to another host, on which a second program answers.
 *
 * The measuring side sends a question of 16 bytes: 8 fixed ones and, little-endian, how many bytes
 * follow, at most METER_BYTES_MAX; then these. The other side reads and discards them and answers
 * with the 8 fixed bytes. A question without bytes measures the round trip, one with many the rate.
 * Connections that send anything else are closed.
 */
#ifndef NET_METER_H
#define NET_METER_H

#include <stdint.h>

#include "net/transport.h"

enum {
    METER_BYTES_MAX = 256 << 20, /* after one question */
    METER_LINKS_MAX = 1024,      /* connections at a time; further ones are closed */
    METER_SILENT_MS = 10000,     /* a connection idle for this long is closed */
};

/* Answers measurements in a thread of its own. ret_address: gets the address with its real port;
 * may be NULL. ERR_PEER, ERR_IO: as transport.listen. */
struct meter;
err meter_open(const char *address, char *ret_address, struct meter **ret);
void meter_close(struct meter *); /* NULL is fine */

struct metered {
    double round_trip_s; /* the shortest of several */
    double bytes_s;      /* rate towards the other host */
};
/* Tries to connect for patience_ms, then measures until until_ms (clock_ms()) at most. ERR_TIMEOUT:
 * no answer, or not in time; ERR_PEER: no such host; ERR_PROTOCOL: the listener is not a meter. */
err meter_measure(const char *address, uint64_t patience_ms, uint64_t until_ms,
                  struct metered *ret);

#endif
