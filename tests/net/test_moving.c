/* test_moving.c - what moves while an owner is busy in a callback (loop_move, loop_lend): parts of
 * windows come and what is queued leaves, and nothing else is heard of before the callback has
 * returned. */
#include "tests/net/pair.h"

#include "net/loop/mover.h"

#include "core/base/clock.h"

#include <string.h>

enum { PIECE = 3 << 20, PIECES = 4, WINDOW = PIECES * PIECE };

/* What the client, busy with its first message, has seen. */
struct busy {
    int parts;      /* that came meanwhile */
    bool is_inside; /* the callback */
    bool has_left;  /* all of its own parts, to a server that reads */
};

static void send_piece(struct end *end, uint32_t type, int piece)
{
    const struct message m = {.type = type,
                              .offset = (uint64_t)piece * PIECE,
                              .length = PIECE,
                              .generation = (uint64_t)piece};
    assert_int_equal(link_send(end->link, &m), OK);
}

/* The server is heard by its own loop: as another process would. */
static void move_until(struct end *end, const int *parts, int wanted)
{
    const uint64_t limit_ms = clock_ms() + TEST_PATIENCE_MS;
    while (*parts < wanted) {
        if (clock_ms() > limit_ms) fail_msg("nothing moved any more");
        loop_poll(end->pair->server_loop, 0);
        loop_move(end->pair->client_loop);
    }
}

static void work(struct end *end, struct link *link, const struct message *m)
{
    struct busy *busy = end->own;
    const unsigned char *values = end->windows.values.base;
    if (m->type == MESSAGE_AHEAD) {
        busy->parts++;
        assert_int_equal(values[m->offset], m->generation + 1);
        assert_int_equal(values[m->offset + m->length - 1], m->generation + 1);
        return;
    }
    assert_false(busy->is_inside); /* a message is delivered amid another one */
    if (end->messages > 1) return;
    busy->is_inside = true;
    for (int i = 0; i + 1 < PIECES; i++) send_piece(end, MESSAGE_PART, i);
    move_until(end, &busy->parts, 2);
    move_until(end, &end->pair->server.messages, PIECES - 1);
    busy->has_left = link_is_idle(link);
    for (int i = 0; i < 100; i++) { /* the message in between stays where it is, and what follows */
        loop_poll(end->pair->server_loop, 0);
        loop_move(end->pair->client_loop);
    }
    assert_int_equal(busy->parts, 2);
    busy->is_inside = false;
}

static void fill_pieces(struct pair *pair)
{
    for (int i = 0; i < PIECES; i++)
        memset((char *)pair->windows.values.base + (size_t)i * PIECE, i + 1, PIECE);
}

/* Three parts come in front of what is none, and as many leave. */
static void check_work(struct pair *pair,
                       void (*does)(struct end *, struct link *, const struct message *))
{
    struct busy busy = {0};
    pair_connect(pair);
    pair_share(pair, WINDOW, WINDOW);
    fill_pieces(pair);
    pair->client.own = &busy;
    pair->client.on_message = does;
    pair->client.messages = pair->server.messages = 0;
    assert_int_equal(link_send(pair->server.link, &(struct message){.type = MESSAGE_STATE}), OK);
    send_piece(&pair->server, MESSAGE_AHEAD, 0);
    send_piece(&pair->server, MESSAGE_AHEAD, 1);
    send_piece(&pair->server, MESSAGE_VALUES, 2);
    send_piece(&pair->server, MESSAGE_AHEAD, 3);
    pair_until(pair, &pair->client.messages, 5);
    assert_int_equal(busy.parts, 3);
    assert_true(busy.has_left);
    assert_int_equal(pair->client.closed + pair->server.closed, 0);
}

static void parts_come_and_leave_while_the_owner_works(void **state)
{
    check_work(*state, work);
}

/* The end is told when the owner listens again, and what it sends meanwhile is lost without harm.
 */
static void hang_up_amid(struct end *end, struct link *link, const struct message *m)
{
    link_close(end->pair->server.link);
    loop_poll(end->pair->server_loop, 0);
    for (int i = 0; i < 100; i++) loop_move(end->pair->client_loop);
    assert_int_equal(end->closed, 0);
    for (int i = 0; i + 1 < PIECES; i++) {
        const struct message part = {
            .type = MESSAGE_PART, .offset = (uint64_t)i * PIECE, .length = PIECE};
        (void)link_send(link, &part);
        loop_move(end->pair->client_loop);
    }
}

static void a_peer_that_goes_away_meanwhile_is_told_of_afterwards(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, WINDOW, WINDOW);
    pair->client.on_message = hang_up_amid;
    assert_int_equal(link_send(pair->server.link, &(struct message){.type = MESSAGE_STATE}), OK);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PEER);
}

/* The owner needs a part before it can go on: it waits for bytes, and for nothing else. */
static void await_amid(struct end *end, struct link *link, const struct message *m)
{
    struct pair *pair = end->pair;
    struct busy *busy = end->own;
    if (m->type == MESSAGE_AHEAD) {
        busy->parts++;
        return;
    }
    if (m->type != MESSAGE_STATE) return;
    assert_int_equal(loop_await(pair->client_loop, link, 0), ERR_TIMEOUT);
    send_piece(&pair->server, MESSAGE_AHEAD, PIECES - 1);
    const uint64_t limit_ms = clock_ms() + TEST_PATIENCE_MS;
    while (busy->parts == 0) {
        if (clock_ms() > limit_ms) fail_msg("the part did not come");
        loop_poll(pair->server_loop, 0);
        const err e = loop_await(pair->client_loop, link, 1);
        assert_true(e == OK || e == ERR_TIMEOUT);
    }
    assert_int_equal(link_send(pair->server.link, &(struct message){.type = MESSAGE_SERVE}), OK);
    assert_int_equal(loop_await(pair->client_loop, link, TEST_PATIENCE_MS), OK); /* its bytes */
    assert_int_equal(loop_await(pair->client_loop, link, TEST_PATIENCE_MS), ERR_PEER);
    assert_non_null(strstr(error_text(), "another message first"));
}

static void await_the_end(struct end *end, struct link *link, const struct message *m)
{
    struct pair *pair = end->pair;
    link_close(pair->server.link);
    loop_poll(pair->server_loop, 0);
    assert_int_equal(loop_await(pair->client_loop, link, TEST_PATIENCE_MS), ERR_PEER);
    assert_non_null(strstr(error_text(), "closed"));
}

static void an_owner_that_waits_is_told_of_the_end(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, WINDOW, WINDOW);
    pair->client.on_message = await_the_end;
    assert_int_equal(link_send(pair->server.link, &(struct message){.type = MESSAGE_STATE}), OK);
    pair_until(pair, &pair->client.closed, 1);
}

static void an_owner_waits_for_a_part_and_is_told_when_none_can_come(void **state)
{
    struct pair *pair = *state;
    struct busy busy = {0};
    pair_connect(pair);
    pair_share(pair, WINDOW, WINDOW);
    pair->client.own = &busy;
    pair->client.on_message = await_amid;
    assert_int_equal(link_send(pair->server.link, &(struct message){.type = MESSAGE_STATE}), OK);
    pair_until(pair, &pair->client.messages, 3);
    assert_int_equal(busy.parts, 1);
}

/* ---- what parts may overtake ---- */

enum { TOLD_BYTES = 100 << 10 }; /* more than a link keeps room for */

/* The client, busy with a message that has a body, and what it hears afterwards. */
struct overtaken {
    int wanted;     /* parts to wait for */
    int parts;      /* that came meanwhile */
    int told;       /* COUNTERS, in their order */
    bool hangs_up;  /* the server, when all of it has left */
    bool is_inside; /* the callback */
};

static void send_told(struct end *end, uint64_t number, size_t bytes)
{
    unsigned char *body = test_malloc(bytes);
    memset(body, (int)number % 100 + 1, bytes);
    const struct message m = {.type = MESSAGE_COUNTERS,
                              .counters.index = number,
                              .body = body,
                              .body_bytes = (uint32_t)bytes};
    assert_int_equal(link_send(end->link, &m), OK);
    test_free(body);
}

static void assert_body(const struct message *m, int byte)
{
    const unsigned char *body = m->body;
    assert_int_equal(body[0], byte);
    assert_int_equal(body[m->body_bytes - 1], byte);
}

static void await_overtaking(struct end *end, struct link *link, const struct message *m)
{
    struct overtaken *o = end->own;
    const uint64_t limit_ms = clock_ms() + TEST_PATIENCE_MS;
    if (m->type == MESSAGE_AHEAD) {
        o->parts++;
        return;
    }
    assert_false(o->is_inside);
    if (m->type == MESSAGE_COUNTERS) {
        assert_int_equal(m->counters.index, o->told++);
        assert_body(m, (int)m->counters.index % 100 + 1);
        return;
    }
    if (m->type != MESSAGE_STOP) return;
    o->is_inside = true;
    while (o->parts < o->wanted) {
        if (clock_ms() > limit_ms) fail_msg("the part did not come");
        loop_poll(end->pair->server_loop, 0);
        const err e = loop_await(end->pair->client_loop, link, 1);
        assert_true(e == OK || e == ERR_TIMEOUT);
    }
    assert_body(m, 'x'); /* nothing that came meanwhile lies there */
    o->is_inside = false;
}

static void make_busy(struct pair *pair, struct overtaken *o)
{
    static char body[TOLD_BYTES];
    memset(body, 'x', sizeof body);
    pair_connect(pair);
    pair_share(pair, WINDOW, WINDOW);
    pair->client.own = o;
    pair->client.on_message = await_overtaking;
    const struct message m = {.type = MESSAGE_STOP, .body = body, .body_bytes = sizeof body};
    assert_int_equal(link_send(pair->server.link, &m), OK);
}

static void a_part_overtakes_what_says_nothing_of_steps(void **state)
{
    struct pair *pair = *state;
    struct overtaken o = {.wanted = 2};
    make_busy(pair, &o);
    send_told(&pair->server, 0, TOLD_BYTES);
    send_piece(&pair->server, MESSAGE_AHEAD, 0);
    send_told(&pair->server, 1, 1);
    send_told(&pair->server, 2, TOLD_BYTES / 2);
    send_piece(&pair->server, MESSAGE_AHEAD, 1);
    assert_int_equal(link_send(pair->server.link, &(struct message){.type = MESSAGE_SERVE}), OK);
    pair_until(pair, &pair->client.messages, 7);
    assert_int_equal(o.told, 3);
    assert_int_equal(pair->client.last.type, MESSAGE_SERVE); /* behind what was sent before it */
    assert_int_equal(pair->client.closed, 0);
}

/* Until the link has ended, or what it says next may not be overtaken. */
static void await_in_vain(struct end *end, struct link *link, const struct message *m)
{
    struct overtaken *o = end->own;
    const uint64_t limit_ms = clock_ms() + TEST_PATIENCE_MS;
    if (m->type != MESSAGE_STOP) {
        await_overtaking(end, link, m);
        return;
    }
    for (err e = OK; e != ERR_PEER; e = loop_await(end->pair->client_loop, link, 1)) {
        if (clock_ms() > limit_ms) fail_msg("it waits for ever");
        loop_poll(end->pair->server_loop, 0);
        if (!o->hangs_up || !link_is_idle(end->pair->server.link)) continue;
        link_close(end->pair->server.link);
        o->hangs_up = false;
    }
    assert_int_equal(o->parts + o->told, 0);
}

/* Then a part has to wait as behind any other message. */
static void no_more_are_overtaken_than_there_is_room_for(void **state)
{
    struct pair *pair = *state;
    struct overtaken o = {0};
    make_busy(pair, &o);
    pair->client.on_message = await_in_vain;
    for (uint64_t i = 0; i <= LINK_DEFERRED_MAX; i++) send_told(&pair->server, i, 1);
    send_piece(&pair->server, MESSAGE_AHEAD, 0);
    pair_until(pair, &pair->client.messages, LINK_DEFERRED_MAX + 3);
    assert_int_equal(o.told, LINK_DEFERRED_MAX + 1);
    assert_int_equal(o.parts, 1);
}

static void what_was_overtaken_is_heard_before_the_end(void **state)
{
    struct pair *pair = *state;
    struct overtaken o = {.hangs_up = true};
    make_busy(pair, &o);
    pair->client.on_message = await_in_vain;
    send_told(&pair->server, 0, TOLD_BYTES);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(o.told, 1);
}

/* ---- another thread ---- */

/* The client's loop is another thread's, but for the moments in which it is asked what has come. */
static void lend_until(struct end *end, const int *parts, int wanted)
{
    const uint64_t limit_ms = clock_ms() + TEST_PATIENCE_MS;
    while (*parts < wanted) {
        if (clock_ms() > limit_ms) fail_msg("nothing moved any more: %d of %d", *parts, wanted);
        assert_int_equal(loop_lend(end->pair->client_loop), OK);
        loop_poll(end->pair->server_loop, 1);
        loop_reclaim(end->pair->client_loop);
    }
}

static void work_while_another_moves(struct end *end, struct link *link, const struct message *m)
{
    struct busy *busy = end->own;
    const unsigned char *values = end->windows.values.base;
    if (m->type == MESSAGE_AHEAD) {
        busy->parts++;
        assert_int_equal(values[m->offset], m->generation + 1);
        assert_int_equal(values[m->offset + m->length - 1], m->generation + 1);
        return;
    }
    assert_false(busy->is_inside);
    if (end->messages > 1) return;
    busy->is_inside = true;
    for (int i = 0; i + 1 < PIECES; i++) send_piece(end, MESSAGE_PART, i);
    lend_until(end, &busy->parts, 2);
    lend_until(end, &end->pair->server.messages, PIECES - 1);
    busy->has_left = link_is_idle(link);
    for (int i = 0; i < 20; i++) { /* what is no part stays where it is, and what follows */
        assert_int_equal(loop_lend(end->pair->client_loop), OK);
        loop_poll(end->pair->server_loop, 1);
        loop_reclaim(end->pair->client_loop);
    }
    assert_int_equal(busy->parts, 2);
    busy->is_inside = false;
}

static void a_thread_moves_what_the_owner_would(void **state)
{
    check_work(*state, work_while_another_moves);
}

/* More than are kept: each once, and in their order. */
enum { MANY = 3 * MOVER_KEPT_MAX };

static void count_in_order(struct end *end, struct link *link, const struct message *m)
{
    struct busy *busy = end->own;
    if (m->type != MESSAGE_AHEAD) {
        lend_until(end, &busy->parts, MANY);
        return;
    }
    assert_int_equal(m->generation, busy->parts);
    busy->parts++;
}

static void what_cannot_be_kept_waits(void **state)
{
    struct pair *pair = *state;
    struct busy busy = {0};
    pair_connect(pair);
    pair_share(pair, WINDOW, WINDOW);
    pair->client.own = &busy;
    pair->client.on_message = count_in_order;
    assert_int_equal(link_send(pair->server.link, &(struct message){.type = MESSAGE_STATE}), OK);
    for (uint64_t i = 0; i < MANY; i++) {
        const struct message m = {.type = MESSAGE_AHEAD, .offset = i, .length = 1, .generation = i};
        assert_int_equal(link_send(pair->server.link, &m), OK);
    }
    pair_until(pair, &pair->client.messages, MANY + 1);
    assert_int_equal(pair->client.closed, 0);
}

/* The end is found by the thread, and told when the owner listens again. */
static void lose_while_lent(struct end *end, struct link *link, const struct message *m)
{
    int *const rounds = end->own;
    link_close(end->pair->server.link);
    for (; *rounds < 20; ++*rounds) {
        assert_int_equal(loop_lend(end->pair->client_loop), OK);
        loop_poll(end->pair->server_loop, 1);
        loop_reclaim(end->pair->client_loop);
        const struct message part = {.type = MESSAGE_PART, .length = PIECE};
        (void)link_send(link, &part);
    }
    assert_int_equal(end->closed, 0);
}

static void a_peer_that_goes_away_while_lent_is_told_of_afterwards(void **state)
{
    struct pair *pair = *state;
    int rounds = 0;
    pair_connect(pair);
    pair_share(pair, WINDOW, WINDOW);
    pair->client.own = &rounds;
    pair->client.on_message = lose_while_lent;
    assert_int_equal(link_send(pair->server.link, &(struct message){.type = MESSAGE_STATE}), OK);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PEER);
    assert_int_equal(rounds, 20);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(an_owner_waits_for_a_part_and_is_told_when_none_can_come),
        cmocka_unit_test(an_owner_that_waits_is_told_of_the_end),
        cmocka_unit_test(parts_come_and_leave_while_the_owner_works),
        cmocka_unit_test(a_peer_that_goes_away_meanwhile_is_told_of_afterwards),
        cmocka_unit_test(a_thread_moves_what_the_owner_would),
        cmocka_unit_test(what_cannot_be_kept_waits),
        cmocka_unit_test(a_peer_that_goes_away_while_lent_is_told_of_afterwards),
    };
    struct CMUnitTest overtaking[] = {
        cmocka_unit_test(a_part_overtakes_what_says_nothing_of_steps),
        cmocka_unit_test(no_more_are_overtaken_than_there_is_room_for),
        cmocka_unit_test(what_was_overtaken_is_heard_before_the_end),
    };
    return run_over(&transport_shm, overtaking, sizeof overtaking / sizeof overtaking[0]) +
           run_over(&transport_tcp, overtaking, sizeof overtaking / sizeof overtaking[0]) +
           run_over_tls(overtaking, sizeof overtaking / sizeof overtaking[0]) +
           run_over(&transport_tcp, tests, sizeof tests / sizeof tests[0]) +
           run_over_tls(tests, sizeof tests / sizeof tests[0]);
}
