/* test_aws_role.c - keys that are lent, on a clock of the test's own, from a server that is played:
 * when they are asked for anew, and what becomes of a refusal then. */
#include "net/web/s3/aws_role.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <cmocka.h>

#include "net/http.h"
#include "net/web/web.h"

enum { HOUR = 3600 };

static const time_t start_s = 1800000000;
static struct {
    time_t now_s;
    int asked, status, try_s, tries_max;
} played;

time_t __wrap_time(time_t *ret);
err __wrap_http_start(struct http_call *);
err __wrap_http_wait(struct http_call *);
void __wrap_http_drop(struct http_call *);

time_t __wrap_time(time_t *ret)
{
    if (ret) *ret = played.now_s;
    return played.now_s;
}

/* Keys of the number of the request, for an hour */
err __wrap_http_start(struct http_call *c)
{
    char until[32];
    const time_t until_s = played.now_s + HOUR;
    struct tm at;
    strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&until_s, &at));
    c->answer.status = played.status;
    played.try_s = c->try_s;
    played.tries_max = c->tries_max;
    c->answer.bytes = (size_t)snprintf(
        c->to, c->max,
        "{\"AccessKeyId\": \"id%d\", \"SecretAccessKey\": \"s\", \"Token\": \"t\", "
        "\"Expiration\": \"%s\"}",
        ++played.asked, until);
    return OK;
}

err __wrap_http_wait(struct http_call *c)
{
    return OK;
}

void __wrap_http_drop(struct http_call *c)
{
}

static void assert_keys(const char *id)
{
    struct aws_keys keys = {.region = "us-east-1"};
    assert_int_equal(aws_role_keys(&keys, false), OK);
    assert_string_equal(keys.id, id);
}

/* One after the other, as the process keeps them. */
static void test_a_refusal_counts_when_the_keys_have_ended(void **state)
{
    static const char *const of_others[] = {
        "AWS_ROLE_ARN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    };
    for (size_t i = 0; i < sizeof of_others / sizeof *of_others; i++) unsetenv(of_others[i]);
    setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1/keys", 1);
    played.now_s = start_s;
    played.status = 200;
    assert_keys("id1");
    played.now_s = start_s + HOUR - AWS_ROLE_EARLY_S - 1;
    assert_keys("id1");
    assert_int_equal(played.asked, 1);
    assert_int_equal(played.try_s, WEB_LENDER_TRY_S);
    assert_int_equal(played.tries_max, 0); /* as often as any request is tried */

    played.status = 403; /* from 300 s before their end on */
    played.now_s += 2;
    assert_keys("id1");
    assert_int_equal(played.asked, 2);
    assert_int_equal(played.tries_max, 1); /* others wait meanwhile for keys that are there */
    assert_keys("id1");                    /* not at each request */
    assert_int_equal(played.asked, 2);
    played.now_s = start_s + HOUR - 20;
    assert_keys("id1");
    assert_int_equal(played.asked, 3);

    struct aws_keys keys = {.region = "us-east-1"};
    played.now_s = start_s + HOUR;
    assert_int_equal(aws_role_keys(&keys, false), ERR_INPUT);
    assert_non_null(strstr(error_text(), "http://127.0.0.1/keys: GET"));
    assert_int_equal(played.tries_max, 0);

    played.status = 200;
    assert_keys("id5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_refusal_counts_when_the_keys_have_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
