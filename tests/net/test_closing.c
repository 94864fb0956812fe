/* test_closing.c - another user of the host, who knows a name in no folder as all do, passes
 * connections whose last close waits for ten minutes: no loop may.
 */
#include "tests/net/hostile.h"

#include "core/base/clock.h"
#include "net/closing.h"
#include "net/link.h"
#include "net/shm/pass.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY_USER = 65534, LINGER_S = 600, MANY = CLOSING_MAX + 4 };

static struct {
    pid_t process;
    int ready, more; /* pipes: that it has come, that it is to come more often */
} other;

/* With more unread than its peer takes */
static int connect_lingering(int listening, const struct sockaddr_in *at)
{
    const char bytes[65536] = {0};
    const struct linger linger = {.l_onoff = 1, .l_linger = LINGER_S};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (const struct sockaddr *)at, sizeof *at) || accept(listening, NULL, NULL) < 0)
        _exit(1);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
    if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger)) _exit(1);
    return fd;
}

static void visit(const struct pair *pair, int listening, const struct sockaddr_in *at)
{
    socklen_t bytes;
    bool is_sent = false;
    const struct sockaddr_un to = abstract(pair->address, &bytes);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct passed passed = {.size = 1, .fds = {connect_lingering(listening, at)}, .fd_count = 1};
    if (connect(fd, (const struct sockaddr *)&to, bytes) || pass_send(fd, &passed, &is_sent))
        _exit(1);
    pass_close(&passed);
}

/* Comes once more for each byte. */
static _Noreturn void be_another_user(const struct pair *pair, int ready, int more)
{
    char byte = 0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    const int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (setuid(NOBODY_USER) || bind(listening, (const struct sockaddr *)&at, sizeof at) ||
        listen(listening, MANY) || getsockname(listening, (struct sockaddr *)&at, &bytes))
        _exit(1);
    while (read(more, &byte, 1) == 1) {
        visit(pair, listening, &at);
        if (write(ready, &byte, 1) != 1) _exit(1);
    }
    _exit(0);
}

static void start_other(const struct pair *pair)
{
    int ready[2], more[2];
    assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
    assert_int_equal(pipe2(more, O_CLOEXEC), 0);
    other.process = fork();
    assert_true(other.process >= 0);
    if (other.process == 0) {
        close(more[1]);
        be_another_user(pair, ready[1], more[0]);
    }
    close(ready[1]);
    close(more[0]);
    other.ready = ready[0];
    other.more = more[1];
}

static void let_other_come(int times)
{
    char byte = 0;
    for (int i = 0; i < times; i++) {
        assert_int_equal(write(other.more, &byte, 1), 1);
        assert_int_equal(read(other.ready, &byte, 1), 1);
    }
}

/* What waits for the other user ends with him; kept: what nobody waits for stays open. */
static void end_all(const struct pair *pair, int kept)
{
    const uint64_t give_up_ms = clock_ms() + TEST_PATIENCE_MS;
    loop_close(pair->client_loop);
    loop_close(pair->server_loop);
    close(other.more);
    close(other.ready);
    kill(other.process, SIGKILL);
    assert_int_equal(waitpid(other.process, NULL, 0), other.process);
    while (count_descriptors() > pair->descriptors_before + kept) {
        assert_true(clock_ms() < give_up_ms);
        usleep(1000);
    }
}

static void another_user_whose_connection_lingers_is_turned_down_at_once(void **state)
{
    struct pair pair;
    if (geteuid()) skip(); /* only root can be two users */
    pair_start(&pair, &transport_shm);
    pair_connect(&pair);
    start_other(&pair);
    let_other_come(3);
    loop_poll(pair.server_loop, TEST_PATIENCE_MS);
    const struct message message = {.type = MESSAGE_HELLO};
    assert_int_equal(pair_send(&pair.client, pair.client.link, &message), OK);
    pair_until(&pair, &pair.server.messages, 1);
    pair_connect(&pair); /* the next one is heard, too */
    let_other_come(3);
    listener_close(pair.listener); /* with who has not been heard yet */
    assert_int_equal(pair_send(&pair.client, pair.client.link, &message), OK);
    pair_until(&pair, &pair.server.messages, 2);
    assert_int_equal(pair.server.accepted, 2);
    end_all(&pair, 0);
}

static void when_too_many_linger_nobody_new_is_heard_and_who_is_there_is(void **state)
{
    struct pair pair;
    if (geteuid()) skip();
    pair_start(&pair, &transport_shm);
    pair_connect(&pair);
    start_other(&pair);
    let_other_come(MANY);
    const struct message message = {.type = MESSAGE_HELLO};
    while (pair.listener->watch >= 0) loop_poll(pair.server_loop, 0); /* ends: they have come */
    assert_int_equal(pair_send(&pair.client, pair.client.link, &message), OK);
    pair_until(&pair, &pair.server.messages, 1);
    listener_close(pair.listener);
    end_all(&pair, 3); /* two connections and the socket that they have come to */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_user_whose_connection_lingers_is_turned_down_at_once),
        cmocka_unit_test(when_too_many_linger_nobody_new_is_heard_and_who_is_there_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
