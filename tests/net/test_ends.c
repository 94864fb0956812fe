/* test_ends.c - how links end, and peers that do not read: the rest of the contract of
 * net/transport.h, run over every transport. */
#include "tests/net/pair.h"

#include "core/base/clock.h"

#include <stdlib.h>
#include <string.h>

/* ---- closing ---- */

static void send_numbers(struct end *end, struct link *link, int count)
{
    for (int i = 0; i < count; i++) {
        const struct message message = {.type = MESSAGE_HELLO,
                                        .generation = (uint64_t)i,
                                        .body_bytes = i % 2 ? sizeof i : 0,
                                        .body = &i};
        assert_int_equal(pair_send(end, link, &message), OK);
    }
}

static void what_was_sent_before_closing_arrives_and_then_the_end(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    send_numbers(&pair->client, pair->client.link, 200);
    link_close(pair->client.link);
    pair_until(pair, &pair->server.closed, 1);
    assert_int_equal(pair->server.messages, 200);
    assert_int_equal(pair->server.why, ERR_PEER);
    for (int i = 0; i < 10; i++) pair_poll(pair);
    assert_int_equal(pair->server.closed, 1);
    assert_int_equal(pair->client.closed, 0); /* its owner closed it */
}

static void a_last_word_arrives_although_the_other_side_is_talking(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, 1 << 20, 1 << 20);
    const struct message push = {.type = MESSAGE_PUSH, .length = 1 << 20};
    assert_int_equal(pair_send(&pair->client, pair->client.link, &push), OK);
    const struct message verdict = {
        .type = MESSAGE_VERDICT, .verdict.exit_code = 3, .body = "done", .body_bytes = 4};
    assert_int_equal(pair_send(&pair->server, pair->server.link, &verdict), OK);
    link_close(pair->server.link);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.messages, 1);
    assert_int_equal(pair->client.last.verdict.exit_code, 3);
    assert_int_equal(pair->client.why, ERR_PEER);
}

static void close_it(struct end *end, struct link *link)
{
    link_close(link);
}

static void close_at_third(struct end *end, struct link *link, const struct message *message)
{
    if (end->messages == 3) link_close(link);
}

static void a_link_may_be_closed_while_it_delivers(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair->server.on_message = close_at_third;
    send_numbers(&pair->client, pair->client.link, 10);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->server.messages, 3);
    assert_int_equal(pair->server.closed, 0);
}

static void a_link_may_be_closed_while_it_opens(void **state)
{
    struct pair *pair = *state;
    pair->server.on_open = close_it;
    pair_connect(pair);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->server.closed, 0);

    pair->server.on_open = NULL;
    pair->client.on_open = close_it;
    pair_connect(pair);
    pair_until(pair, &pair->server.closed, 1);
    assert_int_equal(pair->client.closed, 1);
}

static void connect_again(struct end *end, struct link *link)
{
    link_close(link); /* allowed, though it is closing already */
    assert_int_equal(end->pair->transport->connect(end->pair->client_loop, end->pair->address,
                                                   &end_events, end, &end->link),
                     OK);
}

static void an_owner_may_connect_again_when_it_hears_of_the_end(void **state)
{
    struct pair *pair = *state;
    pair->client.on_closed = connect_again;
    pair_connect(pair);
    for (int i = 0; i < 20; i++) {
        link_close(pair->server.link);
        pair_until(pair, &pair->server.accepted, i + 2);
        pair_until(pair, &pair->client.opened, i + 2);
    }
    pair->client.on_closed = NULL;
}

static void closing_before_the_connection_is_open_is_silent(void **state)
{
    struct pair *pair = *state;
    struct link *link;
    assert_int_equal(pair->transport->connect(pair->client_loop, pair->address, &end_events,
                                              &pair->client, &link),
                     OK);
    link_close(link);
    for (int i = 0; i < 100; i++) pair_poll(pair);
    assert_int_equal(pair->client.opened + pair->client.closed, 0);
    assert_int_equal(pair->server.accepted, pair->server.closed);
}

static void sending_on_a_closed_link_is_an_error_not_a_crash(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    struct link *link = pair->client.link;
    link_close(link);
    const struct message message = {.type = MESSAGE_JOIN};
    assert_int_equal(pair_send(&pair->client, link, &message), ERR_PEER);
    assert_true(link_is_idle(link));
}

static void the_context_of_a_link_can_be_changed(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    assert_ptr_equal(link_context(pair->server.link), &pair->server);
    struct end other = {.pair = pair};
    link_set_context(pair->server.link, &other);
    send_numbers(&pair->client, pair->client.link, 5);
    pair_until(pair, &other.messages, 5);
    assert_int_equal(pair->server.messages, 0);
}

static void what_waited_is_sent_when_closing_if_there_is_room(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    send_numbers(&pair->client, pair->client.link, 400);
    for (int i = 0; i < 20; i++) loop_poll(pair->server_loop, 0); /* the client stays asleep */
    link_close(pair->client.link);
    pair_until(pair, &pair->server.closed, 1);
    assert_int_equal(pair->server.messages, 400);
}

/* What the system had taken for sending must not be lost with the connection, though bytes of the
 * other side were not read. */
static void what_had_left_arrives_although_the_closing_side_did_not_read(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    send_numbers(&pair->client, pair->client.link, 10);
    static const char body[65536];
    const struct message message = {
        .type = MESSAGE_VALUES, .body_bytes = sizeof body, .body = body};
    int sent = 0;
    while (link_is_idle(pair->server.link) && sent < 500) {
        assert_int_equal(pair_send(&pair->server, pair->server.link, &message), OK);
        assert_true(link_is_idle(pair->server.link) || link_queued_bytes(pair->server.link) > 0);
        sent++;
    }
    link_close(pair->server.link);
    assert_int_equal(link_queued_bytes(pair->server.link), 0);
    pair_until(pair, &pair->client.closed, 1);
    assert_true(pair->client.messages >= sent - 1);
}

/* ---- a peer that does not read ---- */

static void what_waits_for_a_slow_reader_arrives_in_the_end(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    send_numbers(&pair->client, pair->client.link, LINK_QUEUE_MAX);
    for (int i = 0; i < 50 && pair->client_loop != pair->server_loop; i++)
        loop_poll(pair->client_loop, 0);
    pair_until(pair, &pair->server.messages, LINK_QUEUE_MAX);
    assert_int_equal(pair->server.last.generation, LINK_QUEUE_MAX - 1);
    assert_true(link_is_idle(pair->client.link));
}

/* Sends bodies until the link refuses; the other side never looks. */
static err send_until_refused(struct pair *pair, uint32_t body_bytes, int sends_max)
{
    unsigned char *body = calloc(1, body_bytes + 1u);
    const struct message message = {.type = MESSAGE_HELLO, .body_bytes = body_bytes, .body = body};
    err e = OK;
    for (int i = 0; i < sends_max && !e; i++)
        e = pair_send(&pair->client, pair->client.link, &message);
    free(body);
    return e;
}

static void check_refusal(struct pair *pair, err e)
{
    assert_int_equal(e, ERR_PEER);
    assert_non_null(strstr(error_text(), "does not read"));
    assert_int_equal(pair->client.closed, 0); /* comes from loop_poll only */
    loop_poll(pair->client_loop, 0);
    assert_int_equal(pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PEER);
    assert_non_null(strstr(pair->client.text, "does not read"));
    pair_until(pair, &pair->server.closed, 1);
    assert_int_equal(pair->server.why, ERR_PEER);
}

/* What asks before never ends the link, and leaves room for what does not ask. */
static void what_can_be_left_out_costs_no_link(void **state)
{
    enum { SENDS_MAX = 10 << 20, LARGE = MESSAGE_BODY_MAX / 4 };
    const size_t bodies[] = {0, LARGE};
    struct pair *pair = *state;
    unsigned char *body = calloc(1, LARGE);
    assert_non_null(body);
    for (int i = 0; i < 2; i++) {
        const struct message message = {
            .type = MESSAGE_HELLO, .body_bytes = (uint32_t)bodies[i], .body = body};
        int sent = 0;
        pair_connect(pair);
        assert_false(link_has_room(pair->client.link, MESSAGE_BODY_MAX));
        for (; link_has_room(pair->client.link, bodies[i]) && sent < SENDS_MAX; sent++)
            assert_int_equal(pair_send(&pair->client, pair->client.link, &message), OK);
        assert_true(sent > 0 && sent < SENDS_MAX);
        assert_int_equal(pair_send(&pair->client, pair->client.link, &message), OK);
        link_close(pair->client.link);
        pair_until(pair, &pair->server.closed, i + 1);
    }
    free(body);
}

static void too_many_messages_for_a_peer_that_does_not_read_end_the_link(void **state)
{
    pair_connect(*state);
    check_refusal(*state, send_until_refused(*state, 0, 10 << 20));
}

static void too_many_bytes_for_a_peer_that_does_not_read_end_the_link(void **state)
{
    pair_connect(*state);
    check_refusal(*state, send_until_refused(*state, 1 << 20, 200));
}

static void a_peer_that_goes_while_messages_wait_is_told_once(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    assert_int_equal(send_until_refused(pair, 1 << 20, 8), OK);
    link_close(pair->server.link);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PEER);
    for (int i = 0; i < 10; i++) pair_poll(pair);
    assert_int_equal(pair->client.closed, 1);
}

/* Who has come and is not known to the owner yet ends with the listener: the owner may be freed. */
static void those_who_are_still_coming_end_with_the_listener(void **state)
{
    struct pair *pair = *state;
    for (int looks = 0; looks < 4; looks++) {
        char address[ADDRESS_MAX], given[ADDRESS_MAX];
        struct listener *listener;
        struct link *link;
        struct end *owner = calloc(1, sizeof *owner);
        assert_non_null(owner);
        owner->pair = pair;
        make_address(pair->transport, address);
        assert_int_equal(pair->transport->listen(pair->server_loop, address, &end_events, owner,
                                                 given, &listener),
                         OK);
        assert_int_equal(
            pair->transport->connect(pair->client_loop, given, &end_events, &pair->client, &link),
            OK);
        for (int i = 0; i < looks; i++) loop_poll(pair->server_loop, 0);
        if (owner->link) link_close(owner->link); /* this one is known */
        listener_close(listener);
        free(owner);
        pair_until(pair, &pair->client.closed, looks + 1);
    }
}

static void closing_the_loop_makes_no_callbacks(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    send_numbers(&pair->client, pair->client.link, 20);
    pair->is_calling = true; /* a callback would fail the test; stop() closes the loops */
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_sent_before_closing_arrives_and_then_the_end),
        cmocka_unit_test(a_last_word_arrives_although_the_other_side_is_talking),
        cmocka_unit_test(a_link_may_be_closed_while_it_delivers),
        cmocka_unit_test(a_link_may_be_closed_while_it_opens),
        cmocka_unit_test(an_owner_may_connect_again_when_it_hears_of_the_end),
        cmocka_unit_test(closing_before_the_connection_is_open_is_silent),
        cmocka_unit_test(sending_on_a_closed_link_is_an_error_not_a_crash),
        cmocka_unit_test(the_context_of_a_link_can_be_changed),
        cmocka_unit_test(what_waited_is_sent_when_closing_if_there_is_room),
        cmocka_unit_test(what_had_left_arrives_although_the_closing_side_did_not_read),
        cmocka_unit_test(what_waits_for_a_slow_reader_arrives_in_the_end),
        cmocka_unit_test(what_can_be_left_out_costs_no_link),
        cmocka_unit_test(too_many_messages_for_a_peer_that_does_not_read_end_the_link),
        cmocka_unit_test(too_many_bytes_for_a_peer_that_does_not_read_end_the_link),
        cmocka_unit_test(a_peer_that_goes_while_messages_wait_is_told_once),
        cmocka_unit_test(those_who_are_still_coming_end_with_the_listener),
        cmocka_unit_test(closing_the_loop_makes_no_callbacks),
    };
    return run_over_all(tests, sizeof tests / sizeof tests[0]);
}
