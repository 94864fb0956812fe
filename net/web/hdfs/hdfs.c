/* hdfs.c - files of Hadoop by WebHDFS, of a name node or of HttpFS: hdfs://host:port/path,
 * webhdfs:// (the same), and swebhdfs:// by TLS. The port is that of the web interface. */
#include <errno.h>
#include <jansson.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/files/local.h"
#include "core/base/fingerprint.h"
#include "core/base/json_foreign.h"
#include "core/base/random.h"
#include "net/web/list.h"
#include "net/web/upload.h"

extern const struct web_service hdfs_service;

static bool hdfs_recover(const char *path);

/* ---- the token file that Hadoop gives to the programs it starts ---- */

/* "HDTS", a version byte (0), the number of tokens, and for each its name, identifier, password,
 * kind and service, each preceded by its length. Requests use all but the name. */
enum { HDFS_TOKEN_BYTES = 4096, HDFS_TOKEN_FILE_BYTES_MAX = 64 << 10 };

static const char begin[] = "HDTS";

struct unread_bytes {
    const uint8_t *at;
    size_t bytes;
    bool is_broken;
};

static uint8_t take_byte(struct unread_bytes *r)
{
    r->is_broken |= r->bytes == 0;
    if (r->is_broken) return 0;
    r->bytes--;
    return *r->at++;
}

/* Hadoop's variable-length int: one byte, or a byte that tells how many follow, up to four; a
 * negative number is malformed. */
static size_t take_number(struct unread_bytes *r)
{
    const int first = (int8_t)take_byte(r);
    if (first >= 0) return (size_t)first;
    const int count = -112 - first;
    size_t number = 0;
    r->is_broken |= count < 1 || count > 4;
    for (int i = 0; i < count && !r->is_broken; i++) number = number << 8 | take_byte(r);
    return number;
}

static struct unread_bytes take_bytes(struct unread_bytes *r)
{
    const size_t bytes = take_number(r);
    r->is_broken |= bytes > r->bytes;
    if (r->is_broken) return (struct unread_bytes){.is_broken = true};
    const struct unread_bytes taken = {.at = r->at, .bytes = bytes};
    r->at += bytes;
    r->bytes -= bytes;
    return taken;
}

static bool is_kind(struct unread_bytes kind)
{
    static const char *const kinds[] = {"HDFS_DELEGATION_TOKEN", "WEBHDFS delegation",
                                        "SWEBHDFS delegation"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (kind.bytes == strlen(kinds[i]) && memcmp(kind.at, kinds[i], kind.bytes) == 0)
            return true;
    return false;
}

/* NULL: none. */
static const char *find_token(struct arena *arena, struct unread_bytes *r)
{
    const size_t count = take_number(r);
    for (size_t i = 0; i < count && !r->is_broken; i++) {
        (void)take_bytes(r); /* its name */
        const uint8_t *token = r->at;
        (void)take_bytes(r);
        (void)take_bytes(r);
        const struct unread_bytes kind = take_bytes(r);
        (void)take_bytes(r);
        if (!r->is_broken && is_kind(kind))
            return web_encode(arena, token, (size_t)(r->at - token));
    }
    return NULL;
}

static err read_tokens(struct arena *arena, const char *path, const uint8_t *bytes, size_t count,
                       const char **ret)
{
    const size_t head = strlen(begin) + 1;
    struct unread_bytes rest = {.at = bytes + head, .bytes = count - head};
    if (count < head || memcmp(bytes, begin, head - 1) != 0)
        return fail(ERR_INPUT, "HADOOP_TOKEN_FILE_LOCATION=%s: is no file of Hadoop's tokens",
                    path);
    if (bytes[head - 1] != 0)
        return fail(ERR_INPUT,
                    "HADOOP_TOKEN_FILE_LOCATION=%s: expected version 0, which hdfs dtutil writes "
                    "with -format java, and it has %d",
                    path, bytes[head - 1]);
    *ret = find_token(arena, &rest);
    if (*ret) return OK;
    return fail(ERR_INPUT, "HADOOP_TOKEN_FILE_LOCATION=%s: %s", path,
                rest.is_broken ? "is broken" : "has no delegation token of HDFS");
}

/* The first delegation token of HDFS in a file of tokens, as text */
static err hdfs_token_of_file(struct arena *arena, const char *path, const char **ret)
{
    uint8_t bytes[HDFS_TOKEN_FILE_BYTES_MAX];
    FILE *in;
    const err e = local_open_text(path, &in);
    if (e) return fail(e, "HADOOP_TOKEN_FILE_LOCATION=%s", error_text());
    const size_t count = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    return read_tokens(arena, path, bytes, count, ret);
}

/* ---- credentials ---- */

static const char token_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=";

static const char *variable(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? text : NULL;
}

static const char *user(struct arena *arena)
{
    const char *given = variable("HADOOP_USER_NAME");
    struct passwd entry, *found = NULL;
    char names[4096];
    if (given) return given;
    if (getpwuid_r(geteuid(), &entry, names, sizeof names, &found) || !found)
        return variable("USER");
    return arena_string(arena, entry.pw_name);
}

/* Checks the letters of a token in Hadoop's text form; the server checks the rest. */
static err check_token(const char *token, const char *from)
{
    const size_t bytes = strspn(token, token_letters);
    if (bytes > 0 && !token[bytes] && bytes < HDFS_TOKEN_BYTES) return OK;
    return fail(ERR_INPUT, "%s: expected a delegation token in base64 for URLs", from);
}

/* "delegation=TOKEN" of HADOOP_TOKEN, else of the file HADOOP_TOKEN_FILE_LOCATION, else
 * "user.name=NAME" of HADOOP_USER_NAME or this process's user; "": nobody is known. ret_secret: the
 * token; "": none. ERR_INPUT: the token is malformed. */
static err hdfs_who(struct arena *arena, const char **ret, const char **ret_secret)
{
    const char *token = variable("HADOOP_TOKEN"), *file = variable("HADOOP_TOKEN_FILE_LOCATION");
    *ret = *ret_secret = "";
    if (token) TRY(check_token(token, "HADOOP_TOKEN"));
    if (!token && file) TRY(hdfs_token_of_file(arena, file, &token));
    if (token) {
        *ret_secret = arena_string(arena, token);
        *ret = arena_format(arena, "delegation=%s", token);
        return OK;
    }
    const char *name = user(arena);
    if (name) *ret = arena_format(arena, "user.name=%s", web_escape(arena, name, false));
    return OK;
}

/* A name node's answer in JSON. */
struct hdfs_answer {
    int status;   /* HTTP status; 0: no answer */
    json_t *root; /* NULL: empty; the caller frees it */
};

/* ---- addresses ---- */

/* Whether a refusal may be temporary: a standby or starting name node, a file still leased by its
 * last writer. */
static bool hdfs_may_pass(const struct http_call *c)
{
    static const char *const exceptions[] = {"StandbyException", "RetriableException",
                                             "SafeModeException", "AlreadyBeingCreatedException",
                                             "RecoveryInProgressException"};
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++)
        if (strstr(c->answer.said, exceptions[i])) return true;
    return false;
}

static bool has_port(const char *host, size_t bytes)
{
    const char *at = memrchr(host, '@', bytes), *bracket = memrchr(host, ']', bytes); /* of IPv6 */
    const char *from = bracket ? bracket : at ? at : host;
    return memchr(from, ':', bytes - (size_t)(from - host)) != NULL;
}

/* The http:// or https:// base of the path's server; of any other scheme too. */
static const char *base_of(const char *path, struct arena *arena)
{
    const bool is_secure = strncmp(path, "swebhdfs:", 9) == 0;
    const char *host = strstr(path, "://") + 3;
    const size_t bytes = strcspn(host, "/");
    const char *port = has_port(host, bytes) ? "" : is_secure ? ":9871" : ":9870";
    return arena_format(arena, "%s://%.*s%s", is_secure ? "https" : "http", (int)bytes, host, port);
}

/* Whether the user has named this server, on the command line or in the spec */
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

/* The call of an operation, "op=OPEN&offset=0", of a path. ERR_INPUT: the path has no host, or
 * the token is malformed. */
static err hdfs_address(const char *path, const char *operation, struct web_call *c)
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
    c->http.secret = *secret ? secret : web_password_proof(&c->arena, base);
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

/* A refusal, as http_refused() says; errno is ENOENT only of what Hadoop says is not there, and not
 * of a server that knows no such address. */
static err hdfs_refused(const struct http_call *c)
{
    const bool is_absent =
        c->answer.status == 404 && strstr(c->answer.said, "FileNotFoundException");
    const err e = http_refused(c);
    errno = is_absent ? ENOENT : EIO;
    return e;
}

static err take_answer(const struct http_call *c, struct hdfs_answer *ret)
{
    ret->status = c->answer.status;
    if (c->answer.status >= 300) return hdfs_refused(c);
    if (c->answer.is_cut)
        return fail(ERR_IO, "%s: the answer has more than %d MiB", c->shown,
                    WEB_ANSWER_BYTES >> 20);
    if (c->answer.bytes == 0) return OK;
    if (!json_read_foreign(c->to, c->answer.bytes, 0, &ret->root)) return OK;
    return fail_prefix(ERR_IO, "%s: the server's answer is no JSON", c->shown);
}

/* ERR_INPUT and ERR_IO as hdfs_refused() says. */
static err hdfs_ask(const char *method, const char *path, const char *operation,
                    struct hdfs_answer *ret)
{
    struct web_call c;
    *ret = (struct hdfs_answer){0};
    char *answer = malloc(WEB_ANSWER_BYTES);
    if (!answer) return fail(ERR_MEMORY, "no memory for what a server says");
    web_call_begin(&c, method, path);
    errno = EINVAL; /* not ENOENT: whether the file exists is unknown */
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

static const char *type_of(const json_t *status)
{
    const char *type = json_string_value(json_object_get(status, "type"));
    return type ? type : "";
}

static bool is_folder(const json_t *status)
{
    return strcmp(type_of(status), "DIRECTORY") == 0;
}

/* A malformed status is an error: it neither describes a file nor shows that there is none. */
static bool is_status(const json_t *status)
{
    const char *type = type_of(status);
    return json_is_string(json_object_get(status, "pathSuffix")) &&
           (is_folder(status) || strcmp(type, "FILE") == 0 || strcmp(type, "SYMLINK") == 0);
}

static err take_status(const char *path, const json_t *root, struct file_state *ret)
{
    char shown[PATH_BYTES_MAX];
    const json_t *status = json_object_get(root, "FileStatus");
    const json_t *length = json_object_get(status, "length");
    const json_int_t bytes = json_integer_value(length);
    const json_int_t changed_ms = json_integer_value(json_object_get(status, "modificationTime"));
    errno = EIO;
    if (!is_status(status) || !json_is_integer(length) || bytes < 0)
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

/* As file_look() says, of this very name. */
static err hdfs_find(const char *path, struct file_state *ret)
{
    struct hdfs_answer answer;
    TRY(hdfs_ask("GET", path, "op=GETFILESTATUS", &answer));
    const err e = take_status(path, answer.root, ret);
    json_decref(answer.root);
    return e;
}

/* The same; first finishes a rename that was interrupted (hdfs_recover). */
static err hdfs_look(const char *path, struct file_state *ret)
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

static err fail_list(void)
{
    return fail(ERR_IO, "the server's list of files is broken");
}

/* Adds the names in a folder ("d/"; "": the root) that match the listing; folders end with "/".
 * ret_last: the name after which the next batch begins. */
static err take_names(const struct web_listing *l, const char *folder, const json_t *statuses,
                      struct web_list *to, char ret_last[WEB_TOKEN_BYTES])
{
    char key[PATH_BYTES_MAX];
    size_t i;
    json_t *status;
    const json_t *all = json_object_get(statuses, "FileStatus");
    if (!json_is_array(all)) return fail_list();
    json_array_foreach(all, i, status)
    {
        const char *name = json_string_value(json_object_get(status, "pathSuffix"));
        if (!is_status(status) || strchr(name, '/')) return fail_list();
        if (!*name) continue; /* a file's own status has no name */
        snprintf(ret_last, WEB_TOKEN_BYTES, "%s", name);
        snprintf(key, sizeof key, "%s%s%s", folder, name, is_folder(status) ? "/" : "");
        if (strncmp(key, l->prefix, strlen(l->prefix)) == 0) TRY(web_list_add(to, key));
    }
    return OK;
}

/* One batch of names after `last`; empty if there is no such folder. Servers older than Hadoop 2.9
 * give only complete lists. */
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
        const json_t *entries = json_object_get(batch, "remainingEntries");
        const json_int_t left = json_integer_value(entries);
        strcpy(before, last);
        err e = OK;
        if (answer.status < 300)
            e = take_names(l, folder, json_object_get(part, "FileStatuses"), to, last);
        if (!e && batch && (!json_is_integer(entries) || left < 0)) e = fail_list();
        if (e) e = fail_prefix(e, "%s", path);
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

/* ---- writing ---- */

/* A file is created under a temporary name and then renamed, replacing an old one. More than one
 * part is appended part by part; if an answer is lost, the file's length tells what has arrived.
 *
 * A server whose rename does not replace (HttpFS) needs three steps: rename the new file to
 * NAME.tempstate0, remove the old one, rename the new one. If the process dies between the last
 * two, whoever looks for the name next finishes that.
 */
enum {
    HDFS_PART_BYTES = 8 << 20,
    HDFS_SENDS_MAX = 20, /* per part; a dead data node keeps a file leased for a minute */
};
#define HDFS_SPARE ".tempstate" /* and a number; sweeps of a run's folder know it */

struct hdfs_upload {
    struct upload upload; /* first */
    char *spare;          /* its temporary name; NULL: no part was begun */
    bool has_spare;       /* a file of that name may exist */
};

static const char create[] = "op=CREATE&overwrite=true", append[] = "op=APPEND";

/* ---- names ---- */

/* Hash of the server whose rename is known to replace a file; 0: none yet. */
static _Atomic uint64_t replacing;

static uint64_t server_of(const char *path)
{
    const char *host = strstr(path, "://") + 3;
    return fingerprint(host, strcspn(host, "/"));
}

static err remove_name(const char *path)
{
    struct hdfs_answer answer;
    const err e = hdfs_ask("DELETE", path, "op=DELETE&recursive=false", &answer);
    json_decref(answer.root);
    return e && errno == ENOENT ? OK : e;
}

/* The path within a URL */
static const char *path_there(const char *path)
{
    const char *host = strstr(path, "://") + 3;
    return host + strcspn(host, "/");
}

/* more: "", or "&" and further parameters. A name node that knows rename options answers without a
 * body on success; others answer whether they have renamed. */
static err rename_once(const char *from, const char *to, const char *more, bool *ret_done)
{
    struct arena arena = {0};
    struct hdfs_answer answer;
    const char *operation = arena_format(&arena, "op=RENAME&destination=%s%s",
                                         web_escape(&arena, path_there(to), true), more);
    const err e = hdfs_ask("PUT", from, operation, &answer);
    const json_t *said = json_object_get(answer.root, "boolean");
    *ret_done = !e && !json_is_false(said);
    if (!e && *more && !answer.root) atomic_store(&replacing, server_of(from));
    json_decref(answer.root);
    arena_free(&arena);
    return e;
}

/* After a rename whose answer was lost: whether the name now belongs to that file. */
static bool has_name(const char *path, const struct file_state *of)
{
    char said[ERROR_TEXT_MAX];
    struct file_state now;
    snprintf(said, sizeof said, "%s", error_text());
    const bool is_it = !hdfs_look(path, &now) && now.bytes == of->bytes &&
                       now.identity == of->identity && now.changed_s == of->changed_s &&
                       now.changed_ns == of->changed_ns;
    if (!is_it) (void)fail(ERR_IO, "%s", said);
    return is_it;
}

/* The name must be free. */
static err rename_file(const char *from, const char *to, const struct file_state *state)
{
    bool is_done;
    const err e = rename_once(from, to, "", &is_done);
    if (is_done || has_name(to, state)) return OK;
    return e ? e : fail(ERR_IO, "%s: the server does not rename it to %s", from, to);
}

static err spare_name(const char *path, uint64_t number, char **ret)
{
    if (asprintf(ret, "%s" HDFS_SPARE "%llu", path, (unsigned long long)number) < 0) *ret = NULL;
    return *ret ? OK : fail(ERR_MEMORY, "no memory for the name of a file");
}

/* Also removes the file of an interrupted three-step rename, which would otherwise be given the
 * name once that is free. */
static err hdfs_remove(const char *path)
{
    char *whole = NULL;
    if (atomic_load(&replacing) == server_of(path)) return remove_name(path);
    TRY(spare_name(path, 0, &whole));
    err e = remove_name(whole);
    if (!e) e = remove_name(path);
    free(whole);
    return e;
}

/* Does the last of the three steps if it is missing. false: there was nothing to finish, or it is
 * unknown. */
static bool hdfs_recover(const char *path)
{
    char *whole = NULL;
    bool is_done = false;
    struct file_state state;
    if (spare_name(path, 0, &whole)) return false;
    if (!hdfs_find(whole, &state)) (void)rename_once(whole, path, "", &is_done);
    free(whole);
    return is_done;
}

static err move_in_steps(const char *from, const char *to, const struct file_state *state)
{
    struct file_state old;
    char *whole = NULL;
    TRY(hdfs_look(to, &old)); /* on other failures nothing is changed */
    TRY(spare_name(to, 0, &whole));
    err e = remove_name(whole);
    if (!e) e = rename_file(from, whole, state);
    if (!e) e = remove_name(to);
    if (!e) e = rename_file(whole, to, state);
    free(whole);
    return e;
}

static err hdfs_move(const char *from, const char *to)
{
    struct file_state state;
    bool is_done;
    TRY(hdfs_look(from, &state));
    const err e = rename_once(from, to, "&renameoptions=OVERWRITE", &is_done);
    if (is_done || has_name(to, &state)) return OK;
    return e ? e : move_in_steps(from, to, &state);
}

/* ---- parts ---- */

/* An empty file is complete once created. */
static err start_part(struct upload *u, struct upload_part *p, uint64_t from)
{
    struct hdfs_upload *h = (struct hdfs_upload *)u;
    const size_t skipped = (size_t)(from - p->at);
    struct web_call *c = &p->call;
    h->has_spare = p->bytes > 0;
    web_call_begin(c, from ? "POST" : "PUT", u->path);
    TRY(hdfs_address(h->has_spare ? h->spare : u->path, from ? append : create, c));
    web_call_body(c, p->memory + skipped, p->bytes - skipped);
    c->http.body_waits = true;
    c->http.tries_max = from > 0; /* an append must not be repeated blindly */
    c->http.is_counted = from > 0;
    c->http.to = p->answer;
    c->http.max = sizeof p->answer;
    return http_start(&c->http);
}

static err take_part(struct upload_part *p)
{
    const struct http_call *h = &p->call.http;
    const err e = http_wait(&p->call.http);
    const err refused = !e && h->answer.status >= 300 ? hdfs_refused(h) : e;
    upload_close_part(p);
    return refused;
}

/* How many bytes of the file have arrived, after a failure */
static err find_kept(const struct upload *u, const struct upload_part *p, uint64_t *ret)
{
    struct file_state state;
    TRY(hdfs_look(((const struct hdfs_upload *)u)->spare, &state));
    *ret = state.bytes;
    if (state.bytes >= p->at && state.bytes <= p->at + p->bytes) return OK;
    return fail(ERR_IO, "%s: of bytes %llu to %llu the server has %llu", u->path,
                (unsigned long long)p->at, (unsigned long long)(p->at + p->bytes),
                (unsigned long long)state.bytes);
}

static err wait_part(struct upload *u, struct upload_part *p)
{
    const uint64_t until_ms = clock_ms() + 1000ull * WEB_WRITE_MAX_S;
    err e = OK;
    for (int i = 1; p->is_sent && i <= HDFS_SENDS_MAX; i++) {
        uint64_t kept = 0;
        e = take_part(p);
        const bool is_last = i == HDFS_SENDS_MAX || clock_ms() > until_ms;
        if (e != ERR_IO || p->at == 0 || is_last) return e;
        http_pause(i);
        TRY(find_kept(u, p, &kept));
        if (kept == p->at + p->bytes) return OK;
        TRY(upload_start_part(u, p, kept));
    }
    return e;
}

/* ---- a file that is written ---- */

static err begin_upload(struct upload *u)
{
    const uint64_t number = random_u64((uint64_t)getpid(), clock_ns()) | 1; /* 0: see above */
    return spare_name(u->path, number, &((struct hdfs_upload *)u)->spare);
}

static err end_upload(struct upload *u)
{
    struct hdfs_upload *h = (struct hdfs_upload *)u;
    if (h->has_spare) TRY(hdfs_move(h->spare, u->path));
    h->has_spare = false;
    return OK;
}

/* Removes the temporary file. */
static void drop_upload(struct upload *u)
{
    struct hdfs_upload *h = (struct hdfs_upload *)u;
    if (h->has_spare) (void)remove_name(h->spare);
    free(h->spare);
}

static const struct upload_way way = {.writer_bytes = sizeof(struct hdfs_upload),
                                      .part_bytes = HDFS_PART_BYTES,
                                      .parts = 2,
                                      .in_order = true,
                                      .begin = begin_upload,
                                      .start = start_part,
                                      .wait = wait_part,
                                      .end = end_upload,
                                      .drop = drop_upload};

/* ---- the service ---- */

static const char *const schemes[] = {"hdfs", "swebhdfs", "webhdfs", NULL};
const struct web_service hdfs_service = {
    .files = {.schemes = schemes,
              WEB_FILE_READING,
              .match = web_match,
              UPLOAD_WRITING,
              .remove = hdfs_remove,
              .remove_folder = hdfs_remove,
              .move = hdfs_move,
              .visit = web_visit},
    .upload = &way,
    .address = address_of,
    .look = hdfs_look,
    .range = set_range,
    .list = list_page,
};
