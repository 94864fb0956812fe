/* zookeeper_server.h - what a server of ZooKeeper says to each request: sessions, and nodes that go
 * with them. Connections and time are its caller's.
 */
#ifndef TESTS_NET_ZOOKEEPER_SERVER_H
#define TESTS_NET_ZOOKEEPER_SERVER_H

#include "net/coordinator/jute.h"

enum {
    ZOOKEEPER_NODES_MAX = 256,
    ZOOKEEPER_SESSIONS_MAX = 256,
    ZOOKEEPER_PATH_BYTES = 256,
    ZOOKEEPER_VALUE_BYTES = 512,
    ZOOKEEPER_FRAME_BYTES = 64 << 10,
};

struct zookeeper_node {
    char path[ZOOKEEPER_PATH_BYTES]; /* "": free */
    char value[ZOOKEEPER_VALUE_BYTES];
    int64_t owner; /* the session that it goes with; 0: it stays */
};

struct served_session {
    int64_t id; /* 0: free */
    int kept_ms;
    uint64_t heard_ms;
};

struct zookeeper_server { /* zeroed: one that knows nothing */
    struct zookeeper_node nodes[ZOOKEEPER_NODES_MAX];
    struct served_session sessions[ZOOKEEPER_SESSIONS_MAX];
    int64_t changes, ids;
};

struct zookeeper_peer { /* zeroed: of a new connection */
    int64_t session;
};

/* Of one frame, which is behind its length. The answer begins with its own. false: the connection
 * is to be closed, after what there is of an answer. */
bool zookeeper_server_answer(struct zookeeper_server *, struct zookeeper_peer *, uint64_t now_ms,
                             const unsigned char *frame, size_t bytes, struct jute_out *ret);
/* Sessions of which nothing was heard, with their nodes */
void zookeeper_server_expire(struct zookeeper_server *, uint64_t now_ms);
/* NULL: there is none */
const struct zookeeper_node *zookeeper_server_find(const struct zookeeper_server *,
                                                   const char *path);

#endif
