/* meter.h - how far another host is, and how much its link takes: measured between two programs
 * that do it at the same time.
 *
 * Who measures says 16 bytes: 8 that are always the same, and how many bytes come behind them,
 * lowest first, METER_BYTES_MAX at most. Who is measured reads these, keeps none, and answers with
 * the first 8. So a round trip is a question with no bytes, and a rate one with many. Who says
 * something else is hung up on.
 */
#ifndef NET_METER_H
#define NET_METER_H

#include <stdint.h>

#include "net/transport.h"

enum {
    METER_BYTES_MAX = 256 << 20, /* of one question */
    METER_LINKS_MAX = 1024,      /* that are measured at a time; others are hung up on */
    METER_SILENT_MS = 10000,     /* whoever says nothing for so long is hung up on */
};

/* Answers whoever measures, in a thread of its own. ret_address: with its real port; or NULL.
 * ERR_PEER, ERR_IO: as transport.listen. */
struct meter;
err meter_open(const char *address, char *ret_address, struct meter **ret);
void meter_close(struct meter *); /* NULL is fine */

struct metered {
    double round_trip_s; /* the shortest of some */
    double bytes_s;      /* there */
};
/* Tries for patience_ms until somebody answers, and measures until then, by clock_ms(), at most.
 * ERR_TIMEOUT: nobody did, or not in time; ERR_PEER: no such host; ERR_PROTOCOL: who answers is no
 * meter. */
err meter_measure(const char *address, uint64_t patience_ms, uint64_t until_ms,
                  struct metered *ret);

#endif
