/* session.h - a session with the servers of one ZooKeeper: requests, and their answers.
 *
 * A session outlives its connections. It continues with the next server where one does not answer
 * or breaks the protocol, for as long as the servers still know it, and they forget it when nothing
 * was heard of it for its time. No thread keeps it alive: whoever has it asks often enough.
 *
 * Servers answer in the order of requests, so several can be on their way. No watch is ever set:
 * whatever comes was asked for. Limits: SESSION_ANSWER_S for a connection, for a greeting and for
 * each answer, beside the limit of who waits; SESSION_ANSWER_BYTES_MAX.
 */
#ifndef NET_COORDINATOR_SESSION_H
#define NET_COORDINATOR_SESSION_H

#include "net/coordinator/connection.h"
#include "net/coordinator/jute.h"

enum {
    SESSION_ANSWER_S = 4,
    SESSION_CLOSE_S = 2,
    SESSION_ANSWER_BYTES_MAX = 4 << 20,
    SESSION_REQUEST_BYTES = 64 << 10, /* of all that are on their way */
    SESSION_PASSWORD_BYTES = 16,
};

/* What is asked for: numbers of the protocol. */
enum session_request {
    SESSION_CREATE = 1,
    SESSION_EXISTS = 3,
    SESSION_GET = 4,
    SESSION_SET = 5,
    SESSION_LIST = 8,
};

/* How it is answered, beside 0. */
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
    const char *server;  /* in `servers`: whose turn it is */
    const char *user;    /* "name:password", borrowed; NULL: nobody is said */
    int wanted_ms;       /* how long servers are to remember it */
    int least_ms;        /* and must, or whoever has it does not ask often enough */
    int64_t id;          /* 0: there is none, or none any more */
    unsigned char password[SESSION_PASSWORD_BYTES];
    int64_t seen; /* the last change that a server has told of */
    uint64_t heard_ms;
    struct server_connection connection;
    int32_t asked, answered; /* the last requests' numbers */
    struct jute_out out;     /* requests that were not sent yet */
    size_t begun;            /* in out: where the last one begins */
    unsigned char out_bytes[SESSION_REQUEST_BYTES];
    unsigned char *answer; /* the last one */
    size_t answer_room;
};

/* Of one that is zeroed, but for what is wanted of it: servers, user, wanted_ms and least_ms */
void session_prepare(struct zookeeper_session *);
/* A new one. ERR_IO: no server gives one; ERR_INPUT: none that lasts, or not to this user. */
err session_begin(struct zookeeper_session *, uint64_t until_ms);
void session_end(
    struct zookeeper_session *); /* and all that hangs on it; also where there is none */

/* Before anything is asked. ERR_IO, also where the session is over: id is 0 then. */
err session_connect(struct zookeeper_session *, uint64_t until_ms);
/* Begins a request, whose words are put into the result. */
struct jute_out *session_ask(struct zookeeper_session *, enum session_request);
/* Sends what was asked since. ERR_IO: there are no requests any more. */
err session_send(struct zookeeper_session *, uint64_t until_ms);
/* To the first request that has none yet. It stays until the next one. ERR_IO, as above; ERR_INPUT:
 * the user is refused. */
err session_answer(struct zookeeper_session *, uint64_t until_ms, int *ret_code,
                   struct jute_in *ret);
/* Keeps it alive. ERR_IO. */
err session_ping(struct zookeeper_session *, uint64_t until_ms);
/* What came is not an answer to what was asked: nothing of this connection is believed any more. */
err session_broken(struct zookeeper_session *, const char *what);

#endif
