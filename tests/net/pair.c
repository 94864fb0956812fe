/* pair.c - see pair.h. */
#include "tests/net/pair.h"

#include "core/base/clock.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static void accepted(void *context, struct link *link)
{
    struct end *end = context;
    assert_false(end->pair->is_calling);
    end->accepted++;
    end->link = link;
    if (end->on_open) end->on_open(end, link);
}

static void turned_away(void *context, struct message *ret_last_words)
{
    struct end *end = context;
    end->turned_away++;
    *ret_last_words = (struct message){.type = MESSAGE_REFUSED,
                                       .body = error_text(),
                                       .body_bytes = (uint32_t)strlen(error_text())};
}

static void opened(void *context, struct link *link)
{
    struct end *end = context;
    assert_false(end->pair->is_calling);
    end->opened++;
    if (end->on_open) end->on_open(end, link);
}

static void message(void *context, struct link *link, const struct message *message)
{
    struct end *end = context;
    assert_false(end->pair->is_calling);
    end->messages++;
    end->last = *message;
    end->last.body = NULL;
    if (end->on_message) end->on_message(end, link, message);
}

static void *place(void *context, struct link *link, const struct message *message)
{
    struct end *end = context;
    assert_false(end->pair->is_calling);
    return end->on_place ? end->on_place(end, link, message) : NULL;
}

static void shared(void *context, struct link *link, const struct link_windows *windows)
{
    struct end *end = context;
    assert_false(end->pair->is_calling);
    end->shared++;
    end->windows = *windows;
}

static void closed(void *context, struct link *link, err why)
{
    struct end *end = context;
    assert_false(end->pair->is_calling);
    end->closed++;
    end->why = why;
    snprintf(end->text, sizeof end->text, "%s", error_text());
    if (end->link == link) end->link = NULL;
    if (end->on_closed) end->on_closed(end, link);
}

const struct link_events end_events = {.accepted = accepted,
                                       .turned_away = turned_away,
                                       .opened = opened,
                                       .message = message,
                                       .place = place,
                                       .shared = shared,
                                       .closed = closed};

int count_descriptors(void)
{
    DIR *files = opendir("/proc/self/fd");
    assert_non_null(files);
    int count = 0;
    while (readdir(files)) count++;
    closedir(files);
    return count;
}

void make_address(const struct transport *transport, char *ret)
{
    static int serial;
    if (transport == &transport_tcp)
        snprintf(ret, ADDRESS_MAX, "127.0.0.1:0");
    else
        snprintf(ret, ADDRESS_MAX, "dtrain-test-%d-%d", (int)getpid(), serial++);
}

struct tls_keys *pair_keys;

err make_key_of_mode(const char *text, mode_t mode, struct tls_keys **ret)
{
    char path[] = "/tmp/dtrain-test-key-XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    assert_int_equal(fchmod(file, mode), 0);
    close(file);
    const err e = tls_keys_of_file(path, ret);
    unlink(path);
    return e;
}

err make_key(const char *text, struct tls_keys **ret)
{
    return make_key_of_mode(text, 0600, ret);
}

void pair_start(struct pair *pair, const struct transport *transport)
{
    *pair = (struct pair){.transport = transport, .descriptors_before = count_descriptors()};
    pair->server.pair = pair->client.pair = pair;
    assert_int_equal(loop_open(&pair->server_loop), OK);
    pair->client_loop = pair->server_loop;
    if (transport != &transport_inproc) assert_int_equal(loop_open(&pair->client_loop), OK);
    loop_set_keys(pair->server_loop, pair_keys);
    loop_set_keys(pair->client_loop, pair_keys);
    char address[ADDRESS_MAX];
    make_address(transport, address);
    pair->is_calling = true;
    assert_int_equal(transport->listen(pair->server_loop, address, &end_events, &pair->server,
                                       pair->address, &pair->listener),
                     OK);
    pair->is_calling = false;
}

void pair_connect(struct pair *pair)
{
    const int accepted_before = pair->server.accepted, opened_before = pair->client.opened;
    pair->is_calling = true;
    assert_int_equal(pair->transport->connect(pair->client_loop, pair->address, &end_events,
                                              &pair->client, &pair->client.link),
                     OK);
    pair->is_calling = false;
    pair_until(pair, &pair->client.opened, opened_before + 1);
    pair_until(pair, &pair->server.accepted, accepted_before + 1);
}

int connect_bare(const struct pair *pair)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    to.sin_port = htons((uint16_t)atoi(strrchr(pair->address, ':') + 1));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

void expect_windows(struct link *link, size_t values_bytes, size_t gradients_bytes,
                    size_t rows_bytes)
{
    const struct link_windows windows = {
        {.bytes = values_bytes}, {.bytes = gradients_bytes}, {.bytes = rows_bytes}};
    link_expect(link, &windows);
}

void pair_open_windows(struct pair *pair, size_t values_bytes, size_t gradients_bytes,
                       size_t rows_bytes)
{
    assert_int_equal(window_new(values_bytes, &pair->windows.values), OK);
    assert_int_equal(window_new(gradients_bytes, &pair->windows.gradients), OK);
    if (rows_bytes) assert_int_equal(window_new(rows_bytes, &pair->windows.rows), OK);
}

void pair_share(struct pair *pair, size_t values_bytes, size_t gradients_bytes)
{
    pair_share_rows(pair, values_bytes, gradients_bytes, 0);
}

void pair_share_rows(struct pair *pair, size_t values_bytes, size_t gradients_bytes,
                     size_t rows_bytes)
{
    pair_open_windows(pair, values_bytes, gradients_bytes, rows_bytes);
    expect_windows(pair->client.link, values_bytes, gradients_bytes, rows_bytes);
    assert_int_equal(link_share(pair->server.link, &pair->windows), OK);
    pair_until(pair, &pair->client.shared, 1);
}

void pair_stop(struct pair *pair)
{
    if (pair->client_loop != pair->server_loop) loop_close(pair->client_loop);
    loop_close(pair->server_loop);
    window_free(&pair->windows.values);
    window_free(&pair->windows.gradients);
    window_free(&pair->windows.rows);
    assert_int_equal(count_descriptors(), pair->descriptors_before);
}

err pair_send(struct end *end, struct link *link, const struct message *message)
{
    const bool was_calling = end->pair->is_calling;
    end->pair->is_calling = true;
    const err e = link_send(link, message);
    end->pair->is_calling = was_calling;
    return e;
}

bool pair_poll(struct pair *pair)
{
    const bool delivered = loop_poll(pair->server_loop, 0);
    return loop_poll(pair->client_loop, 0) || delivered;
}

void pair_until(struct pair *pair, const int *count, int wanted)
{
    enum { LOOKS_PER_YIELD = 64 }; /* whoever yields may wait for every other process */
    const uint64_t give_up_ms = clock_ms() + TEST_PATIENCE_MS;
    int vain = 0;
    while (*count < wanted) {
        if (!pair_poll(pair) && ++vain % LOOKS_PER_YIELD == 0) sched_yield();
        if (clock_ms() > give_up_ms)
            fail_msg("waited %d ms for %d, got %d", TEST_PATIENCE_MS, wanted, *count);
    }
}

static const struct transport *current; /* cmocka's fixtures have no argument of their own */

static int start(void **state)
{
    static struct pair pair;
    pair_start(&pair, current);
    *state = &pair;
    return 0;
}

static int stop(void **state)
{
    pair_stop(*state);
    return 0;
}

int run_over(const struct transport *transport, struct CMUnitTest *tests, size_t count)
{
    current = transport;
    for (size_t i = 0; i < count; i++) {
        tests[i].setup_func = start;
        tests[i].teardown_func = stop;
    }
    return _cmocka_run_group_tests(transport->name, tests, count, NULL, NULL);
}

int run_over_all(struct CMUnitTest *tests, size_t count)
{
    return run_over(&transport_inproc, tests, count) + run_over(&transport_tcp, tests, count) +
           run_over(&transport_shm, tests, count) + run_over_tls(tests, count);
}

/* Where this program was built without, there is nothing to run. */
int run_over_tls(struct CMUnitTest *tests, size_t count)
{
    struct tls_keys *keys;
    if (make_key("a key of at least 16 bytes", &keys)) return 0;
    pair_keys = keys;
    const int failed = run_over(&transport_tcp, tests, count);
    pair_keys = NULL;
    tls_keys_close(keys);
    return failed;
}
