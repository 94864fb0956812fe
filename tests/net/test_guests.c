/* test_guests.c - guests of a loop: how much of its time they get, and what they may not do. The
 * time by which they are measured is the tests' own. */
#include "tests/net/pair.h"

#include "net/loop/guests.h"
#include "net/loop_inside.h"

#include "core/base/clock.h"

enum {
    US = 1000,
    MS = 1000000, /* ns */
    LOOK_US = 20, /* what looking at the clock takes */
    MANY = 300,
    ANSWER_BYTES = 1 << 20,
};

static uint64_t virtual_ns;

static uint64_t read_virtual(void)
{
    return virtual_ns += LOOK_US * US;
}

/* ---- arithmetic ---- */

static void what_they_took_is_followed_by_a_rest(void **state)
{
    struct guests guests = {.rests_until_ns = 1000}; /* so that there is no credit */
    assert_true(guests_rest(&guests, 5));
    assert_false(guests_rest(&guests, 1000));
    guests_begin(&guests, 1000);
    assert_false(guests_had_their_slice(&guests, 1000 + GUEST_SLICE_US * US - 1));
    assert_true(guests_had_their_slice(&guests, 1000 + GUEST_SLICE_US * US));
    guests_end(&guests, 3000, true);
    assert_true(guests_had_their_slice(&guests, 3000)); /* they are not served */
    assert_true(guests_rest(&guests, 3000 + 2000 * GUEST_REST - 1));
    assert_false(guests_rest(&guests, 3000 + 2000 * GUEST_REST));
    guests_end(&guests, 900000, true); /* without a begin */
    assert_false(guests_rest(&guests, 900001));
}

static void a_rest_may_have_gone_by_beforehand(void **state)
{
    const uint64_t long_ns = UINT64_C(3600) * 1000 * MS, credit_ns = GUEST_CREDIT_MS * MS;
    struct guests guests = {0};
    uint64_t now_ns = long_ns;
    guests_begin(&guests, now_ns);
    guests_end(&guests, now_ns += credit_ns / 2, true);
    assert_false(guests_rest(&guests, now_ns));
    guests_begin(&guests, now_ns);
    guests_end(&guests, now_ns += credit_ns / 2, true);
    assert_false(guests_rest(&guests, now_ns));
    guests_begin(&guests, now_ns); /* all is spent */
    guests_end(&guests, now_ns += MS, true);
    assert_true(guests_rest(&guests, now_ns + MS * (uint64_t)GUEST_REST - 1));
    assert_false(guests_rest(&guests, now_ns + MS * (uint64_t)GUEST_REST));
}

static void alone_they_need_no_rest(void **state)
{
    struct guests guests = {0};
    guests_begin(&guests, 1000);
    guests_end(&guests, 5000, false);
    assert_false(guests_rest(&guests, 5000));
}

static void a_rest_has_a_limit(void **state)
{
    struct guests guests = {0};
    const uint64_t hour_ns = UINT64_C(3600) * 1000 * MS;
    guests_begin(&guests, 0);
    guests_end(&guests, hour_ns, true);
    assert_true(guests_rest(&guests, hour_ns + GUEST_REST_MAX_MS * UINT64_C(1000000) - 1));
    assert_false(guests_rest(&guests, hour_ns + GUEST_REST_MAX_MS * UINT64_C(1000000)));
}

/* ---- a loop ---- */

/* The first that comes is a member, if one is wanted; the others stay guests. */
struct server {
    bool has_member;
    struct link *member;
    uint64_t guest_costs_ns, member_costs_ns, arrival_costs_ns;
    int from_guests, from_member, arrived; /* arrived: behind the member */
    size_t answer_bytes;
};

static void come_in(struct end *end, struct link *link)
{
    struct server *server = end->own;
    if (server->member) virtual_ns += server->arrival_costs_ns;
    server->arrived += server->member != NULL;
    if (!server->has_member || server->member) return;
    server->member = link;
    link_set_guest(link, false);
}

static char answer[ANSWER_BYTES];

static void hear(struct end *end, struct link *link, const struct message *message)
{
    struct server *server = end->own;
    const bool is_member = link == server->member;
    virtual_ns += is_member ? server->member_costs_ns : server->guest_costs_ns;
    *(is_member ? &server->from_member : &server->from_guests) += 1;
    const struct message m = {
        .type = MESSAGE_ANSWER, .body = answer, .body_bytes = (uint32_t)server->answer_bytes};
    if (server->answer_bytes) assert_int_equal(pair_send(end, link, &m), OK);
}

static void serve(struct pair *pair, struct server *server)
{
    virtual_ns = 1000 * (uint64_t)MS;
    pair->server.own = server;
    pair->server.on_open = come_in;
    pair->server.on_message = hear;
    loop_set_clock(pair->server_loop, read_virtual);
    listener_set_guests(pair->listener);
}

static void send_many(struct end *end, struct link *link, int count)
{
    for (int i = 0; i < count; i++)
        assert_int_equal(pair_send(end, link, &(struct message){.type = MESSAGE_ASK}), OK);
}

static void begin_work(struct loop *loop)
{
    const uint64_t until_ms = clock_ms() + TEST_PATIENCE_MS;
    while (!loop_begin_guests(loop)) {
        virtual_ns += MS;
        loop_poll(loop, 0);
        assert_true(clock_ms() < until_ms);
    }
}

static void spend_credit(struct loop *loop)
{
    begin_work(loop);
    virtual_ns += GUEST_CREDIT_MS * MS;
    loop_end_guests(loop, false);
}

static void members_have_the_rest_of_the_time(void **state)
{
    enum { ROUNDS = 20, SLACK_MS = 2 * (GUEST_SLICE_US / 1000 + 1) };
    struct pair *pair = *state;
    struct server server = {
        .has_member = true, .guest_costs_ns = 500 * US, .member_costs_ns = 100 * US};
    serve(pair, &server);
    pair_connect(pair);
    struct link *member = pair->client.link;
    pair_connect(pair);
    struct link *guest = pair->client.link;
    spend_credit(pair->server_loop);
    const uint64_t start_ns = virtual_ns;
    for (int round = 0; round < ROUNDS; round++) {
        if (round % 4 == 0) send_many(&pair->client, guest, MANY / 10);
        send_many(&pair->client, member, MANY);
        pair_until(pair, &server.from_member, (round + 1) * MANY);
    }
    const uint64_t took_ms = (virtual_ns - start_ns) / MS;
    const uint64_t guests_ms = (uint64_t)server.from_guests * 500 * US / MS;
    assert_true(server.from_guests > 0);
    assert_true(guests_ms <= took_ms / (GUEST_REST + 1) + SLACK_MS);
    pair_until(pair, &server.from_guests, ROUNDS / 4 * (MANY / 10)); /* nothing is lost */
}

/* Also of those who have to prove who they are first. */
static void who_comes_has_the_time_of_guests(void **state)
{
    enum { ROUNDS = 20, COMING = 10, SLACK_MS = 2 * (GUEST_SLICE_US / 1000 + 1) };
    struct pair *pair = *state;
    struct server server = {
        .has_member = true, .arrival_costs_ns = 500 * US, .member_costs_ns = 100 * US};
    serve(pair, &server);
    pair_connect(pair);
    struct link *member = pair->client.link, *stranger;
    spend_credit(pair->server_loop);
    const uint64_t start_ns = virtual_ns;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COMING; i++)
            assert_int_equal(pair->transport->connect(pair->client_loop, pair->address, &end_events,
                                                      &pair->client, &stranger),
                             OK);
        send_many(&pair->client, member, MANY);
        pair_until(pair, &server.from_member, (round + 1) * MANY);
    }
    const uint64_t took_ms = (virtual_ns - start_ns) / MS;
    const uint64_t arrivals_ms = (uint64_t)server.arrived * 500 * US / MS;
    assert_true(server.arrived > 0);
    assert_true(arrivals_ms <= took_ms / (GUEST_REST + 1) + SLACK_MS);
}

static void guests_who_are_alone_do_not_wait(void **state)
{
    struct pair *pair = *state;
    struct server server = {.guest_costs_ns = MS};
    serve(pair, &server);
    pair_connect(pair);
    const uint64_t start_ns = virtual_ns;
    send_many(&pair->client, pair->client.link, MANY);
    pair_until(pair, &server.from_guests, MANY);
    assert_true(virtual_ns - start_ns < (uint64_t)MANY * MS * GUEST_REST / 2);
}

/* A rest that has begun goes by. */
static void a_guest_is_heard_after_its_rest(void **state)
{
    struct pair *pair = *state;
    struct server server = {.has_member = true, .guest_costs_ns = 2 * MS};
    serve(pair, &server);
    pair_connect(pair);
    pair_connect(pair);
    spend_credit(pair->server_loop);
    for (int i = 0; i < 5; i++) {
        const uint64_t before_ns = virtual_ns;
        send_many(&pair->client, pair->client.link, 1);
        pair_until(pair, &server.from_guests, i + 1);
        if (i) assert_true(virtual_ns - before_ns > 2 * MS * (uint64_t)GUEST_REST);
    }
}

static void work_for_guests_waits_for_its_time(void **state)
{
    struct pair *pair = *state;
    struct server server = {.has_member = true};
    serve(pair, &server);
    pair_connect(pair);
    struct loop *loop = pair->server_loop;
    spend_credit(loop);
    begin_work(loop);
    assert_false(loop_begin_guests(loop)); /* it has begun */
    loop_end_guests(loop, true);
    assert_false(loop_begin_guests(loop));
    const uint64_t until_ms = clock_ms() + TEST_PATIENCE_MS;
    while (!loop_poll(loop, LOOP_WAIT_MAX_MS)) virtual_ns += MS;
    assert_true(clock_ms() < until_ms); /* it has not slept over it */
    virtual_ns += MS;
    assert_false(loop_poll(loop, 20)); /* that was said once */
    begin_work(loop);
    loop_end_guests(loop, false);
}

/* Links and work take turns, however much work there is. */
static void work_for_guests_leaves_time_for_their_links(void **state)
{
    struct pair *pair = *state;
    struct server server = {.has_member = true};
    serve(pair, &server);
    pair_connect(pair);
    pair_connect(pair);
    send_many(&pair->client, pair->client.link, 1);
    for (int i = 0; i < MANY && server.from_guests == 0; i++) {
        begin_work(pair->server_loop);
        loop_end_guests(pair->server_loop, true);
    }
    assert_int_equal(server.from_guests, 1);
}

/* Between two updates, and however much other work there is: its moment passes by, and it has its
 * turn at one of them. */
static void work_of_a_passing_moment_has_its_turn(void **state)
{
    enum { UPDATE_US = 100, TURNS = 10 };
    struct pair *pair = *state;
    struct server server = {.has_member = true};
    serve(pair, &server);
    pair_connect(pair);
    spend_credit(pair->server_loop);
    int turns = 0, others = 0;
    for (int i = 0; i < MANY * MANY && turns < TURNS; i++) {
        virtual_ns += UPDATE_US * US;
        if (loop_begin_guests_here(pair->server_loop)) {
            virtual_ns += UPDATE_US * US;
            loop_end_guests_here(pair->server_loop);
            turns++;
        }
        loop_poll(pair->server_loop, 0);
        if (loop_begin_guests(pair->server_loop)) {
            virtual_ns += UPDATE_US * US;
            loop_end_guests(pair->server_loop, true);
            others++;
        }
    }
    assert_int_equal(turns, TURNS);
    assert_true(others > 0);
}

static void a_guest_that_does_not_read_is_not_heard(void **state)
{
    struct pair *pair = *state;
    struct server server = {.answer_bytes = ANSWER_BYTES};
    serve(pair, &server);
    pair_connect(pair);
    send_many(&pair->client, pair->client.link, MANY / 2);
    while (!server.from_guests) loop_poll(pair->server_loop, 100);
    int before;
    do { /* only the server is awake: until sockets are full */
        before = server.from_guests;
        for (int i = 0; i < 1000; i++) loop_poll(pair->server_loop, 0);
    } while (server.from_guests > before);
    assert_in_range(server.from_guests, 1, MANY / 2 - 1);
    assert_true(link_queued_bytes(pair->server.link) < 2 * ANSWER_BYTES);
    pair_until(pair, &pair->client.messages, MANY / 2);
}

static void a_body_beyond_the_limit_ends_a_link(void **state)
{
    struct pair *pair = *state;
    struct server server = {0};
    serve(pair, &server);
    pair_connect(pair);
    link_set_body_max(pair->server.link, 1000);
    struct message m = {.type = MESSAGE_ASK, .body = answer, .body_bytes = 1000};
    assert_int_equal(pair_send(&pair->client, pair->client.link, &m), OK);
    pair_until(pair, &server.from_guests, 1);
    m.body_bytes++;
    assert_int_equal(pair_send(&pair->client, pair->client.link, &m), OK);
    pair_until(pair, &pair->server.closed, 1);
    assert_int_equal(pair->server.why, ERR_PROTOCOL);
    assert_string_equal(pair->server.text,
                        "announced a body of 1001 bytes, the limit is 1000 here");
    assert_int_equal(server.from_guests, 1);
}

static void one_link_has_its_share_of_a_look(void **state)
{
    struct pair *pair = *state;
    struct server server = {.has_member = true};
    serve(pair, &server);
    pair_connect(pair);
    send_many(&pair->client, pair->client.link, 200); /* fewer than a ring has slots */
    while (!server.from_member) /* a poll looks twice: at its list of links, and at descriptors */
        loop_poll(pair->server_loop, 0);
    assert_in_range(server.from_member, 1, 2 * LINK_MESSAGES_PER_LOOK_MAX);
    pair_until(pair, &server.from_member, 200);
}

int main(void)
{
    const struct CMUnitTest sums[] = {
        cmocka_unit_test(what_they_took_is_followed_by_a_rest),
        cmocka_unit_test(a_rest_may_have_gone_by_beforehand),
        cmocka_unit_test(alone_they_need_no_rest),
        cmocka_unit_test(a_rest_has_a_limit),
    };
    struct CMUnitTest tests[] = {
        cmocka_unit_test(members_have_the_rest_of_the_time),
        cmocka_unit_test(who_comes_has_the_time_of_guests),
        cmocka_unit_test(guests_who_are_alone_do_not_wait),
        cmocka_unit_test(a_guest_is_heard_after_its_rest),
        cmocka_unit_test(work_for_guests_waits_for_its_time),
        cmocka_unit_test(work_for_guests_leaves_time_for_their_links),
        cmocka_unit_test(work_of_a_passing_moment_has_its_turn),
        cmocka_unit_test(a_guest_that_does_not_read_is_not_heard),
        cmocka_unit_test(a_body_beyond_the_limit_ends_a_link),
        cmocka_unit_test(one_link_has_its_share_of_a_look),
    };
    const size_t count = sizeof tests / sizeof tests[0];
    return cmocka_run_group_tests(sums, NULL, NULL) + run_over(&transport_tcp, tests, count) +
           run_over(&transport_shm, tests, count) + run_over_tls(tests, count);
}
