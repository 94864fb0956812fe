/* test_greeting.c - what two tasks say of themselves first, held against each other. */
#include "tests/net/pair.h"

#include "core/cluster/runner/greeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT = 3, LONG = 4000, HOST_MAX = 64 };

struct side {
    struct cluster_spec cluster;
    struct greeter me;
};

struct heard {
    const struct side *by;
    err result;
    uint32_t body_bytes;
    struct greeting greeting;
    struct welcome welcome;
    char text[ERROR_TEXT_MAX];
};

static struct strings make_hosts(const char *job, int count)
{
    const char **at = calloc((size_t)count, sizeof *at);
    assert_non_null(at);
    for (int i = 0; i < count; i++) {
        char *host = malloc(HOST_MAX);
        assert_non_null(host);
        snprintf(host, HOST_MAX, "%s-%d.training.svc.cluster.local:2222", job, i);
        at[i] = host;
    }
    return (struct strings){.at = at, .count = count};
}

static void side_make(struct side *side, enum job job, int index, int workers)
{
    *side = (struct side){.cluster = {.job = job, .task = index}};
    side->cluster.hosts[JOB_PS] = make_hosts("ps", SHORT);
    side->cluster.hosts[JOB_WORKER] = make_hosts("worker", workers);
    side->me = (struct greeter){
        .cluster = &side->cluster,
        .fingerprint = "0123456789abcdef",
        .job = job,
        .index = index,
        .peer_job = job == JOB_PS ? JOB_WORKER : JOB_PS,
        .peer_count = job == JOB_PS ? workers : SHORT,
        .incarnation = 77,
    };
}

static void side_free(struct side *side)
{
    for (int job = 0; job < JOB_COUNT; job++) {
        const struct strings *hosts = &side->cluster.hosts[job];
        for (int i = 0; i < hosts->count; i++) free((char *)hosts->at[i]);
        free((void *)hosts->at);
    }
}

static void hear(struct end *end, struct link *link, const struct message *m)
{
    struct heard *heard = end->own;
    heard->body_bytes = m->body_bytes;
    heard->result = greeting_read(&heard->by->me, m, &heard->greeting);
    if (heard->result) snprintf(heard->text, sizeof heard->text, "%s", error_text());
    if (m->type == MESSAGE_WELCOME) assert_int_equal(greeting_read_welcome(m, &heard->welcome), OK);
}

/* What `to` makes of the greeting of `from`. */
static struct heard greet(const struct side *from, const struct side *to, enum message_type type)
{
    struct pair pair;
    struct heard heard = {.by = to};
    pair_start(&pair, &transport_inproc);
    pair_connect(&pair);
    pair.server.own = &heard;
    pair.server.on_message = hear;
    const struct offers offers = {.at = {[TRANSPORT_AT_shm] = "dtrain-77"}};
    assert_int_equal(greeting_send(&from->me, pair.client.link, type, &offers), OK);
    pair_until(&pair, &pair.server.messages, 1);
    link_close(pair.client.link);
    pair_until(&pair, &pair.server.closed, 1);
    pair_stop(&pair);
    return heard;
}

static void agree(int workers)
{
    struct side ps, worker;
    side_make(&ps, JOB_PS, 1, workers);
    side_make(&worker, JOB_WORKER, 2, workers);
    struct heard heard = greet(&worker, &ps, MESSAGE_HELLO);
    assert_int_equal(heard.result, OK);
    assert_in_range(heard.body_bytes, 1, TASK_GREETING_BYTES_MAX);
    assert_int_equal(heard.greeting.task, 2);
    assert_true(heard.greeting.incarnation == 77);
    assert_string_equal(heard.greeting.fingerprint, "0123456789abcdef");
    assert_string_equal(heard.greeting.offers.at[TRANSPORT_AT_shm], "dtrain-77");
    heard = greet(&ps, &worker, MESSAGE_WELCOME);
    assert_int_equal(heard.result, OK);
    assert_int_equal(heard.welcome.ps, 1);
    assert_int_equal(heard.welcome.membership.count[JOB_PS], SHORT);
    side_free(&ps);
    side_free(&worker);
}

static void tasks_of_one_cluster_agree(void **state)
{
    agree(SHORT);
}

static void lists_that_are_too_long_for_a_greeting_agree_too(void **state)
{
    agree(LONG);
}

static void leave_open(struct side *side, enum job job)
{
    for (int i = 0; i < side->cluster.hosts[job].count; i++)
        strcpy(strrchr(side->cluster.hosts[job].at[i], ':'), ":0");
}

static void a_port_that_one_of_them_leaves_open_is_no_difference(void **state)
{
    for (int long_ones = 0; long_ones < 2; long_ones++) {
        struct side ps, worker;
        side_make(&ps, JOB_PS, 1, long_ones ? LONG : SHORT);
        side_make(&worker, JOB_WORKER, 2, long_ones ? LONG : SHORT);
        leave_open(&ps, JOB_PS);
        leave_open(&worker, JOB_WORKER);
        assert_int_equal(greet(&worker, &ps, MESSAGE_HELLO).result, OK);
        assert_int_equal(greet(&ps, &worker, MESSAGE_WELCOME).result, OK);
        side_free(&ps);
        side_free(&worker);
    }
}

static struct heard greet_differing(int workers, int theirs, const char *host)
{
    struct side ps, worker;
    side_make(&ps, JOB_PS, 0, workers);
    side_make(&worker, JOB_WORKER, 0, theirs);
    if (host) snprintf((char *)worker.cluster.hosts[JOB_WORKER].at[1], HOST_MAX, "%s", host);
    const struct heard heard = greet(&worker, &ps, MESSAGE_HELLO);
    side_free(&ps);
    side_free(&worker);
    assert_int_equal(heard.result, ERR_INPUT);
    return heard;
}

static void a_host_that_differs_is_named(void **state)
{
    assert_string_equal(greet_differing(SHORT, SHORT, "elsewhere:1").text,
                        "worker_hosts[1] differs: worker/0 has elsewhere:1, this task has "
                        "worker-1.training.svc.cluster.local:2222");
}

static void a_host_that_differs_beside_an_open_port_is_named(void **state)
{
    assert_string_equal(greet_differing(SHORT, SHORT, "elsewhere:0").text,
                        "worker_hosts[1] differs: worker/0 has elsewhere:0, this task has "
                        "worker-1.training.svc.cluster.local:2222");
}

static void a_host_that_differs_in_a_long_list_is_noticed(void **state)
{
    assert_string_equal(greet_differing(LONG, LONG, "elsewhere:1").text,
                        "worker_hosts differ: worker/0 has 4000 others, or in another order");
}

static void lists_of_other_lengths_differ(void **state)
{
    assert_string_equal(greet_differing(LONG, SHORT, NULL).text,
                        "worker_hosts differ: worker/0 has 3, this task has 4000");
    assert_string_equal(greet_differing(LONG, LONG + 1, NULL).text,
                        "worker_hosts differ: worker/0 has 4001, this task has 4000");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_one_cluster_agree),
        cmocka_unit_test(lists_that_are_too_long_for_a_greeting_agree_too),
        cmocka_unit_test(a_port_that_one_of_them_leaves_open_is_no_difference),
        cmocka_unit_test(a_host_that_differs_is_named),
        cmocka_unit_test(a_host_that_differs_beside_an_open_port_is_named),
        cmocka_unit_test(a_host_that_differs_in_a_long_list_is_noticed),
        cmocka_unit_test(lists_of_other_lengths_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
