/* hdfs.c - files of Hadoop by WebHDFS, of a name node or of HttpFS: hdfs://host:port/path,
 * webhdfs:// (the same), and swebhdfs:// by TLS. The port is that of the web interface. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "net/web/hdfs/hdfs_inside.h"
#include "net/web/list.h"
#include "net/web/services.h"

/* ---- addresses ---- */

static bool has_port(const char *host, size_t bytes)
{
    const char *at = memrchr(host, '@', bytes), *bracket = memrchr(host, ']', bytes); /* of IPv6 */
    const char *from = bracket ? bracket : at ? at : host;
    return memchr(from, ':', bytes - (size_t)(from - host)) != NULL;
}

/* By HTTP; of another scheme too, which nobody takes for one of these. */
static const char *base_of(const char *path, struct arena *arena)
{
    const bool is_secure = strncmp(path, "swebhdfs:", 9) == 0;
    const char *host = strstr(path, "://") + 3;
    const size_t bytes = strcspn(host, "/");
    const char *port = has_port(host, bytes) ? "" : is_secure ? ":9871" : ":9870";
    return arena_format(arena, "%s://%.*s%s", is_secure ? "https" : "http", (int)bytes, host, port);
}

/* By the command line or the spec */
static bool is_named(const char *base, struct arena *arena)
{
    const char *server;
    for (int i = 0; (server = url_server(i)); i++)
        if (strstr(server, "hdfs://") && strcasecmp(base_of(server, arena), base) == 0) return true;
    return false;
}

static err refuse_token(const struct web_call *c, const char *base)
{
    return fail(ERR_INPUT,
                "%s: the delegation token of this task goes only to servers that its own command "
                "line or spec names, and %s was named by a file or by another task (a ps without a "
                "spec: --storage=hdfs://host:port)",
                c->http.shown, base);
}

err hdfs_address(const char *path, const char *operation, struct web_call *c)
{
    const char *host = strstr(path, "://") + 3, *who, *secret;
    const size_t bytes = strcspn(host, "/");
    if (bytes == 0) return fail(ERR_INPUT, "%s: expected hdfs://host:port/path", c->http.shown);
    const char *base = base_of(path, &c->arena);
    TRY(hdfs_who(&c->arena, &who, &secret));
    if (*secret && !is_named(base, &c->arena)) return refuse_token(c, base);
    const char *escaped = web_escape(&c->arena, host[bytes] ? host + bytes : "/", true);
    web_call_address(c, base, arena_format(&c->arena, "/webhdfs/v1%s", escaped),
                     arena_format(&c->arena, "%s%s%s", operation, *who ? "&" : "", who));
    c->http.secret = secret;
    c->http.stays_secure = true;
    c->http.may_pass = hdfs_may_pass;
    return OK;
}

static err address_of(const char *path, struct web_call *c)
{
    return hdfs_address(path, "op=OPEN", c);
}

static void set_range(struct web_call *c, uint64_t at, size_t bytes)
{
    c->http.url = arena_format(&c->arena, "%s&offset=%llu&length=%zu", c->http.url,
                               (unsigned long long)at, bytes);
}

/* ---- answers ---- */

bool hdfs_may_pass(const struct http_call *c)
{
    static const char *const exceptions[] = {"StandbyException", "RetriableException",
                                             "SafeModeException", "AlreadyBeingCreatedException",
                                             "RecoveryInProgressException"};
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (strstr(c->said, exceptions[i])) return true;
    return false;
}

err hdfs_refused(const struct http_call *c)
{
    const bool is_absent = c->status == 404 && strstr(c->said, "FileNotFoundException");
    const err e = http_refused(c);
    errno = is_absent ? ENOENT : EIO;
    return e;
}

static err take_answer(const struct http_call *c, struct hdfs_answer *ret)
{
    ret->status = c->status;
    if (c->status >= 300) return hdfs_refused(c);
    if (c->is_cut)
        return fail(ERR_IO, "%s: the answer has more than %d MiB", c->shown,
                    WEB_ANSWER_BYTES >> 20);
    if (c->bytes == 0) return OK;
    ret->root = json_loadb(c->to, c->bytes, 0, NULL);
    return ret->root ? OK : fail(ERR_IO, "%s: the server's answer is no JSON", c->shown);
}

err hdfs_ask(const char *method, const char *path, const char *operation, struct hdfs_answer *ret)
{
    struct web_call c;
    *ret = (struct hdfs_answer){0};
    char *answer = malloc(WEB_ANSWER_BYTES);
    if (!answer) return fail(ERR_MEMORY, "no memory for what a server says");
    web_call_begin(&c, method, path);
    errno = EINVAL; /* nobody has looked whether it is there */
    err e = hdfs_address(path, operation, &c);
    if (strcmp(method, "PUT") == 0) web_call_body(&c, "", 0);
    c.http.to = answer;
    c.http.max = WEB_ANSWER_BYTES;
    if (!e) e = http_start(&c.http);
    if (!e) e = http_wait(&c.http);
    if (!e) e = take_answer(&c.http, ret);
    const int why = errno;
    web_call_close(&c);
    free(answer);
    errno = why;
    return e;
}

/* ---- what is there ---- */

static bool is_folder(const json_t *status)
{
    const char *type = json_string_value(json_object_get(status, "type"));
    return type && strcmp(type, "DIRECTORY") == 0;
}

static err take_status(const char *path, const json_t *root, struct file_state *ret)
{
    char shown[PATH_BYTES_MAX];
    const json_t *status = json_object_get(root, "FileStatus");
    const json_int_t bytes = json_integer_value(json_object_get(status, "length"));
    const json_int_t changed_ms = json_integer_value(json_object_get(status, "modificationTime"));
    if (!json_is_object(status) || bytes < 0)
        return fail(ERR_IO, "%s: the server's answer says no length", path_shown(path, shown));
    *ret = (struct file_state){
        .bytes = (uint64_t)bytes,
        .changed_s = changed_ms / 1000,
        .changed_ns = changed_ms % 1000 * 1000000,
        .identity = (uint64_t)json_integer_value(json_object_get(status, "fileId")),
    };
    if (!is_folder(status)) return OK;
    errno = EISDIR;
    return fail(ERR_INPUT, "%s: is a folder", path_shown(path, shown));
}

err hdfs_find(const char *path, struct file_state *ret)
{
    struct hdfs_answer answer;
    TRY(hdfs_ask("GET", path, "op=GETFILESTATUS", &answer));
    const err e = take_status(path, answer.root, ret);
    json_decref(answer.root);
    return e;
}

err hdfs_look(const char *path, struct file_state *ret)
{
    char said[ERROR_TEXT_MAX];
    const err e = hdfs_find(path, ret);
    if (!e || errno != ENOENT) return e;
    snprintf(said, sizeof said, "%s", error_text());
    if (hdfs_recover(path)) return hdfs_find(path, ret);
    errno = ENOENT;
    return fail(e, "%s", said);
}

/* ---- lists ---- */

/* Names in a folder ("d/"; "": the root) that the list is of; folders end with a "/". ret_last: the
 * name that the next batch begins behind. */
static err take_names(const struct web_listing *l, const char *folder, const json_t *statuses,
                      struct web_list *to, char ret_last[WEB_TOKEN_BYTES])
{
    char key[PATH_BYTES_MAX];
    size_t i;
    json_t *status;
    json_array_foreach(json_object_get(statuses, "FileStatus"), i, status)
    {
        const char *name = json_string_value(json_object_get(status, "pathSuffix"));
        if (!name || !*name || strchr(name, '/')) continue; /* a file's own status has no name */
        snprintf(ret_last, WEB_TOKEN_BYTES, "%s", name);
        snprintf(key, sizeof key, "%s%s%s", folder, name, is_folder(status) ? "/" : "");
        if (strncmp(key, l->prefix, strlen(l->prefix)) == 0) TRY(web_list_add(to, key));
    }
    return OK;
}

/* One batch behind `last`; what is not there has none. Servers from before Hadoop 2.9 know only
 * lists that are whole. */
static err ask_batch(const char *path, const char *last, struct hdfs_answer *ret)
{
    struct arena arena = {0};
    const char *operation =
        arena_format(&arena, "op=LISTSTATUS_BATCH%s%s", *last ? "&startAfter=" : "",
                     web_escape(&arena, last, false));
    err e = hdfs_ask("GET", path, operation, ret);
    if (e && ret->status == 400) e = hdfs_ask("GET", path, "op=LISTSTATUS", ret);
    if (e && errno == ENOENT) e = OK;
    arena_free(&arena);
    return e;
}

static err list_folder(const struct web_listing *l, const char *folder, struct web_list *to)
{
    char path[PATH_BYTES_MAX], last[WEB_TOKEN_BYTES] = "", before[WEB_TOKEN_BYTES];
    snprintf(path, sizeof path, "%s://%s/%s", l->scheme, l->bucket, folder);
    do {
        struct hdfs_answer answer;
        TRY(web_list_turn(to, l));
        TRY(ask_batch(path, last, &answer));
        const json_t *batch = json_object_get(answer.root, "DirectoryListing");
        const json_t *part = batch ? json_object_get(batch, "partialListing") : answer.root;
        const json_int_t left = json_integer_value(json_object_get(batch, "remainingEntries"));
        strcpy(before, last);
        const err e = take_names(l, folder, json_object_get(part, "FileStatuses"), to, last);
        json_decref(answer.root);
        if (e || left <= 0) return e;
    } while (strcmp(last, before) != 0);
    return fail(ERR_IO, "%s: the server's list of files does not end", path);
}

static int slashes(const char *text)
{
    int count = 0;
    for (; *text; text++) count += *text == '/';
    return count;
}

/* All at once: folders are added before what is in them. */
static err list_page(const struct web_listing *l, const char *token, struct web_list *to)
{
    const char *slash = strrchr(l->prefix, '/');
    char folder[PATH_BYTES_MAX];
    to->is_truncated = false;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash + 1 - l->prefix) : 0, l->prefix);
    const int depth = slashes(folder) + l->depth;
    size_t i = to->count;
    TRY(list_folder(l, folder, to));
    for (; l->depth > 0 && i < to->count; i++) {
        const char *key = to->keys[i];
        const bool is_inner = key[strlen(key) - 1] == '/' && slashes(key) <= depth;
        if (is_inner) TRY(list_folder(l, key, to));
    }
    return OK;
}

static const char *const schemes[] = {"hdfs", "swebhdfs", "webhdfs", NULL};
const struct web_service hdfs_service = {
    .files = {.schemes = schemes,
              .open = web_file_open,
              .read = web_file_read,
              .state = web_file_state,
              .close = web_file_close,
              .match = web_match,
              .create = hdfs_create,
              .write = hdfs_write,
              .finish = hdfs_finish,
              .drop = hdfs_drop,
              .remove = hdfs_remove,
              .remove_folder = hdfs_remove,
              .move = hdfs_move,
              .visit = web_visit},
    .address = address_of,
    .look = hdfs_look,
    .range = set_range,
    .list = list_page,
};
