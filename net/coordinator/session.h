/* session.h - a session with a ZooKeeper ensemble: requests and their answers.
 *
 * A session outlives its connections: when a server does not answer or breaks the protocol it
 * continues with the next one, until it expires because the servers have not heard from it for its
 * timeout. No thread keeps it alive: its owner must send something often enough.
 *
 * Servers answer in the order of requests, so several can be in flight. No watch is ever set, so
 * every answer belongs to a request. Limits: SESSION_ANSWER_S for a connection, for a greeting and
 * for each answer, beside the caller's deadline; SESSION_ANSWER_BYTES_MAX.
 */
#ifndef NET_COORDINATOR_SESSION_H
#define NET_COORDINATOR_SESSION_H

#include "net/coordinator/connection.h"
#include "net/coordinator/jute.h"

enum {
    SESSION_ANSWER_S = 4,
    SESSION_CLOSE_S = 2,
    SESSION_ANSWER_BYTES_MAX = 4 << 20,
    SESSION_REQUEST_BYTES = 64 << 10, /* of all requests not yet sent */
    SESSION_PASSWORD_BYTES = 16,
};

/* Request types of the protocol. */
enum session_request {
    SESSION_CREATE = 1,
    SESSION_EXISTS = 3,
    SESSION_GET = 4,
    SESSION_SET = 5,
    SESSION_LIST = 8,
};

/* Error codes of answers; 0 is success. */
enum session_code {
    SESSION_NO_NODE = -101,
    SESSION_NOT_ALLOWED = -102,
    SESSION_NODE_EXISTS = -110,
    SESSION_EXPIRED = -112,
    SESSION_REFUSES_USER = -115,
    SESSION_MOVED = -118,
};

struct zookeeper_session {
    const char *servers; /* "host:port,host:port", borrowed */
    const char *server;  /* in `servers`: the one to use next */
    const char *user;    /* "name:password", borrowed; NULL: no authentication */
    int wanted_ms;       /* session timeout to ask for */
    int least_ms;        /* shortest that is acceptable: the owner pings no faster */
    int64_t id;          /* 0: no session, or it has expired */
    unsigned char password[SESSION_PASSWORD_BYTES];
    int64_t seen; /* zxid: the last change that a server has reported */
    uint64_t heard_ms;
    struct server_connection connection;
    int32_t asked, answered; /* numbers of the last requests */
    struct jute_out out;     /* requests not sent yet */
    size_t begun;            /* offset in out of the last request */
    unsigned char out_bytes[SESSION_REQUEST_BYTES];
    unsigned char *answer; /* the last one received */
    size_t answer_room;
};

/* The caller has zeroed it and set servers, user, wanted_ms and least_ms. */
void session_prepare(struct zookeeper_session *);
/* Opens a new session. ERR_IO: no server grants one; ERR_INPUT: its timeout would be below
 * least_ms, or the user is refused. */
err session_begin(struct zookeeper_session *, uint64_t until_ms);
void session_end(
    struct zookeeper_session *); /* and its ephemeral nodes; fine if there is no session */

/* To be called before any request. ERR_IO, also when the session has expired: then id is 0. */
err session_connect(struct zookeeper_session *, uint64_t until_ms);
/* Begins a request; the caller puts its fields into the result. */
struct jute_out *session_ask(struct zookeeper_session *, enum session_request);
/* Sends all requests begun since. ERR_IO: they are dropped. */
err session_send(struct zookeeper_session *, uint64_t until_ms);
/* The answer to the oldest unanswered request, valid until the next one. ERR_IO, as above;
 * ERR_INPUT: the user is refused. */
err session_answer(struct zookeeper_session *, uint64_t until_ms, int *ret_code,
                   struct jute_in *ret);
/* Keeps it alive. ERR_IO. */
err session_ping(struct zookeeper_session *, uint64_t until_ms);
/* For an answer that does not fit its request: closes the connection. Returns the error. */
err session_broken(struct zookeeper_session *, const char *what);

#endif
