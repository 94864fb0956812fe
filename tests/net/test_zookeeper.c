/* test_zookeeper.c - servers of ZooKeeper that lie: whatever they say, nobody crashes or waits
 * without end, and when they are honest again everything is as it should be.
 *
 * One conversation is had again and again (begin, claim, list, claim again, renew, close), and each
 * time one of its answers is a lie: each number of each answer at and outside its ends (four bytes
 * at each place are overwritten), each answer torn at each place, twice, another one, in pieces, an
 * event that nobody asked for, noise, without end, or none.
 */
#include "tests/net/pair.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/random.h"
#include "net/coordinator/coordinator.h"
#include "net/coordinator/session.h"
#include "tests/net/zookeeper_server.h"

enum {
    RECOVERIES_MAX = 6, /* of a client, until it has all again */
    ANSWERS_MAX = 24,   /* of a conversation */
    PIECES_PAUSE_US = 100000,
    HUNDRED_YEARS = INT32_MAX,
};
static const char PLACE[] = "/tests/small/ps/0", KEY[] = "small/ps/0", VALUE[] = "10.0.0.7:1";

enum lie {
    HONEST,
    NUMBER, /* four bytes are another number */
    TORN,   /* it ends in the middle */
    TWICE,
    EARLIER, /* the answer before it, again */
    PIECES,
    EVENT,
    NOISE,
    ENDLESS,
    NAMES,  /* of any kind, where nodes are listed */
    NEVER,  /* it does not come */
    SLOWLY, /* it does, for minutes */
};

struct order {
    enum lie lie;
    int at; /* the answer that is one; -1: all of them */
    size_t offset;
    uint32_t value;
};

struct liar {
    int listening;
    char address[32];
    pthread_t thread;
    /* Its thread's */
    struct order now;
    unsigned char bytes[ZOOKEEPER_FRAME_BYTES], earlier[ZOOKEEPER_FRAME_BYTES];
    size_t earlier_bytes;

    pthread_mutex_t lock; /* guards what follows */
    int connection;
    struct zookeeper_server server;
    struct order order;
    int answers, connections; /* until now */
    size_t sizes[ANSWERS_MAX];
};

/* ---- what it says ---- */

static bool say(struct liar *liar, const void *bytes, size_t count)
{
    for (size_t said = 0; said < count;) {
        const ssize_t some =
            send(liar->connection, (const char *)bytes + said, count - said, MSG_NOSIGNAL);
        if (some <= 0) return false;
        said += (size_t)some;
    }
    return true;
}

/* Until it is asked for the next one, or the client has gone. */
static bool say_without_end(struct liar *liar)
{
    static const unsigned char some[64 << 10];
    const unsigned char length[] = {0, 0x40, 0, 0};
    bool goes_on = say(liar, length, sizeof length);
    while (goes_on) goes_on = say(liar, some, sizeof some);
    return false;
}

static bool say_slowly(struct liar *liar, const unsigned char *bytes, size_t count, unsigned us)
{
    for (size_t i = 0; i < count; i++) {
        if (!say(liar, bytes + i, 1)) return false;
        if (us) usleep(us);
    }
    return true;
}

static bool say_never(struct liar *liar)
{
    char byte;
    (void)!recv(liar->connection, &byte, 1, 0); /* it goes */
    return false;
}

static bool say_noise(struct liar *liar)
{
    unsigned char bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)random_u64(liar->now.value, i + 1000 * (uint64_t)liar->now.at);
    (void)say(liar, bytes, random_u64(liar->now.value, 7) % sizeof bytes);
    return false;
}

static bool say_event(struct liar *liar)
{
    unsigned char bytes[100];
    struct jute_out out = {.to = bytes, .room = sizeof bytes};
    jute_put_int(&out, 0);
    jute_put_int(&out, -1);
    jute_put_long(&out, -1);
    jute_put_int(&out, 0);
    jute_put_int(&out, 1); /* made */
    jute_put_int(&out, 3); /* connected */
    jute_put_text(&out, PLACE);
    jute_set_int(&out, 0, (int32_t)out.bytes - JUTE_INT_BYTES);
    return say(liar, out.to, out.bytes);
}

static void put_name(struct jute_out *out, uint64_t draw)
{
    static const char *const names[] = {"", "..", "a/b", "0", "1.held", "\xff\n", "%s%n", "/"};
    char large[4000];
    memset(large, 'x', sizeof large);
    if (draw % 10 == 0)
        jute_put_int(out, -1);
    else if (draw % 10 == 1)
        jute_put_bytes(out, large, sizeof large);
    else
        jute_put_text(out, names[draw % (sizeof names / sizeof *names)]);
}

/* Behind the head of an honest answer. */
static bool say_names(struct liar *liar, const unsigned char *honest, size_t bytes)
{
    enum { HEAD = 20, NAMES_MOST = 8000 };
    struct jute_out out = {.to = liar->earlier, .room = sizeof liar->earlier};
    if (bytes < HEAD) return say(liar, honest, bytes);
    const int count =
        (int)(random_u64(liar->now.value, 1) % NAMES_MOST) % (1 << liar->now.value % 13);
    memcpy(out.to, honest, HEAD);
    out.bytes = HEAD;
    jute_put_int(&out, count);
    for (int i = 0; i < count; i++) put_name(&out, random_u64(liar->now.value, (uint64_t)i + 2));
    jute_set_int(&out, 0, (int32_t)out.bytes - JUTE_INT_BYTES);
    return say(liar, out.to, out.bytes);
}

/* After another length than its own nobody knows where the next one begins. */
static bool say_number(struct liar *liar, unsigned char *bytes, size_t count)
{
    struct jute_out out = {.to = bytes, .room = count};
    if (liar->now.offset + JUTE_INT_BYTES <= count)
        jute_set_int(&out, liar->now.offset, (int32_t)liar->now.value);
    return say(liar, bytes, count) && liar->now.offset >= JUTE_INT_BYTES;
}

static bool lie(struct liar *liar, unsigned char *bytes, size_t count)
{
    switch (liar->now.lie) {
    case NUMBER:
        return say_number(liar, bytes, count);
    case TORN:
        return say(liar, bytes, liar->now.offset < count ? liar->now.offset : count) && false;
    case TWICE:
        return say(liar, bytes, count) && say(liar, bytes, count);
    case EARLIER:
        return say(liar, liar->earlier, liar->earlier_bytes);
    case PIECES:
        return say_slowly(liar, bytes, count, 0);
    case EVENT:
        return say_event(liar) && say(liar, bytes, count);
    case NOISE:
        return say_noise(liar);
    case ENDLESS:
        return say_without_end(liar);
    case NAMES:
        return say_names(liar, bytes, count);
    case NEVER:
        return say_never(liar);
    case SLOWLY:
        return say_slowly(liar, bytes, count, PIECES_PAUSE_US);
    default:
        return say(liar, bytes, count);
    }
}

/* ---- how it hears ---- */

static bool hear(struct liar *liar, unsigned char *to, size_t count)
{
    return recv(liar->connection, to, count, MSG_WAITALL) == (ssize_t)count;
}

static void answer_frame(struct liar *liar, struct zookeeper_peer *peer, const unsigned char *frame,
                         size_t bytes, struct jute_out *ret, bool *ret_is_lie, bool *ret_goes_on)
{
    pthread_mutex_lock(&liar->lock);
    *ret_goes_on = zookeeper_server_answer(&liar->server, peer, clock_ms(), frame, bytes, ret);
    *ret_is_lie = liar->order.at < 0 || liar->answers == liar->order.at;
    if (liar->answers < ANSWERS_MAX) liar->sizes[liar->answers] = ret->bytes;
    liar->answers++;
    liar->now = liar->order;
    pthread_mutex_unlock(&liar->lock);
}

static bool answer(struct liar *liar, struct zookeeper_peer *peer)
{
    unsigned char length[JUTE_INT_BYTES], frame[SESSION_REQUEST_BYTES];
    struct jute_out out = {.to = liar->bytes, .room = sizeof liar->bytes};
    bool is_lie, goes_on;
    if (!hear(liar, length, sizeof length)) return false;
    const int32_t count = jute_int(&(struct jute_in){.at = length, .end = length + sizeof length});
    if (count < 0 || count > (int32_t)sizeof frame || !hear(liar, frame, (size_t)count))
        return false;
    answer_frame(liar, peer, frame, (size_t)count, &out, &is_lie, &goes_on);
    goes_on &= is_lie ? lie(liar, liar->bytes, out.bytes) : say(liar, liar->bytes, out.bytes);
    memcpy(liar->earlier, liar->bytes, out.bytes);
    liar->earlier_bytes = out.bytes;
    return goes_on;
}

static void *serve(void *context)
{
    struct liar *liar = context;
    for (;;) { /* ends: with its listening socket */
        const int connection = accept(liar->listening, NULL, NULL);
        struct zookeeper_peer peer = {0};
        if (connection < 0) return NULL;
        pthread_mutex_lock(&liar->lock);
        liar->connection = connection;
        liar->connections++;
        pthread_mutex_unlock(&liar->lock);
        while (answer(liar, &peer)) continue;
        pthread_mutex_lock(&liar->lock);
        liar->connection = -1;
        pthread_mutex_unlock(&liar->lock);
        close(connection);
    }
}

static struct liar *liar_start(void)
{
    struct liar *liar = calloc(1, sizeof *liar);
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof at;
    assert_non_null(liar);
    liar->connection = -1;
    pthread_mutex_init(&liar->lock, NULL);
    liar->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(liar->listening, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(liar->listening, 16), 0);
    assert_int_equal(getsockname(liar->listening, (struct sockaddr *)&at, &bytes), 0);
    snprintf(liar->address, sizeof liar->address, "127.0.0.1:%d", ntohs(at.sin_port));
    assert_int_equal(pthread_create(&liar->thread, NULL, serve, liar), 0);
    return liar;
}

static void liar_stop(struct liar *liar)
{
    shutdown(liar->listening, SHUT_RDWR);
    pthread_join(liar->thread, NULL);
    close(liar->listening);
    pthread_mutex_destroy(&liar->lock);
    free(liar);
}

static void liar_begin(struct liar *liar, enum lie kind, int at, size_t offset, uint32_t value)
{
    pthread_mutex_lock(&liar->lock);
    memset(&liar->server, 0, sizeof liar->server);
    liar->order = (struct order){kind, at, offset, value};
    liar->answers = liar->connections = 0;
    pthread_mutex_unlock(&liar->lock);
}

/* All that went before is over, and it has seen more than anybody. */
static void liar_is_honest_now(struct liar *liar)
{
    pthread_mutex_lock(&liar->lock);
    zookeeper_server_expire(&liar->server, clock_ms() + HUNDRED_YEARS);
    liar->server.changes = INT64_MAX - (1 << 20);
    if (liar->answers > liar->order.at) liar->order.lie = HONEST;
    if (liar->connection >= 0) shutdown(liar->connection, SHUT_RDWR);
    pthread_mutex_unlock(&liar->lock);
}

static bool liar_had_one_connection(struct liar *liar)
{
    pthread_mutex_lock(&liar->lock);
    const bool had_one = liar->connections == 1;
    pthread_mutex_unlock(&liar->lock);
    return had_one;
}

static bool liar_has_place(struct liar *liar)
{
    pthread_mutex_lock(&liar->lock);
    const struct zookeeper_node *node = zookeeper_server_find(&liar->server, PLACE);
    const bool is_there = node && strcmp(node->value, VALUE) == 0;
    pthread_mutex_unlock(&liar->lock);
    return is_there;
}

/* ---- the conversation ---- */

static bool sees_place(struct coordinator *c)
{
    struct arena arena = {0};
    struct coordinator_entry *entries;
    int count;
    bool is_seen = false;
    if (!coordinator_list(c, "small/ps", &arena, &entries, &count))
        for (int i = 0; i < count; i++)
            is_seen |= !strcmp(entries[i].name, "0") && !strcmp(entries[i].value, VALUE);
    arena_free(&arena);
    return is_seen;
}

static struct coordinator *begin(struct liar *liar)
{
    struct coordinator *c = NULL;
    char url[100];
    snprintf(url, sizeof url, "zookeeper://%s/tests", liar->address);
    return coordinator_open(url, &c) ? NULL : c;
}

/* Whether all went well, as far as this side can tell. */
static bool converse(struct coordinator *c)
{
    bool is_ours = false, has_lost = false;
    bool is_well = !coordinator_claim(c, KEY, "at first", &is_ours) && is_ours;
    is_well &= !coordinator_claim(c, KEY, VALUE, &is_ours) && is_ours;
    is_well &= sees_place(c);
    is_well &= !coordinator_renew(c, &has_lost) && !has_lost;
    return is_well;
}

static bool recover(struct liar *liar, struct coordinator **c)
{
    bool is_ours = false, has_lost;
    for (int i = 0; i < RECOVERIES_MAX; i++) {
        if (!*c) *c = begin(liar);
        if (!*c || coordinator_renew(*c, &has_lost)) continue;
        if (coordinator_claim(*c, KEY, VALUE, &is_ours) || !is_ours) continue;
        if (sees_place(*c) && liar_has_place(liar)) return true;
    }
    return false;
}

/* ret_is_well: nobody has noticed anything. false: not all was as it should be when it was over. */
static bool converse_with_liar(struct liar *liar, bool *ret_is_well)
{
    struct coordinator *c = begin(liar);
    *ret_is_well = c && converse(c) && liar_had_one_connection(liar);
    liar_is_honest_now(liar);
    const bool is_recovered = recover(liar, &c);
    pthread_mutex_lock(&liar->lock);
    const bool closes = liar->order.lie == HONEST;
    pthread_mutex_unlock(&liar->lock);
    coordinator_close(c);
    return is_recovered && !(closes && liar_has_place(liar));
}

static bool lies(struct liar *liar, enum lie kind, int at, size_t offset, uint32_t value)
{
    bool is_well;
    liar_begin(liar, kind, at, offset, value);
    if (!converse_with_liar(liar, &is_well))
        fail_msg("lie %d at answer %d, byte %zu, %x: not as before: %s", kind, at, offset, value,
                 error_text());
    return is_well;
}

/* ---- tests ---- */

static int start(void **state)
{
    struct liar *liar = liar_start();
    *state = liar;
    assert_true(lies(liar, HONEST, ANSWERS_MAX, 0, 0));
    return 0;
}

static int stop(void **state)
{
    liar_stop(*state);
    return 0;
}

/* As the honest conversation had them */
static int sizes_of(struct liar *liar, size_t ret[ANSWERS_MAX])
{
    liar_begin(liar, HONEST, ANSWERS_MAX, 0, 0);
    struct coordinator *c = begin(liar);
    assert_true(c && converse(c));
    coordinator_close(c);
    pthread_mutex_lock(&liar->lock);
    memcpy(ret, liar->sizes, sizeof liar->sizes);
    const int answers = liar->answers;
    pthread_mutex_unlock(&liar->lock);
    assert_in_range(answers, 10, ANSWERS_MAX);
    return answers;
}

static void any_number_may_be_any(void **state)
{
    static const uint32_t values[] = {0,
                                      1,
                                      0xffffffff,
                                      0xfffffffe,
                                      0x80000000,
                                      0x7fffffff,
                                      0x00400000,
                                      0x00400001,
                                      (uint32_t)SESSION_EXPIRED,
                                      (uint32_t)SESSION_MOVED,
                                      (uint32_t)SESSION_NOT_ALLOWED};
    enum { VALUES = sizeof values / sizeof *values, NUMBERS_BEGIN = 24 };
    size_t sizes[ANSWERS_MAX];
    const int answers = sizes_of(*state, sizes);
    for (int at = 0; at < answers; at++)
        for (size_t offset = 0; offset + JUTE_INT_BYTES <= sizes[at]; offset++) {
            /* at its beginning each, later three, in turn */
            const size_t step = offset < NUMBERS_BEGIN && offset % 4 == 0 ? 1 : VALUES / 3;
            for (size_t i = offset % step; i < VALUES; i += step)
                (void)lies(*state, NUMBER, at, offset, values[i]);
        }
}

static void an_answer_to_another_request_is_not_believed(void **state)
{
    size_t sizes[ANSWERS_MAX];
    const int answers = sizes_of(*state, sizes);
    for (int at = 1; at < answers - 1; at++) /* not the greeting, nor what is said at the end */
        assert_false(lies(*state, NUMBER, at, JUTE_INT_BYTES, 0x80000000));
}

static void any_answer_may_end_anywhere(void **state)
{
    size_t sizes[ANSWERS_MAX];
    const int answers = sizes_of(*state, sizes);
    for (int at = 0; at < answers; at++)
        for (size_t offset = 0; offset < sizes[at]; offset++)
            (void)lies(*state, TORN, at, offset, 0);
}

static void any_answer_may_be_another_one(void **state)
{
    static const enum lie kinds[] = {TWICE, EARLIER, EVENT, ENDLESS, NOISE, NOISE, NOISE};
    size_t sizes[ANSWERS_MAX];
    const int answers = sizes_of(*state, sizes);
    for (int at = 0; at < answers; at++)
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
            (void)lies(*state, kinds[i], at, 0, (uint32_t)(i + 1));
}

static void what_comes_in_pieces_is_whole(void **state)
{
    size_t sizes[ANSWERS_MAX];
    const int answers = sizes_of(*state, sizes);
    for (int at = 0; at < answers; at++) assert_true(lies(*state, PIECES, at, 0, 0));
}

/* In any answer: where it is none of names, it is something else. */
static void names_may_be_any(void **state)
{
    size_t sizes[ANSWERS_MAX];
    const int answers = sizes_of(*state, sizes);
    for (int at = 1; at < answers; at++)
        for (uint32_t draw = 0; draw < 20; draw++) (void)lies(*state, NAMES, at, 0, draw);
}

/* Each waits for seconds, so all do at once. */
struct waiting {
    enum lie kind;
    int at;
    pthread_t thread;
    bool is_recovered;
};

static void *wait_for_liar(void *context)
{
    struct waiting *w = context;
    bool is_well;
    struct liar *liar = liar_start();
    liar_begin(liar, w->kind, w->at, 0, 0);
    w->is_recovered = converse_with_liar(liar, &is_well);
    liar_stop(liar);
    return NULL;
}

static void who_waits_for_an_answer_waits_not_for_ever(void **state)
{
    static struct waiting all[2 * ANSWERS_MAX];
    size_t sizes[ANSWERS_MAX];
    const int answers = sizes_of(*state, sizes);
    for (int i = 0; i < 2 * answers; i++) {
        all[i] = (struct waiting){.kind = i % 2 ? NEVER : SLOWLY, .at = i / 2};
        assert_int_equal(pthread_create(&all[i].thread, NULL, wait_for_liar, &all[i]), 0);
    }
    for (int i = 0; i < 2 * answers; i++) pthread_join(all[i].thread, NULL);
    for (int i = 0; i < 2 * answers; i++)
        if (!all[i].is_recovered) fail_msg("lie %d at answer %d", all[i].kind, all[i].at);
}

/* Whatever the first one does, as long as another one answers. */
static void one_honest_server_is_enough(void **state)
{
    static const enum lie kinds[] = {TORN, NOISE, EVENT, ENDLESS, NUMBER};
    struct liar *honest = liar_start();
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct coordinator *c = NULL;
        char url[200];
        struct liar *liar = *state;
        liar_begin(liar, kinds[i], -1, 8, 0); /* a time of 0 */
        liar_begin(honest, HONEST, ANSWERS_MAX, 0, 0);
        snprintf(url, sizeof url, "zookeeper://%s,%s/tests", liar->address, honest->address);
        assert_int_equal(coordinator_open(url, &c), OK);
        assert_true(converse(c));
        coordinator_close(c);
    }
    liar_stop(honest);
}

int main(void)
{
    setenv("DTRAIN_ZOOKEEPER_AUTH", "who:secret", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(any_number_may_be_any, start, stop),
        cmocka_unit_test_setup_teardown(an_answer_to_another_request_is_not_believed, start, stop),
        cmocka_unit_test_setup_teardown(any_answer_may_end_anywhere, start, stop),
        cmocka_unit_test_setup_teardown(any_answer_may_be_another_one, start, stop),
        cmocka_unit_test_setup_teardown(what_comes_in_pieces_is_whole, start, stop),
        cmocka_unit_test_setup_teardown(names_may_be_any, start, stop),
        cmocka_unit_test_setup_teardown(who_waits_for_an_answer_waits_not_for_ever, start, stop),
        cmocka_unit_test_setup_teardown(one_honest_server_is_enough, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
