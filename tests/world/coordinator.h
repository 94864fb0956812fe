/* coordinator.h - where tasks find each other: a server that answers as ZooKeeper's do, and as
 * etcd's, of the same keys.
 *
 * It is down, silent, or forgets everything and comes back. While it is down or silent nothing
 * expires: like servers that were started again it counts from when it is back.
 */
#ifndef TESTS_WORLD_COORDINATOR_H
#define TESTS_WORLD_COORDINATOR_H

#include <stdint.h>

#include "tests/world/machine.h"

enum { COORDINATOR_HOST = HOSTS_MAX - 2 };
#define COORDINATOR_ZOOKEEPER "zookeeper://h14:2181/world"
#define COORDINATOR_ETCD "etcd://h14:2379/world"

enum coordinator_trouble {
    COORDINATOR_DOWN,    /* connections are reset, and refused */
    COORDINATOR_SILENT,  /* it hears, and does not answer what it has done */
    COORDINATOR_FORGETS, /* down, and then knows nothing */
    COORDINATOR_TROUBLES
};

void coordinator_start(void); /* knowing nothing */
void coordinator_fail(enum coordinator_trouble, uint64_t until_ns);
void coordinator_heal(void);
/* Of a key, as "/world/small/ps/0"; NULL: there is none */
const char *coordinator_value(const char *key);

#endif
