/* test_garbage_shm.c - peers that do not keep to the protocol, over shared memory.
 *
 * The hostile side connects, greets by hand and writes what it likes into the memory that both map.
 * Whatever it does, the link ends with ERR_PROTOCOL (or ERR_PEER where it only goes away) and the
 * process lives.
 */
#include "tests/net/hostile.h"

#include "core/base/clock.h"
#include "core/base/random.h"
#include "net/shared_memory.h"
#include "net/loop_inside.h"
#include "net/shm/pass.h"
#include "net/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static void expect_end(struct pair *pair, err why, const char *text)
{
    pair_until(pair, &pair->server.closed, 1);
    assert_int_equal(pair->server.why, why);
    if (!strstr(pair->server.text, text)) fail_msg("got: %s", pair->server.text);
    assert_int_equal(pair->server.closed, 1);
}

/* ---- a hostile connecting side ---- */

static int connect_unix(const struct pair *pair)
{
    socklen_t bytes;
    const struct sockaddr_un to = abstract(pair->address, &bytes);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, bytes), 0);
    return fd;
}

static void take_answer(struct pair *pair, struct hostile *hostile)
{
    const int before = pair->server.accepted;
    pair_until(pair, &pair->server.accepted, before + 1);
    struct passed passed;
    assert_int_equal(pass_receive(hostile->fd, sizeof(struct shm_greeting), &passed), OK);
    assert_int_equal(passed.fd_count, 1);
    hostile->wake_fd = passed.fds[0];
}

static struct hostile connect_hostile(struct pair *pair)
{
    struct hostile hostile = {.fd = connect_unix(pair)};
    int fd;
    void *control;
    assert_int_equal(shared_memory_new(sizeof *hostile.control, &fd, &control), OK);
    hostile.control = control;
    greet(pair, SHM_SAID_BY_CONNECTING, hostile.fd, &fd, 1);
    take_answer(pair, &hostile);
    close(fd);
    return hostile;
}

static void put_header(struct hostile *hostile, const unsigned char *header)
{
    struct ring_slot *slot = &hostile->control->ring[0].slots[hostile->put % RING_SLOTS];
    memcpy((void *)slot->words, header, MESSAGE_HEADER_BYTES);
    slot->turn = ++hostile->put;
}

static void put_message(struct hostile *hostile, const struct message *message)
{
    unsigned char header[MESSAGE_HEADER_BYTES];
    wire_pack(message, header);
    put_header(hostile, header);
}

static void put_and_expect(struct pair *pair, const struct message *message, const char *text)
{
    struct hostile hostile = connect_hostile(pair);
    put_message(&hostile, message);
    expect_end(pair, ERR_PROTOCOL, text);
    end_hostile(&hostile);
}

static void garbage_in_a_slot_is_refused(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = connect_hostile(pair);
    put_message(&hostile, &(struct message){.type = MESSAGE_HELLO});
    unsigned char header[MESSAGE_HEADER_BYTES];
    memset(header, 0x5a, sizeof header);
    put_header(&hostile, header);
    expect_end(pair, ERR_PROTOCOL, "something else than a message");
    assert_int_equal(pair->server.messages, 1);
    end_hostile(&hostile);
}

static void a_ring_cannot_announce_a_body_beyond_the_limit(void **state)
{
    put_and_expect(*state,
                   &(struct message){.type = MESSAGE_HELLO, .body_bytes = MESSAGE_BODY_MAX + 1u},
                   "the limit is 16777216");
}

static void a_ring_cannot_carry_windows_to_the_listening_side(void **state)
{
    put_and_expect(*state, &(struct message){.type = MESSAGE_WINDOWS, .windows.values = 4096},
                   "nobody expected");
}

static void a_ring_cannot_point_outside_of_the_window(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = connect_hostile(pair);
    pair_open_windows(pair, 100, 100, 0);
    assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
    put_message(&hostile,
                &(struct message){.type = MESSAGE_PUSH, .offset = UINT64_MAX - 10, .length = 20});
    expect_end(pair, ERR_PROTOCOL, "of a window of 100 bytes");
    end_hostile(&hostile);
}

static void put_rows_after_sharing(struct pair *pair, const struct message *rows, const char *text)
{
    struct hostile hostile = connect_hostile(pair);
    assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
    put_message(&hostile, rows);
    expect_end(pair, ERR_PROTOCOL, text);
    assert_int_equal(pair->server.messages, 0);
    end_hostile(&hostile);
}

static void a_ring_cannot_point_outside_of_the_rows(void **state)
{
    pair_open_windows(*state, 4096, 4096, 100);
    put_rows_after_sharing(*state,
                           &(struct message){.type = MESSAGE_ROWS, .offset = 90, .length = 20},
                           "of a window of 100 bytes");
}

static void a_ring_cannot_point_to_rows_that_are_not_shared(void **state)
{
    pair_open_windows(*state, 4096, 4096, 0);
    put_rows_after_sharing(*state, &(struct message){.type = MESSAGE_ROWS, .length = 1},
                           "of a window of 0 bytes");
}

static void an_impossible_index_in_a_ring_is_refused(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = connect_hostile(pair);
    hostile.control->ring[1].consumed = 1ull << 60;
    const struct message message = {.type = MESSAGE_WELCOME};
    err e = OK;
    for (int i = 0; i <= RING_SLOTS && !e; i++)
        e = pair_send(&pair->server, pair->server.link, &message);
    assert_int_equal(e, ERR_PROTOCOL);
    expect_end(pair, ERR_PROTOCOL, "impossible index");
    end_hostile(&hostile);
}

static void bytes_on_the_socket_without_a_header_are_refused(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = connect_hostile(pair);
    assert_int_equal(send(hostile.fd, "hello", 5, MSG_NOSIGNAL), 5);
    expect_end(pair, ERR_PROTOCOL, "no message announced");
    end_hostile(&hostile);
}

static void a_body_that_does_not_come_ends_at_the_stall_limit(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = connect_hostile(pair);
    loop_set_stall(pair->server_loop, 100);
    put_message(&hostile, &(struct message){.type = MESSAGE_HELLO, .body_bytes = 10});
    assert_int_equal(send(hostile.fd, "hello", 5, MSG_NOSIGNAL), 5);
    expect_end(pair, ERR_PROTOCOL, "sent half a message");
    end_hostile(&hostile);
}

static void what_is_complete_in_the_ring_is_delivered_after_the_peer_died(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = connect_hostile(pair);
    for (int i = 0; i < 100; i++) put_message(&hostile, &(struct message){.type = MESSAGE_HELLO});
    put_message(&hostile, &(struct message){.type = MESSAGE_HELLO, .body_bytes = 5});
    put_message(&hostile, &(struct message){.type = MESSAGE_HELLO, .body_bytes = 5});
    assert_int_equal(send(hostile.fd, "hellohel", 8, MSG_NOSIGNAL), 8);
    end_hostile(&hostile);
    expect_end(pair, ERR_PEER, "in the middle of a message");
    assert_int_equal(pair->server.messages, 101);
}

/* Writes everywhere in the control memory while the server works with it. */
static void a_scribbling_peer_never_crashes_the_server(void **state)
{
    struct pair *pair = *state;
    for (uint64_t round = 0; round < 100; round++) {
        struct hostile hostile = connect_hostile(pair);
        const uint64_t key = random_key(round, "ring");
        _Atomic uint64_t *words = (void *)hostile.control;
        for (uint64_t i = 0; i < 2000 && pair->server.link; i++) {
            const uint64_t draw = random_u64(key, i);
            words[draw % (sizeof *hostile.control / 8)] =
                draw >> 60 ? draw >> 57 : random_u64(key, draw);
            put_message(&hostile, &(struct message){.type = MESSAGE_HELLO});
            const struct message message = {.type = MESSAGE_WELCOME};
            if (i % 3 == 0) (void)!pair_send(&pair->server, pair->server.link, &message);
            loop_poll(pair->server_loop, 0);
        }
        end_hostile(&hostile);
        pair_until(pair, &pair->server.closed, (int)round + 1);
    }
}

/* A side of its own, which writes while the other one reads. */
struct scribbler {
    _Atomic uint64_t *words; /* of the control memory, as it maps it */
    atomic_bool is_over;
    atomic_uint_least64_t written;
    uint64_t key;
};

/* What is small and what is near to what stood there leads further than what is random. */
static void *scribble(void *context)
{
    struct scribbler *s = context;
    for (uint64_t i = 0; !atomic_load(&s->is_over); i++) {
        const uint64_t draw = random_u64(s->key, i);
        _Atomic uint64_t *word = &s->words[draw % (sizeof(struct shm_control) / 8)];
        const uint64_t was = atomic_load(word), small = draw >> 58;
        atomic_store(word, draw & 1   ? was + small - 32
                           : draw & 2 ? small
                                      : random_u64(s->key, draw));
        if (draw & 4) atomic_store(word, was); /* back, before it is looked at again */
        atomic_fetch_add(&s->written, 1);
    }
    return NULL;
}

/* While a thread writes to all that both map. */
static void serve_scribbler(struct pair *pair, struct hostile *hostile, struct scribbler *s)
{
    const struct message hello = {.type = MESSAGE_HELLO},
                         part = {.type = MESSAGE_PUSH, .length = 100};
    const struct message answer = {.type = MESSAGE_WELCOME};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, scribble, s), 0);
    for (int i = 0; i < 3000 && pair->server.link; i++) {
        put_message(hostile, i % 4 ? &hello : &part);
        if (i % 3 == 0) (void)!pair_send(&pair->server, pair->server.link, &answer);
        if (i % 5 == 0) (void)!send(hostile->wake_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
        loop_poll(pair->server_loop, 0);
    }
    while (!atomic_load(&s->written))
        loop_poll(pair->server_loop, 0); /* ends: the thread has begun */
    atomic_store(&s->is_over, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

static void a_peer_that_writes_while_it_is_read_never_crashes_the_server(void **state)
{
#ifdef __SANITIZE_THREAD__
    skip(); /* a race is what it makes: the other side may be any program */
#endif
    struct pair *pair = *state;
    pair_open_windows(pair, 100, 100, 0);
    for (uint64_t round = 0; round < 30; round++) {
        struct hostile hostile = connect_hostile(pair);
        struct scribbler s = {.words = (void *)hostile.control, .key = random_key(round, "writes")};
        assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
        serve_scribbler(pair, &hostile, &s);
        end_hostile(&hostile);
        pair_until(pair, &pair->server.closed, (int)round + 1);
    }
}

/* ---- who wakes whom ---- */

/* Its own end waits as it likes, nobody reads there, and it always says that it sleeps. */
static void a_peer_that_lets_its_wake_up_wait_stops_nobody(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = connect_hostile(pair);
    assert_int_equal(fcntl(hostile.wake_fd, F_SETFL, 0), 0);
    const struct message message = {.type = MESSAGE_WELCOME};
    for (uint64_t i = 0; i < 10000; i++) {
        hostile.control->ring[1].taker_sleeps = 1;
        hostile.control->ring[1].consumed = i;
        assert_int_equal(pair_send(&pair->server, pair->server.link, &message), OK);
    }
    char wakes[100];
    assert_int_equal(recv(hostile.wake_fd, wakes, sizeof wakes, 0), sizeof wakes);
    put_message(&hostile, &(struct message){.type = MESSAGE_HELLO});
    pair_until(pair, &pair->server.messages, 1);
    end_hostile(&hostile);
    expect_end(pair, ERR_PEER, "closed the connection");
}

/* Wake-ups without end, and for no reason, are no more than looks at its ring. */
static void a_peer_that_wakes_for_nothing_is_heard_as_any_other(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = connect_hostile(pair);
    const char wakes[4096] = {0};
    for (int i = 0; i < 100; i++) {
        while (send(hostile.wake_fd, wakes, sizeof wakes, MSG_DONTWAIT) > 0) continue;
        put_message(&hostile, &(struct message){.type = MESSAGE_HELLO});
        pair_until(pair, &pair->server.messages, i + 1);
    }
    end_hostile(&hostile);
    expect_end(pair, ERR_PEER, "closed the connection");
}

static void a_peer_that_cannot_be_woken_has_closed_the_connection(void **state)
{
    struct pair *pair = *state;
    for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
        struct hostile hostile = connect_hostile(pair), other = connect_hostile(pair);
        const int closed = pair->server.closed, messages = pair->server.messages;
        put_message(&hostile, &(struct message){.type = MESSAGE_HELLO});
        assert_int_equal(shutdown(hostile.wake_fd, how), 0);
        if (how != SHUT_RD) pair_until(pair, &pair->server.closed, closed + 1);
        put_message(&other, &(struct message){.type = MESSAGE_HELLO});
        assert_int_equal(send(other.wake_fd, "", 1, 0), 1);
        pair_until(pair, &pair->server.messages, messages + 2);
        end_hostile(&hostile);
        end_hostile(&other);
        pair_until(pair, &pair->server.closed, closed + 2);
    }
}

/* ---- greetings that are not right ---- */

/* The server hears nothing of such a connection and drops it. */
static void expect_dropped(struct pair *pair, int fd)
{
    char byte;
    const uint64_t give_up_ms = clock_ms() + TEST_PATIENCE_MS;
    while (recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK) < 0 && errno == EAGAIN) {
        pair_poll(pair);
        assert_true(clock_ms() < give_up_ms);
    }
    assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT) > 0, false);
    close(fd);
    assert_int_equal(pair->server.accepted + pair->server.closed, 0);
}

static void an_unknown_greeting_is_dropped(void **state)
{
    const int fd = connect_unix(*state);
    assert_int_equal(send(fd, "good morning, 1234567890", 24, MSG_NOSIGNAL), 24);
    expect_dropped(*state, fd);
}

/* Its owner, who may be gone as well, never hears of it. */
static void who_has_not_greeted_goes_with_the_listener(void **state)
{
    struct pair *pair = *state;
    struct passed passed = {.size = sizeof(struct shm_greeting), .fd_count = 2};
    const int fd = connect_unix(pair);
    loop_poll(pair->server_loop, 0);
    listener_close(pair->listener);
    void *control;
    bool is_sent;
    assert_int_equal(shared_memory_new(sizeof(struct shm_control), &passed.fds[0], &control), OK);
    passed.fds[1] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct shm_greeting said;
    unsigned char secret[SHM_SECRET_BYTES];
    secret_of(pair, SHM_SAID_BY_CONNECTING, secret);
    shm_greeting(secret, &said);
    memcpy(passed.bytes, &said, sizeof said);
    (void)pass_send(fd, &passed, &is_sent); /* or the other side has hung up already */
    pass_close(&passed);
    shared_memory_unmap(control, sizeof(struct shm_control));
    expect_dropped(pair, fd);
}

static void a_greeting_without_memory_is_dropped(void **state)
{
    const int fd = connect_unix(*state);
    unsigned char secret[SHM_SECRET_BYTES];
    struct shm_greeting greeting;
    secret_of(*state, SHM_SAID_BY_CONNECTING, secret);
    shm_greeting(secret, &greeting);
    assert_int_equal(send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL), sizeof greeting);
    expect_dropped(*state, fd);
}

static void greet_with(struct pair *pair, int control_fd)
{
    const int fd = connect_unix(pair);
    greet(pair, SHM_SAID_BY_CONNECTING, fd, &control_fd, 1);
    close(control_fd);
    expect_dropped(pair, fd);
}

/* Its name is seen by all who look for names of sockets, and is not what proves that one was told
 * it. */
static void who_knows_the_name_alone_is_dropped(void **state)
{
    struct pair *pair = *state;
    struct pair guess = *pair;
    *strchr(guess.address, '/') = '\0';
    for (int side = 0; side < SHM_SIDES; side++) {
        int control_fd;
        void *control;
        const int fd = connect_unix(pair);
        assert_int_equal(shared_memory_new(sizeof(struct shm_control), &control_fd, &control), OK);
        shared_memory_unmap(control, sizeof(struct shm_control));
        greet(side ? pair : &guess, side, fd, &control_fd, 1); /* nothing, and what is answered */
        close(control_fd);
        expect_dropped(pair, fd);
    }
    pair_connect(pair);
    assert_int_equal(pair->server.accepted, 1);
}

static void memory_that_could_shrink_is_not_mapped(void **state)
{
    const int control_fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(control_fd, (off_t)shared_memory_bytes(sizeof(struct shm_control))),
                     0);
    greet_with(*state, control_fd);
}

static void memory_of_another_size_is_not_mapped(void **state)
{
    int control_fd;
    void *base;
    assert_int_equal(shared_memory_new(4096, &control_fd, &base), OK);
    shared_memory_unmap(base, 4096);
    greet_with(*state, control_fd);
}

static void what_is_no_memory_is_not_mapped(void **state)
{
    int ends[2];
    greet_with(*state, open("/dev/null", O_RDWR | O_CLOEXEC));
    greet_with(*state, eventfd(0, EFD_CLOEXEC));
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    greet_with(*state, ends[1]);
    close(ends[0]);
}

static void a_peer_that_dies_before_its_greeting_harms_nobody(void **state)
{
    struct pair *pair = *state;
    for (int i = 0; i < 10; i++) {
        const int fd = connect_unix(pair);
        if (i % 2) pair_poll(pair);
        close(fd);
        pair_poll(pair);
    }
    pair_connect(pair);
    assert_int_equal(pair->server.accepted, 1);
}

/* ---- what honest windows allow ---- */

static void values_can_be_read_but_not_written_by_the_peer(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share(pair, 8192, 8192);
    ((char *)pair->windows.values.base)[8191] = 7;
    assert_int_equal(((const char *)pair->client.windows.values.base)[8191], 7);
    /* The kernel reads into it for us: EFAULT is a fault that does not kill. */
    const int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(zero, pair->client.windows.values.base, 16), -1);
    assert_int_equal(read(zero, pair->client.windows.gradients.base, 16), 16);
    close(zero);
    assert_true(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, pair->windows.values.fd, 0) ==
                MAP_FAILED);
    assert_int_equal(ftruncate(pair->windows.values.fd, 0), -1);
}

static void rows_are_the_same_memory_and_both_write_it(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    pair_share_rows(pair, 100, 100, 8192);
    unsigned char *ours = pair->windows.rows.base, *theirs = pair->client.windows.rows.base;
    theirs[0] = 7;
    ours[8191] = 8;
    assert_int_equal(ours[0], 7);
    assert_int_equal(theirs[8191], 8);
    assert_int_equal(ftruncate(pair->windows.rows.fd, 0), -1);
}

/* What came between the last look and the decision to sleep must not be slept over. */
static void a_side_that_is_about_to_sleep_looks_once_more(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    struct link *link = pair->server.link;
    assert_false(link->ops->arm(link));
    link->ops->disarm(link);
    const struct message message = {.type = MESSAGE_JOIN};
    assert_int_equal(pair_send(&pair->client, pair->client.link, &message), OK);
    assert_true(link->ops->arm(link));
    link->ops->disarm(link);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(garbage_in_a_slot_is_refused),
        cmocka_unit_test(a_ring_cannot_announce_a_body_beyond_the_limit),
        cmocka_unit_test(a_ring_cannot_carry_windows_to_the_listening_side),
        cmocka_unit_test(a_ring_cannot_point_outside_of_the_window),
        cmocka_unit_test(a_ring_cannot_point_outside_of_the_rows),
        cmocka_unit_test(a_ring_cannot_point_to_rows_that_are_not_shared),
        cmocka_unit_test(an_impossible_index_in_a_ring_is_refused),
        cmocka_unit_test(bytes_on_the_socket_without_a_header_are_refused),
        cmocka_unit_test(a_body_that_does_not_come_ends_at_the_stall_limit),
        cmocka_unit_test(what_is_complete_in_the_ring_is_delivered_after_the_peer_died),
        cmocka_unit_test(a_scribbling_peer_never_crashes_the_server),
        cmocka_unit_test(a_peer_that_writes_while_it_is_read_never_crashes_the_server),
        cmocka_unit_test(a_peer_that_lets_its_wake_up_wait_stops_nobody),
        cmocka_unit_test(a_peer_that_wakes_for_nothing_is_heard_as_any_other),
        cmocka_unit_test(a_peer_that_cannot_be_woken_has_closed_the_connection),
        cmocka_unit_test(an_unknown_greeting_is_dropped),
        cmocka_unit_test(who_has_not_greeted_goes_with_the_listener),
        cmocka_unit_test(a_greeting_without_memory_is_dropped),
        cmocka_unit_test(who_knows_the_name_alone_is_dropped),
        cmocka_unit_test(memory_that_could_shrink_is_not_mapped),
        cmocka_unit_test(memory_of_another_size_is_not_mapped),
        cmocka_unit_test(what_is_no_memory_is_not_mapped),
        cmocka_unit_test(a_peer_that_dies_before_its_greeting_harms_nobody),
        cmocka_unit_test(values_can_be_read_but_not_written_by_the_peer),
        cmocka_unit_test(rows_are_the_same_memory_and_both_write_it),
        cmocka_unit_test(a_side_that_is_about_to_sleep_looks_once_more),
    };
    return run_over(&transport_shm, tests, sizeof tests / sizeof tests[0]);
}
