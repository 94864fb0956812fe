/* aws_sign.c - see aws_sign.h. */
#include "net/web/s3/aws_sign.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/sha.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { CANONICAL_BYTES = 16 << 10, SIGNED_NAMES_BYTES = 512, DAY_BYTES = 8 };

void aws_date(time_t now, char ret[AWS_DATE_BYTES])
{
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(ret, AWS_DATE_BYTES, "%Y%m%dT%H%M%SZ", &utc);
}

static void to_hex(const unsigned char *hash, char ret[SHA256_HEX_BYTES])
{
    for (int i = 0; i < SHA256_DIGEST_LENGTH; i++) sprintf(ret + 2 * i, "%02x", hash[i]);
}

void aws_hash(const void *bytes, size_t count, char ret[SHA256_HEX_BYTES])
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    SHA256(bytes, count, hash);
    to_hex(hash, ret);
}

/* key: [SHA256_DIGEST_LENGTH], replaced */
static void chain(unsigned char *key, int key_bytes, const char *text, size_t bytes)
{
    unsigned char hash[SHA256_DIGEST_LENGTH];
    HMAC(EVP_sha256(), key, key_bytes, (const unsigned char *)text, bytes, hash, NULL);
    memcpy(key, hash, sizeof hash);
}

/* The key of the day, the region and the service */
static void derive(const struct aws_request *r, const struct aws_keys *keys, unsigned char *key)
{
    unsigned char first[sizeof keys->secret + 8];
    const int bytes = snprintf((char *)first, sizeof first, "AWS4%s", keys->secret);
    chain(first, bytes, r->date, DAY_BYTES);
    memcpy(key, first, SHA256_DIGEST_LENGTH);
    chain(key, SHA256_DIGEST_LENGTH, r->region, strlen(r->region));
    chain(key, SHA256_DIGEST_LENGTH, r->service, strlen(r->service));
    chain(key, SHA256_DIGEST_LENGTH, "aws4_request", strlen("aws4_request"));
}

/* The canonical request, which both sides hash. */
static err canonical(const struct aws_request *r, const char *names, char *to)
{
    int used = snprintf(to, CANONICAL_BYTES, "%s\n%s\n", r->method, r->path);
    for (const char *from = r->query; *from && used < CANONICAL_BYTES;) { /* adds "=" to a key */
        const int pair = (int)strcspn(from, "&");
        const bool has_value = memchr(from, '=', (size_t)pair) != NULL;
        used += snprintf(to + used, CANONICAL_BYTES - (size_t)used, "%s%.*s%s",
                         from == r->query ? "" : "&", pair, from, has_value ? "" : "=");
        from += pair + (from[pair] == '&');
    }
    if (used < CANONICAL_BYTES) used += snprintf(to + used, CANONICAL_BYTES - (size_t)used, "\n");
    for (int i = 0; i < r->header_count && used < CANONICAL_BYTES; i++)
        used += snprintf(to + used, CANONICAL_BYTES - (size_t)used, "%s:%s\n", r->headers[i].name,
                         r->headers[i].value);
    if (used < CANONICAL_BYTES)
        used +=
            snprintf(to + used, CANONICAL_BYTES - (size_t)used, "\n%s\n%s", names, r->body_hash);
    return used < CANONICAL_BYTES
               ? OK
               : fail(ERR_INPUT, "a request of more than %d bytes", (int)CANONICAL_BYTES);
}

err aws_sign(const struct aws_request *r, const struct aws_keys *keys, char ret[AWS_PROOF_BYTES])
{
    char text[CANONICAL_BYTES], names[SIGNED_NAMES_BYTES] = "", scope[256], hash[SHA256_HEX_BYTES];
    unsigned char key[SHA256_DIGEST_LENGTH];
    size_t used = 0;
    for (int i = 0; i < r->header_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ";" : "",
                                 r->headers[i].name);
    TRY(canonical(r, names, text));
    aws_hash(text, strlen(text), hash);
    snprintf(scope, sizeof scope, "%.*s/%s/%s/aws4_request", (int)DAY_BYTES, r->date, r->region,
             r->service);
    const int bytes =
        snprintf(text, sizeof text, "AWS4-HMAC-SHA256\n%s\n%s\n%s", r->date, scope, hash);
    derive(r, keys, key);
    chain(key, SHA256_DIGEST_LENGTH, text, (size_t)bytes);
    to_hex(key, hash);
    snprintf(ret, AWS_PROOF_BYTES,
             "AWS4-HMAC-SHA256 Credential=%s/%s,SignedHeaders=%s,Signature=%s", keys->id, scope,
             names, hash);
    return OK;
}
