/* list.c - see list.h. */
#include "net/web/list.h"

#include "core/base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEYS_GROW_MIN = 64,
    SCHEME_BYTES_MAX = 16,
};

err web_list_add(struct web_list *l, const char *key)
{
    const size_t bytes = strlen(key) + 1;
    if (l->count == WEB_KEYS_MAX) return fail(ERR_INPUT, "more than %d files", (int)WEB_KEYS_MAX);
    if (bytes > WEB_LIST_BYTES_MAX - l->bytes)
        return fail(ERR_INPUT, "names of files have more than %d MiB", WEB_LIST_BYTES_MAX >> 20);
    if (l->count == l->capacity) {
        const size_t capacity = l->capacity ? 2 * l->capacity : KEYS_GROW_MIN;
        char **keys = realloc(l->keys, capacity * sizeof *keys);
        if (!keys) return fail(ERR_MEMORY, "no memory for names of files");
        l->keys = keys;
        l->capacity = capacity;
    }
    l->keys[l->count] = strdup(key);
    if (!l->keys[l->count]) return fail(ERR_MEMORY, "no memory for names of files");
    l->count++;
    l->bytes += bytes;
    return OK;
}

static void list_free(struct web_list *l)
{
    for (size_t i = 0; i < l->count; i++) free(l->keys[i]);
    free(l->keys);
}

err web_split(const char *path, char *ret_bucket, const char **ret_key)
{
    const char *from = strstr(path, "://") + 3;
    const size_t bytes = strcspn(from, "/");
    char shown[PATH_BYTES_MAX];
    if (bytes < 1 || bytes >= BUCKET_BYTES_MAX)
        return fail(ERR_INPUT, "%s: expected a name of 1 to %d bytes behind %.*s",
                    path_shown(path, shown), (int)BUCKET_BYTES_MAX - 1, (int)(from - path), path);
    snprintf(ret_bucket, BUCKET_BYTES_MAX, "%.*s", (int)bytes, from);
    *ret_key = from[bytes] ? from + bytes + 1 : "";
    return OK;
}

err web_list_ask(struct web_call *c, const struct web_service *service, const struct web_listing *l,
                 web_list_taker *take, struct web_list *to)
{
    char *answer = malloc(WEB_ANSWER_BYTES);
    if (!answer) return fail(ERR_MEMORY, "no memory for a list of files");
    c->http.method = "GET";
    c->http.shown = arena_format(&c->arena, "%s://%s/%s*", l->scheme, l->bucket, l->prefix);
    c->http.to = answer;
    c->http.max = WEB_ANSWER_BYTES;
    err e = web_call_make(c, service);
    if (!e && (e = take(to, answer, c->http.answer.bytes))) e = fail_prefix(e, "%s", c->http.shown);
    free(answer);
    return e;
}

static err fail_endless(const struct web_listing *l)
{
    return fail(ERR_IO, "%s://%s/%s*: the server's list of files does not end", l->scheme,
                l->bucket, l->prefix);
}

err web_list_turn(struct web_list *list, const struct web_listing *l)
{
    const uint64_t now_ms = clock_ms();
    if (!list->pages) list->until_ms = now_ms + 1000ull * WEB_LIST_MAX_S;
    return list->pages++ < WEB_PAGES_MAX && now_ms < list->until_ms ? OK : fail_endless(l);
}

static err list_all(const struct file_system *system, const struct web_listing *l,
                    struct web_list *to)
{
    const struct web_service *service = (const struct web_service *)system;
    char token[WEB_TOKEN_BYTES] = "";
    for (;;) {
        TRY(web_list_turn(to, l));
        TRY(service->list(l, token, to));
        if (!to->is_truncated) return OK;
        if (strcmp(to->token, token) == 0) return fail_endless(l);
        snprintf(token, sizeof token, "%s", to->token);
    }
}

static void scheme_of(const char *path, char ret[SCHEME_BYTES_MAX])
{
    snprintf(ret, SCHEME_BYTES_MAX, "%.*s", (int)strcspn(path, ":"), path);
}

err web_match(const struct file_system *system, const char *pattern, size_t plain,
              file_found *found, void *context)
{
    char scheme[SCHEME_BYTES_MAX], bucket[BUCKET_BYTES_MAX], path[PATH_BYTES_MAX];
    const char *key = "";
    TRY(web_split(pattern, bucket, &key));
    scheme_of(pattern, scheme);
    const size_t at = (size_t)(key - pattern), from = plain > at ? plain : at;
    const size_t before = from + strcspn(pattern + from, "*?[");
    char *prefix = strndup(key, before - at), *escaped = pattern_escape(pattern, plain);
    struct web_listing l = {.scheme = scheme, .bucket = bucket, .prefix = prefix};
    struct web_list list = {0};
    for (const char *c = pattern + before; *c; c++) l.depth += *c == '/';
    err e = prefix && escaped ? list_all(system, &l, &list)
                              : fail(ERR_MEMORY, "no memory for names of files");
    for (size_t i = 0; !e && i < list.count; i++) {
        snprintf(path, sizeof path, "%s://%s/%s", scheme, bucket, list.keys[i]);
        if (pattern_fits(escaped, path)) e = found(context, path);
    }
    list_free(&list);
    free(prefix);
    free(escaped);
    return e;
}

/* Keys that end with "/" are folders, except the key of the folder itself. */
err web_visit(const struct file_system *system, const char *folder, file_found *found,
              void *context)
{
    char scheme[SCHEME_BYTES_MAX], bucket[BUCKET_BYTES_MAX], name[PATH_BYTES_MAX];
    const char *key = "";
    TRY(web_split(folder, bucket, &key));
    scheme_of(folder, scheme);
    char *prefix = NULL;
    const size_t length = strlen(key);
    if (asprintf(&prefix, "%s%s", key, length && key[length - 1] != '/' ? "/" : "") < 0)
        return fail(ERR_MEMORY, "no memory for names of files");
    const struct web_listing l = {.scheme = scheme, .bucket = bucket, .prefix = prefix};
    struct web_list list = {0};
    err e = list_all(system, &l, &list);
    const size_t before = strlen(prefix);
    for (size_t i = 0; !e && i < list.count; i++) {
        if (strncmp(list.keys[i], prefix, before) != 0) continue; /* was not requested */
        snprintf(name, sizeof name, "%s", list.keys[i] + before);
        name[strcspn(name, "/")] = '\0';
        if (name[0]) e = found(context, name);
    }
    list_free(&list);
    free(prefix);
    return e;
}
