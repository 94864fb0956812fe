/* etcd.c - claims in etcd: keys that hang on a lease, through the JSON gateway of its version 3.
 *
 * In this JSON 64-bit numbers are strings, keys and values base64. A claim is a transaction: put if
 * the key does not exist, else get its owner. So a claim whose answer was lost can be repeated.
 */
#include <inttypes.h>
#include <jansson.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json_foreign.h"
#include "net/coordinator/kind.h"
#include "net/http.h"

enum {
    ANSWER_BYTES = 32 << 20, /* enough for a folder of COORDINATOR_KEYS_MAX */
    SMALL_ANSWER_BYTES = 64 << 10,
    ANSWER_S = 4,
    LEASE_DIGITS_MAX = 24,
    URL_BYTES = 300,
    TOKEN_BYTES = 4096,
};

struct etcd {
    struct coordinator base;
    struct arena arena;
    const char *servers, *root;
    const char *server; /* in `servers`: the one that answered last */
    bool is_silent;     /* none answered the last request */
    int status;         /* HTTP status of the last answer */
    char lease[LEASE_DIGITS_MAX];
    const char *scheme; /* "http" or "https" */
    struct http_tls tls;
    const char *user, *password; /* NULL: no authentication */
    char token[TOKEN_BYTES];     /* the user's, expires; "": none yet */
};

/* ---- requests ---- */

static const char *server_after(const struct etcd *c, const char *server)
{
    const char *comma = strchr(server, ',');
    return comma ? comma + 1 : c->servers;
}

static err read_answer(const struct http_call *call, json_t **ret)
{
    if (call->answer.is_cut) return fail(ERR_IO, "%s: an answer too large", call->shown);
    if (!json_read_foreign(call->to, call->answer.bytes, 0, ret)) return OK;
    return fail_prefix(ERR_IO, "%s: an answer that is not JSON", call->shown);
}

/* etcd answers 400, 401 or 403 to an unknown or unauthorised user. */
static err refused(const struct etcd *c, const struct http_call *call)
{
    const err e = http_refused(call);
    if (call->answer.status != 400 && call->answer.status != 401 && call->answer.status != 403)
        return e;
    return c->user ? ERR_INPUT : fail_prefix(ERR_INPUT, "without ETCDCTL_USER");
}

static err ask_server(struct etcd *c, const char *what, const char *body, size_t max, json_t **ret)
{
    char url[URL_BYTES], proof[TOKEN_BYTES + sizeof "Authorization: "];
    void *answer = malloc(max);
    if (!answer) return fail(ERR_MEMORY, "no memory for an answer of etcd");
    snprintf(url, sizeof url, "%s://%.*s/v3/%s", c->scheme, (int)strcspn(c->server, ","), c->server,
             what);
    snprintf(proof, sizeof proof, "Authorization: %s", c->token);
    struct http_call call = {.method = "POST",
                             .url = url,
                             .shown = url,
                             .headers = {c->token[0] ? proof : NULL},
                             .keeps_redirect = true,
                             .tls = &c->tls,
                             .secret = c->token[0] ? c->token : c->password,
                             .lends = c->user && !c->token[0],
                             .body = body,
                             .body_bytes = strlen(body),
                             .body_type = "application/json",
                             .try_s = ANSWER_S,
                             .tries_max = 1,
                             .to = answer,
                             .max = max};
    err e = http_start(&call);
    if (!e) e = http_wait(&call);
    c->status = e ? 0 : call.answer.status;
    if (!e && call.answer.status >= 300) e = refused(c, &call);
    if (!e) e = read_answer(&call, ret);
    http_drop(&call);
    free(answer);
    return e;
}

/* Asks the server that answered last, then each of the others once. */
static err ask_servers(struct etcd *c, const char *what, const char *body, size_t max, json_t **ret)
{
    const char *const first = c->server;
    err e = ERR_IO;
    while (e == ERR_IO) {
        e = ask_server(c, what, body, max, ret);
        if (e == ERR_IO) c->server = server_after(c, c->server);
        if (c->server == first) break;
    }
    c->is_silent = e == ERR_IO;
    return e;
}

static err fail_memory(void)
{
    return fail(ERR_MEMORY, "no memory for a request to etcd");
}

static err log_in(struct etcd *c)
{
    json_t *answer, *body = json_pack("{ss ss}", "name", c->user, "password", c->password);
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    c->token[0] = '\0';
    const err e = text ? ask_servers(c, "auth/authenticate", text, SMALL_ANSWER_BYTES, &answer)
                       : fail_memory();
    free(text);
    if (e) return fail_prefix(e, "user %.64s", c->user);
    const char *token = json_string_value(json_object_get(answer, "token"));
    const bool is_token = token && strlen(token) < sizeof c->token && !strpbrk(token, "\r\n");
    if (is_token) strcpy(c->token, token);
    json_decref(answer);
    return is_token ? OK : fail(ERR_IO, "etcd has given no token to user %.64s", c->user);
}

/* A token expires, and is void when its server restarts or when any permission changes. */
static err ask_as_user(struct etcd *c, const char *what, const char *body, size_t max, json_t **ret)
{
    if (!c->token[0]) TRY(log_in(c));
    const err e = ask_servers(c, what, body, max, ret);
    if (e != ERR_INPUT) return e;
    TRY(log_in(c));
    return ask_servers(c, what, body, max, ret);
}

/* Takes ownership of the body. */
static err ask(struct etcd *c, const char *what, json_t *body, size_t max, json_t **ret)
{
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    json_decref(body);
    const err e = !text     ? fail_memory()
                  : c->user ? ask_as_user(c, what, text, max, ret)
                            : ask_servers(c, what, text, max, ret);
    free(text);
    return e;
}

/* ---- who asks ---- */

static const char *of_environment(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static err read_user(struct etcd *c)
{
    const char *user = of_environment("ETCDCTL_USER");
    const char *colon = user ? strchr(user, ':') : NULL;
    c->password = user ? of_environment("ETCDCTL_PASSWORD") : NULL;
    c->user = user;
    if (!user || c->password) return OK;
    if (!colon)
        return fail(ERR_INPUT, "ETCDCTL_USER=%.64s: expected USER:PASSWORD, or ETCDCTL_PASSWORD",
                    user);
    c->password = colon + 1;
    c->user = arena_format(&c->arena, "%.*s", (int)(colon - user), user);
    return OK;
}

static void read_tls(struct etcd *c)
{
    c->tls.authorities = of_environment("ETCDCTL_CACERT");
    c->tls.certificate = of_environment("ETCDCTL_CERT");
    c->tls.key = of_environment("ETCDCTL_KEY");
}

/* ---- texts ---- */

static json_t *base64(const char *text)
{
    unsigned char out[4 * (COORDINATOR_VALUE_MAX + COORDINATOR_PATH_MAX) / 3 + 5];
    const size_t bytes = strlen(text);
    if (bytes > COORDINATOR_VALUE_MAX) return NULL;
    EVP_EncodeBlock(out, (const unsigned char *)text, (int)bytes);
    return json_string((const char *)out);
}

/* NULL: not base64 text. */
static const char *from_base64(const json_t *json, struct arena *arena)
{
    const char *text = json_string_value(json);
    const size_t bytes = text ? strlen(text) : 0;
    if (!text || bytes > 2 * COORDINATOR_VALUE_MAX) return NULL;
    char *out = arena_new(arena, bytes + 1);
    const int made = EVP_DecodeBlock((unsigned char *)out, (const unsigned char *)text, (int)bytes);
    if (made < 0) return NULL;
    size_t padding = 0;
    while (padding < 2 && padding < bytes && text[bytes - 1 - padding] == '=') padding++;
    out[(size_t)made - padding] = '\0';
    return out;
}

static const char *key_text(const struct etcd *c, const char *key, char ret[COORDINATOR_PATH_MAX])
{
    snprintf(ret, COORDINATOR_PATH_MAX, "%s/%s", c->root, key);
    return ret;
}

/* ---- the lease ---- */

static err grant(struct etcd *c)
{
    char ttl[12];
    json_t *answer;
    snprintf(ttl, sizeof ttl, "%d", COORDINATOR_LEASE_S);
    TRY(ask(c, "lease/grant", json_pack("{ss}", "TTL", ttl), SMALL_ANSWER_BYTES, &answer));
    const char *id = json_string_value(json_object_get(answer, "ID"));
    const bool is_id = id && strlen(id) < sizeof c->lease;
    if (is_id) strcpy(c->lease, id);
    json_decref(answer);
    return is_id ? OK : fail(ERR_IO, "etcd has given no lease");
}

/* If this fails the lease expires by itself; the text of an earlier error is kept. */
static void revoke(struct etcd *c)
{
    json_t *answer = NULL;
    char said[ERROR_TEXT_MAX];
    snprintf(said, sizeof said, "%s", error_text());
    if (!ask(c, "lease/revoke", json_pack("{ss}", "ID", c->lease), SMALL_ANSWER_BYTES, &answer))
        json_decref(answer);
    (void)fail(ERR_IO, "%s", said);
}

static void etcd_close(struct coordinator *base)
{
    struct etcd *c = (struct etcd *)base;
    if (c->lease[0] && !c->is_silent) revoke(c);
    arena_free(&c->arena);
    free(c);
}

static err etcd_open(const char *servers, const char *root, bool by_tls, struct coordinator **ret)
{
    struct etcd *c = calloc(1, sizeof *c);
    if (!c) return fail(ERR_MEMORY, "no memory for a coordinator");
    c->base.kind = &coordinator_etcd;
    c->servers = c->server = arena_string(&c->arena, servers);
    c->root = arena_string(&c->arena, root);
    c->scheme = by_tls ? "https" : "http";
    read_tls(c);
    err e = read_user(c);
    if (!e) e = grant(c);
    if (e)
        etcd_close(&c->base);
    else
        *ret = &c->base;
    return e;
}

/* For a lease that has expired the answer has no TTL. */
static err etcd_renew(struct coordinator *base, bool *ret_has_lost)
{
    struct etcd *c = (struct etcd *)base;
    json_t *answer;
    TRY(ask(c, "lease/keepalive", json_pack("{ss}", "ID", c->lease), SMALL_ANSWER_BYTES, &answer));
    const char *left = json_string_value(json_object_get(json_object_get(answer, "result"), "TTL"));
    *ret_has_lost = !left || strtoll(left, NULL, 10) <= 0;
    json_decref(answer);
    return *ret_has_lost ? grant(c) : OK;
}

/* ---- keys ---- */

/* Whether the existing key is attached to our lease. */
static bool has_our_lease(const struct etcd *c, const json_t *answer)
{
    const json_t *range =
        json_object_get(json_array_get(json_object_get(answer, "responses"), 0), "response_range");
    const json_t *found = json_array_get(json_object_get(range, "kvs"), 0);
    const char *lease = json_string_value(json_object_get(found, "lease"));
    return lease && strcmp(lease, c->lease) == 0;
}

/* Servers refuse a request that names a lease which has expired, or which they lost with their
 * state. The next renewal notices that and gets a new lease. */
static err ask_by_lease(struct etcd *c, const char *what, json_t *body, json_t **ret)
{
    enum { NOT_FOUND = 404 };
    const err e = ask(c, what, body, SMALL_ANSWER_BYTES, ret);
    return e == ERR_INPUT && c->status == NOT_FOUND ? fail_prefix(ERR_IO, "the lease has ended")
                                                    : e;
}

/* The key is attached to our lease and expires with it, so while this succeeds nobody else owns it.
 */
static err set_value(struct etcd *c, const char *key, const char *value)
{
    json_t *answer, *body = json_pack("{so so ss}", "key", base64(key), "value", base64(value),
                                      "lease", c->lease);
    TRY(ask_by_lease(c, "kv/put", body, &answer));
    json_decref(answer);
    return OK;
}

static err etcd_claim(struct coordinator *base, const char *key, const char *value,
                      bool *ret_is_ours)
{
    struct etcd *c = (struct etcd *)base;
    char text[COORDINATOR_PATH_MAX];
    json_t *answer, *name = base64(key_text(c, key, text));
    json_t *body = json_pack("{s[{sO ss ss ss}] s[{s{sO so ss}}] s[{s{sO}}]}", "compare", "key",
                             name, "target", "CREATE", "result", "EQUAL", "create_revision", "0",
                             "success", "requestPut", "key", name, "value", base64(value), "lease",
                             c->lease, "failure", "requestRange", "key", name);
    json_decref(name);
    TRY(ask_by_lease(c, "kv/txn", body, &answer));
    const bool is_new = json_is_true(json_object_get(answer, "succeeded"));
    *ret_is_ours = is_new || has_our_lease(c, answer);
    json_decref(answer);
    return *ret_is_ours && !is_new ? set_value(c, text, value) : OK;
}

/* Skips entries that dtrain cannot have written. */
static void read_entries(const json_t *found, size_t prefix, struct arena *arena,
                         struct coordinator_entry **ret, int *ret_count)
{
    const size_t count = json_array_size(found);
    *ret = arena_array(arena, count, sizeof **ret);
    *ret_count = 0;
    for (size_t i = 0; i < count && i < COORDINATOR_KEYS_MAX; i++) {
        const json_t *one = json_array_get(found, i);
        const char *key = from_base64(json_object_get(one, "key"), arena);
        const char *value = from_base64(json_object_get(one, "value"), arena);
        if (!key || !value || strlen(key) < prefix) continue;
        (*ret)[(*ret_count)++] = (struct coordinator_entry){key + prefix, value};
    }
}

/* The range of keys from "folder/" to "folder0": '0' follows '/' in ASCII. */
static err etcd_list(struct coordinator *base, const char *folder, struct arena *arena,
                     struct coordinator_entry **ret, int *ret_count)
{
    struct etcd *c = (struct etcd *)base;
    char text[COORDINATOR_PATH_MAX], first[COORDINATOR_PATH_MAX], end[COORDINATOR_PATH_MAX];
    json_t *answer;
    key_text(c, folder, text);
    snprintf(first, sizeof first, "%.*s/", (int)sizeof first - 2, text);
    snprintf(end, sizeof end, "%.*s0", (int)sizeof end - 2, text);
    json_t *body = json_pack("{so so si}", "key", base64(first), "range_end", base64(end), "limit",
                             COORDINATOR_KEYS_MAX);
    TRY(ask(c, "kv/range", body, ANSWER_BYTES, &answer));
    read_entries(json_object_get(answer, "kvs"), strlen(first), arena, ret, ret_count);
    json_decref(answer);
    return OK;
}

const struct coordinator_kind coordinator_etcd = {
    .scheme = "etcd",
    .tls_scheme = "etcds",
    .port = "2379",
    .open = etcd_open,
    .close = etcd_close,
    .claim = etcd_claim,
    .list = etcd_list,
    .renew = etcd_renew,
};
