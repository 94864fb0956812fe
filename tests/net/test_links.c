/* test_links.c - the contract of net/transport.h, run over every transport. */
#include "tests/net/pair.h"

#include "core/base/clock.h"
#include "core/base/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void both_sides_hear_of_a_connection(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    assert_int_equal(pair->server.accepted, 1);
    assert_int_equal(pair->client.opened, 1);
    assert_int_equal(pair->client.accepted + pair->server.opened, 0);
    pair->address[strcspn(pair->address, "/")] = '\0'; /* what is behind it is secret */
    assert_string_equal(link_peer_name(pair->client.link), pair->address);
    assert_true(strlen(link_peer_name(pair->server.link)) > 0);
    assert_ptr_equal(link_transport(pair->client.link), pair->transport);
    assert_int_equal(link_shares_memory(pair->client.link), pair->transport != &transport_tcp);
}

static void header_fields_arrive_as_they_were_sent(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    const struct message sent = {.type = MESSAGE_PUSH,
                                 .task = 3,
                                 .job = 4,
                                 .generation = 0x0102030405060708,
                                 .push = {2, UINT64_MAX, 1ull << 40, 7}};
    assert_int_equal(pair_send(&pair->client, pair->client.link, &sent), OK);
    pair_until(pair, &pair->server.messages, 1);
    assert_memory_equal(&pair->server.last, &sent, sizeof sent);
}

/* ---- ten thousand messages ---- */

enum { MANY = 10000, IN_FLIGHT_MAX = 100, CELLS = 256, CELL_BYTES = 192 };

/* What a direction's stretches are seen in, and where its part of the rows begins. */
struct cells {
    unsigned char *block, *rows;
    uint64_t rows_from;
};

static unsigned char *cell_of(const struct cells *cells, const struct message *message)
{
    return (message_has_rows(message->type) ? cells->rows : cells->block) + message->offset;
}

/* The i-th message of a direction: empty, with a body or with a stretch, all of it known from i.
 * Parts have none: they would be overtaken; nor have kinds with a field in its place, and those for
 * which the window of the other direction is lent. */
static bool has_stretch(int i)
{
    const uint32_t type = 1 + (uint32_t)i % (MESSAGE_TYPES - 1);
    return i % 3 == 2 && !message_field(type, MESSAGE_PLACES - 1)->name &&
           !message_has_lent(type) && !message_yields(&(struct message){.type = type, .length = 1});
}

static struct message make_message(int i, const struct cells *cells, unsigned char *body)
{
    struct message message = {
        .type = 1 + (uint32_t)i % (MESSAGE_TYPES - 1), .generation = (uint64_t)i, .body = body};
    if (i % 3 == 1) {
        message.body_bytes = 1 + (uint32_t)i * 37 % 6000;
        memset(body, i & 255, message.body_bytes);
    }
    if (has_stretch(i)) {
        message.offset = (uint64_t)(i % CELLS) * CELL_BYTES;
        if (message_has_rows(message.type)) message.offset += cells->rows_from;
        message.length = 1 + (uint64_t)i % CELL_BYTES;
        memset(cell_of(cells, &message), i & 255, message.length);
    }
    return message;
}

static bool is_all(const unsigned char *bytes, size_t count, unsigned char value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value) return false;
    return true;
}

static void check_message(struct end *end, struct link *link, const struct message *message)
{
    const int i = end->messages - 1;
    assert_int_equal(message->generation, i);
    assert_int_equal(message->type, 1 + (uint32_t)i % (MESSAGE_TYPES - 1));
    const unsigned char *bytes = message->body;
    size_t count = message->body_bytes;
    assert_int_equal(count > 0, i % 3 == 1);
    assert_int_equal(message->length > 0, has_stretch(i));
    if (message->length > 0) {
        bytes = cell_of(end->own, message);
        count = message->length;
    }
    assert_true(is_all(bytes, count, (unsigned char)(i & 255)));
}

static void send_next(struct end *from, const struct end *to, int *sent, const struct cells *cells)
{
    static unsigned char body[8192];
    while (*sent < MANY && *sent - to->messages < IN_FLIGHT_MAX) {
        const struct message message = make_message(*sent, cells, body);
        assert_int_equal(pair_send(from, from->link, &message), OK);
        ++*sent;
    }
}

static void ten_thousand_messages_arrive_in_order_and_once_both_ways(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share_rows(pair, CELLS * CELL_BYTES, CELLS * CELL_BYTES, 2 * CELLS * CELL_BYTES);
    const struct link_windows *ours = &pair->windows, *theirs = &pair->client.windows;
    struct cells at_server = {ours->gradients.base, ours->rows.base, 0};
    struct cells at_client = {theirs->values.base, theirs->rows.base, 0};
    const struct cells of_server = {ours->values.base, ours->rows.base, CELLS * CELL_BYTES};
    const struct cells of_client = {theirs->gradients.base, theirs->rows.base, 0};
    pair->server.on_message = pair->client.on_message = check_message;
    pair->server.own = &at_server;
    pair->client.own = &at_client;
    const uint64_t give_up_ms = clock_ms() + TEST_PATIENCE_MS;
    int from_client = 0, from_server = 0;
    while (pair->client.messages < MANY || pair->server.messages < MANY) {
        send_next(&pair->client, &pair->server, &from_client, &of_client);
        send_next(&pair->server, &pair->client, &from_server, &of_server);
        pair_poll(pair);
        assert_true(clock_ms() < give_up_ms);
    }
    for (int i = 0; i < 10; i++) pair_poll(pair);
    assert_int_equal(pair->client.messages, MANY);
    assert_int_equal(pair->server.messages, MANY);
}

/* ---- sizes ---- */

static const size_t sizes[] = {
    0,    1,    63,   64,    65,    3999,    4015,    4016,           4017,
    4096, 8191, 8192, 65535, 65536, 1000003, 1 << 20, (16 << 20) - 1, 16 << 20};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static unsigned char pattern_at(size_t position, size_t size)
{
    return (unsigned char)(position * 7 + size + (position >> 12));
}

static void fill_pattern(unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) bytes[i] = pattern_at(i, size);
}

static bool is_pattern(const unsigned char *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != pattern_at(i, size)) return false;
    return true;
}

static void check_body(struct end *end, struct link *link, const struct message *message)
{
    assert_int_equal(message->body_bytes, sizes[end->messages - 1]);
    assert_true(is_pattern(message->body, message->body_bytes));
}

static void bodies_of_every_size_arrive_whole(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair->server.on_message = check_body;
    unsigned char *body = malloc(MESSAGE_BODY_MAX);
    for (int i = 0; i < SIZES; i++) {
        fill_pattern(body, sizes[i]);
        const struct message message = {
            .type = MESSAGE_SETUP, .body_bytes = (uint32_t)sizes[i], .body = body};
        assert_int_equal(pair_send(&pair->client, pair->client.link, &message), OK);
        memset(body, 0, sizes[i]); /* it was copied */
        pair_until(pair, &pair->server.messages, i + 1);
        assert_true(link_is_idle(pair->client.link));
    }
    free(body);
}

/* And the link ends: nobody continues as if it had been sent. */
static void refuse_to_send(struct pair *pair, const struct message *message, err wanted)
{
    const int closed = pair->client.closed, server_closed = pair->server.closed;
    assert_int_equal(pair_send(&pair->client, pair->client.link, message), wanted);
    char why[ERROR_TEXT_MAX];
    snprintf(why, sizeof why, "%s", error_text());
    assert_int_equal(pair->client.closed, closed); /* comes from loop_poll only */
    pair_until(pair, &pair->client.closed, closed + 1);
    assert_int_equal(pair->client.why, wanted);
    assert_string_equal(pair->client.text, why);
    pair_until(pair, &pair->server.closed, server_closed + 1);
    assert_int_equal(pair->server.messages, 0);
}

static void a_body_beyond_the_limit_is_not_sent_and_ends_the_link(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    const struct message message = {
        .type = MESSAGE_SETUP, .body_bytes = MESSAGE_BODY_MAX + 1u, .body = ""};
    refuse_to_send(pair, &message, ERR_MEMORY);
}

static void check_stretch(struct end *end, struct link *link, const struct message *message)
{
    assert_int_equal(message->length, sizes[end->messages]);
    assert_true(is_pattern((const unsigned char *)end->own + message->offset, message->length));
}

static void send_stretches(enum message_type type, struct end *from, const struct end *to,
                           unsigned char *window)
{
    for (int i = 1; i < SIZES; i++) { /* a stretch of nothing is an empty message */
        const uint64_t offset = (16 << 20) - sizes[i] - (i % 2 ? 0 : (16 << 20) - sizes[i]);
        fill_pattern(window + offset, sizes[i]);
        const struct message message = {.type = type, .offset = offset, .length = sizes[i]};
        assert_int_equal(pair_send(from, from->link, &message), OK);
        pair_until(from->pair, &to->messages, i);
    }
}

static void stretches_are_in_the_window_before_their_message_both_ways(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, 16 << 20, 16 << 20);
    pair->server.on_message = pair->client.on_message = check_stretch;
    pair->server.own = pair->windows.gradients.base;
    pair->client.own = pair->client.windows.values.base;
    send_stretches(MESSAGE_PUSH, &pair->client, &pair->server, pair->client.windows.gradients.base);
    send_stretches(MESSAGE_VALUES, &pair->server, &pair->client, pair->windows.values.base);
}

static void stretches_of_a_window_that_is_lent_come_to_where_gradients_are(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, 4096, 16 << 20);
    pair->client.on_message = check_stretch;
    pair->client.own = pair->client.windows.gradients.base;
    send_stretches(MESSAGE_AVERAGES, &pair->server, &pair->client, pair->windows.gradients.base);
}

static void a_stretch_without_a_window_is_not_sent_and_ends_the_link(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    refuse_to_send(pair, &(struct message){.type = MESSAGE_PUSH, .length = 8}, ERR_INPUT);
}

static void a_stretch_outside_of_the_window_is_not_sent_and_ends_the_link(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, 4096, 100);
    const struct message message = {.type = MESSAGE_PUSH, .offset = 93, .length = 8};
    refuse_to_send(pair, &message, ERR_INPUT);
}

static void the_end_of_a_stretch_cannot_wrap_around(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, 4096, 100);
    const struct message message = {.type = MESSAGE_PUSH, .offset = UINT64_MAX - 3, .length = 8};
    refuse_to_send(pair, &message, ERR_INPUT);
}

static void the_last_bytes_of_a_window_are_sent(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, 4096, 100);
    const struct message message = {.type = MESSAGE_PUSH, .offset = 92, .length = 8};
    assert_int_equal(pair_send(&pair->client, pair->client.link, &message), OK);
    pair_until(pair, &pair->server.messages, 1);
    assert_int_equal(pair->client.closed, 0);
}

/* ---- windows that have no memory yet ---- */

enum { LENT_BYTES = 32 << 20 }; /* more than the system keeps for a peer that does not read */

struct lending {
    unsigned char *memory; /* NULL: there is none now */
    int asked;
};

static void *lend(struct end *end, struct link *link, const struct message *message)
{
    struct lending *lending = end->own;
    lending->asked++;
    assert_int_equal(message->length, LENT_BYTES);
    return lending->memory;
}

static void share_lent(struct pair *pair, struct lending *lending)
{
    const struct window lent = {.bytes = LENT_BYTES, .fd = -1};
    pair_connect(pair);
    pair->server.on_place = lend;
    pair->server.own = lending;
    assert_int_equal(window_new(64, &pair->windows.values), OK);
    expect_windows(pair->client.link, 64, LENT_BYTES, 0);
    const struct link_windows windows = {.values = pair->windows.values, .gradients = lent};
    assert_int_equal(link_share(pair->server.link, &windows), OK);
    pair_until(pair, &pair->client.shared, 1);
}

/* A message with such a stretch, and one behind it */
static void push_to_lent(struct pair *pair, struct lending *lending)
{
    const struct message push = {.type = MESSAGE_PUSH, .length = LENT_BYTES, .push.push = 1};
    const struct message behind = {.type = MESSAGE_FINISHED, .finished.data_end = 2};
    memset(pair->client.windows.gradients.base, 7, LENT_BYTES);
    assert_int_equal(pair_send(&pair->client, pair->client.link, &push), OK);
    assert_int_equal(pair_send(&pair->client, pair->client.link, &behind), OK);
    pair_until(pair, &lending->asked, 1);
}

static void a_stretch_without_memory_waits_and_so_does_its_sender(void **state)
{
    struct pair *pair = *state;
    struct lending lending = {0};
    if (pair->transport != &transport_tcp) return;
    share_lent(pair, &lending);
    push_to_lent(pair, &lending);
    const uint64_t progress = link_progress(pair->server.link);
    for (int i = 0; i < 1000; i++) pair_poll(pair);
    assert_int_equal(lending.asked, 1);
    assert_int_equal(pair->server.messages, 0);
    assert_int_equal(link_progress(pair->server.link), progress);
    assert_false(link_is_idle(pair->client.link));
    link_go_on(pair->server.link); /* in vain */
    pair_until(pair, &lending.asked, 2);
    assert_int_equal(pair->server.messages, 0);
    lending.memory = calloc(1, LENT_BYTES);
    link_go_on(pair->server.link);
    pair_until(pair, &pair->server.messages, 2);
    assert_int_equal(lending.asked, 3);
    assert_int_equal(pair->server.last.finished.data_end, 2);
    assert_true(is_all(lending.memory, LENT_BYTES, 7));
    free(lending.memory);
}

/* ---- windows ---- */

static void windows_come_zeroed_before_any_later_message(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    expect_windows(pair->client.link, 5000, 0, 0);
    pair_open_windows(pair, 5000, 0, 0);
    assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
    const struct message message = {.type = MESSAGE_VALUES, .offset = 4096, .length = 904};
    assert_int_equal(pair_send(&pair->server, pair->server.link, &message), OK);
    pair_until(pair, &pair->client.messages, 1);
    assert_int_equal(pair->client.shared, 1);
    assert_int_equal(pair->client.windows.values.bytes, 5000);
    assert_int_equal(pair->client.windows.gradients.bytes, 0);
    assert_int_equal((uintptr_t)pair->client.windows.values.base % 4096, 0);
    for (int i = 0; i < 5000; i++)
        assert_int_equal(((const char *)pair->client.windows.values.base)[i], 0);
}

static void share_and_expect(struct pair *pair, size_t shared, size_t expected)
{
    pair_connect(pair);
    if (expected) expect_windows(pair->client.link, expected, 64, 0);
    pair_open_windows(pair, shared, 64, 0);
    assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PROTOCOL);
    assert_int_equal(pair->client.shared, 0);
    pair_until(pair, &pair->server.closed, 1);
    assert_int_equal(pair->server.why, ERR_PEER);
}

static void windows_of_other_sizes_than_expected_end_the_link(void **state)
{
    share_and_expect(*state, 4096, 4097);
    assert_non_null(strstr(((struct pair *)*state)->client.text, "4097"));
}

static void windows_that_nobody_expected_end_the_link(void **state)
{
    share_and_expect(*state, 4096, 0);
}

static void windows_are_shared_once_and_by_the_listening_side(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, 64, 64);
    assert_int_equal(link_share(pair->server.link, &pair->windows), ERR_INPUT);
    assert_int_equal(link_share(pair->client.link, &pair->windows), ERR_INPUT);
    assert_int_equal(pair->client.closed + pair->server.closed, 0);
}

/* ---- connections ---- */

static void connecting_to_nobody_is_refused_later(void **state)
{
    struct pair *pair = *state;
    listener_close(pair->listener);
    pair->is_calling = true;
    struct link *link;
    assert_int_equal(pair->transport->connect(pair->client_loop, pair->address, &end_events,
                                              &pair->client, &link),
                     OK);
    pair->is_calling = false;
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PEER);
    assert_string_equal(pair->client.text, "refused");
    assert_int_equal(pair->client.opened, 0);
}

static void listening_twice_on_an_address_says_that_it_is_taken(void **state)
{
    struct pair *pair = *state;
    struct listener *second = NULL;
    char address[ADDRESS_MAX] = "";
    assert_int_equal(pair->transport->listen(pair->server_loop, pair->address, &end_events,
                                             &pair->server, address, &second),
                     ERR_PEER);
    assert_non_null(strstr(error_text(), "address already in use"));
    pair->address[strcspn(pair->address, "/")] = '\0'; /* what is behind it is secret */
    assert_non_null(strstr(error_text(), pair->address));
    assert_null(second);
    assert_string_equal(address, "");
}

static void an_address_is_free_again_after_unlisten(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair); /* a connection may go on */
    listener_close(pair->listener);
    assert_int_equal(pair->transport->listen(pair->server_loop, pair->address, &end_events,
                                             &pair->server, NULL, &pair->listener),
                     OK);
    pair_connect(pair);
    assert_int_equal(pair->server.accepted, 2);
    assert_int_equal(pair->server.closed, 0);
}

enum { LINKS = 60, MESSAGES_EACH = 20 };

static void answer(struct end *end, struct link *link, const struct message *message)
{
    struct message reply = *message;
    assert_int_equal(pair_send(end, link, &reply), OK);
}

static void many_links_to_one_listener_do_not_mix(void **state)
{
    struct pair *pair = *state;
    static struct end ends[LINKS];
    memset(ends, 0, sizeof ends);
    pair->server.on_message = answer;
    for (int i = 0; i < LINKS; i++) {
        ends[i].pair = pair;
        assert_int_equal(pair->transport->connect(pair->client_loop, pair->address, &end_events,
                                                  &ends[i], &ends[i].link),
                         OK);
    }
    pair_until(pair, &pair->server.accepted, LINKS);
    for (int i = 0; i < LINKS; i++) pair_until(pair, &ends[i].opened, 1);
    for (int n = 0; n < MESSAGES_EACH; n++)
        for (int i = 0; i < LINKS; i++) {
            const struct message message = {
                .type = MESSAGE_JOIN, .task = (uint32_t)i, .body_bytes = 4, .body = &i};
            assert_int_equal(pair_send(&ends[i], ends[i].link, &message), OK);
        }
    for (int i = 0; i < LINKS; i++) {
        pair_until(pair, &ends[i].messages, MESSAGES_EACH);
        assert_int_equal(ends[i].last.task, i);
    }
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(both_sides_hear_of_a_connection),
        cmocka_unit_test(header_fields_arrive_as_they_were_sent),
        cmocka_unit_test(ten_thousand_messages_arrive_in_order_and_once_both_ways),
        cmocka_unit_test(bodies_of_every_size_arrive_whole),
        cmocka_unit_test(a_body_beyond_the_limit_is_not_sent_and_ends_the_link),
        cmocka_unit_test(stretches_are_in_the_window_before_their_message_both_ways),
        cmocka_unit_test(stretches_of_a_window_that_is_lent_come_to_where_gradients_are),
        cmocka_unit_test(a_stretch_without_a_window_is_not_sent_and_ends_the_link),
        cmocka_unit_test(a_stretch_outside_of_the_window_is_not_sent_and_ends_the_link),
        cmocka_unit_test(the_end_of_a_stretch_cannot_wrap_around),
        cmocka_unit_test(the_last_bytes_of_a_window_are_sent),
        cmocka_unit_test(a_stretch_without_memory_waits_and_so_does_its_sender),
        cmocka_unit_test(windows_come_zeroed_before_any_later_message),
        cmocka_unit_test(windows_of_other_sizes_than_expected_end_the_link),
        cmocka_unit_test(windows_that_nobody_expected_end_the_link),
        cmocka_unit_test(windows_are_shared_once_and_by_the_listening_side),
        cmocka_unit_test(connecting_to_nobody_is_refused_later),
        cmocka_unit_test(listening_twice_on_an_address_says_that_it_is_taken),
        cmocka_unit_test(an_address_is_free_again_after_unlisten),
        cmocka_unit_test(many_links_to_one_listener_do_not_mix),
    };
    return run_over_all(tests, sizeof tests / sizeof tests[0]);
}
