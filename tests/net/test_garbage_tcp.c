/* test_garbage_tcp.c - peers that do not keep to the protocol, over tcp.
 *
 * The hostile side is written by hand on bare sockets. Whatever it does, the link ends with
 * ERR_PROTOCOL (or ERR_PEER where it only goes away) and the process lives.
 */
#include "tests/net/pair.h"

#include "core/base/clock.h"
#include "core/base/random.h"
#include "net/loop_inside.h"
#include "net/stream.h"
#include "net/wire.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void expect_end(struct pair *pair, err why, const char *text)
{
    pair_until(pair, &pair->server.closed, 1);
    assert_int_equal(pair->server.why, why);
    if (!strstr(pair->server.text, text)) fail_msg("got: %s", pair->server.text);
    assert_int_equal(pair->server.closed, 1);
}

static int connect_accepted(struct pair *pair)
{
    const int accepted_before = pair->server.accepted, fd = connect_bare(pair);
    pair_until(pair, &pair->server.accepted, accepted_before + 1);
    return fd;
}

/* Bytes on the wire, and then what the server makes of them. */
static void send_bytes(struct pair *pair, const void *bytes, size_t size, err why, const char *text)
{
    const int fd = connect_accepted(pair);
    assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
    expect_end(pair, why, text);
    close(fd);
}

static void send_header(struct pair *pair, const struct message *message, const char *text)
{
    unsigned char header[MESSAGE_HEADER_BYTES];
    wire_pack(message, header);
    send_bytes(pair, header, sizeof header, ERR_PROTOCOL, text);
}

static void random_bytes_are_not_a_message(void **state)
{
    unsigned char bytes[4096];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)random_u64(7, i);
    send_bytes(*state, bytes, sizeof bytes, ERR_PROTOCOL, "something else than a message");
}

static void a_web_browser_is_not_a_peer(void **state)
{
    const char request[] = "GET / HTTP/1.1\r\nHost: example.org\r\nUser-Agent: curl/7.88.1\r\n"
                           "Accept: text/html,application/xhtml+xml\r\n\r\n";
    send_bytes(*state, request, sizeof request - 1, ERR_PROTOCOL, "something else than a message");
}

/* Before it has said as much as the header of a message has. */
static void another_program_is_quoted_however_little_it_says(void **state)
{
    static const struct {
        const char *said, *text;
    } programs[] = {
        {"HTTP/1.0 400 Bad Request\r\n\r\n", "message: \"HTTP/1.0 400 Bad Request\""},
        {"SSH-2.0-OpenSSH_9.2p1\r\n", "message: \"SSH-2.0-OpenSSH_9.2p1\""},
        {"-ERR unknown command\n", "message: \"-ERR unknown command\""},
        {"\x15\x03\x01", "speaks TLS"},
        {"\x15\x04\x01", "message: \"\\x15\\x04\\x01\""},
        {"h", "message: \"h\""},
    };
    struct pair *pair = *state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        pair->server.closed = 0;
        const int fd = connect_accepted(pair);
        const size_t bytes = strlen(programs[i].said);
        assert_int_equal(send(fd, programs[i].said, bytes, MSG_NOSIGNAL), bytes);
        shutdown(fd, SHUT_WR);
        expect_end(pair, ERR_PROTOCOL, programs[i].text);
        close(fd);
    }
}

static void another_protocol_version_is_named(void **state)
{
    unsigned char header[MESSAGE_HEADER_BYTES];
    wire_pack(&(struct message){.type = MESSAGE_HELLO}, header);
    char expected[32];
    header[72] = PROTOCOL_VERSION + 1;
    snprintf(expected, sizeof expected, "protocol version %d", PROTOCOL_VERSION + 1);
    send_bytes(*state, header, sizeof header, ERR_PROTOCOL, expected);
}

static void a_damaged_header_is_refused(void **state)
{
    unsigned char header[MESSAGE_HEADER_BYTES];
    wire_pack(&(struct message){.type = MESSAGE_HELLO}, header);
    header[79] = 1;
    send_bytes(*state, header, sizeof header, ERR_PROTOCOL, "damaged");
}

static void a_body_beyond_the_limit_is_refused_before_it_comes(void **state)
{
    send_header(*state,
                &(struct message){.type = MESSAGE_HELLO, .body_bytes = MESSAGE_BODY_MAX + 1u},
                "the limit is 16777216");
}

static void a_stretch_without_a_window_is_refused(void **state)
{
    send_header(*state, &(struct message){.type = MESSAGE_PUSH, .length = 1}, "not shared yet");
}

static void a_message_with_a_body_and_a_stretch_is_refused(void **state)
{
    send_header(*state, &(struct message){.type = MESSAGE_PUSH, .length = 1, .body_bytes = 1},
                "both");
}

static void only_the_listening_side_shares_windows(void **state)
{
    send_header(*state, &(struct message){.type = MESSAGE_WINDOWS, .windows.values = 1 << 20},
                "nobody expected");
}

static void stretches_that_leave_the_window_are_refused(void **state)
{
    struct pair *pair = *state;
    static const uint64_t ranges[][2] = {
        {0, 101}, {100, 1}, {101, 0xffffffff}, {UINT64_MAX, 2}, {1, UINT64_MAX}};
    pair_open_windows(pair, 100, 100, 0);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
        const int fd = connect_accepted(pair);
        assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
        unsigned char bytes[MESSAGE_HEADER_BYTES + 256] = {0};
        wire_pack(
            &(struct message){.type = MESSAGE_PUSH, .offset = ranges[i][0], .length = ranges[i][1]},
            bytes);
        assert_int_equal(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
        pair->server.closed = 0;
        expect_end(pair, ERR_PROTOCOL, "of a window of 100 bytes");
        close(fd);
    }
}

/* Also where the block would have room for it. */
static void send_rows_after_sharing(struct pair *pair, const struct message *rows, const char *text)
{
    unsigned char bytes[MESSAGE_HEADER_BYTES + 256] = {0};
    const int fd = connect_accepted(pair);
    assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
    wire_pack(rows, bytes);
    assert_int_equal(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
    expect_end(pair, ERR_PROTOCOL, text);
    assert_int_equal(pair->server.messages, 0);
    close(fd);
}

static void rows_that_leave_their_window_are_refused(void **state)
{
    struct pair *pair = *state;
    pair_open_windows(pair, 4096, 4096, 100);
    send_rows_after_sharing(pair,
                            &(struct message){.type = MESSAGE_ROWS, .offset = 90, .length = 20},
                            "bytes 90 to +20 of a window of 100 bytes");
}

/* Of each kind that there is, and of one that is none: no byte is waited for that has no place. */
static void no_kind_brings_what_has_no_place(void **state)
{
    struct pair *pair = *state;
    static const uint64_t lengths[] = {101, UINT64_C(1) << 40, UINT64_MAX};
    pair_open_windows(pair, 100, 100, 100);
    for (uint32_t type = 1; type <= MESSAGE_TYPES; type++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            const int fd = connect_accepted(pair);
            assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
            unsigned char bytes[MESSAGE_HEADER_BYTES];
            wire_pack(&(struct message){.type = type, .length = lengths[i]}, bytes);
            assert_int_equal(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
            pair->server.closed = 0;
            expect_end(pair, ERR_PROTOCOL, "of a window of 100 bytes");
            close(fd);
        }
}

static void rows_where_none_are_shared_are_refused(void **state)
{
    struct pair *pair = *state;
    pair_open_windows(pair, 4096, 4096, 0);
    send_rows_after_sharing(pair, &(struct message){.type = MESSAGE_ROWS, .length = 1},
                            "of a window of 0 bytes");
}

static void half_a_header_and_then_silence_ends_at_the_stall_limit(void **state)
{
    struct pair *pair = *state;
    loop_set_stall(pair->server_loop, 100);
    const uint64_t start_ms = clock_ms();
    send_bytes(pair, "dRt1........", 12, ERR_PROTOCOL, "then nothing for 0.1 s");
    assert_in_range(clock_ms() - start_ms, 99, TEST_PATIENCE_MS);
}

static void half_a_body_and_then_silence_ends_at_the_stall_limit(void **state)
{
    unsigned char bytes[MESSAGE_HEADER_BYTES + 10] = {0};
    wire_pack(&(struct message){.type = MESSAGE_HELLO, .body_bytes = 11}, bytes);
    loop_set_stall(((struct pair *)*state)->server_loop, 100);
    send_bytes(*state, bytes, sizeof bytes, ERR_PROTOCOL, "sent half a message");
}

/* Whoever does not belong to the job cannot keep a place with a byte now and then. */
static void a_guest_has_one_deadline_for_a_whole_message(void **state)
{
    struct pair *pair = *state;
    unsigned char header[MESSAGE_HEADER_BYTES];
    wire_pack(&(struct message){.type = MESSAGE_HELLO, .body_bytes = MESSAGE_BODY_MAX}, header);
    listener_set_guests(pair->listener);
    loop_set_stall(pair->server_loop, 100);
    const int fd = connect_accepted(pair);
    assert_int_equal(send(fd, header, sizeof header, MSG_NOSIGNAL), sizeof header);
    const uint64_t until_ms = clock_ms() + TEST_PATIENCE_MS;
    while (!pair->server.closed && clock_ms() < until_ms) {
        assert_true(send(fd, ".", 1, MSG_NOSIGNAL | MSG_DONTWAIT) <= 1);
        loop_poll(pair->server_loop, 0);
    }
    expect_end(pair, ERR_PROTOCOL, "sent a message too slowly");
    close(fd);
}

static void a_silent_connection_is_no_offence(void **state)
{
    struct pair *pair = *state;
    loop_set_stall(pair->server_loop, 1);
    const int fd = connect_accepted(pair);
    const uint64_t until_ms = clock_ms() + 120;
    while (clock_ms() < until_ms) loop_poll(pair->server_loop, 10);
    assert_int_equal(pair->server.closed, 0);
    close(fd);
    expect_end(pair, ERR_PEER, "closed the connection");
}

static void going_away_in_the_middle_of_a_message_says_so(void **state)
{
    struct pair *pair = *state;
    const int fd = connect_accepted(pair);
    assert_int_equal(send(fd, "dRt1....", 8, MSG_NOSIGNAL), 8);
    close(fd);
    expect_end(pair, ERR_PEER, "in the middle of a message");
}

static void messages_that_come_byte_by_byte_are_whole(void **state)
{
    struct pair *pair = *state;
    const int fd = connect_accepted(pair);
    unsigned char bytes[MESSAGE_HEADER_BYTES + 5];
    wire_pack(&(struct message){.type = MESSAGE_HELLO, .body_bytes = 5}, bytes);
    memcpy(bytes + MESSAGE_HEADER_BYTES, "hello", 5);
    for (int n = 0; n < 3; n++)
        for (size_t i = 0; i < sizeof bytes; i++) {
            assert_int_equal(send(fd, bytes + i, 1, MSG_NOSIGNAL), 1);
            pair_poll(pair);
        }
    pair_until(pair, &pair->server.messages, 3);
    assert_int_equal(pair->server.closed, 0);
    close(fd);
}

/* Valid traffic with some bytes changed: anything may come of it but a crash. */
static void damaged_streams_never_crash(void **state)
{
    struct pair *pair = *state;
    for (uint64_t round = 0; round < 300; round++) {
        const uint64_t key = random_key(round, "stream");
        unsigned char bytes[3 * (MESSAGE_HEADER_BYTES + 40)] = {0};
        for (int n = 0; n < 3; n++)
            wire_pack(&(struct message){.type = MESSAGE_HELLO, .body_bytes = 40},
                      bytes + n * (MESSAGE_HEADER_BYTES + 40));
        const int changes = (int)(random_u64(key, 0) % 4);
        for (uint64_t i = 1; i <= (uint64_t)changes; i++)
            bytes[random_u64(key, 2 * i) % sizeof bytes] =
                (unsigned char)random_u64(key, 2 * i + 1);
        const int fd = connect_accepted(pair);
        const size_t size = random_u64(key, 99) % (sizeof bytes + 1);
        assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
        close(fd);
        pair_until(pair, &pair->server.closed, (int)round + 1);
    }
}

/* A socket can refuse to send although the peer says nothing of an end. */
static void a_socket_that_takes_no_more_ends_its_link(void **state)
{
    struct pair *pair = *state;
    pair_connect(pair);
    assert_int_equal(shutdown(((struct stream *)pair->server.link)->fd, SHUT_WR), 0);
    const struct message message = {.type = MESSAGE_WELCOME};
    assert_int_equal(pair_send(&pair->server, pair->server.link, &message), OK);
    loop_poll(pair->server_loop, 0);
    assert_int_equal(pair->server.closed, 1);
    assert_int_equal(pair->server.why, ERR_PEER);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(random_bytes_are_not_a_message),
        cmocka_unit_test(a_web_browser_is_not_a_peer),
        cmocka_unit_test(another_program_is_quoted_however_little_it_says),
        cmocka_unit_test(another_protocol_version_is_named),
        cmocka_unit_test(a_damaged_header_is_refused),
        cmocka_unit_test(a_body_beyond_the_limit_is_refused_before_it_comes),
        cmocka_unit_test(a_stretch_without_a_window_is_refused),
        cmocka_unit_test(a_message_with_a_body_and_a_stretch_is_refused),
        cmocka_unit_test(only_the_listening_side_shares_windows),
        cmocka_unit_test(stretches_that_leave_the_window_are_refused),
        cmocka_unit_test(rows_that_leave_their_window_are_refused),
        cmocka_unit_test(no_kind_brings_what_has_no_place),
        cmocka_unit_test(rows_where_none_are_shared_are_refused),
        cmocka_unit_test(half_a_header_and_then_silence_ends_at_the_stall_limit),
        cmocka_unit_test(half_a_body_and_then_silence_ends_at_the_stall_limit),
        cmocka_unit_test(a_guest_has_one_deadline_for_a_whole_message),
        cmocka_unit_test(a_silent_connection_is_no_offence),
        cmocka_unit_test(going_away_in_the_middle_of_a_message_says_so),
        cmocka_unit_test(messages_that_come_byte_by_byte_are_whole),
        cmocka_unit_test(damaged_streams_never_crash),
        cmocka_unit_test(a_socket_that_takes_no_more_ends_its_link),
    };
    return run_over(&transport_tcp, tests, sizeof tests / sizeof tests[0]);
}
