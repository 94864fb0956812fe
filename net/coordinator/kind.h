/* kind.h - internal to net/coordinator: the functions that each kind of coordinator implements. */
#ifndef NET_COORDINATOR_KIND_H
#define NET_COORDINATOR_KIND_H

#include "net/coordinator/coordinator.h"

/* As the functions of coordinator.h. servers: "host:port,host:port"; root: "/folder" or "". */
struct coordinator_kind {
    const char *scheme, *tls_scheme; /* tls_scheme: the same over TLS; NULL: none */
    const char *port;                /* default, for a server without one */
    err (*open)(const char *servers, const char *root, bool by_tls, struct coordinator **ret);
    void (*close)(struct coordinator *);
    err (*claim)(struct coordinator *, const char *key, const char *value, bool *ret_is_ours);
    err (*list)(struct coordinator *, const char *folder, struct arena *,
                struct coordinator_entry **ret, int *ret_count);
    err (*renew)(struct coordinator *, bool *ret_has_lost);
};

struct coordinator { /* first member of each kind's struct */
    const struct coordinator_kind *kind;
};

extern const struct coordinator_kind coordinator_etcd, coordinator_zookeeper;

#endif
