/* test_garbage_listen.c - listeners that do not keep to the protocol, over shared memory.
 *
 * The hostile side takes the listener's place, answers by hand and passes what it likes. Whatever
 * it does, the client's link ends and nothing of it is mapped.
 */
#include "tests/net/hostile.h"

#include "core/base/clock.h"
#include "net/shared_memory.h"
#include "net/shm/pass.h"
#include "net/wire.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

/* Listens in place of the server and greets the client that comes. */
static struct hostile serve_hostile(struct pair *pair)
{
    socklen_t bytes;
    listener_close(pair->listener);
    const struct sockaddr_un at = abstract(pair->address, &bytes);
    const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listening, (const struct sockaddr *)&at, bytes), 0);
    assert_int_equal(listen(listening, 5), 0);
    struct link *link;
    assert_int_equal(
        transport_shm.connect(pair->client_loop, pair->address, &end_events, &pair->client, &link),
        OK);
    pair->client.link = link;
    struct hostile hostile = {.fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC)};
    close(listening);
    struct passed passed;
    assert_int_equal(pass_receive(hostile.fd, sizeof(struct shm_greeting), &passed), OK);
    assert_int_equal(passed.fd_count, 1);
    void *control;
    assert_int_equal(shared_memory_map(passed.fds[0], sizeof *hostile.control, true, &control), OK);
    hostile.control = control;
    close(passed.fds[0]);
    hostile.wake_fd = -1;
    return hostile;
}

static void pass_windows(struct hostile *hostile, uint64_t rows_bytes, const int *fds, int fd_count)
{
    unsigned char header[MESSAGE_HEADER_BYTES];
    wire_pack(&(struct message){.type = MESSAGE_WINDOWS, .windows = {100, 100, rows_bytes}},
              header);
    struct ring_slot *slot = &hostile->control->ring[1].slots[0];
    memcpy((void *)slot->words, header, sizeof header);
    slot->turn = 1;
    struct passed passed = {.size = 1, .fd_count = fd_count};
    memcpy(passed.fds, fds, (size_t)fd_count * sizeof *fds);
    bool is_sent;
    assert_int_equal(pass_send(hostile->fd, &passed, &is_sent), OK);
}

/* Of a hostile listener that says what that side is to say */
static struct hostile answer_hostile(struct pair *pair, int side)
{
    struct hostile hostile = serve_hostile(pair);
    int wake[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, wake), 0);
    greet(pair, side, hostile.fd, &wake[1], 1);
    close(wake[1]);
    hostile.wake_fd = wake[0];
    return hostile;
}

/* A client that expects windows of 100 bytes, and rows of rows_bytes, is passed these. */
static void refuse_windows(struct pair *pair, size_t rows_bytes, const int *fds, int fd_count,
                           const char *text)
{
    struct hostile hostile = answer_hostile(pair, SHM_SAID_BY_LISTENING);
    pair_until(pair, &pair->client.opened, 1);
    expect_windows(pair->client.link, 100, 100, rows_bytes);
    pass_windows(&hostile, rows_bytes, fds, fd_count);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PROTOCOL);
    if (!strstr(pair->client.text, text)) fail_msg("got: %s", pair->client.text);
    assert_int_equal(pair->client.shared, 0);
    end_hostile(&hostile);
}

static int memory_that_could_shrink(void)
{
    const int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    assert_int_equal(ftruncate(fd, 4096), 0);
    return fd;
}

static void windows_that_could_shrink_are_not_mapped(void **state)
{
    const int fd = memory_that_could_shrink();
    refuse_windows(*state, 0, (int[]){fd, fd}, 2, "could shrink");
    close(fd);
}

static void rows_that_could_shrink_are_not_mapped(void **state)
{
    struct pair *pair = *state;
    const int fd = memory_that_could_shrink();
    pair_open_windows(pair, 100, 100, 0);
    const int fds[] = {pair->windows.values.fd, pair->windows.gradients.fd, fd};
    refuse_windows(pair, 100, fds, 3, "could shrink");
    close(fd);
}

static void rows_of_another_size_than_said_are_not_mapped(void **state)
{
    struct pair *pair = *state;
    pair_open_windows(pair, 100, 100, 100);
    const struct link_windows *w = &pair->windows;
    refuse_windows(pair, 5000, (int[]){w->values.fd, w->gradients.fd, w->rows.fd}, 3, "wrong size");
}

static void rows_without_their_memory_are_not_mapped(void **state)
{
    struct pair *pair = *state;
    pair_open_windows(pair, 100, 100, 0);
    const int fds[] = {pair->windows.values.fd, pair->windows.gradients.fd};
    refuse_windows(pair, 100, fds, 2, "without their memory");
}

static void memory_of_rows_that_are_not_shared_is_refused(void **state)
{
    struct pair *pair = *state;
    pair_open_windows(pair, 100, 100, 100);
    const struct link_windows *w = &pair->windows;
    refuse_windows(pair, 0, (int[]){w->values.fd, w->gradients.fd, w->rows.fd}, 3,
                   "without their memory");
}

static void a_listener_that_answers_nonsense_is_left(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = serve_hostile(pair);
    assert_int_equal(send(hostile.fd, "0123456789abcdef", 16, MSG_NOSIGNAL), 16);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PROTOCOL);
    assert_int_equal(pair->client.opened, 0);
    end_hostile(&hostile);
}

/* Takes fd: it is none that this side would be woken by, or write to. */
static void refuse_to_wake_by(struct pair *pair, int fd)
{
    struct hostile hostile = serve_hostile(pair);
    greet(pair, SHM_SAID_BY_LISTENING, hostile.fd, &fd, 1);
    close(fd);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PROTOCOL);
    assert_int_equal(pair->client.opened, 0);
    end_hostile(&hostile);
}

static void an_eventfd_is_not_written_to(void **state)
{
    refuse_to_wake_by(*state, eventfd(0, EFD_CLOEXEC));
}

static void a_pipe_is_not_written_to(void **state)
{
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    refuse_to_wake_by(*state, ends[1]);
}

static void a_file_is_not_written_to(void **state)
{
    refuse_to_wake_by(*state, open("/dev/null", O_RDWR | O_CLOEXEC));
}

static void a_socket_of_a_network_is_not_written_to(void **state)
{
    refuse_to_wake_by(*state, socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
}

/* The name of a task that has died is free: whoever takes it hears what a worker says first, and
 * not what it is to be answered. */
static void a_listener_that_says_what_it_has_heard_is_left(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = answer_hostile(pair, SHM_SAID_BY_CONNECTING);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PEER);
    assert_int_equal(pair->client.opened, 0);
    end_hostile(&hostile);
}

static void a_listener_that_dies_instead_of_answering_is_left(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = serve_hostile(pair);
    end_hostile(&hostile);
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PEER);
    assert_int_equal(pair->client.opened, 0);
}

static void a_listener_that_never_answers_is_given_up(void **state)
{
    struct pair *pair = *state;
    struct hostile hostile = serve_hostile(pair);
    pair->client.link->deadline_ms = clock_ms() + 60; /* instead of LINK_CONNECT_MAX_MS */
    pair_until(pair, &pair->client.closed, 1);
    assert_int_equal(pair->client.why, ERR_PEER);
    assert_non_null(strstr(pair->client.text, "no answer"));
    end_hostile(&hostile);
}

int main(void)
{
    struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_that_could_shrink_are_not_mapped),
        cmocka_unit_test(rows_that_could_shrink_are_not_mapped),
        cmocka_unit_test(rows_of_another_size_than_said_are_not_mapped),
        cmocka_unit_test(rows_without_their_memory_are_not_mapped),
        cmocka_unit_test(memory_of_rows_that_are_not_shared_is_refused),
        cmocka_unit_test(a_listener_that_answers_nonsense_is_left),
        cmocka_unit_test(an_eventfd_is_not_written_to),
        cmocka_unit_test(a_pipe_is_not_written_to),
        cmocka_unit_test(a_file_is_not_written_to),
        cmocka_unit_test(a_socket_of_a_network_is_not_written_to),
        cmocka_unit_test(a_listener_that_says_what_it_has_heard_is_left),
        cmocka_unit_test(a_listener_that_dies_instead_of_answering_is_left),
        cmocka_unit_test(a_listener_that_never_answers_is_given_up),
    };
    return run_over(&transport_shm, tests, sizeof tests / sizeof tests[0]);
}
