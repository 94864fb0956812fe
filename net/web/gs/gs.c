/* gs.c - objects of Google Cloud Storage by its JSON API, and of servers that answer like it:
 * gs://bucket/key.
 *
 * STORAGE_EMULATOR_HOST is the address of an emulator, which gets no credentials;
 * CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE that of a server which does.
 */
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/clock.h"
#include "core/base/json_foreign.h"
#include "net/web/list.h"
#include "net/web/upload.h"

extern const struct web_service gs_service;

/* ---- credentials ---- */

enum {
    GS_TOKEN_BYTES = 4096,
    GS_KEY_FILE_BYTES_MAX = 64 << 10,
    GS_TOKEN_S = 3600,      /* requested lifetime of a token, and the longest that one is kept */
    GS_TOKEN_EARLY_S = 300, /* renewed this long before it expires */
};

enum { ANSWER_BYTES = 16 << 10 };

static const char scope[] = "https://www.googleapis.com/auth/devstorage.read_write";

static struct {
    pthread_mutex_t lock;
    char token[GS_TOKEN_BYTES];
    struct timespec renewed; /* when it must be renewed, by CLOCK_BOOTTIME */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the assertion ---- */

/* NULL: signing failed. */
static char *signature(struct arena *arena, EVP_PKEY *key, const char *text)
{
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t bytes = (size_t)EVP_PKEY_get_size(key);
    unsigned char *made = arena_new(arena, bytes);
    const bool is_made =
        context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
        EVP_DigestSign(context, made, &bytes, (const unsigned char *)text, strlen(text)) == 1;
    EVP_MD_CTX_free(context);
    return is_made ? web_encode(arena, made, bytes) : NULL;
}

static EVP_PKEY *read_key(const char *pem)
{
    static char no_password[] = "";
    BIO *in = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = in ? PEM_read_bio_PrivateKey(in, NULL, NULL, no_password) : NULL;
    BIO_free(in);
    if (key && EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA) return key;
    EVP_PKEY_free(key);
    return NULL;
}

/* The signed assertion for a token server: a JWT by RS256 with a PEM key. NULL: the key is invalid,
 * or out of memory. */
static char *gs_assertion(struct arena *arena, const char *email, const char *pem,
                          const char *audience, time_t now)
{
    static const char header[] = "{\"alg\":\"RS256\",\"typ\":\"JWT\"}";
    EVP_PKEY *key = read_key(pem);
    json_t *claims =
        json_pack("{s:s, s:s, s:s, s:I, s:I}", "iss", email, "scope", scope, "aud", audience, "iat",
                  (json_int_t)now, "exp", (json_int_t)now + GS_TOKEN_S);
    char *body = claims ? json_dumps(claims, JSON_COMPACT) : NULL, *text = NULL, *proof = NULL;
    if (key && body) {
        text = arena_format(arena, "%s.%s", web_encode(arena, header, strlen(header)),
                            web_encode(arena, body, strlen(body)));
        proof = signature(arena, key, text);
    }
    free(body);
    json_decref(claims);
    EVP_PKEY_free(key);
    return proof ? arena_format(arena, "%s.%s", text, proof) : NULL;
}

/* ---- tokens ---- */

static uint64_t lives_s(const json_t *answer)
{
    const json_int_t said = json_integer_value(json_object_get(answer, "expires_in"));
    const json_int_t most = said < GS_TOKEN_S ? said : GS_TOKEN_S;
    return most > GS_TOKEN_EARLY_S ? (uint64_t)most - GS_TOKEN_EARLY_S : 0;
}

static err take_token(const struct http_call *c)
{
    json_t *answer;
    if (json_read_foreign(c->to, c->answer.bytes, 0, &answer))
        return fail_prefix(ERR_IO, "%s: the answer has no access_token", c->shown);
    const char *token = json_string_value(json_object_get(answer, "access_token"));
    const size_t bytes = token ? strcspn(token, "\r\n") : 0;
    const bool is_one = bytes > 0 && !token[bytes] && bytes < sizeof kept.token;
    if (is_one) {
        memcpy(kept.token, token, bytes + 1);
        clock_gettime(CLOCK_BOOTTIME, &kept.renewed);
        kept.renewed.tv_sec += (time_t)lives_s(answer);
    }
    json_decref(answer);
    return is_one ? OK : fail(ERR_IO, "%s: the answer has no access_token", c->shown);
}

static err ask(struct http_call *c)
{
    char answer[ANSWER_BYTES];
    const err e = web_ask_lender(c, answer, sizeof answer);
    return e ? e : take_token(c);
}

static const char *text_of(const json_t *file, const char *name)
{
    return json_string_value(json_object_get(file, name));
}

static const char *token_url(const json_t *file)
{
    const char *url = text_of(file, "token_uri");
    return url ? url : "https://oauth2.googleapis.com/token";
}

static err ask_with_form(const char *url, const char *form, const char *secret)
{
    struct http_call c = {.method = "POST",
                          .url = url,
                          .secret = secret,
                          .body = form,
                          .body_bytes = strlen(form),
                          .body_type = "application/x-www-form-urlencoded"};
    return ask(&c);
}

static err ask_with_key(struct arena *arena, const char *path, const json_t *file)
{
    const char *email = text_of(file, "client_email"), *pem = text_of(file, "private_key");
    if (!email || !pem)
        return fail(ERR_INPUT,
                    "%s: expected the key of a service account, with client_email and private_key",
                    path);
    const char *assertion = gs_assertion(arena, email, pem, token_url(file), time(NULL));
    if (!assertion) return fail(ERR_INPUT, "%s: its private_key is no RSA key in PEM", path);
    const char *body = arena_format(
        arena, "grant_type=urn%%3Aietf%%3Aparams%%3Aoauth%%3Agrant-type%%3Ajwt-bearer&assertion=%s",
        assertion);
    return ask_with_form(token_url(file), body, assertion);
}

/* With a user's refresh token, as gcloud writes it */
static err ask_with_refresh(struct arena *arena, const char *path, const json_t *file)
{
    const char *id = text_of(file, "client_id"), *secret = text_of(file, "client_secret");
    const char *refresh = text_of(file, "refresh_token");
    if (!id || !secret || !refresh)
        return fail(ERR_INPUT,
                    "%s: expected client_id, client_secret and refresh_token of an authorized user",
                    path);
    const char *form = arena_format(
        arena, "grant_type=refresh_token&client_id=%s&client_secret=%s&refresh_token=%s",
        web_escape(arena, id, false), web_escape(arena, secret, false),
        web_escape(arena, refresh, false));
    return ask_with_form(token_url(file), form, refresh);
}

static err ask_with_file(const char *path)
{
    FILE *in = NULL;
    struct arena arena = {0};
    TRY(file_open_text(path, GS_KEY_FILE_BYTES_MAX, &in));
    json_t *file = json_loadf(in, 0, NULL);
    fclose(in);
    const char *type = text_of(file, "type");
    const bool is_person = type && strcmp(type, "authorized_user") == 0;
    const err e = (is_person ? ask_with_refresh : ask_with_key)(&arena, path, file);
    json_decref(file);
    arena_free(&arena);
    return e;
}

static err ask_machine(void)
{
    const char *given = getenv("GCE_METADATA_HOST");
    struct arena arena = {0};
    struct http_call c = {.method = "GET", .headers = {"Metadata-Flavor: Google"}};
    c.url =
        arena_format(&arena, "http://%s/computeMetadata/v1/instance/service-accounts/default/token",
                     given && *given ? given : "metadata.google.internal");
    err e = ask(&c);
    if (e)
        e = fail_prefix(e, "GOOGLE_APPLICATION_CREDENTIALS is not set, and the metadata server of "
                           "a machine of Google's gives no token");
    arena_free(&arena);
    return e;
}

/* Path of the credentials file, in the arena; NULL: none. */
static const char *key_file(struct arena *arena)
{
    const char *given = getenv("GOOGLE_APPLICATION_CREDENTIALS"), *home = getenv("HOME");
    if (given && *given) return given;
    const char *path = arena_format(arena, "%s/.config/gcloud/application_default_credentials.json",
                                    home ? home : "");
    return home && file_is_there(path) ? path : NULL;
}

static err ask_whoever(void)
{
    struct arena arena = {0};
    const char *path = key_file(&arena);
    const err e = path ? ask_with_file(path) : ask_machine();
    arena_free(&arena);
    return e;
}

static bool is_fresh(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return kept.token[0] && now.tv_sec < kept.renewed.tv_sec;
}

/* The token of this process: of the service account whose key is in
 * GOOGLE_APPLICATION_CREDENTIALS, or of the person whose refresh token is there; where that is not
 * set, of what gcloud keeps below ~/.config, else of the machine's metadata server
 * (GCE_METADATA_HOST). It is kept until shortly before its end. ERR_INPUT: the key is invalid; else
 * as http_refused() says. */
static err gs_token(char ret[GS_TOKEN_BYTES])
{
    err e = OK;
    pthread_mutex_lock(&kept.lock);
    if (!is_fresh()) e = ask_whoever();
    if (!e) memcpy(ret, kept.token, sizeof kept.token);
    pthread_mutex_unlock(&kept.lock);
    return e;
}

#define API "/storage/v1"

/* ---- addresses ---- */

static const char *emulator(void)
{
    const char *host = getenv("STORAGE_EMULATOR_HOST");
    return host && *host ? host : NULL;
}

/* Without the path that some of them have after the host */
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
    c->http.keeps_redirect = true; /* a token is valid for one host */
}

/* "" of part: the object of the path in the JSON API; else what stands behind it, or, where it
 * begins with "/upload", the address at which a new object is made. ERR_INPUT: no key. */
static err gs_address(const char *path, const char *part, const char *query, struct web_call *c)
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
    c->http.secret = arena_string(&c->arena, token);
    web_call_header(c, "Authorization: Bearer %s", token);
    return OK;
}

/* ---- lists ---- */

static err fail_list(void)
{
    return fail(ERR_IO, "the server's list of files is broken");
}

/* A malformed list is an error: it does not show that there is no other file. */
static err take_names(struct web_list *l, const json_t *names)
{
    size_t i;
    json_t *item;
    if (names && !json_is_array(names)) return fail_list();
    json_array_foreach(names, i, item)
    {
        const char *name =
            json_string_value(json_is_object(item) ? json_object_get(item, "name") : item);
        if (!name || !*name) return fail_list();
        TRY(web_list_add(l, name));
    }
    return OK;
}

static err take_token_of_list(struct web_list *l, const json_t *next)
{
    const char *token = next ? json_string_value(next) : "";
    if (!token) return fail_list();
    l->is_truncated = *token;
    if (snprintf(l->token, sizeof l->token, "%s", token) < (int)sizeof l->token) return OK;
    return fail(ERR_IO, "the token of a list has more than %d bytes", (int)WEB_TOKEN_BYTES - 1);
}

static err list_take(struct web_list *l, const char *page, size_t bytes)
{
    json_t *root;
    if (json_read_foreign(page, bytes, 0, &root))
        return fail_prefix(ERR_IO, "the server's list of files is broken");
    err e = take_token_of_list(l, json_object_get(root, "nextPageToken"));
    if (!e && !json_is_object(root)) e = fail_list();
    if (!e) e = take_names(l, json_object_get(root, "items"));
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

/* ---- writing ---- */

/* A file of more than a part is a resumable upload: it has its name once the last part is there. */
enum {
    GS_PART_BYTES = 8 << 20, /* a multiple of 256 KiB, says Google */
    GS_RESUMES_MAX = 64,     /* of a part that the server keeps only some of */
    GS_REWRITES_MAX = 10000, /* of a copy, each of which copies some of it */
};

enum { GOES_ON = 308 };

struct gs_upload {
    struct upload upload;              /* first */
    char session[HTTP_LOCATION_BYTES]; /* its own path, which is secret; "": none */
};

/* ---- single requests ---- */

static err open_call(struct web_call *c, const char *method, const char *path, const char *part,
                     const char *query)
{
    web_call_begin(c, method, path);
    return gs_address(path, part, query, c);
}

static err gs_remove(const char *path)
{
    struct web_call c;
    err e = open_call(&c, "DELETE", path, "", "");
    if (!e) e = web_call_remove(&c, &gs_service);
    web_call_close(&c);
    return e;
}

/* An empty file as one part of two: gcp-storage-emulator breaks at an empty body. */
static void set_empty(struct web_call *c)
{
    static const char parts[] = "--part\r\nContent-Type: application/json\r\n\r\n{}\r\n"
                                "--part\r\nContent-Type: application/octet-stream\r\n\r\n\r\n"
                                "--part--\r\n";
    web_call_body(c, parts, strlen(parts));
    c->http.body_type = "multipart/related; boundary=part";
}

static err put_whole(struct upload *u, const struct upload_part *p)
{
    struct web_call c;
    char answer[ANSWER_BYTES];
    err e = open_call(&c, "POST", u->path, "/upload",
                      p->bytes ? "uploadType=media" : "uploadType=multipart");
    web_call_body(&c, p->memory, p->bytes);
    if (!p->bytes) set_empty(&c);
    c.http.to = answer;
    c.http.max = sizeof answer;
    if (!e) e = web_call_make(&c, &gs_service);
    web_call_close(&c);
    return e;
}

/* ---- a resumable upload ---- */

/* Of an address, what stands behind its server; "": nothing does. */
static const char *path_of(const char *address)
{
    const char *scheme = strstr(address, "://");
    const char *server = scheme ? scheme + 1 : address;
    return strchrnul(strncmp(server, "//", 2) ? server : server + 2, '/');
}

static err begin_upload(struct upload *u)
{
    struct gs_upload *g = (struct gs_upload *)u;
    struct web_call c;
    char answer[ANSWER_BYTES];
    err e = open_call(&c, "POST", u->path, "/upload", "uploadType=resumable");
    web_call_body(&c, "", 0);
    c.http.to = answer;
    c.http.max = sizeof answer;
    if (!e) e = web_call_make(&c, &gs_service);
    const char *path = path_of(c.http.answer.location);
    if (!e && !*path) e = fail(ERR_IO, "%s: the server gave its upload no address", c.http.shown);
    if (!e) snprintf(g->session, sizeof g->session, "%s", path);
    web_call_close(&c);
    return e;
}

/* A call to the upload itself, whose path proves who asks. It stays with the server that was asked,
 * whichever the address names. */
static void open_session(struct upload *u, const char *method, struct web_call *c)
{
    const struct gs_upload *g = (const struct gs_upload *)u;
    web_call_begin(c, method, u->path);
    c->http.url = arena_format(&c->arena, "%s%s", base_of(&c->arena), g->session);
    c->http.secret = g->session;
    c->http.keeps_redirect = true;
}

/* Sending a part twice does no harm: the server ignores bytes that it has. */
static err start_part(struct upload *u, struct upload_part *p, uint64_t from)
{
    const unsigned long long end = p->at + p->bytes;
    const size_t skipped = (size_t)(from - p->at);
    open_session(u, "PUT", &p->call);
    web_call_body(&p->call, p->memory + skipped, p->bytes - skipped);
    p->call.http.to = p->answer;
    p->call.http.max = sizeof p->answer;
    if (p->is_last)
        web_call_header(&p->call, "Content-Range: bytes %llu-%llu/%llu", (unsigned long long)from,
                        end - 1, end);
    else
        web_call_header(&p->call, "Content-Range: bytes %llu-%llu/*", (unsigned long long)from,
                        end - 1);
    return http_start(&p->call.http);
}

/* One answer; ret_kept: how much of the file the server has. */
static err take_answer(struct upload_part *p, uint64_t *ret_kept)
{
    const struct http_call *h = &p->call.http;
    TRY(http_wait(&p->call.http));
    if (h->answer.status < 300) *ret_kept = p->at + p->bytes;
    if (h->answer.status == GOES_ON) *ret_kept = h->answer.kept_bytes;
    if (h->answer.status >= 300 && h->answer.status != GOES_ON) return http_refused(h);
    const bool is_done = h->answer.status < 300;
    if (is_done != p->is_last && (is_done || *ret_kept >= p->at + p->bytes))
        return fail(ERR_IO, "%s: the upload %s: %s", h->shown,
                    is_done ? "ended before its last part" : "does not end with its last part",
                    h->answer.reason);
    if (*ret_kept < p->at || *ret_kept > p->at + p->bytes)
        return fail(ERR_IO, "%s: of bytes %llu to %llu the server has %llu", h->shown,
                    (unsigned long long)p->at, (unsigned long long)(p->at + p->bytes),
                    (unsigned long long)*ret_kept);
    return OK;
}

static err wait_part(struct upload *u, struct upload_part *p)
{
    const uint64_t until_ms = clock_ms() + 1000ull * WEB_WRITE_MAX_S;
    for (int i = 0; i < GS_RESUMES_MAX && clock_ms() < until_ms; i++) {
        uint64_t there = 0;
        TRY(take_answer(p, &there));
        if (there == p->at + p->bytes) return OK;
        upload_close_part(p);
        TRY(upload_start_part(u, p, there));
    }
    return fail(ERR_IO, "%s: the server does not take the part at byte %llu", u->path,
                (unsigned long long)p->at);
}

static err end_upload(struct upload *u)
{
    ((struct gs_upload *)u)->session[0] = '\0';
    return OK;
}

/* Tells the server to discard what was sent. */
static void drop_upload(struct upload *u)
{
    struct web_call c;
    if (!((struct gs_upload *)u)->session[0]) return;
    open_session(u, "DELETE", &c);
    if (!http_start(&c.http)) (void)http_wait(&c.http);
    web_call_close(&c);
}

static const struct upload_way way = {.writer_bytes = sizeof(struct gs_upload),
                                      .part_bytes = GS_PART_BYTES,
                                      .parts = 2,
                                      .in_order = true,
                                      .whole = put_whole,
                                      .begin = begin_upload,
                                      .start = start_part,
                                      .wait = wait_part,
                                      .end = end_upload,
                                      .drop = drop_upload};

/* ---- a copy, made by the server ---- */

/* ret: where the copy continues; "": it is done. */
static err take_rewrite(const struct http_call *h, char ret[WEB_TOKEN_BYTES])
{
    json_t *answer;
    if (json_read_foreign(h->to, h->answer.bytes, 0, &answer))
        return fail_prefix(ERR_IO, "%s: the server answered no copy", h->shown);
    const char *token = json_string_value(json_object_get(answer, "rewriteToken"));
    const bool is_done = json_is_true(json_object_get(answer, "done"));
    const bool fits = token && strlen(token) < WEB_TOKEN_BYTES;
    ret[0] = '\0';
    if (!is_done && fits) strcpy(ret, token);
    json_decref(answer);
    return is_done || ret[0] ? OK : fail(ERR_IO, "%s: the server answered no copy", h->shown);
}

static err rewrite(const char *from, const char *to, char token[WEB_TOKEN_BYTES])
{
    struct web_call c = {0};
    char answer[ANSWER_BYTES], bucket[BUCKET_BYTES_MAX];
    const char *key = "";
    TRY(web_split(to, bucket, &key));
    const char *part =
        arena_format(&c.arena, "/rewriteTo/b/%s/o/%s", web_escape(&c.arena, bucket, false),
                     web_escape(&c.arena, key, false));
    const char *query = arena_format(&c.arena, "%s%s", *token ? "rewriteToken=" : "",
                                     web_escape(&c.arena, token, false));
    struct web_call call;
    err e = open_call(&call, "POST", from, part, query);
    web_call_body(&call, "", 0);
    call.http.to = answer;
    call.http.max = sizeof answer;
    if (!e) e = web_call_make(&call, &gs_service);
    if (!e) e = take_rewrite(&call.http, token);
    web_call_close(&call);
    web_call_close(&c);
    return e;
}

static err gs_move(const char *from, const char *to)
{
    const uint64_t until_ms = clock_ms() + 1000ull * WEB_WRITE_MAX_S;
    char token[WEB_TOKEN_BYTES] = "";
    for (int i = 0; i < GS_REWRITES_MAX && clock_ms() < until_ms; i++) {
        TRY(rewrite(from, to, token));
        if (!token[0]) return gs_remove(from);
    }
    return fail(ERR_IO, "%s: its copy does not end", to);
}

/* ---- the service ---- */

static const char *const schemes[] = {"gs", NULL};
const struct web_service gs_service = {
    .files = {.schemes = schemes,
              WEB_FILE_READING,
              .match = web_match,
              UPLOAD_WRITING,
              .remove = gs_remove,
              .move = gs_move,
              .visit = web_visit},
    .upload = &way,
    .address = address_of,
    .sign = sign,
    .list = list_page,
};
