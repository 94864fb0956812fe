/* Signature Version 4, on the examples that Amazon publishes for S3 ("Examples: Signature
 * Calculations in AWS Signature Version 4"). */
#include "net/web/s3/aws_sign.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const struct aws_keys keys = {
    .id = "AKIAIOSFODNN7EXAMPLE",
    .secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
};
static const char date[] = "20130524T000000Z", host[] = "examplebucket.s3.amazonaws.com";

static void assert_signed(struct aws_request r, const char *body, const char *signature)
{
    char hash[SHA256_HEX_BYTES], proof[AWS_PROOF_BYTES];
    aws_hash(body, strlen(body), hash);
    assert_string_equal(r.body_hash, hash);
    r.date = date;
    r.region = "us-east-1";
    r.service = "s3";
    assert_int_equal(aws_sign(&r, &keys, proof), OK);
    assert_non_null(strstr(
        proof,
        "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"));
    assert_string_equal(strstr(proof, "Signature=") + strlen("Signature="), signature);
}

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static void an_object_is_read(void **state)
{
    const struct aws_header headers[] = {{"host", host},
                                         {"range", "bytes=0-9"},
                                         {"x-amz-content-sha256", EMPTY},
                                         {"x-amz-date", date}};
    assert_signed((struct aws_request){.method = "GET",
                                       .path = "/test.txt",
                                       .query = "",
                                       .headers = headers,
                                       .header_count = 4,
                                       .body_hash = EMPTY},
                  "", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
}

static void an_object_is_written(void **state)
{
    const char *hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072";
    const struct aws_header headers[] = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                                         {"host", host},
                                         {"x-amz-content-sha256", hash},
                                         {"x-amz-date", date},
                                         {"x-amz-storage-class", "REDUCED_REDUNDANCY"}};
    assert_signed((struct aws_request){.method = "PUT",
                                       .path = "/test%24file.text",
                                       .query = "",
                                       .headers = headers,
                                       .header_count = 5,
                                       .body_hash = hash},
                  "Welcome to Amazon S3.",
                  "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
}

/* A key of the query without a value is signed with "=". */
static void a_query_is_signed(void **state)
{
    const struct aws_header headers[] = {
        {"host", host}, {"x-amz-content-sha256", EMPTY}, {"x-amz-date", date}};
    struct aws_request r = {.method = "GET",
                            .path = "/",
                            .query = "lifecycle",
                            .headers = headers,
                            .header_count = 3,
                            .body_hash = EMPTY};
    assert_signed(r, "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    r.query = "max-keys=2&prefix=J";
    assert_signed(r, "", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void a_request_has_an_end(void **state)
{
    static char query[32 << 10];
    char proof[AWS_PROOF_BYTES];
    memset(query, 'a', sizeof query - 1);
    const struct aws_request r = {.method = "GET",
                                  .path = "/",
                                  .query = query,
                                  .body_hash = EMPTY,
                                  .date = date,
                                  .region = "us-east-1",
                                  .service = "s3"};
    assert_int_equal(aws_sign(&r, &keys, proof), ERR_INPUT);
}

static void a_time_is_a_date(void **state)
{
    char text[AWS_DATE_BYTES];
    aws_date(1369353600, text);
    assert_string_equal(text, date);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_object_is_read), cmocka_unit_test(an_object_is_written),
        cmocka_unit_test(a_query_is_signed), cmocka_unit_test(a_request_has_an_end),
        cmocka_unit_test(a_time_is_a_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
