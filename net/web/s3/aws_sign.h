/* aws_sign.h - proofs of who asks, as Amazon defines them: Signature Version 4. */
#ifndef NET_WEB_S3_AWS_SIGN_H
#define NET_WEB_S3_AWS_SIGN_H

#include <stddef.h>
#include <time.h>

#include "core/base/error.h"

enum { SHA256_HEX_BYTES = 65, AWS_DATE_BYTES = 17, AWS_PROOF_BYTES = 1024, AWS_TOKEN_BYTES = 8192 };

struct aws_keys {
    char id[256], secret[256], token[AWS_TOKEN_BYTES]; /* id "": none; token "": it is for good */
    char region[64], endpoint[1024];                   /* "": not said */
};

/* A header that is signed; names in small letters, in their order. */
struct aws_header {
    const char *name, *value;
};

struct aws_request {
    const char *method, *path, *query; /* as they are sent; keys of the query in their order */
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
/* What stands in the header Authorization. ERR_INPUT: the request is too long. */
err aws_sign(const struct aws_request *, const struct aws_keys *, char ret[AWS_PROOF_BYTES]);

#endif
