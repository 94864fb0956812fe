/* s3.c - objects of Amazon S3, and of servers that answer like it: s3://bucket/key.
 *
 * Without an endpoint in the environment, buckets are host names of Amazon's; one whose name has
 * dots, and all of an endpoint, stand in front of the key.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/web/s3/aws_keys.h"
#include "net/web/s3/s3_inside.h"
#include "net/web/services.h"

enum { SIGNED_MAX = 6 };

/* ---- addresses ---- */

static err check_endpoint(const struct aws_keys *keys)
{
    if (!keys->endpoint[0] || strncmp(keys->endpoint, "http://", 7) == 0 ||
        strncmp(keys->endpoint, "https://", 8) == 0)
        return OK;
    return fail(ERR_INPUT, "AWS_ENDPOINT_URL: expected http://... or https://..., got \"%.64s\"",
                keys->endpoint);
}

/* Of a key in a bucket ("": the bucket itself) */
static err set_address(struct web_call *c, const char *bucket, const char *key, const char *query)
{
    struct s3_request *request = arena_new(&c->arena, sizeof *request);
    struct aws_keys *keys = &request->keys;
    const char *base, *path;
    c->own = request;
    TRY(aws_keys_find(keys));
    TRY(check_endpoint(keys));
    const bool is_host = !keys->endpoint[0] && !strchr(bucket, '.');
    const char *escaped = web_escape(&c->arena, key, true);
    for (size_t i = strlen(keys->endpoint); i > 0 && keys->endpoint[i - 1] == '/';)
        keys->endpoint[--i] = '\0';
    if (keys->endpoint[0])
        base = keys->endpoint;
    else if (is_host)
        base = arena_format(&c->arena, "https://%s.s3.%s.amazonaws.com", bucket, keys->region);
    else
        base = arena_format(&c->arena, "https://s3.%s.amazonaws.com", keys->region);
    if (is_host)
        path = arena_format(&c->arena, "/%s", escaped);
    else
        path = arena_format(&c->arena, "/%s%s%s", bucket, *escaped ? "/" : "", escaped);
    web_call_address(c, base, path, query);
    c->http.keeps_redirect = true; /* a proof is for one host */
    return OK;
}

err s3_address(const char *path, const char *query, struct web_call *c)
{
    char bucket[BUCKET_BYTES_MAX];
    const char *key = "";
    TRY(web_split(path, bucket, &key));
    if (!*key) return fail(ERR_INPUT, "%s: expected s3://bucket/key", c->http.shown);
    return set_address(c, bucket, key, query);
}

static err address_of(const char *path, struct web_call *c)
{
    return s3_address(path, "", c);
}

/* ---- proofs ---- */

static err sign(struct web_call *c)
{
    const struct s3_request *own = c->own;
    const struct aws_keys *keys = &own->keys;
    char date[AWS_DATE_BYTES], hash[SHA256_HEX_BYTES], proof[AWS_PROOF_BYTES];
    struct aws_header headers[SIGNED_MAX];
    int count = 0;
    aws_date(time(NULL), date);
    aws_hash(c->http.body ? c->http.body : "", c->http.body_bytes, hash);
    headers[count++] = (struct aws_header){"host", c->host};
    headers[count++] = (struct aws_header){"x-amz-content-sha256", hash};
    if (own->copied) headers[count++] = (struct aws_header){"x-amz-copy-source", own->copied};
    if (own->copied_range)
        headers[count++] = (struct aws_header){"x-amz-copy-source-range", own->copied_range};
    headers[count++] = (struct aws_header){"x-amz-date", date};
    if (keys->token[0]) headers[count++] = (struct aws_header){"x-amz-security-token", keys->token};
    for (int i = 1; i < count; i++) web_call_header(c, "%s: %s", headers[i].name, headers[i].value);
    if (!keys->id[0]) return OK;
    const struct aws_request request = {
        .method = c->http.method,
        .path = c->path,
        .query = c->query,
        .headers = headers,
        .header_count = count,
        .body_hash = hash,
        .date = date,
        .region = keys->region,
        .service = "s3",
    };
    TRY(aws_sign(&request, keys, proof));
    web_call_header(c, "Authorization: %s", proof);
    return OK;
}

/* ---- lists ---- */

static err list_page(const struct web_listing *l, const char *token, struct web_list *to)
{
    struct web_call c = {0};
    const char *query = arena_format(
        &c.arena, "%s%s%sencoding-type=url&list-type=2&prefix=%s",
        *token ? "continuation-token=" : "", web_escape(&c.arena, token, false),
        *token ? (l->depth ? "&" : "&delimiter=%2F&") : (l->depth ? "" : "delimiter=%2F&"),
        web_escape(&c.arena, l->prefix, false));
    err e = set_address(&c, l->bucket, "", query);
    if (!e) e = web_list_ask(&c, &s3_service, l, s3_list_take, to);
    web_call_close(&c);
    return e;
}

static const char *const schemes[] = {"s3", NULL};
const struct web_service s3_service = {
    .files = {.schemes = schemes,
              .open = web_file_open,
              .read = web_file_read,
              .state = web_file_state,
              .close = web_file_close,
              .match = web_match,
              .create = s3_create,
              .write = s3_write,
              .finish = s3_finish,
              .drop = s3_drop,
              .remove = s3_remove,
              .move = s3_move,
              .visit = web_visit},
    .address = address_of,
    .sign = sign,
    .list = list_page,
};
