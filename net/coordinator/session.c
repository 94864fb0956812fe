/* session.c - see session.h. */
#include "net/coordinator/session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "net/transport.h"

enum {
    PING = 11,
    CLOSE = -11,
    TELL_USER = 100,
    NUMBER_OF_PING = -2,
    NUMBER_OF_USER = -4,
    SMALL_BYTES = 2048,
    KEPT_BYTES = 64 << 10, /* a larger answer buffer is freed before the next answer */
};

static uint64_t sooner(uint64_t until_ms, int seconds)
{
    const uint64_t then_ms = clock_ms() + (uint64_t)seconds * 1000;
    return then_ms < until_ms ? then_ms : until_ms;
}

static int32_t number_after(int32_t number)
{
    return number == INT32_MAX ? 1 : number + 1;
}

static int server_bytes(const struct zookeeper_session *s)
{
    return (int)strcspn(s->server, ",");
}

static void begin_nothing(struct zookeeper_session *s)
{
    s->out = (struct jute_out){.to = s->out_bytes, .room = sizeof s->out_bytes};
    s->begun = 0;
    s->answered = s->asked;
}

/* Closes it; the next connection goes to the next server. */
static err lose_connection(struct zookeeper_session *s, err why)
{
    const char *comma = strchr(s->server, ',');
    const err e = fail_prefix(why, "zookeeper: %.*s", server_bytes(s), s->server);
    connection_close(&s->connection);
    s->server = comma ? comma + 1 : s->servers;
    begin_nothing(s);
    return e;
}

err session_broken(struct zookeeper_session *s, const char *what)
{
    return lose_connection(s, fail(ERR_IO, "expected an answer of ZooKeeper, got %s", what));
}

/* ---- frames ---- */

static err make_room(struct zookeeper_session *s, size_t bytes)
{
    if (bytes <= s->answer_room && s->answer_room <= KEPT_BYTES) return OK;
    free(s->answer);
    s->answer = malloc(bytes + !bytes);
    s->answer_room = s->answer ? bytes : 0;
    return s->answer ? OK : fail(ERR_MEMORY, "no memory for an answer of ZooKeeper");
}

/* Receives one frame, which begins with its length. */
static err receive(struct zookeeper_session *s, uint64_t until_ms, struct jute_in *ret)
{
    unsigned char length[JUTE_INT_BYTES];
    TRY(connection_receive(&s->connection, length, sizeof length, until_ms));
    const int32_t bytes = jute_int(&(struct jute_in){.at = length, .end = length + sizeof length});
    if (bytes < 0 || bytes > SESSION_ANSWER_BYTES_MAX)
        return fail(ERR_IO, "expected an answer of ZooKeeper of up to %d bytes, got one of %d",
                    SESSION_ANSWER_BYTES_MAX, bytes);
    TRY(make_room(s, (size_t)bytes));
    TRY(connection_receive(&s->connection, s->answer, (size_t)bytes, until_ms));
    *ret = (struct jute_in){.at = s->answer, .end = s->answer + bytes};
    s->heard_ms = clock_ms();
    return OK;
}

static void end_frame(struct jute_out *out, size_t begun)
{
    jute_set_int(out, begun, (int32_t)(out->bytes - begun - JUTE_INT_BYTES));
}

static err send_frame(struct zookeeper_session *s, struct jute_out *out, uint64_t until_ms)
{
    end_frame(out, 0);
    return connection_send(&s->connection, out->to, out->bytes, until_ms);
}

/* The answer to request `number`, which must be the next one in order. */
static err take_answer(struct zookeeper_session *s, int32_t number, uint64_t until_ms,
                       int *ret_code, struct jute_in *ret)
{
    TRY(receive(s, sooner(until_ms, SESSION_ANSWER_S), ret));
    const int32_t answered = jute_int(ret);
    const int64_t seen = jute_long(ret);
    *ret_code = jute_int(ret);
    if (ret->is_torn || answered != number)
        return fail(ERR_IO, "expected the answer to request %d, got that to %d", number, answered);
    if (seen > s->seen) s->seen = seen;
    return OK;
}

/* ---- a connection ---- */

static void put_greeting(const struct zookeeper_session *s, struct jute_out *out)
{
    jute_put_int(out, 0); /* the frame's length, as below */
    jute_put_int(out, 0); /* version of the protocol */
    jute_put_long(out, s->seen);
    jute_put_int(out, s->wanted_ms);
    jute_put_long(out, s->id);
    jute_put_bytes(out, s->password, sizeof s->password);
    jute_put_bool(out, false); /* a server that only reads will not do */
}

/* A server that no longer knows the session answers with timeout 0 or with another session id. */
static err read_greeting(struct zookeeper_session *s, struct jute_in *in)
{
    size_t bytes;
    jute_skip(in, JUTE_INT_BYTES);
    const int32_t kept_ms = jute_int(in);
    const int64_t id = jute_long(in);
    const char *password = jute_bytes(in, &bytes);
    if (in->is_torn || bytes != sizeof s->password)
        return fail(ERR_IO, "expected a greeting of ZooKeeper, got something else");
    const bool is_known = kept_ms > 0 && id && (!s->id || id == s->id);
    if (!is_known) {
        const bool was_one = s->id != 0;
        s->id = 0;
        return fail(ERR_IO, was_one ? "the session has expired" : "it gives no session");
    }
    if (kept_ms < s->least_ms)
        return fail(ERR_INPUT,
                    "its sessions last %d ms, expected %d or more (maxSessionTimeout of its "
                    "configuration)",
                    kept_ms, s->least_ms);
    s->id = id;
    memcpy(s->password, password, sizeof s->password);
    return OK;
}

static err greet(struct zookeeper_session *s, uint64_t until_ms)
{
    unsigned char bytes[SMALL_BYTES];
    struct jute_out out = {.to = bytes, .room = sizeof bytes};
    struct jute_in in;
    put_greeting(s, &out);
    TRY(send_frame(s, &out, until_ms));
    TRY(receive(s, until_ms, &in));
    return read_greeting(s, &in);
}

/* Servers accept any user here; permissions are checked when a node is accessed. */
static err tell_user(struct zookeeper_session *s, uint64_t until_ms)
{
    unsigned char bytes[SMALL_BYTES];
    struct jute_out out = {.to = bytes, .room = sizeof bytes};
    struct jute_in in;
    int code;
    jute_put_int(&out, 0);
    jute_put_int(&out, NUMBER_OF_USER);
    jute_put_int(&out, TELL_USER);
    jute_put_int(&out, 0); /* type, always 0 */
    jute_put_text(&out, "digest");
    jute_put_text(&out, s->user);
    if (out.is_full) return fail(ERR_INPUT, "DTRAIN_ZOOKEEPER_AUTH is too long");
    TRY(send_frame(s, &out, until_ms));
    TRY(take_answer(s, NUMBER_OF_USER, until_ms, &code, &in));
    return code ? fail(ERR_INPUT, "refuses these credentials (DTRAIN_ZOOKEEPER_AUTH)") : OK;
}

static err connect_here(struct zookeeper_session *s, uint64_t until_ms)
{
    char address[ADDRESS_MAX];
    snprintf(address, sizeof address, "%.*s", server_bytes(s), s->server);
    err e = connection_open(&s->connection, address, sooner(until_ms, SESSION_ANSWER_S));
    if (!e) e = greet(s, sooner(until_ms, SESSION_ANSWER_S));
    if (!e && s->user) e = tell_user(s, until_ms);
    return e;
}

/* Tries each server once, or stops when one says that the session has expired. */
static err connect_anywhere(struct zookeeper_session *s, uint64_t until_ms)
{
    const char *const first = s->server;
    const int64_t id = s->id;
    err e;
    do {
        e = connect_here(s, until_ms);
        if (!e) return OK;
        e = lose_connection(s, e);
    } while (e == ERR_IO && s->id == id && s->server != first && clock_ms() < until_ms);
    return e;
}

err session_connect(struct zookeeper_session *s, uint64_t until_ms)
{
    if (s->connection.fd >= 0) return OK;
    if (!s->id) return fail(ERR_IO, "zookeeper: %s: no session", s->servers);
    return connect_anywhere(s, until_ms);
}

/* ---- requests ---- */

static void begin_request(struct zookeeper_session *s, int32_t number, int32_t what)
{
    if (s->out.bytes) end_frame(&s->out, s->begun);
    s->begun = s->out.bytes;
    jute_put_int(&s->out, 0); /* the frame's length, set when it is complete */
    jute_put_int(&s->out, number);
    jute_put_int(&s->out, what);
}

struct jute_out *session_ask(struct zookeeper_session *s, enum session_request what)
{
    s->asked = number_after(s->asked);
    begin_request(s, s->asked, what);
    return &s->out;
}

err session_send(struct zookeeper_session *s, uint64_t until_ms)
{
    if (s->out.is_full) return lose_connection(s, fail(ERR_IO, "too much is asked at once"));
    end_frame(&s->out, s->begun);
    const err e = connection_send(&s->connection, s->out.to, s->out.bytes,
                                  sooner(until_ms, SESSION_ANSWER_S));
    if (e) return lose_connection(s, e);
    s->out.bytes = s->begun = 0;
    return OK;
}

/* Handles codes after which this connection cannot be used. */
static err look_at_code(struct zookeeper_session *s, int code)
{
    if (code == SESSION_EXPIRED) s->id = 0;
    if (code == SESSION_EXPIRED) return fail(ERR_IO, "the session has expired");
    if (code == SESSION_MOVED) return fail(ERR_IO, "the session has moved to another server");
    return code == SESSION_REFUSES_USER
               ? fail(ERR_INPUT, "refuses these credentials (DTRAIN_ZOOKEEPER_AUTH)")
               : OK;
}

static err answer_to(struct zookeeper_session *s, int32_t number, uint64_t until_ms, int *ret_code,
                     struct jute_in *ret)
{
    err e = take_answer(s, number, until_ms, ret_code, ret);
    if (!e) e = look_at_code(s, *ret_code);
    return e ? lose_connection(s, e) : OK;
}

err session_answer(struct zookeeper_session *s, uint64_t until_ms, int *ret_code,
                   struct jute_in *ret)
{
    s->answered = number_after(s->answered);
    return answer_to(s, s->answered, until_ms, ret_code, ret);
}

err session_ping(struct zookeeper_session *s, uint64_t until_ms)
{
    int code;
    struct jute_in in;
    TRY(session_connect(s, until_ms));
    begin_request(s, NUMBER_OF_PING, PING);
    TRY(session_send(s, until_ms));
    return answer_to(s, NUMBER_OF_PING, until_ms, &code, &in);
}

/* ---- sessions ---- */

void session_prepare(struct zookeeper_session *s)
{
    s->server = s->servers;
    s->connection.fd = -1;
    begin_nothing(s);
}

err session_begin(struct zookeeper_session *s, uint64_t until_ms)
{
    connection_close(&s->connection);
    s->id = s->seen = 0;
    memset(s->password, 0, sizeof s->password);
    begin_nothing(s);
    return connect_anywhere(s, until_ms);
}

/* If this does not arrive the session expires by itself; the text of an earlier error is kept. */
void session_end(struct zookeeper_session *s)
{
    char said[ERROR_TEXT_MAX];
    int code;
    struct jute_in in;
    snprintf(said, sizeof said, "%s", error_text());
    if (s->connection.fd >= 0) {
        const uint64_t until_ms = clock_ms() + SESSION_CLOSE_S * 1000;
        s->asked = number_after(s->asked);
        begin_request(s, s->asked, CLOSE);
        if (!session_send(s, until_ms)) (void)!session_answer(s, until_ms, &code, &in);
    }
    connection_close(&s->connection);
    free(s->answer);
    (void)fail(ERR_IO, "%s", said);
}
