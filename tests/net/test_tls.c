/* test_tls.c - who gets past the greeting of a job whose links are encrypted, and what strangers
 * who do not hear.
 *
 * The contract of transports over TLS is tested where that of the others is (run_over_all).
 */
#include "tests/net/pair.h"

#include "net/link.h"
#include "core/base/clock.h"
#include "core/base/random.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char key_text[] = "a key of at least 16 bytes";

/* ---- keys ---- */

static void expect_refused(const char *text, mode_t mode, const char *why)
{
    struct tls_keys *keys = NULL;
    assert_int_equal(make_key_of_mode(text, mode, &keys), ERR_INPUT);
    if (!strstr(error_text(), why)) fail_msg("got: %s", error_text());
    assert_null(strstr(error_text(), text)); /* what is in it is told nobody */
}

static void a_key_file_is_private_and_long_enough(void **state)
{
    char text[TLS_KEY_BYTES_MAX + 2];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    expect_refused(key_text, 0640, "chmod 600");
    expect_refused(key_text, 0604, "chmod 600");
    expect_refused("fifteen bytes..", 0600, "15 bytes are no key");
    expect_refused(text, 0600, "more than 4096 bytes");
    struct tls_keys *keys = NULL;
    assert_int_equal(tls_keys_of_file("/no/such/file", &keys), ERR_INPUT);
    assert_int_equal(tls_keys_of_file("/tmp", &keys), ERR_INPUT);
    assert_null(keys);
}

/* ---- who is heard ---- */

/* A pair of which each side has its own key; NULL: none. */
static void start_with(struct pair *pair, struct tls_keys *server, struct tls_keys *client)
{
    pair_keys = server;
    pair_start(pair, &transport_tcp);
    loop_set_keys(pair->client_loop, client);
    pair_keys = NULL;
}

static void expect_unheard(struct tls_keys *server, struct tls_keys *client, const char *why)
{
    struct pair pair;
    start_with(&pair, server, client);
    assert_int_equal(transport_tcp.connect(pair.client_loop, pair.address, &end_events,
                                           &pair.client, &pair.client.link),
                     OK);
    const bool is_open_at_once = !client;
    if (is_open_at_once) {
        pair_until(&pair, &pair.client.opened, 1);
        const struct message ask = {.type = MESSAGE_JOIN};
        (void)link_send(pair.client.link, &ask);
    }
    pair_until(&pair, &pair.client.closed, 1);
    if (!strstr(pair.client.text, why)) fail_msg("got: %s", pair.client.text);
    assert_int_equal(pair.client.opened, is_open_at_once);
    assert_int_equal(pair.server.accepted, 0);
    assert_int_equal(pair.server.messages, 0);
    pair_stop(&pair);
}

/* Nor do others of its user read its memory. */
static void who_has_a_key_leaves_no_core_dump(void **state)
{
    struct tls_keys *ours;
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
    assert_int_equal(make_key(key_text, &ours), OK);
    assert_int_equal(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0), 0);
    tls_keys_close(ours);
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
}

static void another_key_is_not_heard(void **state)
{
    struct tls_keys *ours, *theirs;
    assert_int_equal(make_key(key_text, &ours), OK);
    assert_int_equal(make_key("a key of at least 16 bytez", &theirs), OK);
    expect_unheard(ours, theirs, "does not prove that it belongs to the job");
    tls_keys_close(ours);
    tls_keys_close(theirs);
}

static void who_has_no_key_is_not_heard_and_learns_why(void **state)
{
    struct tls_keys *ours;
    assert_int_equal(make_key(key_text, &ours), OK);
    expect_unheard(ours, NULL, "speaks TLS");
    tls_keys_close(ours);
}

static void who_has_a_key_tells_nobody_without_one(void **state)
{
    struct tls_keys *ours;
    struct pair pair;
    assert_int_equal(make_key(key_text, &ours), OK);
    start_with(&pair, NULL, ours);
    assert_int_equal(transport_tcp.connect(pair.client_loop, pair.address, &end_events,
                                           &pair.client, &pair.client.link),
                     OK);
    pair_until(&pair, &pair.client.closed, 1);
    assert_int_equal(pair.client.opened, 0);
    assert_int_equal(pair.server.messages, 0);
    pair_stop(&pair);
    tls_keys_close(ours);
}

/* ---- strangers ---- */

static bool is_hung_up_on(int fd)
{
    char heard[4096];
    const ssize_t got = recv(fd, heard, sizeof heard, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
}

static void until_hung_up_on(struct pair *pair, int fd)
{
    const uint64_t give_up_ms = clock_ms() + TEST_PATIENCE_MS;
    while (!is_hung_up_on(fd)) {
        loop_poll(pair->server_loop, 1);
        assert_true(clock_ms() < give_up_ms);
    }
    close(fd);
}

/* Random bytes; those that begin as a record of TLS does; a hello that breaks off. */
static void what_strangers_say_is_not_looked_at(void **state)
{
    enum { KINDS = 64, BYTES = 512 };
    struct tls_keys *ours;
    struct pair pair;
    assert_int_equal(make_key(key_text, &ours), OK);
    start_with(&pair, ours, ours);
    for (uint64_t kind = 0; kind < KINDS; kind++) {
        unsigned char bytes[BYTES];
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)random_u64(kind, i);
        if (kind % 2) memcpy(bytes, (unsigned char[]){0x16, 3, 1, 1, (unsigned char)kind, 1, 0}, 7);
        const int fd = connect_bare(&pair);
        assert_int_equal(send(fd, bytes, sizeof bytes, MSG_NOSIGNAL), sizeof bytes);
        shutdown(fd, SHUT_WR);
        until_hung_up_on(&pair, fd);
    }
    assert_int_equal(pair.server.accepted, 0);
    pair_connect(&pair); /* those who belong to it are heard as before */
    pair_stop(&pair);
    tls_keys_close(ours);
}

/* Who only connects, however often, makes room for who proves that it belongs here. */
static void who_says_nothing_makes_room(void **state)
{
    enum { SILENT = 2 * LINK_COMING_MAX };
    struct tls_keys *ours;
    struct pair pair;
    int fds[SILENT], left = 0;
    assert_int_equal(make_key(key_text, &ours), OK);
    start_with(&pair, ours, ours);
    for (int i = 0; i < SILENT; i++) {
        fds[i] = connect_bare(&pair);
        loop_poll(pair.server_loop, 1);
    }
    pair_connect(&pair);
    until_hung_up_on(&pair, fds[0]);
    for (int i = 1; i < SILENT; i++) {
        left += !is_hung_up_on(fds[i]);
        close(fds[i]);
    }
    assert_in_range(left, 1, LINK_COMING_MAX);
    assert_int_equal(pair.server.accepted, 1);
    pair_stop(&pair);
    tls_keys_close(ours);
}

/* ---- certificates ---- */

static void run_shell(const char *folder, const char *script)
{
    char command[4096];
    snprintf(command, sizeof command, "cd %s && { %s; }", folder, script);
    assert_int_equal(system(command), 0);
}

static err open_certificate(const char *folder, const char *name, const char *key,
                            const char *authority, struct tls_keys **ret)
{
    char paths[3][256];
    snprintf(paths[0], sizeof paths[0], "%s/%s.pem", folder, name);
    snprintf(paths[1], sizeof paths[1], "%s/%s.key", folder, key);
    snprintf(paths[2], sizeof paths[2], "%s/%s.pem", folder, authority);
    return tls_keys_of_certificate(paths[0], paths[1], paths[2], ret);
}

static struct tls_keys *certificate(const char *folder, const char *name, const char *authority)
{
    struct tls_keys *keys = NULL;
    assert_int_equal(open_certificate(folder, name, name, authority, &keys), OK);
    return keys;
}

/* One authority has signed task.pem, another one stranger.pem. */
static void make_certificates(const char *folder)
{
    run_shell(folder,
              "umask 077; new='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes';"
              " for ca in ca other; do"
              " openssl req -x509 $new -days 2 -subj /CN=$ca -keyout $ca.key -out $ca.pem 2> log "
              "|| exit 1; done;"
              " for pair in task:ca stranger:other; do name=${pair%%:*} ca=${pair#*:};"
              " openssl req $new -subj /CN=$name -keyout $name.key -out $name.csr 2> log &&"
              " openssl x509 -req -in $name.csr -CA $ca.pem -CAkey $ca.key -CAcreateserial -days 2"
              " -out $name.pem 2> log || exit 1; done");
}

static void a_certificate_is_of_the_authority_on_both_sides(void **state)
{
    char folder[] = "/tmp/dtrain-test-tls-XXXXXX";
    struct pair pair;
    if (system("command -v openssl > /dev/null")) skip();
    assert_non_null(mkdtemp(folder));
    make_certificates(folder);
    struct tls_keys *task = certificate(folder, "task", "ca"),
                    *stranger = certificate(folder, "stranger", "ca"),
                    *impostor = certificate(folder, "stranger", "other");
    struct tls_keys *key;
    assert_int_equal(make_key(key_text, &key), OK);
    start_with(&pair, task, task);
    pair_connect(&pair);
    pair_stop(&pair);
    expect_unheard(impostor, task, "does not prove"); /* a server of another authority */
    expect_unheard(key, task, "does not prove");
    expect_unheard(task, key, "does not prove");
    start_with(&pair, task, stranger); /* it hears that it is refused once it has said who it is */
    assert_int_equal(transport_tcp.connect(pair.client_loop, pair.address, &end_events,
                                           &pair.client, &pair.client.link),
                     OK);
    pair_until(&pair, &pair.client.closed, 1);
    assert_int_equal(pair.server.accepted, 0);
    pair_stop(&pair);
    tls_keys_close(task);
    tls_keys_close(stranger);
    tls_keys_close(impostor);
    tls_keys_close(key);
    run_shell(folder, "rm -f *");
    rmdir(folder);
}

static void make_for(const char *folder, const char *name, const char *names)
{
    char script[1024];
    snprintf(
        script, sizeof script,
        "umask 077; openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=%s"
        " -keyout %s.key -out %s.csr 2> log && echo 'subjectAltName=%s' > names &&"
        " openssl x509 -req -in %s.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2"
        " -extfile names -out %s.pem 2> log",
        name, name, name, names, name, name);
    run_shell(folder, script);
}

/* ---- a certificate whose time is over ---- */

static bool was_read_in_time;

/* By this a task looks at its own one; those of peers OpenSSL looks at by itself. */
int __real_X509_cmp_current_time(const void *) __attribute__((weak));
int __wrap_X509_cmp_current_time(const void *time);
int __wrap_X509_cmp_current_time(const void *time)
{
    static bool is_begin; /* it asks for the end first */
    if (!was_read_in_time) return __real_X509_cmp_current_time(time);
    is_begin = !is_begin;
    return is_begin ? 1 : -1;
}

static struct tls_keys *read_in_time(const char *folder, const char *name)
{
    was_read_in_time = true;
    struct tls_keys *keys = certificate(folder, name, "ca");
    was_read_in_time = false;
    return keys;
}

static void an_expired_certificate_is_named_on_both_sides(void **state)
{
    char folder[] = "/tmp/dtrain-test-tls-XXXXXX";
    struct tls_keys *none = NULL;
    struct pair pair;
    if (system("command -v openssl > /dev/null")) skip();
    assert_non_null(mkdtemp(folder));
    make_certificates(folder);
    run_shell(folder, "openssl x509 -req -in task.csr -CA ca.pem -CAkey ca.key -CAcreateserial"
                      " -days -1 -out over.pem 2> log && cp -p task.key over.key");
    assert_int_equal(open_certificate(folder, "over", "over", "ca", &none), ERR_INPUT);
    if (!strstr(error_text(), "over.pem: the certificate has expired on "))
        fail_msg("got: %s", error_text());
    struct tls_keys *task = certificate(folder, "task", "ca"), *over = read_in_time(folder, "over");
    expect_unheard(over, task, "belongs to the job: certificate has expired");
    start_with(&pair, task, over); /* it hears that it is refused once it has said who it is */
    assert_int_equal(transport_tcp.connect(pair.client_loop, pair.address, &end_events,
                                           &pair.client, &pair.client.link),
                     OK);
    pair_until(&pair, &pair.client.closed, 1);
    if (!strstr(pair.client.text, strerror(EKEYEXPIRED))) fail_msg("got: %s", pair.client.text);
    assert_int_equal(pair.server.accepted, 0);
    pair_stop(&pair);
    tls_keys_close(task);
    tls_keys_close(over);
    run_shell(folder, "rm -f *");
    rmdir(folder);
}

/* Whoever it is for: the side that listens knows it, and the side that connects takes a task's. */
static void a_certificate_says_what_it_is_for(void **state)
{
    static const struct {
        const char *names;
        enum right right;
    } rows[] = {
        {"DNS:host.example", RIGHT_TO_TAKE_PART},
        {"URI:https://dtrain:reader", RIGHT_TO_TAKE_PART},
        {"URI:dtrain:task", RIGHT_TO_TAKE_PART},
        {"URI:dtrain:writer", RIGHT_TO_CHANGE},
        {"URI:dtrain:reader", RIGHT_TO_LOOK},
        {"URI:dtrain:reader,DNS:host.example,URI:dtrain:writer", RIGHT_TO_CHANGE},
        {"URI:dtrain:admin", RIGHT_TO_NOTHING},
        {"URI:dtrain:", RIGHT_TO_NOTHING},
        {"URI:dtrain:tasks", RIGHT_TO_NOTHING},
        {"URI:dtrain:admin,URI:dtrain:reader", RIGHT_TO_LOOK},
    };
    char folder[] = "/tmp/dtrain-test-tls-XXXXXX";
    struct pair pair;
    if (system("command -v openssl > /dev/null")) skip();
    assert_non_null(mkdtemp(folder));
    make_certificates(folder);
    struct tls_keys *task = certificate(folder, "task", "ca");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        make_for(folder, "peer", rows[i].names);
        struct tls_keys *peer = certificate(folder, "peer", "ca");
        start_with(&pair, task, peer);
        pair_connect(&pair);
        assert_int_equal(link_right(pair.server.link), rows[i].right);
        assert_int_equal(link_right(pair.client.link), RIGHT_TO_TAKE_PART);
        pair_stop(&pair);
        if (rows[i].right != RIGHT_TO_TAKE_PART) expect_unheard(peer, task, "not that of a task");
        tls_keys_close(peer);
    }
    tls_keys_close(task);
    run_shell(folder, "rm -f *");
    rmdir(folder);
}

/* Standard input has the right passwords: nobody takes them from there. */
static void what_is_wrong_with_a_file_is_said_and_no_password_asked(void **state)
{
    static const struct {
        const char *name, *key, *authority, *why;
    } cases[] = {
        {"task", "locked", "ca", "locked.key: is encrypted with a password"},
        {"task", "old", "ca", "old.key: is encrypted with a password"},
        {"task", "stranger", "ca", "stranger.key: key values mismatch"},
        {"no", "task", "ca", "no.pem: No such file or directory"},
        {"task", "no", "ca", "no.key: No such file or directory"},
        {"task", "task", "no", "no.pem: No such file or directory"},
        {"empty", "task", "ca", "empty.pem: "},
        {"task", "task", "empty", "empty.pem: "},
    };
    char folder[] = "/tmp/dtrain-test-tls-XXXXXX", passwords[256];
    if (system("command -v openssl > /dev/null")) skip();
    assert_non_null(mkdtemp(folder));
    make_certificates(folder);
    run_shell(folder, "umask 077; : > empty.pem; yes secret | head -n 9 > passwords;"
                      " openssl pkey -in task.key -aes256 -passout pass:secret -out locked.key &&"
                      " openssl ec -in task.key -aes256 -passout pass:secret -out old.key 2> log");
    snprintf(passwords, sizeof passwords, "%s/passwords", folder);
    assert_non_null(freopen(passwords, "r", stdin));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tls_keys *keys = NULL;
        assert_int_equal(
            open_certificate(folder, cases[i].name, cases[i].key, cases[i].authority, &keys),
            ERR_INPUT);
        if (!strstr(error_text(), cases[i].why)) fail_msg("got: %s", error_text());
    }
    run_shell(folder, "rm -f *");
    rmdir(folder);
}

/* With those of another authority, all three of them: one after the other, as people do. */
static void certificates_that_change_are_read_again(void **state)
{
    char folder[] = "/tmp/dtrain-test-tls-XXXXXX";
    const struct timespec more_than_a_second = {1, 100000000};
    struct pair pair;
    if (system("command -v openssl > /dev/null")) skip();
    assert_non_null(mkdtemp(folder));
    make_certificates(folder);
    struct tls_keys *task = certificate(folder, "task", "ca"),
                    *other = certificate(folder, "stranger", "other");
    run_shell(folder, "cp stranger.pem task.pem");
    nanosleep(&more_than_a_second, NULL);
    start_with(&pair, task, task); /* the certificate is none of the key: those of before stay */
    pair_connect(&pair);
    pair_stop(&pair);
    run_shell(folder, "cp stranger.key task.key; cp other.pem ca.pem");
    nanosleep(&more_than_a_second, NULL);
    start_with(&pair, task, other);
    pair_connect(&pair);
    pair_stop(&pair);
    tls_keys_close(task);
    tls_keys_close(other);
    run_shell(folder, "rm -f *");
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_file_is_private_and_long_enough),
        cmocka_unit_test(who_has_a_key_leaves_no_core_dump),
        cmocka_unit_test(another_key_is_not_heard),
        cmocka_unit_test(who_has_no_key_is_not_heard_and_learns_why),
        cmocka_unit_test(who_has_a_key_tells_nobody_without_one),
        cmocka_unit_test(what_strangers_say_is_not_looked_at),
        cmocka_unit_test(who_says_nothing_makes_room),
        cmocka_unit_test(a_certificate_is_of_the_authority_on_both_sides),
        cmocka_unit_test(an_expired_certificate_is_named_on_both_sides),
        cmocka_unit_test(a_certificate_says_what_it_is_for),
        cmocka_unit_test(what_is_wrong_with_a_file_is_said_and_no_password_asked),
        cmocka_unit_test(certificates_that_change_are_read_again),
    };
    struct tls_keys *keys;
    if (make_key(key_text, &keys)) return 77; /* built without TLS: meson skips it */
    tls_keys_close(keys);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
