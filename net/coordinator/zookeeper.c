/* zookeeper.c - claims in ZooKeeper: ephemeral nodes, deleted with the session that created them.
 *
 * A claim whose answer was lost is repeated; the node's owner tells whether it is ours.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "net/coordinator/kind.h"
#include "net/coordinator/session.h"

enum {
    LEASE_MS = COORDINATOR_LEASE_S * 1000,
    CALL_MAX_S = 8,      /* for each call of coordinator.h */
    CLAIM_TRIES_MAX = 4, /* repeated when an answer is lost or the folder is missing */
    GETS_MAX = 64,       /* in flight at once */
    LIST_BYTES_MAX = 32 << 20,
    PERMISSION_ALL = 31,
    EPHEMERAL = 1,
    ANY_VERSION = -1,
    BEFORE_OWNER_BYTES = 4 * JUTE_LONG_BYTES + 3 * JUTE_INT_BYTES, /* offset in a node's Stat */
};

struct zookeeper {
    struct coordinator base;
    char root[COORDINATOR_PATH_MAX];
    char *servers;
    struct zookeeper_session session;
};

static uint64_t until(void)
{
    return clock_ms() + CALL_MAX_S * 1000;
}

/* ---- the session ---- */

static void zookeeper_end(struct coordinator *base)
{
    struct zookeeper *c = (struct zookeeper *)base;
    session_end(&c->session);
    free(c->servers);
    free(c);
}

static err read_user(struct zookeeper_session *s)
{
    s->user = getenv("DTRAIN_ZOOKEEPER_AUTH");
    if (s->user && !*s->user) s->user = NULL;
    return !s->user || strchr(s->user, ':')
               ? OK
               : fail(ERR_INPUT, "DTRAIN_ZOOKEEPER_AUTH: expected USER:PASSWORD");
}

static err zookeeper_begin(const char *servers, const char *root, bool by_tls,
                           struct coordinator **ret)
{
    struct zookeeper *c = calloc(1, sizeof *c);
    char *kept = c ? strdup(servers) : NULL;
    if (!kept) free(c);
    if (!kept) return fail(ERR_MEMORY, "no memory for a coordinator");
    c->base.kind = &coordinator_zookeeper;
    c->servers = kept;
    snprintf(c->root, sizeof c->root, "%s", root);
    c->session.servers = kept;
    c->session.wanted_ms = LEASE_MS;
    c->session.least_ms = 2 * COORDINATOR_RENEW_MS;
    session_prepare(&c->session);
    err e = read_user(&c->session);
    if (!e) e = session_begin(&c->session, until());
    if (e)
        zookeeper_end(&c->base);
    else
        *ret = &c->base;
    return e;
}

/* The session is over when a server says so, and when none has answered for its whole timeout:
 * servers that lost their state reject a client that has seen a later zxid, without saying that its
 * session is gone. */
static err zookeeper_renew(struct coordinator *base, bool *ret_has_lost)
{
    struct zookeeper_session *s = &((struct zookeeper *)base)->session;
    const uint64_t until_ms = until();
    const err e = session_ping(s, until_ms);
    *ret_has_lost = e && (!s->id || clock_ms() - s->heard_ms >= LEASE_MS);
    return *ret_has_lost ? session_begin(s, until_ms) : e;
}

/* ---- nodes ---- */

static err explain(const struct zookeeper *c, const char *path, int code)
{
    if (code == SESSION_NOT_ALLOWED)
        return fail(ERR_INPUT, "zookeeper: %s%s: not authenticated: set DTRAIN_ZOOKEEPER_AUTH",
                    c->servers, path);
    return fail(ERR_IO, "zookeeper: %s%s: %s (its error %d)", c->servers, path,
                code == SESSION_NO_NODE ? "no such node" : "refused", code);
}

static err ask(struct zookeeper *c, uint64_t until_ms, int *ret_code, struct jute_in *ret)
{
    TRY(session_send(&c->session, until_ms));
    return session_answer(&c->session, until_ms, ret_code, ret);
}

static const char *path_of(const struct zookeeper *c, const char *key,
                           char ret[COORDINATOR_PATH_MAX])
{
    snprintf(ret, COORDINATOR_PATH_MAX, "%s/%s", c->root, key);
    return ret;
}

/* ACL: the user alone, or everybody if there is none */
static err create(struct zookeeper *c, const char *path, const char *value, int flags,
                  uint64_t until_ms, int *ret_code)
{
    struct jute_in in;
    TRY(session_connect(&c->session, until_ms));
    struct jute_out *out = session_ask(&c->session, SESSION_CREATE);
    jute_put_text(out, path);
    jute_put_text(out, value);
    jute_put_int(out, 1); /* ACL: one entry */
    jute_put_int(out, PERMISSION_ALL);
    jute_put_text(out, c->session.user ? "auth" : "world");
    jute_put_text(out, c->session.user ? "" : "anyone");
    jute_put_int(out, flags);
    return ask(c, until_ms, ret_code, &in);
}

/* Creates all folders above the node; these are permanent. */
static err make_folders(struct zookeeper *c, const char *path, uint64_t until_ms)
{
    char folder[COORDINATOR_PATH_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        int code;
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        TRY(create(c, folder, "", 0, until_ms, &code));
        if (code && code != SESSION_NODE_EXISTS) return explain(c, folder, code);
    }
    return OK;
}

/* Whether our session owns the node: asked after an answer was lost. */
static err is_ours(struct zookeeper *c, const char *path, uint64_t until_ms, bool *ret)
{
    struct jute_in in;
    int code;
    TRY(session_connect(&c->session, until_ms));
    struct jute_out *out = session_ask(&c->session, SESSION_EXISTS);
    jute_put_text(out, path);
    jute_put_bool(out, false); /* unwatched */
    TRY(ask(c, until_ms, &code, &in));
    jute_skip(&in, BEFORE_OWNER_BYTES);
    const int64_t owner = jute_long(&in);
    if (!code && in.is_torn)
        return session_broken(&c->session, "the description of a node is cut off");
    *ret = !code && owner == c->session.id;
    return OK;
}

/* Of a node that our session owns. */
static err set_value(struct zookeeper *c, const char *path, const char *value, uint64_t until_ms)
{
    struct jute_in in;
    int code;
    TRY(session_connect(&c->session, until_ms));
    struct jute_out *out = session_ask(&c->session, SESSION_SET);
    jute_put_text(out, path);
    jute_put_text(out, value);
    jute_put_int(out, ANY_VERSION);
    TRY(ask(c, until_ms, &code, &in));
    return code ? explain(c, path, code) : OK;
}

static err zookeeper_claim(struct coordinator *base, const char *key, const char *value,
                           bool *ret_is_ours)
{
    struct zookeeper *c = (struct zookeeper *)base;
    const uint64_t until_ms = until();
    char path[COORDINATOR_PATH_MAX];
    int code = SESSION_NO_NODE;
    err e = OK;
    path_of(c, key, path);
    for (int i = 0; i < CLAIM_TRIES_MAX && (e == ERR_IO || code == SESSION_NO_NODE); i++) {
        if (i > 0 && !e) TRY(make_folders(c, path, until_ms));
        e = create(c, path, value, EPHEMERAL, until_ms, &code);
        if (!c->session.id) break;
    }
    if (e) return e;
    if (code && code != SESSION_NODE_EXISTS) return explain(c, path, code);
    *ret_is_ours = !code;
    if (code) TRY(is_ours(c, path, until_ms, ret_is_ours));
    return *ret_is_ours && code ? set_value(c, path, value, until_ms) : OK;
}

/* ---- folders ---- */

/* Whether dtrain can have written this name; others are skipped. */
static bool is_name(const char *at, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        if (!isalnum((unsigned char)at[i]) && !strchr("-_.", at[i])) return false;
    return bytes > 0 && bytes < COORDINATOR_PATH_MAX / 2;
}

struct zookeeper_listing {
    struct zookeeper *c;
    const char *folder;
    uint64_t until_ms;
    struct arena *arena;
    struct coordinator_entry *entries;
    int names; /* entries that have a name */
    int count; /* entries at the front whose value has been read */
    size_t bytes;
    int refusal; /* error code of the protocol, for a value; 0: none */
};

static err read_names(struct zookeeper_listing *l, struct jute_in *in)
{
    const int said = jute_count(in, JUTE_INT_BYTES);
    const int count = said < COORDINATOR_KEYS_MAX ? said : COORDINATOR_KEYS_MAX;
    l->entries = arena_array(l->arena, (size_t)count, sizeof *l->entries);
    for (int i = 0; i < count; i++) {
        size_t bytes;
        const char *name = jute_bytes(in, &bytes);
        if (name && is_name(name, bytes))
            l->entries[l->names++].name = arena_format(l->arena, "%.*s", (int)bytes, name);
    }
    return in->is_torn ? session_broken(&l->c->session, "half of a list of nodes") : OK;
}

static err list_names(struct zookeeper_listing *l)
{
    struct jute_in in;
    int code;
    TRY(session_connect(&l->c->session, l->until_ms));
    struct jute_out *out = session_ask(&l->c->session, SESSION_LIST);
    jute_put_text(out, l->folder);
    jute_put_bool(out, false); /* unwatched */
    TRY(ask(l->c, l->until_ms, &code, &in));
    if (code == SESSION_NO_NODE) return OK;
    return code ? explain(l->c, l->folder, code) : read_names(l, &in);
}

static void ask_for_value(struct zookeeper_listing *l, const char *name)
{
    char path[2 * COORDINATOR_PATH_MAX];
    struct jute_out *out = session_ask(&l->c->session, SESSION_GET);
    snprintf(path, sizeof path, "%s/%s", l->folder, name);
    jute_put_text(out, path);
    jute_put_bool(out, false); /* unwatched */
}

/* Keeps the value if it can be dtrain's; skips a node deleted meanwhile. */
static err take_value(struct zookeeper_listing *l, const char *name)
{
    struct jute_in in;
    size_t bytes;
    int code;
    TRY(session_answer(&l->c->session, l->until_ms, &code, &in));
    if (code && code != SESSION_NO_NODE) l->refusal = code;
    if (code) return OK;
    const char *value = jute_bytes(&in, &bytes);
    if (in.is_torn) return session_broken(&l->c->session, "a value is cut off");
    if (!value || bytes >= COORDINATOR_VALUE_MAX || memchr(value, '\0', bytes)) return OK;
    l->bytes += bytes;
    if (l->bytes > LIST_BYTES_MAX)
        return session_broken(&l->c->session, "more values than there can be");
    l->entries[l->count++] =
        (struct coordinator_entry){name, arena_format(l->arena, "%.*s", (int)bytes, value)};
    return OK;
}

static err take_values(struct zookeeper_listing *l, int first, int end)
{
    TRY(session_connect(&l->c->session, l->until_ms));
    for (int i = first; i < end; i++) ask_for_value(l, l->entries[i].name);
    TRY(session_send(&l->c->session, l->until_ms));
    for (int i = first; i < end; i++) TRY(take_value(l, l->entries[i].name));
    return l->refusal ? explain(l->c, l->folder, l->refusal) : OK;
}

static err zookeeper_list(struct coordinator *base, const char *folder, struct arena *arena,
                          struct coordinator_entry **ret, int *ret_count)
{
    char path[COORDINATOR_PATH_MAX];
    struct zookeeper_listing l = {
        .c = (struct zookeeper *)base, .until_ms = until(), .arena = arena};
    l.folder = path_of(l.c, folder, path);
    TRY(list_names(&l));
    for (int at = 0; at < l.names; at += GETS_MAX)
        TRY(take_values(&l, at, l.names - at < GETS_MAX ? l.names : at + GETS_MAX));
    *ret = l.entries;
    *ret_count = l.count;
    return OK;
}

const struct coordinator_kind coordinator_zookeeper = {
    .scheme = "zookeeper",
    .port = "2181",
    .open = zookeeper_begin,
    .close = zookeeper_end,
    .claim = zookeeper_claim,
    .list = zookeeper_list,
    .renew = zookeeper_renew,
};
