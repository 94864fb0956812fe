/* aws_sign.h - signs requests by AWS Signature Version 4. */
#ifndef NET_WEB_S3_AWS_SIGN_H
#define NET_WEB_S3_AWS_SIGN_H

#include <stddef.h>
#include <time.h>

#include "core/base/error.h"

enum { SHA256_HEX_BYTES = 65, AWS_DATE_BYTES = 17, AWS_PROOF_BYTES = 1024, AWS_TOKEN_BYTES = 8192 };

struct aws_keys {
    char id[256], secret[256], token[AWS_TOKEN_BYTES]; /* id "": no keys; token "": permanent */
    char region[64], endpoint[1024];                   /* "": not set */
};

/* A signed header; names in lower case, sorted. */
struct aws_header {
    const char *name, *value;
};

struct aws_request {
    const char *method, *path, *query; /* as they are sent; the query's keys sorted */
    const struct aws_header *headers;  /* host and x-amz-date among them */
    int header_count;
    const char *body_hash; /* x-amz-content-sha256 */
    const char *date;      /* x-amz-date */
    const char *region, *service;
};

/* "20130524T000000Z" */
void aws_date(time_t, char ret[AWS_DATE_BYTES]);
/* In hexadecimal */
void aws_hash(const void *bytes, size_t count, char ret[SHA256_HEX_BYTES]);
/* The value of the Authorization header. ERR_INPUT: the request is too long. */
err aws_sign(const struct aws_request *, const struct aws_keys *, char ret[AWS_PROOF_BYTES]);

#endif
