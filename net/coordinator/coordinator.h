/* coordinator.h - a key-value service that all tasks of a cluster share and that outlives them:
 * etcd or ZooKeeper.
 *
 * The first to claim a key owns it. The key is deleted when its owner closes, or has not renewed
 * for COORDINATOR_LEASE_S: so a key has at most one owner at any time, except for one that was cut
 * off and does not know it yet.
 *
 *     etcd://host:2379,host:2379/folder         its JSON gateway, version 3
 *     etcds://host:2379,host:2379/folder        the same by TLS
 *     zookeeper://host:2181,host:2181/folder    its own protocol
 *
 * Credentials come from the environment: ETCDCTL_USER (USER:PASSWORD, or with ETCDCTL_PASSWORD
 * beside it), and for etcds ETCDCTL_CACERT, ETCDCTL_CERT and ETCDCTL_KEY (files), as etcd's own
 * tool reads them; DTRAIN_ZOOKEEPER_AUTH (USER:PASSWORD). No log or error text contains a password.
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
    COORDINATOR_RENEW_MS = 2500, /* how often an owner should renew */
    COORDINATOR_PATH_MAX = 512,  /* bytes of a folder and a key together */
    COORDINATOR_VALUE_MAX = 4096,
    COORDINATOR_KEYS_MAX = 65536, /* in a folder */
};

struct coordinator;

/* ERR_INPUT: the URL is invalid, this build lacks a library that it needs, or the user is refused;
 * ERR_IO: no server answers. */
err coordinator_open(const char *url, struct coordinator **ret);
void coordinator_close(struct coordinator *); /* with all claims; NULL is fine */
/* ERR_INPUT: the URL is invalid; contacts no server. */
err coordinator_check(const char *url);
/* The host of its first server, allocated in the arena: the route there shows the address by which
 * others reach this host. */
const char *coordinator_server(const char *url, struct arena *);

/* key: "folder/name", of letters, digits, "-_." and "/". ret_is_ours false: somebody else owns
 * it. A key that was ours already gets the new value. ERR_IO. */
err coordinator_claim(struct coordinator *, const char *key, const char *value, bool *ret_is_ours);

/* The entries of a folder, unordered, in the arena; a folder never claimed in is empty. ERR_IO. */
struct coordinator_entry {
    const char *name, *value;
};
err coordinator_list(struct coordinator *, const char *folder, struct arena *,
                     struct coordinator_entry **ret, int *ret_count);

/* ret_has_lost: the lease expired and all claims are lost; they can be made again. ERR_IO: no
 * server answers; try again later. */
err coordinator_renew(struct coordinator *, bool *ret_has_lost);

#endif
