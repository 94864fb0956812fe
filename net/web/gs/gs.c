/* gs.c - objects of Google Cloud Storage by its JSON API, and of servers that answer like it:
 * gs://bucket/key.
 *
 * STORAGE_EMULATOR_HOST is the address of an emulator, to which nothing is proved;
 * CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE that of a server to which it is.
 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/web/gs/gs_inside.h"
#include "net/web/services.h"

#define API "/storage/v1"

/* ---- addresses ---- */

static const char *emulator(void)
{
    const char *host = getenv("STORAGE_EMULATOR_HOST");
    return host && *host ? host : NULL;
}

/* Without what stands behind the host in some of them */
static const char *base_of(struct arena *arena)
{
    const char *other = getenv("CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE");
    const char *base = emulator() ? emulator() : other && *other ? other : "storage.googleapis.com";
    const char *scheme = strstr(base, "://") ? "" : emulator() ? "http://" : "https://";
    char *text = arena_format(arena, "%s%s", scheme, base);
    size_t bytes = strlen(text);
    while (bytes > 0 && text[bytes - 1] == '/') text[--bytes] = '\0';
    char *api = bytes > strlen(API) ? text + bytes - strlen(API) : NULL;
    if (api && strcmp(api, API) == 0) *api = '\0';
    return text;
}

static void set_bucket(struct web_call *c, const char *bucket, const char *before,
                       const char *behind, const char *query)
{
    const char *path = arena_format(&c->arena, "%s" API "/b/%s/o%s", before,
                                    web_escape(&c->arena, bucket, false), behind);
    web_call_address(c, base_of(&c->arena), path, query);
    c->http.keeps_redirect = true; /* a token is for one host */
}

err gs_address(const char *path, const char *part, const char *query, struct web_call *c)
{
    char bucket[BUCKET_BYTES_MAX];
    const char *key = "";
    TRY(web_split(path, bucket, &key));
    if (!*key) return fail(ERR_INPUT, "%s: expected gs://bucket/key", c->http.shown);
    const char *escaped = web_escape(&c->arena, key, false);
    if (strncmp(part, "/upload", 7) == 0)
        set_bucket(c, bucket, part, "", arena_format(&c->arena, "%s&name=%s", query, escaped));
    else
        set_bucket(c, bucket, "", arena_format(&c->arena, "/%s%s", escaped, part), query);
    return OK;
}

static err address_of(const char *path, struct web_call *c)
{
    return gs_address(path, "", "alt=media", c);
}

static err sign(struct web_call *c)
{
    char token[GS_TOKEN_BYTES];
    if (emulator()) return OK;
    const err e = gs_token(token);
    if (e) return fail_prefix(e, "%s", c->http.shown);
    web_call_header(c, "Authorization: Bearer %s", token);
    return OK;
}

/* ---- lists ---- */

static err take_names(struct web_list *l, const json_t *names)
{
    size_t i;
    json_t *item;
    json_array_foreach(names, i, item)
    {
        const char *name =
            json_string_value(json_is_object(item) ? json_object_get(item, "name") : item);
        if (name) TRY(web_list_add(l, name));
    }
    return OK;
}

static err list_take(struct web_list *l, const char *page, size_t bytes)
{
    json_error_t error;
    json_t *root = json_loadb(page, bytes, 0, &error);
    if (!json_is_object(root)) {
        json_decref(root);
        return fail(ERR_IO, "the server's list of files is broken");
    }
    const char *token = json_string_value(json_object_get(root, "nextPageToken"));
    l->is_truncated = token && *token;
    const bool fits =
        snprintf(l->token, sizeof l->token, "%s", token ? token : "") < (int)sizeof l->token;
    err e =
        fits ? take_names(l, json_object_get(root, "items"))
             : fail(ERR_IO, "the token of a list has more than %d bytes", (int)WEB_TOKEN_BYTES - 1);
    if (!e) e = take_names(l, json_object_get(root, "prefixes"));
    json_decref(root);
    return e;
}

static err list_page(const struct web_listing *l, const char *token, struct web_list *to)
{
    struct web_call c = {0};
    const char *query =
        arena_format(&c.arena, "%sprefix=%s%s%s", l->depth ? "" : "delimiter=%2F&",
                     web_escape(&c.arena, l->prefix, false), *token ? "&pageToken=" : "",
                     web_escape(&c.arena, token, false));
    set_bucket(&c, l->bucket, "", "", query);
    const err e = web_list_ask(&c, &gs_service, l, list_take, to);
    web_call_close(&c);
    return e;
}

static const char *const schemes[] = {"gs", NULL};
const struct web_service gs_service = {
    .files = {.schemes = schemes,
              .open = web_file_open,
              .read = web_file_read,
              .state = web_file_state,
              .close = web_file_close,
              .match = web_match,
              .create = gs_create,
              .write = gs_write,
              .finish = gs_finish,
              .drop = gs_drop,
              .remove = gs_remove,
              .move = gs_move,
              .visit = web_visit},
    .address = address_of,
    .sign = sign,
    .list = list_page,
};
