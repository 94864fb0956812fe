/* zookeeper.c - claims in ZooKeeper: ephemeral nodes, through libzookeeper-mt, which is opened when
 * the first coordinator is. It has threads of its own, which renew the session. */
#define THREADED /* its functions that wait */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zookeeper/zookeeper.h>
#include <zookeeper/zookeeper_version.h>

#include "core/base/clock.h"
#include "net/coordinator/kind.h"

enum {
    LOOK_MS = 20,
    CLAIM_TRIES_MAX = 3, /* where the answer is lost */
    BEGIN_AGAIN_MAX_S = 4,
    SERVERS_BYTES = 1024,
};

/* ---- the library ---- */

static struct {
    typeof(zookeeper_init) *init;
    typeof(zookeeper_close) *close;
    typeof(zoo_add_auth) *add_auth;
    typeof(zoo_state) *state;
    typeof(zoo_client_id) *client_id;
    typeof(zoo_create) *create;
    typeof(zoo_exists) *exists;
    typeof(zoo_get) *get;
    typeof(zoo_set) *set;
    typeof(zoo_get_children) *get_children;
    typeof(zoo_set_debug_level) *set_debug_level;
    typeof(zerror) *error;
    typeof(deallocate_String_vector) *deallocate;
    struct ACL_vector *open_acl, *own_acl;
    const int *ephemeral, *connected, *expired, *refused;
} zoo;

static const struct {
    const char *name;
    void **at;
} symbols[] = {
    {"zookeeper_init", (void **)&zoo.init},
    {"zookeeper_close", (void **)&zoo.close},
    {"zoo_add_auth", (void **)&zoo.add_auth},
    {"zoo_state", (void **)&zoo.state},
    {"zoo_client_id", (void **)&zoo.client_id},
    {"zoo_create", (void **)&zoo.create},
    {"zoo_exists", (void **)&zoo.exists},
    {"zoo_get", (void **)&zoo.get},
    {"zoo_set", (void **)&zoo.set},
    {"zoo_get_children", (void **)&zoo.get_children},
    {"zoo_set_debug_level", (void **)&zoo.set_debug_level},
    {"zerror", (void **)&zoo.error},
    {"deallocate_String_vector", (void **)&zoo.deallocate},
    {"ZOO_OPEN_ACL_UNSAFE", (void **)&zoo.open_acl},
    {"ZOO_CREATOR_ALL_ACL", (void **)&zoo.own_acl},
    {"ZOO_EPHEMERAL", (void **)&zoo.ephemeral},
    {"ZOO_CONNECTED_STATE", (void **)&zoo.connected},
    {"ZOO_EXPIRED_SESSION_STATE", (void **)&zoo.expired},
    {"ZOO_AUTH_FAILED_STATE", (void **)&zoo.refused},
};

static err open_library(void)
{
    static void *library;
    if (library) return OK;
    library = dlopen("libzookeeper_mt.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return fail(ERR_INPUT,
                    "zookeeper:// needs libzookeeper-mt, which is not installed here "
                    "(libzookeeper-mt2): %s",
                    dlerror());
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        *symbols[i].at = dlsym(library, symbols[i].name);
        if (*symbols[i].at) continue;
        dlclose(library);
        library = NULL;
        return fail(ERR_INPUT, "libzookeeper_mt.so.2 has no %s", symbols[i].name);
    }
    zoo.set_debug_level(0);
    return OK;
}

/* The library itself does not say which it is. */
const char *coordinator_zookeeper_version(void)
{
    return open_library() ? "" : "installed (headers of " ZOO_VERSION ")";
}

/* ---- the session ---- */

struct zookeeper {
    struct coordinator base;
    char servers[SERVERS_BYTES], root[COORDINATOR_PATH_MAX];
    zhandle_t *session;     /* NULL: there is none */
    uint64_t away_ms;       /* since when it finds no server; 0: it has one */
    const char *user;       /* "name:password"; NULL: nobody is said */
    struct ACL_vector *acl; /* of what is made: that user's alone, or everybody's */
};

static void look_elsewhere(zhandle_t *session, int type, int state, const char *path, void *context)
{
    (void)session, (void)type, (void)state, (void)path, (void)context;
}

static void end_session(struct zookeeper *c)
{
    if (c->session) zoo.close(c->session);
    c->session = NULL;
}

static err fail_session(struct zookeeper *c, err why)
{
    end_session(c);
    return why;
}

/* Of a session that has begun, which tells it to each server that it goes to later. Everybody is
 * believed: it counts where a node is asked for. */
static err tell_user(struct zookeeper *c)
{
    if (!c->user) return OK;
    const int code = zoo.add_auth(c->session, "digest", c->user, (int)strlen(c->user), NULL, NULL);
    return code == ZOK ? OK
                       : fail_session(c, fail(ERR_IO, "zookeeper: %s: telling who asks: %s",
                                              c->servers, zoo.error(code)));
}

static err begin_session(struct zookeeper *c, int max_s)
{
    const struct timespec pause = {0, LOOK_MS * 1000000L};
    const uint64_t end_ms = clock_ms() + (uint64_t)max_s * 1000;
    c->away_ms = 0;
    c->session = zoo.init(c->servers, look_elsewhere, COORDINATOR_LEASE_S * 1000, NULL, NULL, 0);
    if (!c->session) return fail(ERR_IO, "zookeeper: %s: no such server", c->servers);
    while (clock_ms() < end_ms) {
        const int state = zoo.state(c->session);
        if (state == *zoo.connected) return tell_user(c);
        if (state == *zoo.refused)
            return fail_session(c, fail(ERR_INPUT, "zookeeper: %s: refuses us", c->servers));
        nanosleep(&pause, NULL);
    }
    return fail_session(c,
                        fail(ERR_IO, "zookeeper: %s: no session within %d s", c->servers, max_s));
}

static void zookeeper_end(struct coordinator *base)
{
    struct zookeeper *c = (struct zookeeper *)base;
    end_session(c);
    free(c);
}

static err read_user(struct zookeeper *c)
{
    c->user = getenv("DTRAIN_ZOOKEEPER_AUTH");
    if (c->user && !*c->user) c->user = NULL;
    c->acl = c->user ? zoo.own_acl : zoo.open_acl;
    return !c->user || strchr(c->user, ':')
               ? OK
               : fail(ERR_INPUT, "DTRAIN_ZOOKEEPER_AUTH: expected USER:PASSWORD");
}

static err zookeeper_begin(const char *servers, const char *root, bool by_tls,
                           struct coordinator **ret)
{
    TRY(open_library());
    struct zookeeper *c = calloc(1, sizeof *c);
    if (!c) return fail(ERR_MEMORY, "no memory for a coordinator");
    c->base.kind = &coordinator_zookeeper;
    snprintf(c->servers, sizeof c->servers, "%s", servers);
    snprintf(c->root, sizeof c->root, "%s", root);
    err e = read_user(c);
    if (!e) e = begin_session(c, COORDINATOR_OPEN_MAX_S);
    if (e)
        zookeeper_end(&c->base);
    else
        *ret = &c->base;
    return e;
}

/* It would try for ever: servers that have lost what they knew turn away a session that has seen
 * more, and never tell it that it has expired. */
static bool is_away_for_good(struct zookeeper *c, int state)
{
    const uint64_t now_ms = clock_ms();
    if (state == *zoo.connected) c->away_ms = 0;
    if (state == *zoo.connected) return false;
    if (!c->away_ms) c->away_ms = now_ms;
    return now_ms - c->away_ms >= COORDINATOR_LEASE_S * 1000;
}

/* The library renews while it lives; what has expired is over for good. */
static err zookeeper_renew(struct coordinator *base, bool *ret_has_lost)
{
    struct zookeeper *c = (struct zookeeper *)base;
    const int state = c->session ? zoo.state(c->session) : *zoo.expired;
    *ret_has_lost = state == *zoo.expired || is_away_for_good(c, state);
    if (state == *zoo.connected) return OK;
    if (!*ret_has_lost) return fail(ERR_IO, "zookeeper: %s: no connection", c->servers);
    end_session(c);
    return begin_session(c, BEGIN_AGAIN_MAX_S);
}

/* ---- nodes ---- */

static err explain(const struct zookeeper *c, const char *path, int code)
{
    const bool may_not = code == ZNOAUTH;
    return fail(may_not ? ERR_INPUT : ERR_IO, "zookeeper: %s%s: %s%s", c->servers, path,
                zoo.error(code), may_not ? " (DTRAIN_ZOOKEEPER_AUTH says who asks)" : "");
}

static const char *path_of(const struct zookeeper *c, const char *key,
                           char ret[COORDINATOR_PATH_MAX])
{
    snprintf(ret, COORDINATOR_PATH_MAX, "%s/%s", c->root, key);
    return ret;
}

/* All folders above the node, which stay. */
static err make_folders(struct zookeeper *c, const char *path)
{
    char folder[COORDINATOR_PATH_MAX];
    for (const char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(slash - path), path);
        const int code = zoo.create(c->session, folder, "", 0, c->acl, 0, NULL, 0);
        if (code != ZOK && code != ZNODEEXISTS) return explain(c, folder, code);
    }
    return OK;
}

/* The session's, where an answer was lost. */
static bool is_ours(struct zookeeper *c, const char *path)
{
    struct Stat stat;
    const clientid_t *own = zoo.client_id(c->session);
    return zoo.exists(c->session, path, 0, &stat) == ZOK && own &&
           stat.ephemeralOwner == own->client_id;
}

/* Of a node of our session, with which both end. */
static err set_value(struct zookeeper *c, const char *path, const char *value)
{
    const int code = zoo.set(c->session, path, value, (int)strlen(value), -1);
    return code == ZOK ? OK : explain(c, path, code);
}

static bool is_lost_answer(int code)
{
    return code == ZCONNECTIONLOSS || code == ZOPERATIONTIMEOUT;
}

static err zookeeper_claim(struct coordinator *base, const char *key, const char *value,
                           bool *ret_is_ours)
{
    struct zookeeper *c = (struct zookeeper *)base;
    char path[COORDINATOR_PATH_MAX];
    int code = ZNONODE;
    path_of(c, key, path);
    if (!c->session) return fail(ERR_IO, "zookeeper: %s: no session", c->servers);
    for (int i = 0; i < CLAIM_TRIES_MAX && (code == ZNONODE || is_lost_answer(code)); i++) {
        if (code == ZNONODE && i > 0) TRY(make_folders(c, path));
        code = zoo.create(c->session, path, value, (int)strlen(value), c->acl, *zoo.ephemeral, NULL,
                          0);
    }
    if (code != ZOK && code != ZNODEEXISTS) return explain(c, path, code);
    *ret_is_ours = code == ZOK || is_ours(c, path);
    return *ret_is_ours && code != ZOK ? set_value(c, path, value) : OK;
}

/* *ret NULL: it has gone meanwhile, or has no value. What does not answer is not gone. */
static err value_of(struct zookeeper *c, const char *path, struct arena *arena, const char **ret)
{
    char value[COORDINATOR_VALUE_MAX];
    int bytes = sizeof value;
    const int code = zoo.get(c->session, path, 0, value, &bytes, NULL);
    if (code != ZOK && code != ZNONODE) return explain(c, path, code);
    *ret = code == ZOK && bytes >= 0 ? arena_format(arena, "%.*s", bytes, value) : NULL;
    return OK;
}

static err read_entries(struct zookeeper *c, const char *folder, const struct String_vector *names,
                        struct arena *arena, struct coordinator_entry **ret, int *ret_count)
{
    char path[2 * COORDINATOR_PATH_MAX];
    *ret = arena_array(arena, (size_t)names->count, sizeof **ret);
    *ret_count = 0;
    for (int i = 0; i < names->count && i < COORDINATOR_KEYS_MAX; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names->data[i]);
        const char *value = NULL;
        TRY(value_of(c, path, arena, &value));
        if (!value) continue;
        (*ret)[(*ret_count)++] =
            (struct coordinator_entry){arena_string(arena, names->data[i]), value};
    }
    return OK;
}

static err zookeeper_list(struct coordinator *base, const char *folder, struct arena *arena,
                          struct coordinator_entry **ret, int *ret_count)
{
    struct zookeeper *c = (struct zookeeper *)base;
    struct String_vector names = {0};
    char path[COORDINATOR_PATH_MAX];
    *ret_count = 0;
    path_of(c, folder, path);
    if (!c->session) return fail(ERR_IO, "zookeeper: %s: no session", c->servers);
    const int code = zoo.get_children(c->session, path, 0, &names);
    if (code == ZNONODE) return OK;
    if (code != ZOK) return explain(c, path, code);
    const err e = read_entries(c, path, &names, arena, ret, ret_count);
    zoo.deallocate(&names);
    return e;
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
