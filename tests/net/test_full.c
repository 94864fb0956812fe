/* test_full.c - when a process may open no more descriptors. */
#include "tests/net/pair.h"

#include "net/shared_memory.h"
#include "net/shm/pass.h"
#include "net/wire.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

/* No number below the lowest that is free but so many is given out any more. */
static struct rlimit use_up_descriptors_but(int spare)
{
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    const int lowest = fcntl(STDERR_FILENO, F_DUPFD, 0);
    assert_true(lowest > 0);
    close(lowest);
    const struct rlimit few_left = {(rlim_t)(lowest + spare), before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few_left), 0);
    return before;
}

static struct rlimit use_up_descriptors(void)
{
    return use_up_descriptors_but(0);
}

/* Without a spare descriptor the listener would be ready for ever, and the loop never sleep. */
static void a_connection_is_turned_away_when_descriptors_run_out(void **state)
{
    struct pair pair;
    pair_start(&pair, &transport_tcp);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const struct rlimit before = use_up_descriptors();
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strrchr(pair.address, ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    loop_poll(pair.server_loop, 1000);
    assert_false(loop_poll(pair.server_loop, 0));
    char words[256];
    struct message said;
    const ssize_t got = recv(fd, words, sizeof words, MSG_WAITALL);
    assert_int_equal(wire_unpack((unsigned char *)words, &said), OK);
    assert_int_equal(said.type, MESSAGE_REFUSED);
    assert_int_equal(got, MESSAGE_HEADER_BYTES + said.body_bytes);
    assert_memory_equal(words + MESSAGE_HEADER_BYTES,
                        "no descriptor is left for a connection: all ", 44);
    assert_int_equal(pair.server.accepted, 0);
    assert_int_equal(pair.server.turned_away, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    close(fd);
    pair_connect(&pair);
    pair_stop(&pair);
}

static void windows_that_cannot_be_received_are_this_hosts_fault(void **state)
{
    struct pair pair;
    pair_start(&pair, &transport_shm);
    pair_connect(&pair);
    pair_open_windows(&pair, 100, 100, 0);
    expect_windows(pair.client.link, 100, 100, 0);
    const struct rlimit before = use_up_descriptors();
    assert_int_equal(link_share(pair.server.link, &pair.windows), OK);
    pair_until(&pair, &pair.client.closed, 1);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(pair.client.why, ERR_IO);
    assert_non_null(strstr(pair.client.text, "no descriptor is left for shared memory: all "));
    assert_int_equal(pair.client.shared, 0);
    pair_stop(&pair);
}

/* Memory that could not be had for want of descriptors is plain: who is to share it hears why. */
static void windows_that_cannot_be_made_are_told_to_the_peer(void **state)
{
    struct pair pair;
    const char words[] = "no descriptor is left for shared memory: all ";
    pair_start(&pair, &transport_shm);
    pair_connect(&pair);
    expect_windows(pair.client.link, 100, 100, 0);
    const struct rlimit before = use_up_descriptors();
    pair_open_windows(&pair, 100, 100, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(link_share(pair.server.link, &pair.windows), ERR_IO);
    assert_non_null(strstr(error_text(), words));
    pair_until(&pair, &pair.client.closed, 1);
    assert_int_equal(pair.client.last.type, MESSAGE_REFUSED);
    assert_true(pair.client.last.body_bytes > strlen(words));
    pair_stop(&pair);
}

/* Neither for the connection, nor for the memory that comes with its greeting, nor for the two
 * sockets that wake its ends */
static void a_connection_to_memory_is_turned_away_when_descriptors_run_out(void **state)
{
    for (int spare = 0; spare < 4; spare++) {
        struct pair pair;
        pair_start(&pair, &transport_shm);
        assert_int_equal(transport_shm.connect(pair.client_loop, pair.address, &end_events,
                                               &pair.client, &pair.client.link),
                         OK);
        const struct rlimit before = use_up_descriptors_but(spare);
        for (int looks = 0; looks < 10; looks++) loop_poll(pair.server_loop, 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(pair.server.turned_away, 1);
        pair_until(&pair, &pair.client.closed, 1);
        assert_string_equal(pair.client.text, "no descriptor is left there (ulimit -n)");
        pair_connect(&pair);
        pair_stop(&pair);
    }
}

static void windows_that_are_plain_memory_end_their_link_and_no_more(void **state)
{
    struct pair pair;
    pair_start(&pair, &transport_shm);
    pair_connect(&pair);
    assert_int_equal(window_new_plain(100, &pair.windows.values), OK);
    assert_int_equal(window_new_plain(100, &pair.windows.gradients), OK);
    assert_int_equal(link_share(pair.server.link, &pair.windows), ERR_IO);
    pair_until(&pair, &pair.server.closed, 1);
    pair_until(&pair, &pair.client.closed, 1);
    pair_connect(&pair);
    pair_stop(&pair);
}

static void rows_that_are_plain_memory_end_their_link(void **state)
{
    struct pair pair;
    pair_start(&pair, &transport_shm);
    pair_connect(&pair);
    pair_open_windows(&pair, 100, 100, 0);
    assert_int_equal(window_new_plain(100, &pair.windows.rows), OK);
    assert_int_equal(link_share(pair.server.link, &pair.windows), ERR_IO);
    pair_until(&pair, &pair.client.closed, 1);
    pair_stop(&pair);
}

static void more_descriptors_than_a_message_has_are_refused(void **state)
{
    int ends[2];
    struct passed passed;
    char byte = 0, space[CMSG_SPACE(4 * sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    *CMSG_FIRSTHDR(&message) = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(4 * sizeof(int))};
    memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), (int[]){0, 1, 2, 0}, 4 * sizeof(int));
    assert_int_equal(sendmsg(ends[0], &message, 0), 1);
    assert_int_equal(pass_receive(ends[1], 1, &passed), ERR_PROTOCOL);
    assert_string_equal(error_text(), "passed more than 3 descriptors");
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connection_is_turned_away_when_descriptors_run_out),
        cmocka_unit_test(windows_that_cannot_be_received_are_this_hosts_fault),
        cmocka_unit_test(windows_that_cannot_be_made_are_told_to_the_peer),
        cmocka_unit_test(a_connection_to_memory_is_turned_away_when_descriptors_run_out),
        cmocka_unit_test(windows_that_are_plain_memory_end_their_link_and_no_more),
        cmocka_unit_test(rows_that_are_plain_memory_end_their_link),
        cmocka_unit_test(more_descriptors_than_a_message_has_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
