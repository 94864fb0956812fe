/* zookeeper_server.c - see zookeeper_server.h. */
#include "tests/net/zookeeper_server.h"

#include <stdio.h>
#include <string.h>

enum { CREATE = 1, EXISTS = 3, GET = 4, SET = 5, LIST = 8, PING = 11, USER = 100 };
enum { CLOSE = -11, NO_NODE = -101, NODE_EXISTS = -110, EXPIRED = -112, BROKEN = -5 };
enum { PASSWORD_BYTES = 16, KEPT_MOST_MS = 40000 };

static struct zookeeper_node *find(struct zookeeper_server *server, const char *path)
{
    for (int i = 0; i < ZOOKEEPER_NODES_MAX; i++)
        if (server->nodes[i].path[0] && strcmp(server->nodes[i].path, path) == 0)
            return &server->nodes[i];
    return NULL;
}

const struct zookeeper_node *zookeeper_server_find(const struct zookeeper_server *server,
                                                   const char *path)
{
    return find((struct zookeeper_server *)server, path);
}

static struct served_session *session_of(struct zookeeper_server *server, int64_t id)
{
    for (int i = 0; i < ZOOKEEPER_SESSIONS_MAX; i++)
        if (server->sessions[i].id == id) return &server->sessions[i];
    return NULL;
}

static void end_session(struct zookeeper_server *server, struct served_session *session)
{
    for (int i = 0; i < ZOOKEEPER_NODES_MAX; i++)
        if (server->nodes[i].owner == session->id) server->nodes[i].path[0] = '\0';
    session->id = 0;
    server->changes++;
}

void zookeeper_server_expire(struct zookeeper_server *server, uint64_t now_ms)
{
    for (int i = 0; i < ZOOKEEPER_SESSIONS_MAX; i++) {
        struct served_session *session = &server->sessions[i];
        const bool is_silent = now_ms >= session->heard_ms + (uint64_t)session->kept_ms;
        if (session->id && is_silent) end_session(server, session);
    }
}

/* ---- greeting ---- */

static void write_password(int64_t id, unsigned char to[PASSWORD_BYTES])
{
    for (int i = 0; i < PASSWORD_BYTES; i++) to[i] = (unsigned char)(id * 31 + i);
}

static struct served_session *find_again(struct zookeeper_server *server, int64_t id,
                                         const char *password, size_t bytes)
{
    unsigned char known[PASSWORD_BYTES];
    struct served_session *session = session_of(server, id);
    write_password(id, known);
    const bool is_it = bytes == sizeof known && memcmp(known, password, sizeof known) == 0;
    return is_it ? session : NULL;
}

static bool greet(struct zookeeper_server *server, struct zookeeper_peer *peer, uint64_t now_ms,
                  struct jute_in *in, struct jute_out *out)
{
    unsigned char password[PASSWORD_BYTES] = {0};
    size_t bytes;
    jute_skip(in, JUTE_INT_BYTES);
    const int64_t seen = jute_long(in);
    const int32_t wanted_ms = jute_int(in);
    const int64_t id = jute_long(in);
    const char *said = jute_bytes(in, &bytes);
    if (in->is_torn || seen > server->changes) return false;
    struct served_session *session =
        id ? find_again(server, id, said, bytes) : session_of(server, 0);
    if (session && !id) *session = (struct served_session){++server->ids, wanted_ms, now_ms};
    if (session && session->kept_ms > KEPT_MOST_MS) session->kept_ms = KEPT_MOST_MS;
    if (session) write_password(session->id, password);
    peer->session = session ? session->id : 0;
    jute_put_int(out, 0);
    jute_put_int(out, session ? session->kept_ms : 0);
    jute_put_long(out, peer->session);
    jute_put_bytes(out, password, sizeof password);
    jute_put_bool(out, false);
    return session != NULL;
}

/* ---- nodes ---- */

static void put_stat(struct jute_out *out, const struct zookeeper_node *node)
{
    for (int i = 0; i < 4; i++) jute_put_long(out, 7);
    for (int i = 0; i < 3; i++) jute_put_int(out, 0);
    jute_put_long(out, node->owner);
    jute_put_int(out, (int32_t)strlen(node->value));
    jute_put_int(out, 0);
    jute_put_long(out, 7);
}

static void read_text(struct jute_in *in, char *to, size_t size)
{
    size_t bytes;
    const char *from = jute_bytes(in, &bytes);
    snprintf(to, size, "%.*s", (int)bytes, from ? from : "");
}

static bool has_folder(struct zookeeper_server *server, const char *path)
{
    char folder[ZOOKEEPER_PATH_BYTES];
    const char *slash = strrchr(path, '/');
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - path) : 0, path);
    return !folder[0] || find(server, folder);
}

static int create(struct zookeeper_server *server, int64_t session, const char *path,
                  struct jute_in *in, struct jute_out *out)
{
    char value[ZOOKEEPER_VALUE_BYTES], word[ZOOKEEPER_VALUE_BYTES];
    read_text(in, value, sizeof value);
    const int rules = jute_count(in, JUTE_INT_BYTES);
    for (int i = 0; i < rules; i++) {
        jute_skip(in, JUTE_INT_BYTES);
        read_text(in, word, sizeof word);
        read_text(in, word, sizeof word);
    }
    const int flags = jute_int(in);
    if (in->is_torn || rules < 1) return BROKEN;
    if (find(server, path)) return NODE_EXISTS;
    if (!has_folder(server, path)) return NO_NODE;
    for (int i = 0; i < ZOOKEEPER_NODES_MAX; i++) {
        struct zookeeper_node *node = &server->nodes[i];
        if (node->path[0]) continue;
        memcpy(node->path, path, ZOOKEEPER_PATH_BYTES);
        memcpy(node->value, value, sizeof value);
        node->owner = flags & 1 ? session : 0;
        server->changes++;
        jute_put_text(out, path);
        return 0;
    }
    return BROKEN;
}

/* Those right in it. */
static void list(const struct zookeeper_server *server, const char *folder, struct jute_out *out)
{
    const size_t bytes = strlen(folder), count_at = out->bytes;
    int count = 0;
    jute_put_int(out, 0);
    for (int i = 0; i < ZOOKEEPER_NODES_MAX; i++) {
        const char *path = server->nodes[i].path;
        const bool is_in = strncmp(path, folder, bytes) == 0 && path[bytes] == '/';
        if (!is_in || strchr(path + bytes + 1, '/')) continue;
        jute_put_text(out, path + bytes + 1);
        count++;
    }
    jute_set_int(out, count_at, count);
}

static int answer_of_node(struct zookeeper_server *server, int64_t session, int what,
                          struct jute_in *in, struct jute_out *out)
{
    char path[ZOOKEEPER_PATH_BYTES];
    read_text(in, path, sizeof path);
    struct zookeeper_node *node = find(server, path);
    if (in->is_torn) return BROKEN;
    if (what == CREATE) return create(server, session, path, in, out);
    if (!node) return NO_NODE;
    if (what == SET) {
        read_text(in, node->value, sizeof node->value);
        server->changes++;
    }
    if (what == GET) jute_put_text(out, node->value);
    if (what == LIST)
        list(server, path, out);
    else
        put_stat(out, node);
    return 0;
}

static bool answer_request(struct zookeeper_server *server, struct zookeeper_peer *peer,
                           uint64_t now_ms, struct jute_in *in, struct jute_out *out)
{
    struct served_session *session = session_of(server, peer->session);
    const int32_t number = jute_int(in), what = jute_int(in);
    int code = 0;
    jute_put_int(out, number);
    const size_t rest_at = out->bytes;
    jute_put_long(out, 0);
    jute_put_int(out, 0);
    if (!session) code = EXPIRED;
    if (session) session->heard_ms = now_ms;
    if (session && what == CLOSE) end_session(server, session);
    if (session && what != CLOSE && what != PING && what != USER)
        code = answer_of_node(server, session->id, what, in, out);
    jute_set_int(out, rest_at, (int32_t)(server->changes >> 32));
    jute_set_int(out, rest_at + JUTE_INT_BYTES, (int32_t)server->changes);
    jute_set_int(out, rest_at + JUTE_LONG_BYTES, code);
    return session && what != CLOSE;
}

bool zookeeper_server_answer(struct zookeeper_server *server, struct zookeeper_peer *peer,
                             uint64_t now_ms, const unsigned char *frame, size_t bytes,
                             struct jute_out *ret)
{
    struct jute_in in = {.at = frame, .end = frame + bytes};
    const size_t begun = ret->bytes;
    jute_put_int(ret, 0);
    const size_t after = ret->bytes;
    const bool goes_on = peer->session ? answer_request(server, peer, now_ms, &in, ret)
                                       : greet(server, peer, now_ms, &in, ret);
    if (ret->bytes == after)
        ret->bytes = begun; /* it says nothing */
    else
        jute_set_int(ret, begun, (int32_t)(ret->bytes - after));
    return goes_on;
}
