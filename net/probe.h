/* probe.h - which of many addresses answer: a connection is made to each and closed again. */
#ifndef NET_PROBE_H
#define NET_PROBE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/transport.h"

enum probe_outcome {
    PROBE_SILENT,      /* within the time */
    PROBE_LISTENS,     /* somebody */
    PROBE_REFUSED,     /* the host is there */
    PROBE_UNREACHABLE, /* text says why */
    PROBE_NO_NAME,     /* text */
};

struct probe {
    const char *address; /* "host:port"; borrowed */
    enum probe_outcome outcome;
    uint64_t took_ns;    /* until it listened, refused or was unreachable */
    bool is_on_loopback; /* of a name that does not say so: other hosts find it elsewhere */
    char text[128];
};

/* All of them, some at a time, each of which is given timeout_ms. */
void probes_run(struct probe *, int count, uint64_t timeout_ms);

#endif
