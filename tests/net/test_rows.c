/* test_rows.c - the window of rows, which both sides write, and the messages whose stretch lies
 * there: over every transport, and while an owner computes (loop_move, loop_await). */
#include "tests/net/pair.h"

#include "core/base/clock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { BLOCK = 4096, HALF = 1 << 20, ROWS = 2 * HALF }; /* the first half is the client's */

static unsigned char *rows_of(struct end *end)
{
    const bool is_server = end == &end->pair->server;
    return is_server ? end->pair->windows.rows.base : end->windows.rows.base;
}

static bool is_all(const unsigned char *bytes, size_t count, int value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value) return false;
    return true;
}

static struct message rows_at(uint64_t offset, uint64_t length)
{
    return (struct message){.type = MESSAGE_ROWS, .offset = offset, .length = length};
}

/* ---- the window ---- */

static void rows_go_both_ways_beside_the_block(void **state)
{
    struct pair *pair = *state;
    struct link *client = NULL, *server = NULL;
    pair_connect(pair);
    pair_share_rows(pair, BLOCK, 2 * BLOCK, ROWS);
    client = pair->client.link;
    server = pair->server.link;
    memset(pair->windows.values.base, 1, BLOCK);
    memset(pair->client.windows.gradients.base, 2, 2 * BLOCK);
    memset(rows_of(&pair->client), 3, HALF);
    memset(rows_of(&pair->server) + HALF, 4, HALF);
    const struct message up = rows_at(0, HALF), down = rows_at(HALF, HALF);
    const struct message push = {.type = MESSAGE_PUSH, .length = 2 * BLOCK};
    const struct message values = {.type = MESSAGE_VALUES, .length = BLOCK};
    assert_int_equal(pair_send(&pair->client, client, &up), OK);
    assert_int_equal(pair_send(&pair->client, client, &push), OK);
    assert_int_equal(pair_send(&pair->server, server, &values), OK);
    assert_int_equal(pair_send(&pair->server, server, &down), OK);
    pair_until(pair, &pair->server.messages, 2);
    pair_until(pair, &pair->client.messages, 2);
    assert_true(is_all(rows_of(&pair->server), HALF, 3));
    assert_true(is_all(rows_of(&pair->server) + HALF, HALF, 4));
    assert_true(is_all(rows_of(&pair->client), HALF, 3));
    assert_true(is_all(rows_of(&pair->client) + HALF, HALF, 4));
    assert_true(is_all(pair->client.windows.values.base, BLOCK, 1));
    assert_true(is_all(pair->windows.gradients.base, 2 * BLOCK, 2));
    assert_int_equal(pair->server.closed + pair->client.closed, 0);
}

static void rows_come_zeroed(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share_rows(pair, 0, 0, 5000);
    assert_int_equal(pair->client.windows.rows.bytes, 5000);
    assert_int_equal((uintptr_t)rows_of(&pair->client) % 4096, 0);
    assert_true(is_all(rows_of(&pair->client), 5000, 0));
}

static void where_no_rows_are_shared_there_is_no_window_of_them(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, BLOCK, BLOCK);
    assert_int_equal(pair->client.windows.rows.bytes, 0);
    assert_null(pair->client.windows.rows.base);
}

static void rows_without_a_stretch_need_no_window(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    const struct message none = {.type = MESSAGE_ROWS, .rows = {ROWS_NONE, .request_id = 9}};
    assert_int_equal(pair_send(&pair->server, pair->server.link, &none), OK);
    pair_until(pair, &pair->client.messages, 1);
    assert_memory_equal(&pair->client.last, &none, sizeof none);
}

static void share_and_expect_rows(struct pair *pair, size_t shared, size_t expected)
{
    pair_connect(pair);
    expect_windows(pair->client.link, BLOCK, BLOCK, expected);
    pair_open_windows(pair, BLOCK, BLOCK, shared);
    assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PROTOCOL);
    assert_non_null(strstr(pair->client.text, "of rows"));
    assert_int_equal(pair->client.shared, 0);
    pair_until(pair, &pair->server.closed, 1);
}

static void rows_of_another_size_than_expected_end_the_link(void **state)
{
    share_and_expect_rows(*state, 8192, 8191);
}

static void rows_that_nobody_expected_end_the_link(void **state)
{
    share_and_expect_rows(*state, 8192, 0);
}

static void rows_that_are_not_shared_although_expected_end_the_link(void **state)
{
    share_and_expect_rows(*state, 0, 8192);
}

static void refuse_to_send(struct end *end, const struct message *message)
{
    struct pair *pair = end->pair;
    assert_int_equal(pair_send(end, end->link, message), ERR_INPUT);
    pair_until(pair, &pair->client.closed, 1);
    pair_until(pair, &pair->server.closed, 1);
    assert_int_equal(pair->client.messages + pair->server.messages, 0);
}

/* A window of the block would be large enough. */
static void rows_outside_of_their_window_are_not_sent(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share_rows(pair, ROWS, ROWS, 100);
    const struct message message = rows_at(99, 2);
    refuse_to_send(&pair->client, &message);
}

static void rows_to_a_worker_outside_of_their_window_are_not_sent(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share_rows(pair, ROWS, ROWS, 100);
    const struct message message = rows_at(UINT64_MAX - 1, 4);
    refuse_to_send(&pair->server, &message);
}

static void rows_without_a_window_are_not_sent(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, BLOCK, BLOCK);
    const struct message message = rows_at(0, 1);
    refuse_to_send(&pair->client, &message);
}

static void rows_before_anything_is_shared_are_not_sent(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    const struct message message = rows_at(0, 1);
    refuse_to_send(&pair->server, &message);
}

/* ---- patches ---- */

enum {
    PATCHED = 24 << 20, /* of each way: more than a socket takes at once */
    PATCHES = 50,       /* and more pieces than go with one call */
    PATCH_STEP = PATCHED / PATCHES,
    PATCH = 100003,
};

struct patched {
    unsigned char out[PATCHES][PATCH], in[PATCHES][PATCH];
};

static unsigned char byte_of(size_t i)
{
    return (unsigned char)(i * 7 ^ i >> 9);
}

static void fill(unsigned char *bytes, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++) bytes[i] = byte_of(first + i);
}

static bool is_filled(const unsigned char *bytes, size_t first, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != byte_of(first + i)) return false;
    return true;
}

static size_t patch_at(int i)
{
    return (size_t)i * PATCH_STEP + 1 + (size_t)i % 3;
}

/* What goes out lies in patches where there are some, and in the window between them. */
static void lay_patches(struct pair *pair, struct patched *p)
{
    fill(rows_of(&pair->client), 0, PATCHED);
    for (int i = 0; i < PATCHES; i++) {
        memset(rows_of(&pair->client) + patch_at(i), 0, PATCH);
        fill(p->out[i], patch_at(i), PATCH);
        const struct patch out = {patch_at(i), PATCH, p->out[i]};
        assert_int_equal(link_patch(pair->client.link, &out), OK);
    }
    for (int i = 0; i < PATCHES; i++) {
        const struct patch in = {PATCHED + patch_at(i), PATCH, p->in[i]};
        assert_int_equal(link_patch(pair->client.link, &in), OK);
    }
}

static void check_patches(struct pair *pair, const struct patched *p)
{
    size_t from = PATCHED;
    for (int i = 0; i < PATCHES; i++) {
        const size_t at = PATCHED + patch_at(i);
        assert_true(is_filled(p->in[i], at, PATCH));
        assert_true(is_all(rows_of(&pair->client) + at, PATCH, 0));
        assert_true(is_filled(rows_of(&pair->client) + from, from, at - from));
        from = at + PATCH;
    }
    assert_true(is_filled(rows_of(&pair->client) + from, from, 2 * PATCHED - from));
}

static void patches_stand_in_for_bytes_of_the_window(void **state)
{
    static struct patched p;
    struct pair *pair = *state;
    const struct message up = rows_at(0, PATCHED), down = rows_at(PATCHED, PATCHED);
    pair_connect(pair);
    pair_share_rows(pair, BLOCK, BLOCK, 2 * PATCHED);
    lay_patches(pair, &p);
    fill(rows_of(&pair->server) + PATCHED, PATCHED, PATCHED);
    assert_int_equal(pair_send(&pair->client, pair->client.link, &up), OK);
    assert_int_equal(pair_send(&pair->server, pair->server.link, &down), OK);
    pair_until(pair, &pair->server.messages, 1);
    pair_until(pair, &pair->client.messages, 1);
    assert_true(is_filled(rows_of(&pair->server), 0, PATCHED));
    check_patches(pair, &p);
    link_unpatch(pair->client.link);
    assert_int_equal(pair_send(&pair->client, pair->client.link, &up), OK);
    pair_until(pair, &pair->server.messages, 2);
    assert_true(is_all(rows_of(&pair->server) + patch_at(1), PATCH, 0));
}

static void refuse_patch(struct link *link, uint64_t offset, uint64_t bytes)
{
    static char memory[BLOCK];
    const struct patch patch = {offset, bytes, memory};
    assert_int_equal(link_patch(link, &patch), ERR_INPUT);
}

static void a_patch_must_be_in_the_window_and_behind_the_others(void **state)
{
    struct pair *pair = *state;
    static char memory[BLOCK];
    pair_connect(pair);
    refuse_patch(pair->client.link, 0, 1); /* of what is not there yet */
    pair_share_rows(pair, BLOCK, BLOCK, BLOCK);
    refuse_patch(pair->client.link, BLOCK - 1, 2);
    refuse_patch(pair->client.link, UINT64_MAX, 2);
    refuse_patch(pair->server.link, 0, 1);
    assert_int_equal(link_patch(pair->client.link, &(struct patch){100, 10, memory}), OK);
    refuse_patch(pair->client.link, 109, 1);
    assert_int_equal(link_patch(pair->client.link, &(struct patch){110, 10, memory}), OK);
    assert_int_equal(pair->client.closed + pair->server.closed, 0);
}

static void where_the_peer_sees_the_window_there_are_no_patches(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share_rows(pair, BLOCK, BLOCK, BLOCK);
    refuse_patch(pair->client.link, 0, 1);
}

/* ---- while an owner computes ---- */

enum {
    TRIGGER_BYTES = 200000, /* more than a link keeps room for */
    ANSWER = 1 << 20,
    LONG = 32 << 20, /* more than a socket takes at once */
    MANY = 200,      /* messages, more than one look delivers */
};

/* What one end does amid the callback of a message with a body, and what it has seen. */
struct busy {
    void (*work)(struct end *, struct link *);
    bool is_inside, is_answered;
    int others;   /* messages that are no rows */
    size_t asked; /* bytes of ids */
    int first;    /* messages that it sends before it asks */
};

static void be_busy(struct end *end, struct link *link, const struct message *m)
{
    struct busy *busy = end->own;
    if (m->type == MESSAGE_ROWS) {
        busy->is_answered = true;
        return;
    }
    assert_false(busy->is_inside);
    if (busy->others++) return;
    busy->is_inside = true;
    busy->work(end, link);
    busy->is_inside = false;
    assert_int_equal(m->body_bytes, TRIGGER_BYTES);
    assert_true(is_all(m->body, TRIGGER_BYTES, 'b'));
}

/* The rows that it is asked for, behind their ids, and something that is no part. */
static void answer(struct end *end, struct link *link, const struct message *m)
{
    if (m->type != MESSAGE_ROWS) return;
    const unsigned char *ids = rows_of(end) + m->offset;
    struct message rows = rows_at(m->offset + m->length, ANSWER);
    rows.rows.request_id = m->rows.request_id;
    memset(rows_of(end) + rows.offset, ids[0] + ids[m->length - 1], ANSWER);
    *(err *)end->own = link_send(link, &rows);
    if (!*(err *)end->own)
        *(err *)end->own = link_send(link, &(struct message){.type = MESSAGE_SERVE});
}

/* The server in a thread of its own, as another process; inproc it lives in the client's loop. */
struct server {
    pthread_t thread;
    struct loop *loop;
    atomic_bool is_over;
};

static void *serve(void *context)
{
    struct server *server = context;
    while (!atomic_load(&server->is_over)) loop_poll(server->loop, 10);
    return NULL;
}

static void begin_server(struct pair *pair, struct server *server)
{
    *server = (struct server){.loop = pair->server_loop};
    if (pair->server_loop != pair->client_loop)
        assert_int_equal(pthread_create(&server->thread, NULL, serve, server), 0);
}

static void end_server(struct pair *pair, struct server *server)
{
    atomic_store(&server->is_over, true);
    if (pair->server_loop != pair->client_loop)
        assert_int_equal(pthread_join(server->thread, NULL), 0);
}

static void trigger(struct end *from)
{
    static char body[TRIGGER_BYTES];
    memset(body, 'b', sizeof body);
    const struct message message = {
        .type = MESSAGE_LEDGER, .body_bytes = sizeof body, .body = body};
    assert_int_equal(link_send(from->link, &message), OK);
}

static void await_something_else(struct end *end, struct link *link)
{
    err e = OK;
    while (!e) e = loop_await(end->pair->client_loop, link, TEST_PATIENCE_MS); /* its bytes */
    assert_int_equal(e, ERR_PEER);
    assert_non_null(strstr(error_text(), "another message first"));
}

static void ask_and_wait(struct end *end, struct link *link)
{
    struct busy *busy = end->own;
    struct server server;
    struct message ask = rows_at(0, busy->asked);
    ask.rows = (struct message_rows){ROWS_ASKED, .request_id = 77};
    memset(rows_of(end), 21, busy->asked);
    begin_server(end->pair, &server);
    for (int i = 0; i < busy->first; i++)
        assert_int_equal(link_send(link, &(struct message){.type = MESSAGE_LEADS}), OK);
    assert_int_equal(link_send(link, &ask), OK);
    while (!busy->is_answered)
        assert_int_equal(loop_await(end->pair->client_loop, link, TEST_PATIENCE_MS), OK);
    await_something_else(end, link);
    end_server(end->pair, &server);
    assert_int_equal(end->last.type, MESSAGE_ROWS);
    assert_int_equal(end->last.rows.request_id, 77);
    assert_true(is_all(rows_of(end) + busy->asked, ANSWER, 42));
    assert_true(is_all(rows_of(end), busy->asked, 21));
}

static void ask_amid(struct pair *pair, size_t bytes, int first)
{
    struct busy busy = {.work = ask_and_wait, .asked = bytes, .first = first};
    err answered = ERR_TIMEOUT;
    pair_connect(pair);
    pair_share_rows(pair, BLOCK, BLOCK, bytes + ANSWER);
    pair->client.own = &busy;
    pair->client.on_message = be_busy;
    pair->server.own = &answered;
    pair->server.on_message = answer;
    trigger(&pair->server);
    pair_until(pair, &pair->client.messages, 3);
    assert_int_equal(answered, OK);
    assert_int_equal(busy.others, 2);
    assert_int_equal(pair->client.closed + pair->server.closed, 0);
}

static void rows_are_asked_for_and_come_while_the_owner_waits(void **state)
{
    ask_amid(*state, 64, 0);
}

static void a_long_question_leaves_while_its_owner_waits(void **state)
{
    ask_amid(*state, LONG, 0);
}

static void what_was_said_before_a_question_is_heard_before_it(void **state)
{
    ask_amid(*state, 64, 1);
}

/* More of them than one look delivers */
static void much_that_was_said_before_a_question_is_heard_before_it(void **state)
{
    ask_amid(*state, 64, MANY);
}

static void move_until_rows_come(struct end *end, struct link *link)
{
    const struct busy *busy = end->own;
    const uint64_t limit_ms = clock_ms() + TEST_PATIENCE_MS;
    while (!busy->is_answered) {
        if (clock_ms() > limit_ms) fail_msg("the rows did not come");
        loop_poll(end->pair->client_loop, 0);
        loop_move(end->pair->server_loop);
    }
    assert_int_equal(busy->others, 1);
}

static void rows_come_to_a_ps_that_computes(void **state)
{
    struct pair *pair = *state;
    struct busy busy = {.work = move_until_rows_come};
    const struct message rows = rows_at(0, HALF);
    pair_connect(pair);
    pair_share_rows(pair, BLOCK, BLOCK, ROWS);
    pair->server.own = &busy;
    pair->server.on_message = be_busy;
    memset(rows_of(&pair->client), 5, HALF);
    trigger(&pair->client);
    assert_int_equal(link_send(pair->client.link, &rows), OK);
    assert_int_equal(link_send(pair->client.link, &(struct message){.type = MESSAGE_JOIN}), OK);
    pair_until(pair, &pair->server.messages, 3);
    assert_true(is_all(rows_of(&pair->server), HALF, 5));
}

/* A part means a few bytes of a window: with a body it is a message as others are. */
static void wait_in_vain(struct end *end, struct link *link)
{
    struct pair *pair = end->pair;
    const struct message odd = {.type = MESSAGE_ROWS, .body_bytes = 3, .body = "odd"};
    assert_int_equal(loop_await(pair->client_loop, link, 0), ERR_TIMEOUT);
    assert_int_equal(loop_await(pair->client_loop, link, 20), ERR_TIMEOUT);
    assert_int_equal(link_send(pair->server.link, &odd), OK);
    await_something_else(end, link);
}

static void rows_with_a_body_wait_for_their_turn(void **state)
{
    struct pair *pair = *state;
    struct busy busy = {.work = wait_in_vain};
    pair_connect(pair);
    pair->client.own = &busy;
    pair->client.on_message = be_busy;
    trigger(&pair->server);
    pair_until(pair, &pair->client.messages, 2);
    assert_true(busy.is_answered);
}

static void await_the_end(struct end *end, struct link *link)
{
    link_close(end->pair->server.link);
    loop_poll(end->pair->server_loop, 0);
    assert_int_equal(loop_await(end->pair->client_loop, link, TEST_PATIENCE_MS), ERR_PEER);
    assert_non_null(strstr(error_text(), "closed"));
}

static void an_owner_that_waits_is_told_of_the_end(void **state)
{
    struct pair *pair = *state;
    struct busy busy = {.work = await_the_end};
    pair_connect(pair);
    pair->client.own = &busy;
    pair->client.on_message = be_busy;
    trigger(&pair->server);
    pair_until(pair, &pair->client.closed, 1);
}

/* Last words with a body: they wait, and so does the end. */
static void await_last_words(struct end *end, struct link *link)
{
    trigger(&end->pair->server);
    link_close(end->pair->server.link);
    loop_poll(end->pair->server_loop, 0);
    await_something_else(end, link);
    assert_int_equal(loop_await(end->pair->client_loop, link, TEST_PATIENCE_MS), ERR_PEER);
}

static void what_was_said_before_the_end_is_heard_after_the_wait(void **state)
{
    struct pair *pair = *state;
    struct busy busy = {.work = await_last_words};
    pair_connect(pair);
    pair->client.own = &busy;
    pair->client.on_message = be_busy;
    trigger(&pair->server);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(busy.others, 2);
    assert_int_equal(pair->client.last.body_bytes, TRIGGER_BYTES);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_go_both_ways_beside_the_block),
        cmocka_unit_test(rows_come_zeroed),
        cmocka_unit_test(where_no_rows_are_shared_there_is_no_window_of_them),
        cmocka_unit_test(rows_without_a_stretch_need_no_window),
        cmocka_unit_test(rows_of_another_size_than_expected_end_the_link),
        cmocka_unit_test(rows_that_nobody_expected_end_the_link),
        cmocka_unit_test(rows_that_are_not_shared_although_expected_end_the_link),
        cmocka_unit_test(rows_outside_of_their_window_are_not_sent),
        cmocka_unit_test(rows_to_a_worker_outside_of_their_window_are_not_sent),
        cmocka_unit_test(rows_without_a_window_are_not_sent),
        cmocka_unit_test(rows_before_anything_is_shared_are_not_sent),
        cmocka_unit_test(rows_are_asked_for_and_come_while_the_owner_waits),
        cmocka_unit_test(a_long_question_leaves_while_its_owner_waits),
        cmocka_unit_test(what_was_said_before_a_question_is_heard_before_it),
        cmocka_unit_test(much_that_was_said_before_a_question_is_heard_before_it),
        cmocka_unit_test(rows_come_to_a_ps_that_computes),
        cmocka_unit_test(rows_with_a_body_wait_for_their_turn),
        cmocka_unit_test(an_owner_that_waits_is_told_of_the_end),
        cmocka_unit_test(what_was_said_before_the_end_is_heard_after_the_wait),
    };
    struct CMUnitTest of_sockets[] = {
        cmocka_unit_test(patches_stand_in_for_bytes_of_the_window),
        cmocka_unit_test(a_patch_must_be_in_the_window_and_behind_the_others),
    };
    struct CMUnitTest of_memory[] = {
        cmocka_unit_test(where_the_peer_sees_the_window_there_are_no_patches),
    };
    return run_over_all(tests, sizeof tests / sizeof tests[0]) +
           run_over(&transport_tcp, of_sockets, sizeof of_sockets / sizeof of_sockets[0]) +
           run_over(&transport_shm, of_memory, 1) + run_over(&transport_inproc, of_memory, 1);
}
