/* aws_role.c - see aws_role.h. */
#include "net/web/s3/aws_role.h"

#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/json_foreign.h"
#include "core/base/log.h"
#include "net/web/web.h"
#include "net/xml.h"

#define NOT_FOUND "no keys in the environment or in files"

enum {
    ANSWER_BYTES = 32 << 10,
    FILE_BYTES_MAX = 64 << 10,
    SHORTEST_S = 10,
    AGAIN_S = 30,
    WHY_BYTES = 320
};

static struct {
    pthread_mutex_t lock;
    bool is_known; /* it is known whether there is a role */
    struct aws_keys keys;
    time_t renewed_s, until_s; /* by the wall clock, as signatures */
    char why[WHY_BYTES];       /* why there is no role; constant once is_known */
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER, .why = NOT_FOUND};

static const char *setting(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

/* ---- answers ---- */

struct lent {
    char id[256], secret[256], token[AWS_TOKEN_BYTES], until[64];
};

/* "2026-11-26T22:15:00Z" */
static time_t seconds_of(const char *text)
{
    struct tm at = {0};
    return strptime(text, "%Y-%m-%dT%H:%M:%S", &at) ? timegm(&at) : 0;
}

static bool is_header_text(const char *text)
{
    return *text && !text[strcspn(text, "\r\n")];
}

static err keep(const struct lent *l, const char *shown)
{
    const time_t now_s = time(NULL), until_s = seconds_of(l->until);
    if (!is_header_text(l->id) || !is_header_text(l->secret) || !is_header_text(l->token))
        return fail(ERR_IO, "%s: the answer has no keys", shown);
    snprintf(kept.keys.id, sizeof kept.keys.id, "%s", l->id);
    snprintf(kept.keys.secret, sizeof kept.keys.secret, "%s", l->secret);
    snprintf(kept.keys.token, sizeof kept.keys.token, "%s", l->token);
    kept.until_s = until_s;
    kept.renewed_s = until_s - AWS_ROLE_EARLY_S;
    if (kept.renewed_s < now_s + SHORTEST_S) kept.renewed_s = now_s + SHORTEST_S;
    return OK;
}

static void take(const json_t *answer, const char *name, char *to, size_t size)
{
    const char *text = json_string_value(json_object_get(answer, name));
    if (text && strlen(text) < size) strcpy(to, text);
}

static err keep_json(const char *text, const char *shown)
{
    struct lent l = {0};
    json_t *answer;
    if (json_read_foreign(text, strlen(text), 0, &answer))
        return fail_prefix(ERR_IO, "%s: the answer has no keys", shown);
    take(answer, "AccessKeyId", l.id, sizeof l.id);
    take(answer, "SecretAccessKey", l.secret, sizeof l.secret);
    take(answer, "Token", l.token, sizeof l.token);
    take(answer, "Expiration", l.until, sizeof l.until);
    json_decref(answer);
    return keep(&l, shown);
}

/* Whether there are keys that stay valid for so long */
static bool holds(int at_least_s)
{
    return kept.keys.id[0] && time(NULL) + at_least_s < kept.until_s;
}

/* ret: [ANSWER_BYTES] */
static err ask(struct http_call *c, char *ret)
{
    if (holds(SHORTEST_S)) c->tries_max = 1; /* will be retried soon, and callers wait meanwhile */
    return web_ask_lender(c, ret, ANSWER_BYTES);
}

/* Without its line end; NULL: it cannot be read, error_text() says why. */
static char *read_token(struct arena *arena, const char *path)
{
    FILE *in = NULL;
    if (file_open_text(path, FILE_BYTES_MAX, &in)) return NULL;
    char *text = arena_new(arena, FILE_BYTES_MAX + 1);
    text[fread(text, 1, FILE_BYTES_MAX, in)] = '\0';
    fclose(in);
    text[strcspn(text, "\r\n")] = '\0';
    return text;
}

/* ---- a pod ---- */

bool aws_role_is_of_pod(void)
{
    return setting("AWS_WEB_IDENTITY_TOKEN_FILE") && setting("AWS_ROLE_ARN");
}

static err keep_xml(const char *text, const char *shown)
{
    struct lent l = {0};
    struct xml_text wanted[] = {
        {"AccessKeyId", l.id, sizeof l.id},
        {"SecretAccessKey", l.secret, sizeof l.secret},
        {"SessionToken", l.token, sizeof l.token},
        {"Expiration", l.until, sizeof l.until},
        {0},
    };
    xml_read(text, strlen(text), NULL, 0, wanted);
    return keep(&l, shown);
}

static err ask_sts(struct arena *arena, const char *region, char *answer)
{
    const char *path = setting("AWS_WEB_IDENTITY_TOKEN_FILE"),
               *given = setting("AWS_ENDPOINT_URL_STS");
    const char *name = setting("AWS_ROLE_SESSION_NAME"), *token = read_token(arena, path);
    if (!token) return fail_prefix(ERR_INPUT, "AWS_WEB_IDENTITY_TOKEN_FILE");
    const char *form = arena_format(
        arena,
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=%s&RoleSessionName=%s"
        "&WebIdentityToken=%s",
        web_escape(arena, setting("AWS_ROLE_ARN"), false),
        web_escape(arena, name ? name : "dtrain", false), web_escape(arena, token, false));
    struct http_call c = {
        .method = "POST",
        .url = given ? given : arena_format(arena, "https://sts.%s.amazonaws.com/", region),
        .secret = token,
        .body = form,
        .body_bytes = strlen(form),
        .body_type = "application/x-www-form-urlencoded"};
    TRY(ask(&c, answer));
    return keep_xml(answer, c.url);
}

/* ---- a container ---- */

static const char *container_url(struct arena *arena)
{
    const char *path = setting("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    if (path) return arena_format(arena, "http://169.254.170.2%s", path);
    return setting("AWS_CONTAINER_CREDENTIALS_FULL_URI");
}

static err ask_container(struct arena *arena, const char *url, char *answer)
{
    const char *path = setting("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    const char *token =
        path ? read_token(arena, path) : setting("AWS_CONTAINER_AUTHORIZATION_TOKEN");
    if (path && !token) return fail_prefix(ERR_INPUT, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    struct http_call c = {.method = "GET", .url = url, .secret = token};
    if (token) c.headers[0] = arena_format(arena, "Authorization: %s", token);
    TRY(ask(&c, answer));
    return keep_json(answer, url);
}

/* ---- a machine ---- */

static const char proof[] = "X-aws-ec2-metadata-token: ";

/* Retries while the service is busy, not if it is absent. ret_is_busy: it still is. */
static err ask_metadata(struct arena *arena, const char *method, const char *base, const char *path,
                        const char *header, char *answer, bool *ret_is_busy)
{
    struct http_call c = {
        .method = method,
        .url = arena_format(arena, "%s%s", base, path),
        .headers = {header},
        .secret = strncmp(header, proof, sizeof proof - 1) ? NULL : header + sizeof proof - 1,
        .body = *method == 'P' ? "" : NULL,
        .try_s = AWS_ROLE_MACHINE_S,
        .needs_answer = *method == 'P'};
    const err e = ask(&c, answer);
    *ret_is_busy = e == ERR_IO && (c.answer.status == 429 || c.answer.status >= 500);
    return e;
}

static err ask_machine(struct arena *arena, char *answer, bool *ret_is_busy)
{
    static const char roles[] = "/latest/meta-data/iam/security-credentials/";
    const char *given = setting("AWS_EC2_METADATA_SERVICE_ENDPOINT");
    const char *base = given ? given : "http://169.254.169.254", *header;
    if (base[strlen(base) - 1] == '/')
        base = arena_format(arena, "%.*s", (int)strlen(base) - 1, base);
    TRY(ask_metadata(arena, "PUT", base, "/latest/api/token",
                     "X-aws-ec2-metadata-token-ttl-seconds: 21600", answer, ret_is_busy));
    if (!is_header_text(answer)) return fail(ERR_IO, "%s: no token", base);
    header = arena_format(arena, "%s%s", proof, answer);
    TRY(ask_metadata(arena, "GET", base, roles, header, answer, ret_is_busy));
    answer[strcspn(answer, "\r\n")] = '\0'; /* of several lines the first counts */
    if (!*answer) return fail(ERR_IO, "%s: no role", base);
    const char *role = arena_format(arena, "%s%s", roles, web_escape(arena, answer, false));
    TRY(ask_metadata(arena, "GET", base, role, header, answer, ret_is_busy));
    return keep_json(answer, base);
}

static bool may_ask_machine(bool asks_machine)
{
    const char *off = setting("AWS_EC2_METADATA_DISABLED");
    return asks_machine && !(off && strcasecmp(off, "true") == 0);
}

/* ---- all three ---- */

/* It is an error if a machine gave keys before and does not now, or is too busy to answer; one that
 * never did has no role. */
static err ask_whoever(struct arena *arena, const char *region, bool asks_machine, char *answer)
{
    const char *url = container_url(arena);
    if (aws_role_is_of_pod()) return ask_sts(arena, region, answer);
    if (url) return ask_container(arena, url, answer);
    if (!may_ask_machine(asks_machine)) return OK;
    bool is_busy = false;
    const err e = ask_machine(arena, answer, &is_busy);
    if (!e || kept.keys.id[0] || is_busy) return e;
    snprintf(kept.why, sizeof kept.why, NOT_FOUND ", nor has this machine a role: %s",
             error_text());
    return OK;
}

/* A renewal that got no answer, or a refusal (a role whose rights are being changed, a token that
 * is being written), may be repeated later while the keys are still valid. */
static bool can_wait(void)
{
    const time_t now_s = time(NULL);
    if (!holds(SHORTEST_S)) return false;
    kept.renewed_s = now_s + (holds(AGAIN_S + SHORTEST_S) ? AGAIN_S : SHORTEST_S);
    log_line(LOG_WARNING,
             "s3: cannot renew the access keys; the present ones are valid for %" PRId64 " s: %s",
             (int64_t)(kept.until_s - now_s), error_text());
    return true;
}

static bool is_fresh(void)
{
    return kept.is_known && (!kept.keys.id[0] || time(NULL) < kept.renewed_s);
}

err aws_role_keys(struct aws_keys *keys, bool asks_machine)
{
    err e = OK;
    pthread_mutex_lock(&kept.lock);
    if (!is_fresh()) {
        struct arena arena = {0};
        char *answer = arena_new(&arena, ANSWER_BYTES);
        e = ask_whoever(&arena, keys->region, asks_machine, answer);
        arena_free(&arena);
        if (e && can_wait()) e = OK;
        if (!e) kept.is_known = true;
    }
    if (!e) {
        memcpy(keys->id, kept.keys.id, sizeof keys->id);
        memcpy(keys->secret, kept.keys.secret, sizeof keys->secret);
        memcpy(keys->token, kept.keys.token, sizeof keys->token);
    }
    pthread_mutex_unlock(&kept.lock);
    return e;
}

const char *aws_role_none(void)
{
    return kept.why;
}
