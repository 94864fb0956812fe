/* test_parts.c - the pieces below the transports: the loop, addresses, windows, queue and ring. */
#include "tests/net/pair.h"

#include "core/base/clock.h"
#include "net/shared_memory.h"
#include "net/loop_inside.h"
#include "net/shm/ring.h"
#include "net/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- addresses ---- */

static void good_addresses_pass(void **state)
{
    static const char *const good[] = {"localhost:2222", "a:0",      "node-1.example.org:65535",
                                       "10.0.0.7:1",     "[::1]:80", "[fe80::1%eth0]:2222",
                                       "under_score:7"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(address_check(good[i]), OK);
}

static void bad_addresses_are_explained(void **state)
{
    static const char *const bad[][2] = {
        {"", "expected host:port"},      {"localhost", "expected host:port"},
        {":2222", "not the name"},       {"a:", "expected a port"},
        {"a:65536", "expected a port"},  {"a:-1", "expected a port"},
        {"a:22x", "expected a port"},    {"a: 22", "expected a port"},
        {"a:000022", "expected a port"}, {"a b:22", "not the name"},
        {"::1:22", "not the name"},      {"[::1]", "expected host:port"},
        {"[::1:22", "expected host"},    {"[]:22", "not the name"},
        {"http://a:22", "not the name"}, {"a,b:22", "not the name"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(address_check(bad[i][0]), ERR_INPUT);
        if (!strstr(error_text(), bad[i][1])) fail_msg("%s: %s", bad[i][0], error_text());
    }
}

static void an_address_that_is_too_long_is_refused(void **state)
{
    char address[ADDRESS_MAX + 20];
    memset(address, 'a', sizeof address);
    snprintf(address + sizeof address - 6, 6, ":2222");
    assert_int_equal(address_check(address), ERR_INPUT);
    assert_true(strlen(error_text()) < 200);
}

enum { WOKEN_MS_MAX = 20000 }; /* on a busy machine; who is not woken sleeps for twice as long */

static const struct link_events no_events = {0};

static void the_owner_of_a_port_is_named(void **state)
{
    struct loop *loop;
    struct listener *listener;
    char address[ADDRESS_MAX], owner[64], expected[32];
    assert_int_equal(loop_open(&loop), OK);
    assert_int_equal(
        transport_tcp.listen(loop, "localhost:0", &no_events, NULL, address, &listener), OK);
    assert_int_equal(strncmp(address, "localhost:", 10), 0);
    assert_string_not_equal(address, "localhost:0");
    address_owner(address, owner, sizeof owner);
    snprintf(expected, sizeof expected, "pid %d (test_parts)", (int)getpid());
    assert_string_equal(owner, expected);

    struct listener *second;
    assert_int_equal(transport_tcp.listen(loop, address, &no_events, NULL, NULL, &second),
                     ERR_PEER);
    assert_non_null(strstr(error_text(), "already in use by pid"));
    loop_close(loop);
    address_owner(address, owner, sizeof owner);
    assert_string_equal(owner, "");
}

static void listening_where_it_is_not_possible_is_explained(void **state)
{
    struct loop *loop;
    struct listener *listener;
    assert_int_equal(loop_open(&loop), OK);
    assert_int_equal(transport_tcp.listen(loop, "192.0.2.77:0", &no_events, NULL, NULL, &listener),
                     ERR_PEER);
    assert_string_equal(error_text(), "cannot listen on 192.0.2.77:0: not an address of this host");
    assert_int_equal(transport_tcp.listen(loop, "nonsense", &no_events, NULL, NULL, &listener),
                     ERR_INPUT);
    /* A label of 64 characters: no resolver asks anybody for it. */
    const char *const nobody = "a123456789012345678901234567890123456789012345678901234567890123:1";
    assert_int_equal(transport_tcp.listen(loop, nobody, &no_events, NULL, NULL, &listener),
                     ERR_PEER);
    assert_non_null(strstr(error_text(), "no such host"));
    loop_close(loop);
}

static void a_listening_socket_can_be_reserved_and_handed_on(void **state)
{
    struct pair pair = {.transport = &transport_tcp};
    pair.server.pair = pair.client.pair = &pair;
    assert_int_equal(loop_open(&pair.server_loop), OK);
    pair.client_loop = pair.server_loop;
    char inherited[32], address[ADDRESS_MAX];
    int fd = -1;
    assert_int_equal(address_reserve("127.0.0.1:0", pair.address, &fd), OK);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(fcntl(fd, F_SETFD, 0), 0);
    snprintf(inherited, sizeof inherited, "fd:%d", fd);
    assert_int_equal(transport_tcp.listen(pair.server_loop, inherited, &end_events, &pair.server,
                                          address, &pair.listener),
                     OK);
    assert_string_equal(address, pair.address);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    pair_connect(&pair);
    loop_close(pair.server_loop); /* and with it the socket */
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void what_is_not_a_listening_socket_cannot_be_handed_on(void **state)
{
    static const char *const bad[] = {"fd:",   "fd:x",          "fd:1x",    "fd:-1",
                                      "fd: 1", "fd:9999999999", "fd:99999", "fd:0"};
    struct loop *loop;
    struct listener *listener;
    assert_int_equal(loop_open(&loop), OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(transport_tcp.listen(loop, bad[i], &no_events, NULL, NULL, &listener),
                         ERR_IO);
        assert_non_null(strstr(error_text(), "not an inherited listening socket"));
    }
    loop_close(loop);
}

static void version_six_addresses_work(void **state)
{
    struct pair pair = {.transport = &transport_tcp};
    struct loop *loop;
    struct end server = {.pair = &pair}, client = {.pair = &pair};
    assert_int_equal(loop_open(&loop), OK);
    pair.server_loop = pair.client_loop = loop;
    struct listener *listener;
    char address[ADDRESS_MAX];
    if (transport_tcp.listen(loop, "[::1]:0", &end_events, &server, address, &listener)) {
        loop_close(loop);
        skip();
    }
    assert_int_equal(transport_tcp.connect(loop, address, &end_events, &client, &client.link), OK);
    pair_until(&pair, &client.opened, 1);
    pair_until(&pair, &server.accepted, 1);
    assert_int_equal(strncmp(link_peer_name(server.link), "[::1]:", 6), 0);
    loop_close(loop);
}

static void a_host_that_does_not_exist_closes_the_link_later(void **state)
{
    struct pair pair;
    pair_start(&pair, &transport_tcp);
    struct link *link;
    assert_int_equal(transport_tcp.connect(pair.client_loop, "no-such-host.invalid:1", &end_events,
                                           &pair.client, &link),
                     OK);
    pair_until(&pair, &pair.client.closed, 1);
    assert_int_equal(pair.client.why, ERR_PEER);
    assert_int_equal(
        transport_tcp.connect(pair.client_loop, "no port", &end_events, &pair.client, &link),
        ERR_INPUT);
    pair_stop(&pair);
}

/* ---- windows ---- */

static void windows_are_zeroed_aligned_and_sealed(void **state)
{
    struct window window = {0};
    window_free(&window);
    assert_int_equal(window_new(10000, &window), OK);
    assert_int_equal((uintptr_t)window.base % 4096, 0);
    assert_int_equal(window.bytes, 10000);
    for (int i = 0; i < 10000; i++) assert_int_equal(((const char *)window.base)[i], 0);
    memset(window.base, 1, window.bytes);
    assert_true(window.fd >= 0);
    assert_int_equal(ftruncate(window.fd, 0), -1);
    assert_int_equal(ftruncate(window.fd, 1 << 20), -1);
    window_free(&window);
    window_free(&window);
}

static void a_window_that_cannot_be_had_is_an_error(void **state)
{
    struct window window;
    assert_int_equal(window_new(SIZE_MAX, &window), ERR_MEMORY);
    assert_int_equal(window_new((size_t)1 << 45, &window), ERR_MEMORY);
}

/* ---- the queue ---- */

static void a_queue_keeps_order_and_limits(void **state)
{
    struct parcel_queue queue = {0};
    for (int i = 0; i < LINK_QUEUE_MAX; i++) {
        const struct parcel parcel = {
            .payload = &i, .payload_bytes = sizeof i, .is_body = true, .sent = (size_t)i};
        assert_int_equal(parcel_queue_add(&queue, &parcel), OK);
        if (i % 3 == 0) { /* goes round the end of the array */
            parcel_queue_pop(&queue);
            assert_int_equal(parcel_queue_add(&queue, &parcel), OK);
        }
    }
    assert_int_equal(parcel_queue_add(&queue, &(struct parcel){0}), ERR_PEER);
    assert_int_equal(queue.count, LINK_QUEUE_MAX);
    assert_int_equal(parcel_queue_at(&queue, LINK_QUEUE_MAX - 1)->sent, LINK_QUEUE_MAX - 1);
    assert_int_equal(*(const int *)parcel_queue_at(&queue, LINK_QUEUE_MAX - 1)->payload,
                     LINK_QUEUE_MAX - 1);
    parcel_queue_free(&queue);
    assert_int_equal(queue.body_bytes, 0);
}

/* ---- the ring ---- */

enum { RING_HEADERS = 200000 };

static void *put_headers(void *context)
{
    struct ring_putter putter = {.ring = context};
    unsigned char header[MESSAGE_HEADER_BYTES];
    for (uint64_t i = 0; i < RING_HEADERS;) {
        wire_pack(&(struct message){.type = MESSAGE_PUSH, .push = {.push = i, .step = ~i}}, header);
        bool is_put;
        if (ring_put(&putter, header, &is_put)) return "an error";
        if (is_put)
            i++;
        else
            sched_yield();
    }
    return NULL;
}

static void headers_cross_a_ring_between_threads(void **state)
{
    struct ring *ring = aligned_alloc(alignof(struct ring), sizeof *ring);
    memset(ring, 0, sizeof *ring);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, put_headers, ring), 0);
    struct ring_taker taker = {.ring = ring};
    unsigned char header[MESSAGE_HEADER_BYTES];
    for (uint64_t i = 0; i < RING_HEADERS;) {
        if (!ring_take(&taker, header)) {
            sched_yield();
            continue;
        }
        struct message message;
        assert_int_equal(wire_unpack(header, &message), OK);
        assert_int_equal(message.push.push, i);
        assert_int_equal(message.push.step, ~i);
        i++;
    }
    void *result;
    pthread_join(thread, &result);
    assert_null(result);
    assert_true(ring_is_empty(&taker));
    free(ring);
}

static void a_full_ring_takes_nothing_until_there_is_room(void **state)
{
    struct ring *ring = aligned_alloc(alignof(struct ring), sizeof *ring);
    memset(ring, 0, sizeof *ring);
    struct ring_putter putter = {.ring = ring};
    struct ring_taker taker = {.ring = ring};
    unsigned char header[MESSAGE_HEADER_BYTES] = {0};
    bool is_put = true;
    for (int i = 0; i < RING_SLOTS; i++) {
        assert_int_equal(ring_put(&putter, header, &is_put), OK);
        assert_true(is_put);
    }
    assert_false(ring_has_room(&putter));
    assert_int_equal(ring_put(&putter, header, &is_put), OK);
    assert_false(is_put);
    assert_true(ring_take(&taker, header));
    assert_true(ring_has_room(&putter));
    free(ring);
}

/* ---- the loop ---- */

static void count_and_clear(void *context)
{
    int *fd_and_count = context;
    eventfd_t value;
    assert_int_equal(eventfd_read(fd_and_count[0], &value), 0);
    fd_and_count[1]++;
}

static void a_watched_descriptor_is_called_while_it_is_readable(void **state)
{
    struct loop *loop;
    assert_int_equal(loop_open(&loop), OK);
    int fd_and_count[2] = {eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), 0};
    assert_int_equal(loop_watch(loop, fd_and_count[0], count_and_clear, fd_and_count), OK);
    assert_int_equal(loop_watch(loop, fd_and_count[0], count_and_clear, fd_and_count), ERR_IO);
    assert_false(loop_poll(loop, 0));
    eventfd_write(fd_and_count[0], 1);
    assert_true(loop_poll(loop, -1));
    assert_int_equal(fd_and_count[1], 1);
    loop_unwatch(loop, fd_and_count[0]);
    eventfd_write(fd_and_count[0], 1);
    assert_false(loop_poll(loop, 1));
    assert_int_equal(fd_and_count[1], 1);
    assert_int_equal(loop_watch(loop, fd_and_count[0], count_and_clear, fd_and_count), OK);
    assert_true(loop_poll(loop, 0));
    close(fd_and_count[0]);
    loop_close(loop);
}

struct swap {
    struct loop *loop;
    int ready[2], quiet, also_quiet; /* eventfds */
    int calls;
};

static void must_not_come(void *context)
{
    fail_msg("called for a descriptor that is not readable");
}

/* Both ready descriptors are in one batch of events: the first call removes the second one's watch
 * and gives its place to a third. */
static void swap_watch(void *context)
{
    struct swap *swap = context;
    swap->calls++;
    loop_unwatch(swap->loop, swap->ready[0]);
    loop_unwatch(swap->loop, swap->ready[1]);
    assert_int_equal(loop_watch(swap->loop, swap->quiet, must_not_come, NULL), OK);
    assert_int_equal(loop_watch(swap->loop, swap->also_quiet, must_not_come, NULL), OK);
}

static void an_event_of_a_watch_that_is_gone_is_not_delivered_to_its_successor(void **state)
{
    struct swap swap = {0};
    assert_int_equal(loop_open(&swap.loop), OK);
    swap.quiet = eventfd(0, EFD_CLOEXEC);
    swap.also_quiet = eventfd(0, EFD_CLOEXEC);
    for (int i = 0; i < 2; i++) {
        swap.ready[i] = eventfd(1, EFD_CLOEXEC);
        assert_int_equal(loop_watch(swap.loop, swap.ready[i], swap_watch, &swap), OK);
    }
    assert_true(loop_poll(swap.loop, 0));
    assert_int_equal(swap.calls, 1);
    loop_close(swap.loop);
    for (int i = 0; i < 2; i++) close(swap.ready[i]);
    close(swap.quiet);
    close(swap.also_quiet);
}

static void waiting_ends_at_its_time(void **state)
{
    struct loop *loop;
    assert_int_equal(loop_open(&loop), OK);
    for (int spin_us = 0; spin_us <= 50; spin_us += 50) {
        loop_set_spin(loop, spin_us);
        const uint64_t start_ns = clock_ns();
        assert_false(loop_poll(loop, 20));
        assert_in_range((clock_ns() - start_ns) / 1000000, 19, WOKEN_MS_MAX);
    }
    loop_close(loop);
}

static void poll_again(void *context)
{
    count_and_clear(((void **)context)[0]);
    assert_false(loop_poll(((void **)context)[1], -1));
}

static void polling_from_a_callback_does_nothing(void **state)
{
    struct loop *loop;
    assert_int_equal(loop_open(&loop), OK);
    int fd_and_count[2] = {eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC), 0};
    void *context[2] = {fd_and_count, loop};
    assert_int_equal(loop_watch(loop, fd_and_count[0], poll_again, context), OK);
    assert_true(loop_poll(loop, 0));
    assert_int_equal(fd_and_count[1], 1);
    close(fd_and_count[0]);
    loop_close(loop);
}

/* ---- two threads, each asleep until the other speaks ---- */

enum { WAKES = 300 };

static void echo(struct end *end, struct link *link, const struct message *message)
{
    const struct message reply = {.type = MESSAGE_VALUES, .values.push = message->join.number};
    assert_int_equal(link_send(link, &reply), OK);
}

static void *serve(void *context)
{
    struct pair *pair = context;
    while (!pair->server.closed) loop_poll(pair->server_loop, 2 * WOKEN_MS_MAX);
    return NULL;
}

/* With no spinning at all, every message must wake a side that blocks. */
static void wake_each_other(const struct transport *transport)
{
    struct pair pair;
    pair_start(&pair, transport);
    pair_connect(&pair);
    loop_set_spin(pair.server_loop, 0);
    loop_set_spin(pair.client_loop, 0);
    pair.server.on_message = echo;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, serve, &pair), 0);
    for (int i = 1; i <= WAKES; i++) {
        const uint64_t start_ms = clock_ms();
        const struct message message = {.type = MESSAGE_JOIN, .join.number = (uint64_t)i};
        assert_int_equal(link_send(pair.client.link, &message), OK);
        while (pair.client.messages < i) loop_poll(pair.client_loop, 2 * WOKEN_MS_MAX);
        assert_true(clock_ms() - start_ms < WOKEN_MS_MAX); /* woken, not timed out */
    }
    link_close(pair.client.link);
    pthread_join(thread, NULL);
    pair_stop(&pair);
}

static void sleeping_sides_wake_each_other_over_tcp(void **state)
{
    wake_each_other(&transport_tcp);
}

static void sleeping_sides_wake_each_other_over_shm(void **state)
{
    wake_each_other(&transport_shm);
}

/* The ring is full, its putter sleeps; the taker's progress must wake it. */
static void a_putter_that_waits_for_room_is_woken(void **state)
{
    struct pair pair;
    pair_start(&pair, &transport_shm);
    pair_connect(&pair);
    loop_set_spin(pair.client_loop, 0);
    for (int i = 0; i < 3 * RING_SLOTS; i++)
        assert_int_equal(link_send(pair.client.link, &(struct message){.type = MESSAGE_JOIN}), OK);
    assert_false(link_is_idle(pair.client.link));
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, serve, &pair), 0);
    const uint64_t start_ms = clock_ms();
    while (!link_is_idle(pair.client.link)) {
        loop_poll(pair.client_loop, 2 * WOKEN_MS_MAX);
        assert_true(clock_ms() - start_ms < WOKEN_MS_MAX);
    }
    link_close(pair.client.link);
    pthread_join(thread, NULL);
    assert_int_equal(pair.server.messages, 3 * RING_SLOTS);
    pair_stop(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_addresses_pass),
        cmocka_unit_test(bad_addresses_are_explained),
        cmocka_unit_test(an_address_that_is_too_long_is_refused),
        cmocka_unit_test(the_owner_of_a_port_is_named),
        cmocka_unit_test(listening_where_it_is_not_possible_is_explained),
        cmocka_unit_test(a_listening_socket_can_be_reserved_and_handed_on),
        cmocka_unit_test(what_is_not_a_listening_socket_cannot_be_handed_on),
        cmocka_unit_test(version_six_addresses_work),
        cmocka_unit_test(a_host_that_does_not_exist_closes_the_link_later),
        cmocka_unit_test(windows_are_zeroed_aligned_and_sealed),
        cmocka_unit_test(a_window_that_cannot_be_had_is_an_error),
        cmocka_unit_test(a_queue_keeps_order_and_limits),
        cmocka_unit_test(headers_cross_a_ring_between_threads),
        cmocka_unit_test(a_full_ring_takes_nothing_until_there_is_room),
        cmocka_unit_test(a_watched_descriptor_is_called_while_it_is_readable),
        cmocka_unit_test(an_event_of_a_watch_that_is_gone_is_not_delivered_to_its_successor),
        cmocka_unit_test(waiting_ends_at_its_time),
        cmocka_unit_test(polling_from_a_callback_does_nothing),
        cmocka_unit_test(sleeping_sides_wake_each_other_over_tcp),
        cmocka_unit_test(sleeping_sides_wake_each_other_over_shm),
        cmocka_unit_test(a_putter_that_waits_for_room_is_woken),
    };
    return cmocka_run_group_tests_name("parts", tests, NULL, NULL);
}
