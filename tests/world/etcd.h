/* etcd.h - what etcd's JSON gateway says of the keys of a coordinator: a lease is a session there.
 */
#ifndef TESTS_WORLD_ETCD_H
#define TESTS_WORLD_ETCD_H

#include "tests/net/zookeeper_server.h"
#include "tests/world/service.h"

void etcd_answer(struct zookeeper_server *, uint64_t now_ms, const struct request *,
                 struct response *);

#endif
