/* test_kill.c - peers that are killed at random moments; the process that stays must not mind.
 *
 * Each life of a peer: fork, connect, exchange bodies and stretches as fast as it can, SIGKILL
 * after a random number of messages. The parent answers everything and counts.
 */
#include "tests/net/pair.h"

#include "core/base/clock.h"
#include "core/base/random.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LIVES = 100, WINDOW_BYTES = 64 << 10, MESSAGES_MAX = 400, LIFE_MAX_US = 4000 };

static const struct transport *transport;

/* ---- the peer that will be killed ---- */

static void send_mixed(struct end *end, struct link *link, uint64_t number)
{
    static char body[9000];
    struct message message = {.type = MESSAGE_PUSH, .push.push = number, .body = body};
    if (number % 2)
        message.body_bytes = (uint32_t)(number * 97 % sizeof body);
    else if (end->shared)
        message.length = WINDOW_BYTES;
    if (link_send(link, &message)) _exit(0); /* full: the parent must cope with that as well */
}

static void peer_opened(struct end *end, struct link *link)
{
    expect_windows(link, WINDOW_BYTES, WINDOW_BYTES, 0);
    for (uint64_t i = 0; i < 20; i++) send_mixed(end, link, i);
}

static void peer_message(struct end *end, struct link *link, const struct message *message)
{
    send_mixed(end, link, (uint64_t)end->messages);
}

static void peer_life(const char *address)
{
    struct pair pair = {.transport = transport};
    pair.client = (struct end){.pair = &pair, .on_open = peer_opened, .on_message = peer_message};
    if (loop_open(&pair.client_loop)) _exit(1);
    if (transport->connect(pair.client_loop, address, &end_events, &pair.client, &pair.client.link))
        _exit(1);
    alarm(2 * TEST_PATIENCE_MS / 1000); /* never outlives a parent that was killed itself */
    while (!pair.client.closed) loop_poll(pair.client_loop, 1000);
    _exit(0);
}

/* ---- the parent ---- */

static void share_with_peer(struct end *end, struct link *link)
{
    assert_int_equal(link_share(link, &end->pair->windows), OK);
}

/* A PUSH or a JOIN. */
static void answer(struct end *end, struct link *link, const struct message *message)
{
    const uint64_t push = message->type == MESSAGE_PUSH ? message->push.push : message->join.push;
    struct message reply = {.type = MESSAGE_VALUES, .values.push = push, .body = "answer"};
    if (push % 3 == 0)
        reply.length = WINDOW_BYTES;
    else if (push % 3 == 1)
        reply.body_bytes = 6;
    (void)!link_send(link, &reply); /* a dead peer's queue may be full */
}

static void live_and_die(struct pair *pair, uint64_t life)
{
    const uint64_t key = random_key(life, "life");
    const int messages_max = pair->server.messages + 1 + (int)(random_u64(key, 0) % MESSAGES_MAX);
    const uint64_t until_ns = clock_ns() + random_u64(key, 1) % (LIFE_MAX_US * 1000);
    const pid_t peer = fork();
    assert_true(peer >= 0);
    if (peer == 0) peer_life(pair->address);
    /* Half of the lives end by the clock (also before a connection), half by what they said. */
    const uint64_t give_up_ms = clock_ms() + TEST_PATIENCE_MS;
    while (life % 2 ? clock_ns() < until_ns : pair->server.messages < messages_max) {
        loop_poll(pair->server_loop, 1);
        assert_true(clock_ms() < give_up_ms);
    }
    assert_int_equal(kill(peer, SIGKILL), 0);
    int status;
    assert_int_equal(waitpid(peer, &status, 0), peer);
    /* A connection that was made in time may still stand in the listener's queue. */
    loop_poll(pair->server_loop, 0);
    loop_poll(pair->server_loop, 0);
    pair_until(pair, &pair->server.closed, pair->server.accepted);
    if (pair->server.closed) assert_int_equal(pair->server.why, ERR_PEER);
}

static void a_peer_that_is_killed_at_any_moment_harms_nobody(void **state)
{
    struct pair pair;
    pair_start(&pair, transport);
    pair.server.on_open = share_with_peer;
    pair.server.on_message = answer;
    pair_open_windows(&pair, WINDOW_BYTES, WINDOW_BYTES, 0);
    for (uint64_t life = 0; life < LIVES; life++) live_and_die(&pair, life);
    assert_true(pair.server.accepted >= LIVES / 2);
    assert_true(pair.server.messages > LIVES);

    /* And the listener still works. */
    pair.server.on_open = NULL;
    pair_connect(&pair);
    const struct message message = {.type = MESSAGE_JOIN, .join.push = 1};
    assert_int_equal(link_send(pair.client.link, &message), OK);
    pair_until(&pair, &pair.client.messages, 1);
    pair_stop(&pair);
}

/* The server runs in the child alone; the parent has a copy of its listener, so that a connection
 * counts only once the child has answered. */
static void serve(struct pair *pair)
{
    alarm(2 * TEST_PATIENCE_MS / 1000);
    pair->server.on_message = answer;
    while (true) loop_poll(pair->server_loop, 1000);
}

static void poll_client_until(struct pair *pair, const int *count)
{
    const uint64_t give_up_ms = clock_ms() + TEST_PATIENCE_MS;
    while (*count == 0 && clock_ms() < give_up_ms) loop_poll(pair->client_loop, 10);
    assert_int_equal(*count, 1);
}

static void a_listener_that_is_killed_is_noticed_at_once(void **state)
{
    struct pair pair;
    pair_start(&pair, transport);
    const pid_t peer = fork();
    assert_true(peer >= 0);
    if (peer == 0) serve(&pair);
    struct link *link;
    assert_int_equal(
        transport->connect(pair.client_loop, pair.address, &end_events, &pair.client, &link), OK);
    poll_client_until(&pair, &pair.client.opened);
    const struct message message = {.type = MESSAGE_JOIN, .join.push = 1};
    assert_int_equal(link_send(link, &message), OK);
    poll_client_until(&pair, &pair.client.messages);
    assert_int_equal(kill(peer, SIGKILL), 0);
    assert_int_equal(waitpid(peer, NULL, 0), peer);
    poll_client_until(&pair, &pair.client.closed);
    assert_int_equal(pair.client.why, ERR_PEER);
    pair_stop(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_that_is_killed_at_any_moment_harms_nobody),
        cmocka_unit_test(a_listener_that_is_killed_is_noticed_at_once),
    };
    transport = &transport_tcp;
    int failed = cmocka_run_group_tests_name("killed peers over tcp", tests, NULL, NULL);
    transport = &transport_shm;
    failed += cmocka_run_group_tests_name("killed peers over shm", tests, NULL, NULL);
    return failed;
}
