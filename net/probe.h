/* probe.h - finds which of many addresses accept connections, by connecting to each. */
#ifndef NET_PROBE_H
#define NET_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/transport.h"

enum probe_outcome {
    PROBE_SILENT,      /* no answer within the timeout */
    PROBE_LISTENS,     /* it accepted the connection */
    PROBE_REFUSED,     /* the host answers, nothing listens */
    PROBE_UNREACHABLE, /* text says why */
    PROBE_NO_NAME,     /* the name does not resolve; text says why */
};

struct probe {
    const char *address; /* "host:port"; borrowed */
    enum probe_outcome outcome;
    uint64_t took_ns;    /* until it listened, refused or was unreachable */
    bool is_on_loopback; /* a name that this host resolves to loopback: others resolve it
                            differently */
    char text[128];
};

/* Probes all, several at a time, each with its own timeout_ms. */
void probes_run(struct probe *, int count, uint64_t timeout_ms);

#endif
