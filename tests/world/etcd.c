/* etcd.c - see etcd.h: leases, transactions that make a key, and ranges. */
#include "tests/world/etcd.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 256 << 10, FIELD_BYTES = 1024 };

static char text[TEXT_BYTES];

/* ---- base64 ---- */

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static const char *encode(const char *from, char ret[FIELD_BYTES * 2])
{
    const size_t bytes = strlen(from);
    char *to = ret;
    for (size_t i = 0; i < bytes; i += 3) {
        const size_t some = bytes - i < 3 ? bytes - i : 3;
        uint32_t all = 0;
        for (size_t k = 0; k < 3; k++) all = all << 8 | (k < some ? (unsigned char)from[i + k] : 0);
        for (size_t k = 0; k < 4; k++) *to++ = k <= some ? digits[all >> (18 - 6 * k) & 63] : '=';
    }
    *to = '\0';
    return ret;
}

static const char *decode(const char *from, char ret[FIELD_BYTES])
{
    uint32_t all = 0;
    int bits = 0;
    char *to = ret;
    for (; from && *from && *from != '=' && to < ret + FIELD_BYTES - 1; from++) {
        all = all << 6 | (uint32_t)(strchr(digits, *from) - digits);
        if ((bits += 6) >= 8) *to++ = (char)(all >> (bits -= 8) & 0xff);
    }
    *to = '\0';
    return ret;
}

/* ---- keys and leases ---- */

static struct zookeeper_node *node_at(struct zookeeper_server *server, const char *key)
{
    return (struct zookeeper_node *)zookeeper_server_find(server, key);
}

static int64_t number(const json_t *asked, const char *name)
{
    const char *digits_there = json_string_value(json_object_get(asked, name));
    return digits_there ? strtoll(digits_there, NULL, 10) : 0;
}

static const char *field(const json_t *asked, const char *name, char ret[FIELD_BYTES])
{
    return decode(json_string_value(json_object_get(asked, name)), ret);
}

static struct served_session *lease_of(struct zookeeper_server *server, const json_t *asked)
{
    const int64_t id = number(asked, "ID");
    for (int i = 0; i < ZOOKEEPER_SESSIONS_MAX && id; i++)
        if (server->sessions[i].id == id) return &server->sessions[i];
    return NULL;
}

static json_t *grant(struct zookeeper_server *server, uint64_t now_ms, const json_t *asked)
{
    char id[24];
    for (int i = 0; i < ZOOKEEPER_SESSIONS_MAX; i++) {
        struct served_session *lease = &server->sessions[i];
        if (lease->id) continue;
        *lease = (struct served_session){++server->ids, (int)number(asked, "TTL") * 1000, now_ms};
        snprintf(id, sizeof id, "%lld", (long long)lease->id);
        return json_pack("{ss ss}", "ID", id, "TTL", "10");
    }
    return json_object();
}

static json_t *keep_alive(struct zookeeper_server *server, uint64_t now_ms, const json_t *asked)
{
    struct served_session *lease = lease_of(server, asked);
    if (!lease) return json_pack("{s{}}", "result");
    lease->heard_ms = now_ms;
    return json_pack("{s{ss}}", "result", "TTL", "10");
}

static json_t *revoke(struct zookeeper_server *server, const json_t *asked)
{
    struct served_session *lease = lease_of(server, asked);
    if (lease) lease->kept_ms = 0;
    zookeeper_server_expire(server, lease ? lease->heard_ms : 0);
    return json_object();
}

static json_t *describe(const struct zookeeper_node *node)
{
    char key[FIELD_BYTES * 2], value[FIELD_BYTES * 2], lease[24];
    snprintf(lease, sizeof lease, "%lld", (long long)node->owner);
    return json_pack("{ss ss ss}", "key", encode(node->path, key), "value",
                     encode(node->value, value), "lease", lease);
}

static bool put(struct zookeeper_server *server, const json_t *asked)
{
    char key[FIELD_BYTES], value[FIELD_BYTES];
    struct zookeeper_node *node = node_at(server, field(asked, "key", key));
    bool has_lease = false;
    for (int i = 0; i < ZOOKEEPER_SESSIONS_MAX; i++)
        has_lease |= server->sessions[i].id == number(asked, "lease");
    for (int i = 0; i < ZOOKEEPER_NODES_MAX && !node; i++)
        if (!server->nodes[i].path[0]) node = &server->nodes[i];
    if (!has_lease || !node) return false;
    snprintf(node->path, sizeof node->path, "%s", key);
    snprintf(node->value, sizeof node->value, "%s", field(asked, "value", value));
    node->owner = number(asked, "lease");
    return true;
}

/* Of one key that was never made, or else what is there. */
static json_t *transact(struct zookeeper_server *server, const json_t *asked, int *ret_status)
{
    char key[FIELD_BYTES];
    const json_t *success = json_array_get(json_object_get(asked, "success"), 0),
                 *put_asked = json_object_get(success, "requestPut");
    const struct zookeeper_node *node = node_at(server, field(put_asked, "key", key));
    if (node)
        return json_pack("{sb s[{s{s[o]}}]}", "succeeded", 0, "responses", "response_range", "kvs",
                         describe(node));
    if (!put(server, put_asked)) *ret_status = 404; /* "requested lease not found" */
    return json_pack("{sb}", "succeeded", 1);
}

static json_t *range(const struct zookeeper_server *server, const json_t *asked)
{
    char first[FIELD_BYTES], end[FIELD_BYTES];
    json_t *found = json_array();
    field(asked, "key", first);
    field(asked, "range_end", end);
    for (int i = 0; i < ZOOKEEPER_NODES_MAX; i++) {
        const struct zookeeper_node *node = &server->nodes[i];
        if (node->path[0] && strcmp(node->path, first) >= 0 && strcmp(node->path, end) < 0)
            json_array_append_new(found, describe(node));
    }
    return json_pack("{so}", "kvs", found);
}

void etcd_answer(struct zookeeper_server *server, uint64_t now_ms, const struct request *request,
                 struct response *response)
{
    json_t *asked = json_loadb(request->body, request->body_bytes, 0, NULL), *said = NULL;
    const char *what = request->target;
    if (strcmp(what, "/v3/lease/grant") == 0) said = grant(server, now_ms, asked);
    if (strcmp(what, "/v3/lease/keepalive") == 0) said = keep_alive(server, now_ms, asked);
    if (strcmp(what, "/v3/lease/revoke") == 0) said = revoke(server, asked);
    if (strcmp(what, "/v3/kv/txn") == 0) said = transact(server, asked, &response->status);
    if (strcmp(what, "/v3/kv/range") == 0) said = range(server, asked);
    if (strcmp(what, "/v3/kv/put") == 0) {
        said = json_object();
        if (!put(server, asked)) response->status = 404;
    }
    if (!said) response->status = 404;
    response->body_bytes = said ? json_dumpb(said, text, sizeof text, JSON_COMPACT) : 0;
    response->body = text;
    json_decref(said);
    json_decref(asked);
}
