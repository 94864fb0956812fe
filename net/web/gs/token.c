/* token.c - who asks Google: see gs_inside.h. */
#include <jansson.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/web/gs/gs_inside.h"

enum { ANSWER_BYTES = 16 << 10 };

static const char scope[] = "https://www.googleapis.com/auth/devstorage.read_write";

static struct {
    pthread_mutex_t lock;
    char token[GS_TOKEN_BYTES];
    struct timespec renewed; /* when it must be, by a clock that nobody sets */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the assertion ---- */

/* NULL: it could not be signed. */
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

char *gs_assertion(struct arena *arena, const char *email, const char *pem, const char *audience,
                   time_t now)
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
    json_t *answer = json_loadb(c->to, c->bytes, 0, NULL);
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
    c->to = answer;
    c->max = sizeof answer;
    c->shown = c->url;
    c->keeps_redirect = true; /* an assertion is for one host */
    err e = http_start(c);
    if (!e) e = http_wait(c);
    if (!e) e = c->status >= 300 ? http_refused(c) : take_token(c);
    http_drop(c);
    return e;
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

/* A person's, as gcloud writes them */
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

/* The file that says who asks, in the arena; NULL: none does. */
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

err gs_token(char ret[GS_TOKEN_BYTES])
{
    err e = OK;
    pthread_mutex_lock(&kept.lock);
    if (!is_fresh()) e = ask_whoever();
    if (!e) memcpy(ret, kept.token, sizeof kept.token);
    pthread_mutex_unlock(&kept.lock);
    return e;
}
