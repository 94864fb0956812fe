/* coordinator.h - a service that all tasks of a cluster can ask, and that outlives each of them:
 * etcd or ZooKeeper.
 *
 * It keeps small texts by key. A key is claimed by whoever comes first, and goes when its claimant
 * closes, or has not renewed it for COORDINATOR_LEASE_S: so at any time a key has one owner at
 * most, but for one that does not know yet that it was cut off.
 *
 *     etcd://host:2379,host:2379/folder         its JSON gateway, version 3
 *     etcds://host:2379,host:2379/folder        the same by TLS
 *     zookeeper://host:2181,host:2181/folder    its own protocol
 *
 * Who asks is said by the environment: ETCDCTL_USER (USER:PASSWORD, or with ETCDCTL_PASSWORD
 * beside it), and for etcds ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY (files), as etcd's own
 * tool reads them; DTRAIN_ZOOKEEPER_AUTH (USER:PASSWORD). No message has a password.
 *
 * A coordinator belongs to one thread at a time.
 */
#ifndef NET_COORDINATOR_COORDINATOR_H
#define NET_COORDINATOR_COORDINATOR_H

#include <stdbool.h>

#include "core/base/arena.h"
#include "core/base/error.h"

enum {
    COORDINATOR_LEASE_S = 10,
    COORDINATOR_RENEW_MS = 2500, /* how often its owner should */
    COORDINATOR_PATH_MAX = 512,  /* bytes of a folder and a key together */
    COORDINATOR_VALUE_MAX = 4096,
    COORDINATOR_KEYS_MAX = 65536, /* in a folder */
};

struct coordinator;

/* ERR_INPUT: the URL is none of these, or this build lacks what it needs, or who asks may not;
 * ERR_IO: no server answers. */
err coordinator_open(const char *url, struct coordinator **ret);
void coordinator_close(struct coordinator *); /* with all claims; NULL is fine */
/* ERR_INPUT, without asking anybody. */
err coordinator_check(const char *url);
/* The host of its first server, into an arena: the way there tells what address others see us by.
 */
const char *coordinator_server(const char *url, struct arena *);

/* key: "folder/name", of letters, digits, "-_." and "/". is_ours: false: somebody else's. What was
 * ours already has this value from now on. ERR_IO. */
err coordinator_claim(struct coordinator *, const char *key, const char *value, bool *ret_is_ours);

/* What is in a folder, in no order; a folder that was never claimed in is empty. ERR_IO. */
struct coordinator_entry {
    const char *name, *value;
};
err coordinator_list(struct coordinator *, const char *folder, struct arena *,
                     struct coordinator_entry **ret, int *ret_count);

/* ret_has_lost: it was cut off for too long; nothing is claimed any more, and can be anew. ERR_IO:
 * nobody answers; to be tried again. */
err coordinator_renew(struct coordinator *, bool *ret_has_lost);

#endif
