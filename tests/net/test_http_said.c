/* test_http_said.c - what messages have of what servers say where they refuse. */
#include "net/http_said.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static const char *said(const char *body, bool lends)
{
    static char to[HTTP_SAID_SHOWN_BYTES];
    return http_said_in_short(body, lends, to, sizeof to);
}

static void a_message_is_found_where_it_is_named(void **state)
{
    for (int lends = 0; lends < 2; lends++) {
        assert_string_equal(said("<Error><Message>no such key</Message></Error>", lends),
                            ": no such key");
        assert_string_equal(said("{\"message\": \"wrong password\", \"code\": 3}", lends),
                            ": wrong password");
        assert_string_equal(said("{\"error_description\": \"expired\"}", lends), ": expired");
        assert_string_equal(said("<html>no</html>", lends), "");
    }
}

/* Whether it can be read as what it is to be or not. */
static void what_lends_a_secret_is_not_quoted(void **state)
{
    static const char *const bodies[] = {"token-7788\nmore", "{\"token\": \"token-7788\"}",
                                         "{\"token\": \"token-7788\"}\xa0\\"};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        assert_non_null(strstr(said(bodies[i], false), "token-7788"));
        assert_string_equal(said(bodies[i], true), "");
    }
}

static void a_secret_is_hidden_also_where_it_is_cut(void **state)
{
    char text[] = "who: secret-of-me, and secret-o";
    http_hide(text, "secret-of-me");
    assert_string_equal(text, "who: ************, and ********");
    http_hide(text, NULL);
    http_hide(text, "");
    assert_string_equal(text, "who: ************, and ********");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_is_found_where_it_is_named),
        cmocka_unit_test(what_lends_a_secret_is_not_quoted),
        cmocka_unit_test(a_secret_is_hidden_also_where_it_is_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
