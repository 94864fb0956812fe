/* coordinator.c - see coordinator.h; chooses etcd or ZooKeeper by the URL's scheme. */
#include "net/coordinator/kind.h"

#include <ctype.h>
#include <string.h>

#include "net/address.h"

enum { SERVERS_MAX = 16 };

static const struct coordinator_kind *const kinds[] = {&coordinator_etcd, &coordinator_zookeeper};
enum { KINDS = sizeof kinds / sizeof *kinds };

struct coordinator_address {
    const struct coordinator_kind *kind;
    bool by_tls;
    const char *servers, *root;
};

/* What follows "://"; NULL: the URL has another scheme */
static const char *after_scheme(const char *url, const char *scheme)
{
    const size_t bytes = strlen(scheme);
    const bool is_it = strncmp(url, scheme, bytes) == 0 && strncmp(url + bytes, "://", 3) == 0;
    return is_it ? url + bytes + 3 : NULL;
}

static bool is_path(const char *text)
{
    for (const char *c = text; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_./", *c)) return false;
    return strlen(text) < COORDINATOR_PATH_MAX / 2 && !strstr(text, "//");
}

/* One server of the list; adds the default port if it names none. */
static err read_server(const struct coordinator_kind *kind, const char *from, size_t bytes,
                       struct arena *arena, const char **ret)
{
    const bool has_port = memchr(from, ':', bytes) && from[bytes - 1] != ']';
    *ret = arena_format(arena, "%.*s%s%s", (int)bytes, from, has_port ? "" : ":",
                        has_port ? "" : kind->port);
    return address_check(*ret);
}

static err read_servers(const struct coordinator_kind *kind, const char *list, size_t bytes,
                        struct arena *arena, const char **ret)
{
    const char *all = "", *end = list + bytes;
    int count = 0;
    while (list <= end && count < SERVERS_MAX) {
        const char *server, *comma = memchr(list, ',', (size_t)(end - list));
        TRY(read_server(kind, list, (size_t)((comma ? comma : end) - list), arena, &server));
        all = arena_format(arena, "%s%s%s", all, count++ ? "," : "", server);
        list = comma ? comma + 1 : end + 1;
    }
    *ret = all;
    return list > end ? OK : fail(ERR_INPUT, "more than %d servers", SERVERS_MAX);
}

static err read_url(const char *url, struct arena *arena, struct coordinator_address *ret)
{
    const char *rest = NULL;
    if (strchr(url, '@'))
        return fail(ERR_INPUT, "a URL that all can see says no user: ETCDCTL_USER and "
                               "ETCDCTL_PASSWORD do, or DTRAIN_ZOOKEEPER_AUTH");
    for (int i = 0; i < KINDS && !rest; i++) {
        ret->kind = kinds[i];
        rest = after_scheme(url, kinds[i]->scheme);
        if (rest || !kinds[i]->tls_scheme) continue;
        rest = after_scheme(url, kinds[i]->tls_scheme);
        ret->by_tls = rest != NULL;
    }
    if (!rest)
        return fail(ERR_INPUT,
                    "\"%.100s\": expected etcd://host:2379/folder (etcds:// by TLS) or "
                    "zookeeper://host:2181/folder",
                    url);
    const size_t bytes = strcspn(rest, "/");
    char *root = arena_string(arena, rest + bytes);
    const err e = read_servers(ret->kind, rest, bytes, arena, &ret->servers);
    if (e) return fail_prefix(e, "\"%.100s\"", url);
    if (!is_path(root))
        return fail(ERR_INPUT, "\"%.100s\": a folder is of letters, digits and \"-_./\"", url);
    if (*root && root[strlen(root) - 1] == '/') root[strlen(root) - 1] = '\0';
    ret->root = root;
    return OK;
}

err coordinator_check(const char *url)
{
    struct arena arena = {0};
    struct coordinator_address parts = {0};
    const err e = read_url(url, &arena, &parts);
    arena_free(&arena);
    return e;
}

const char *coordinator_server(const char *url, struct arena *arena)
{
    struct coordinator_address parts = {0};
    if (read_url(url, arena, &parts)) return "";
    return arena_format(arena, "%.*s", (int)strcspn(parts.servers, ","), parts.servers);
}

err coordinator_open(const char *url, struct coordinator **ret)
{
    struct arena arena = {0};
    struct coordinator_address parts = {0};
    err e = read_url(url, &arena, &parts);
    if (!e) e = parts.kind->open(parts.servers, parts.root, parts.by_tls, ret);
    arena_free(&arena);
    return e;
}

void coordinator_close(struct coordinator *c)
{
    if (c) c->kind->close(c);
}

err coordinator_claim(struct coordinator *c, const char *key, const char *value, bool *ret_is_ours)
{
    return c->kind->claim(c, key, value, ret_is_ours);
}

err coordinator_list(struct coordinator *c, const char *folder, struct arena *arena,
                     struct coordinator_entry **ret, int *ret_count)
{
    return c->kind->list(c, folder, arena, ret, ret_count);
}

err coordinator_renew(struct coordinator *c, bool *ret_has_lost)
{
    return c->kind->renew(c, ret_has_lost);
}
