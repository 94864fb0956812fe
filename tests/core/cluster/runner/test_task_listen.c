/* test_task_listen.c - where a task listens, and how long it tries to
 * (core/cluster/runner/listen.h).
 */
#include "core/base/error.h" /* before cmocka, which has a macro of the name fail */
#include "core/cluster/runner/listen.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const char *own; /* of worker/0 */
static const struct cluster_spec cluster = {.hosts = {[JOB_WORKER] = {&own, 1}}, .job = JOB_WORKER};
static const struct link_events no_events;

static void an_address_takes_the_port_of_the_list_where_it_has_none(void **state)
{
    static const struct {
        const char *own, *bind, *expected;
    } cases[] = {
        {"trainer-1:2222", NULL, "trainer-1:2222"},
        {"[::1]:2222", NULL, "[::1]:2222"},
        {"trainer-1:2222", "0.0.0.0", "0.0.0.0:2222"},
        {"trainer-1:2222", "eth0.local", "eth0.local:2222"},
        {"trainer-1:2222", "[::]", "[::]:2222"},
        {"[fd00::7]:2222", "::", "[::]:2222"},
        {"trainer-1:2222", "::1", "[::1]:2222"},
        {"trainer-1:2222", "0.0.0.0:0", "0.0.0.0:0"},
        {"trainer-1:2222", "[::]:4444", "[::]:4444"},
        {"trainer-1:2222", "fd:7", "fd:7"},
    };
    char address[ADDRESS_MAX];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        own = cases[i].own;
        const struct task_options options = {.cluster = &cluster, .listen = cases[i].bind};
        assert_int_equal(task_listen_address(&options, address), OK);
        assert_string_equal(address, cases[i].expected);
    }
    char longest[ADDRESS_MAX];
    memset(longest, 'a', sizeof longest);
    longest[ADDRESS_MAX - 1] = '\0';
    const struct task_options options = {.cluster = &cluster, .listen = longest};
    assert_int_equal(task_listen_address(&options, address), ERR_INPUT);
}

static err listen_at(struct loop *loop, const char *address)
{
    struct listener *listener;
    own = address;
    const struct task_options options = {
        .cluster = &cluster, .loop = loop, .limits = {.start_ms = 25}};
    return task_listen(&options, &no_events, NULL, &listener);
}

static void what_may_mend_itself_is_tried_until_the_limit(void **state)
{
    struct loop *loop;
    struct listener *first;
    char address[ADDRESS_MAX];
    assert_int_equal(loop_open(&loop), OK);
    assert_int_equal(transport_tcp.listen(loop, "localhost:0", &no_events, NULL, address, &first),
                     OK);
    assert_int_equal(listen_at(loop, address), ERR_TIMEOUT);
    assert_non_null(strstr(error_text(), "gave up after 0.025 s (--start_timeout): "));
    assert_non_null(strstr(error_text(), "already in use by pid"));
    assert_int_equal(listen_at(loop, "192.0.2.77:0"), ERR_TIMEOUT);
    listener_close(first);
    assert_int_equal(listen_at(loop, address), OK);
    loop_close(loop);
}

static void what_no_time_mends_is_an_error_at_once(void **state)
{
    struct loop *loop;
    assert_int_equal(loop_open(&loop), OK);
    assert_int_equal(listen_at(loop, "nonsense"), ERR_INPUT);
    assert_int_equal(listen_at(loop, "fd:0"), ERR_INPUT);
    loop_close(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_takes_the_port_of_the_list_where_it_has_none),
        cmocka_unit_test(what_may_mend_itself_is_tried_until_the_limit),
        cmocka_unit_test(what_no_time_mends_is_an_error_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
