/* test_feed.c - in-graph replication, both its ends: a worker that is fed trains on the batches
 * that it would read itself, and neither end believes what the other may not say
 * (core/cluster/runner/feed).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/cluster/runner/feed/feed.h"
#include "core/cluster/runner/feed/feeder.h"
#include "core/cluster/runner/feed/remote_input.h"
#include "core/cluster/runner/greeting.h"
#include "core/train/session/session.h"
#include "tests/core/train/fixture.h"

enum { WORKERS = 3, BATCHES = 40, LIMIT_MS = 120000, LOOK_MS = 20 };

static const char job_text[] =
    "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":70},\"batch_size\":8,\"scale\":0.0039},"
    "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":10}],\"loss\":"
    "\"softmax_cross_entropy\",\"optimizer\":\"adam\",\"train\":{\"last_step\":100,\"replication\":"
    "\"in_graph\"}}";

struct side {
    struct spec spec;
    struct device device;
    struct session session;
};

static void read_spec(struct spec *ret)
{
    char path[] = "/tmp/feed-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, job_text, strlen(job_text)), strlen(job_text));
    close(fd);
    const struct spec_options options = {.path = path, .seed = -1};
    if (spec_load(&options, ret)) fail_msg("%s", error_text());
    unlink(path);
}

static void open_session(struct side *s, int worker, bool is_handed_out, struct batch_source *from)
{
    s->device = fixture_device();
    const struct session_options options = {.spec = &s->spec,
                                            .device = &s->device,
                                            .worker = worker,
                                            .workers = WORKERS,
                                            .ps_count = 1,
                                            .batches_per_push = 1,
                                            .is_handed_out = is_handed_out,
                                            .remote_input = from};
    if (session_open(&options, &s->session)) fail_msg("%s", error_text());
}

static void close_side(struct side *s)
{
    session_close(&s->session);
    device_close(&s->device);
    spec_free(&s->spec);
}

/* ---- the tasks ---- */

static char chief_address[ADDRESS_MAX];
static const char *worker_hosts[WORKERS] = {chief_address, "127.0.0.1:1", "127.0.0.1:2"};
static const char *ps_hosts[1] = {"127.0.0.1:3"};

static struct cluster_spec cluster_of(int task)
{
    struct cluster_spec ret = {.job = JOB_WORKER, .task = task};
    ret.hosts[JOB_WORKER] = (struct strings){worker_hosts, WORKERS};
    ret.hosts[JOB_PS] = (struct strings){ps_hosts, 1};
    return ret;
}

static struct task_options options_of(const struct cluster_spec *cluster, const struct spec *spec)
{
    return (struct task_options){
        .cluster = cluster,
        .limits = {.start_ms = LIMIT_MS, .restart_ms = LIMIT_MS},
        .fingerprint = spec->fingerprint,
    };
}

/* A port that is nobody else's until it listens there. */
static void reserve(char listen[ADDRESS_MAX])
{
    int fd;
    assert_int_equal(address_reserve("127.0.0.1:0", chief_address, &fd), OK);
    snprintf(listen, ADDRESS_MAX, "fd:%d", fd);
}

struct chief {
    struct side side;
    struct cluster_spec cluster;
    char listen[ADDRESS_MAX];
    struct feeder *feeder;
};

static void start_chief(struct chief *c, bool is_handed_out)
{
    reserve(c->listen);
    c->cluster = cluster_of(0);
    read_spec(&c->side.spec);
    open_session(&c->side, 0, is_handed_out, NULL);
    struct task_options options = options_of(&c->cluster, &c->side.spec);
    options.listen = c->listen;
    assert_int_equal(feeder_open(&options, &c->feeder), OK);
    assert_int_equal(feeder_start(c->feeder, &c->side.session), OK);
}

static void stop_chief(struct chief *c)
{
    feeder_close(c->feeder);
    close_side(&c->side);
}

struct fed {
    struct side side;
    struct cluster_spec cluster;
    struct remote_input *input;
};

static void start_fed(struct fed *w, int task, bool is_handed_out)
{
    w->cluster = cluster_of(task);
    read_spec(&w->side.spec);
    const struct task_options options = options_of(&w->cluster, &w->side.spec);
    if (remote_input_open(&options, &w->side.spec, &w->input)) fail_msg("%s", error_text());
    open_session(&w->side, task, is_handed_out, remote_input_source(w->input));
}

/* The session borrows its source. */
static void stop_fed(struct fed *w)
{
    close_side(&w->side);
    remote_input_close(w->input);
}

static void start_reader(struct side *s, int task, bool is_handed_out)
{
    read_spec(&s->spec);
    open_session(s, task, is_handed_out, NULL);
}

/* ---- what comes ---- */

static void assert_same_batch(struct batch_source *fed, struct batch_source *read)
{
    struct batch got, wanted;
    if (fed->calls->next(fed, &got)) fail_msg("%s", error_text());
    assert_int_equal(read->calls->next(read, &wanted), OK);
    assert_int_equal(got.rows, wanted.rows);
    assert_int_equal(got.index, wanted.index);
    assert_int_equal(got.epoch, wanted.epoch);
    for (int i = 0; i < got.column_count; i++) {
        const size_t bytes = column_row_bytes(&wanted.columns[i]) * (size_t)wanted.rows;
        assert_int_equal(column_row_bytes(&got.columns[i]), column_row_bytes(&wanted.columns[i]));
        assert_memory_equal(got.columns[i].at, wanted.columns[i].at, bytes);
    }
}

static void batches_are_those_that_the_worker_would_read(void **state)
{
    static struct chief chief;
    static struct fed workers[WORKERS];
    static struct side readers[WORKERS];
    start_chief(&chief, false);
    for (int w = 1; w < WORKERS; w++) {
        start_fed(&workers[w], w, false);
        start_reader(&readers[w], w, false);
    }
    for (int i = 0; i < BATCHES; i++)
        for (int w = 1; w < WORKERS; w++)
            assert_same_batch(workers[w].side.session.data.train, readers[w].session.data.train);
    for (int w = 1; w < WORKERS; w++) {
        stop_fed(&workers[w]);
        close_side(&readers[w]);
    }
    stop_chief(&chief);
}

/* Also back, and while batches of before are on their way. */
static void a_worker_that_goes_elsewhere_gets_what_is_there(void **state)
{
    static const uint64_t places[] = {0, 30, 7, 7, 8, 200, 0, 1};
    static struct chief chief;
    static struct fed worker;
    static struct side reader;
    start_chief(&chief, false);
    start_fed(&worker, 2, false);
    start_reader(&reader, 2, false);
    struct batch_source *fed = worker.side.session.data.train, *read = reader.session.data.train;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        assert_int_equal(fed->calls->seek(fed, places[i]), OK);
        assert_int_equal(read->calls->seek(read, places[i]), OK);
        for (size_t n = 0; n < i; n++) assert_same_batch(fed, read);
    }
    stop_fed(&worker);
    close_side(&reader);
    stop_chief(&chief);
}

/* What is handed out changes while it is used: batches come by their plan. */
static void batches_that_are_handed_out_come_by_their_plan(void **state)
{
    static struct chief chief;
    static struct fed worker;
    static struct side reader;
    start_chief(&chief, true);
    start_fed(&worker, 1, true);
    start_reader(&reader, 1, true);
    struct batch_source *fed = worker.side.session.data.train, *read = reader.session.data.train;
    for (uint64_t n = 0; n < BATCHES; n += 2) {
        const uint64_t ranges[] = {3 * n, 3 * n + 2, 3 * n + 50, 3 * n + 52};
        bool is_void;
        assert_int_equal(fed->calls->plan(fed, n, ranges, 2, &is_void), OK);
        assert_false(is_void);
        assert_int_equal(read->calls->plan(read, n, ranges, 2, &is_void), OK);
        assert_same_batch(fed, read);
        assert_same_batch(fed, read);
    }
    stop_fed(&worker);
    close_side(&reader);
    stop_chief(&chief);
}

/* Another life of the chief is asked for what the first one did not bring. */
static void another_life_of_the_chief_goes_on(void **state)
{
    static struct chief chief;
    static struct fed worker;
    static struct side reader;
    start_chief(&chief, false);
    start_fed(&worker, 1, false);
    start_reader(&reader, 1, false);
    struct batch_source *fed = worker.side.session.data.train, *read = reader.session.data.train;
    for (int i = 0; i < BATCHES / 4; i++) assert_same_batch(fed, read);
    feeder_close(chief.feeder);
    struct task_options options = options_of(&chief.cluster, &chief.side.spec);
    assert_int_equal(feeder_open(&options, &chief.feeder), OK);
    assert_int_equal(feeder_start(chief.feeder, &chief.side.session), OK);
    for (int i = 0; i < BATCHES / 4; i++) assert_same_batch(fed, read);
    stop_fed(&worker);
    close_side(&reader);
    stop_chief(&chief);
}

/* ---- a worker that lies ---- */

struct liar {
    struct greeter me;
    bool greets;
    struct message then; /* what it says when it is greeted; type 0: nothing */
    bool is_told, is_over;
    char refused[ACTION_TEXT_MAX]; /* "": it was not */
};

static void liar_opened(void *context, struct link *link)
{
    struct liar *liar = context;
    if (liar->greets)
        assert_int_equal(greeting_send(&liar->me, link, MESSAGE_HELLO, NULL), OK);
    else
        assert_int_equal(link_send(link, &liar->then), OK);
}

static void liar_message(void *context, struct link *link, const struct message *m)
{
    struct liar *liar = context;
    if (m->type == MESSAGE_REFUSED) message_text(m, liar->refused);
    if (m->type == MESSAGE_DATA) assert_int_equal(link_send(link, &liar->then), OK);
}

static void liar_closed(void *context, struct link *link, err why)
{
    struct liar *liar = context;
    liar->is_over = true;
}

static const struct link_events liar_events = {
    .opened = liar_opened, .message = liar_message, .closed = liar_closed};

static void assert_refused(int task, bool greets, struct message then, const char *why)
{
    struct liar liar = {.greets = greets, .then = then};
    struct cluster_spec cluster = cluster_of(task);
    struct spec spec;
    struct loop *loop;
    struct link *link;
    read_spec(&spec);
    const struct task_options options = options_of(&cluster, &spec);
    liar.me = feed_greeter(&options);
    assert_int_equal(loop_open(&loop), OK);
    assert_int_equal(transport_tcp.connect(loop, chief_address, &liar_events, &liar, &link), OK);
    const uint64_t until_ms = clock_ms() + LIMIT_MS;
    while (!liar.is_over && clock_ms() < until_ms) loop_poll(loop, LOOK_MS);
    assert_true(liar.is_over);
    if (!strstr(liar.refused, why)) fail_msg("said \"%s\", not \"%s\"", liar.refused, why);
    loop_close(loop);
    spec_free(&spec);
}

static struct message feed_request(uint64_t first, uint64_t name, uint64_t end)
{
    return (struct message){
        .type = MESSAGE_FEED, .job = JOB_WORKER, .task = 1, .feed = {first, name, .end = end}};
}

/* And the others are fed as before. */
static void a_worker_that_asks_for_what_it_may_not_is_refused(void **state)
{
    static struct chief chief;
    static struct fed worker;
    static struct side reader;
    struct message with_plan = feed_request(0, 1, 1);
    const uint64_t plan[] = {0, 0, 1};
    with_plan.body = plan;
    with_plan.body_bytes = sizeof plan;
    start_chief(&chief, false);
    start_fed(&worker, 2, false);
    start_reader(&reader, 2, false);
    const struct message other = {.type = MESSAGE_BATCH, .job = JOB_WORKER};
    assert_refused(1, false, feed_request(0, 1, 1), "FEED before a greeting");
    assert_refused(0, true, other, "worker/0 reads the data itself");
    assert_refused(2, true, other, "worker/2 is already here");
    assert_refused(1, true, other, "sent BATCH, which does not ask for batches");
    assert_refused(1, true, feed_request(0, 0, 1), "which does not ask for batches");
    assert_refused(1, true, feed_request(5, 1, 4), "asks for batches 5 to 4");
    assert_refused(1, true, feed_request(0, 1, FEED_AHEAD_MAX + 1), "at most");
    assert_refused(1, true, feed_request(MESSAGE_COUNT_MAX - 1, 1, MESSAGE_COUNT_MAX), "beyond");
    assert_refused(1, true, with_plan, "as if they were some");
    for (int i = 0; i < 5; i++)
        assert_same_batch(worker.side.session.data.train, reader.session.data.train);
    stop_fed(&worker);
    close_side(&reader);
    stop_chief(&chief);
}

/* ---- a chief that lies ---- */

enum lie {
    LIE_NONE,
    LIE_NUMBER, /* another batch */
    LIE_OFFSET, /* a part that is not the next one */
    LIE_LONG,   /* more than a batch */
    LIE_EMPTY,
    LIE_TYPE,
    LIE_LABEL, /* that no class has */
    LIES
};

struct false_chief {
    enum lie lie;
    struct greeter me;
    char *description;
    size_t batch_bytes;
    struct loop *loop;
    struct listener *listener;
    pthread_t thread;
    atomic_bool is_stopping;
};

static void tell_lie(const struct false_chief *c, struct link *link, const struct message *m)
{
    const size_t bytes = c->lie == LIE_LONG ? c->batch_bytes + 1 : c->batch_bytes;
    char *body = malloc(bytes);
    assert_non_null(body);
    memset(body, c->lie == LIE_LABEL ? 0x7f : 0, bytes);
    const struct message part = {
        .type = c->lie == LIE_TYPE ? MESSAGE_DATA : MESSAGE_BATCH,
        .job = JOB_WORKER,
        .batch = {m->feed.first + (c->lie == LIE_NUMBER), m->feed.request_id,
                  .offset = c->lie == LIE_OFFSET ? 64 : 0},
        .body = body,
        .body_bytes = c->lie == LIE_EMPTY ? 0 : (uint32_t)bytes,
    };
    (void)link_send(link, &part);
    free(body);
}

static void false_heard(void *context, struct link *link, const struct message *m)
{
    const struct false_chief *c = context;
    if (m->type == MESSAGE_FEED) tell_lie(c, link, m);
    if (m->type != MESSAGE_HELLO) return;
    const struct message data = {.type = MESSAGE_DATA,
                                 .job = JOB_WORKER,
                                 .body = c->description,
                                 .body_bytes = (uint32_t)strlen(c->description)};
    if (!greeting_send(&c->me, link, MESSAGE_WELCOME, NULL)) (void)link_send(link, &data);
}

static const struct link_events false_events = {.message = false_heard};

static void *be_false(void *context)
{
    struct false_chief *c = context;
    while (!atomic_load(&c->is_stopping)) loop_poll(c->loop, LOOK_MS);
    return NULL;
}

/* What a worker says that was told this; it is there while `side`'s data are described. */
static void assert_disbelieved(const struct side *side, enum lie lie, const char *why)
{
    struct false_chief c = {.lie = lie};
    struct fed worker;
    struct batch batch;
    struct session_share share;
    struct feed_layout layout;
    const struct batch_source *data = side->session.data.train;
    char listen[ADDRESS_MAX], real[ADDRESS_MAX];
    const struct cluster_spec cluster = cluster_of(0);
    const struct task_options options = options_of(&cluster, &side->spec);
    reserve(listen);
    c.me = feed_greeter(&options);
    assert_int_equal(feed_describe(data, &side->spec, &c.description), OK);
    assert_int_equal(session_open_share(&side->session, 1, &share), OK);
    assert_int_equal(feed_layout_make(data->columns, data->column_count, share.reads,
                                      side->spec.data.batch_size, &layout),
                     OK);
    batch_source_close(share.source);
    c.batch_bytes = layout.bytes;
    assert_int_equal(loop_open(&c.loop), OK);
    assert_int_equal(transport_tcp.listen(c.loop, listen, &false_events, &c, real, &c.listener),
                     OK);
    assert_int_equal(pthread_create(&c.thread, NULL, be_false, &c), 0);
    start_fed(&worker, 1, false);
    struct batch_source *fed = worker.side.session.data.train;
    const err e = fed->calls->next(fed, &batch);
    assert_int_equal(e, lie == LIE_NONE ? OK : ERR_PROTOCOL);
    if (e && !strstr(error_text(), why)) fail_msg("said \"%s\", not \"%s\"", error_text(), why);
    stop_fed(&worker);
    atomic_store(&c.is_stopping, true);
    pthread_join(c.thread, NULL);
    listener_close(c.listener);
    loop_close(c.loop);
    free(c.description);
}

static void a_worker_believes_no_chief_that_says_what_none_would(void **state)
{
    static const char *const why[LIES] = {[LIE_NUMBER] = "not what comes next",
                                          [LIE_OFFSET] = "not what comes next",
                                          [LIE_LONG] = "not what comes next",
                                          [LIE_EMPTY] = "not what comes next",
                                          [LIE_TYPE] = "sent DATA",
                                          [LIE_LABEL] = "batch 0"};
    static struct side side;
    start_reader(&side, 0, false);
    for (int lie = LIE_NONE; lie < LIES; lie++) assert_disbelieved(&side, lie, why[lie]);
    close_side(&side);
}

/* ---- descriptions ---- */

static void a_description_that_is_none_is_refused(void **state)
{
#define DESCRIBED(columns) "{\"rows\":70,\"columns\":[" columns "],\"measured\":{}}"
#define COLUMN(name, dtype, shape, buckets, weighted)                                              \
    "{\"name\":\"" name "\",\"dtype\":\"" dtype "\",\"shape\":" shape ",\"buckets\":" buckets      \
    ",\"weighted\":" weighted "}"
#define LABELS_COLUMN COLUMN("labels", "int32", "[]", "0", "false")
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"", "not JSON"},
        {"[]", "a description of data"},
        {"{\"rows\":0,\"columns\":[" LABELS_COLUMN "],\"measured\":{}}", "rows"},
        {DESCRIBED(""), "columns"},
        {DESCRIBED(COLUMN("x", "float32", "[3]", "0", "false")), "no labels"},
        {DESCRIBED(COLUMN("labels", "int64", "[]", "0", "false")), "no labels"},
        {DESCRIBED(COLUMN("labels", "word", "[]", "0", "false")), "dtype"},
        {DESCRIBED(LABELS_COLUMN "," COLUMN("x", "int32", "[3]", "0", "false")), "int32"},
        {DESCRIBED(LABELS_COLUMN "," COLUMN("x", "int64", "[3]", "9", "true")), "no weights"},
        {DESCRIBED(LABELS_COLUMN "," COLUMN("x", "int64", "[3]", "9", "true") "," COLUMN(
             "w", "float32", "[4]", "0", "false")),
         "no weights"},
        {DESCRIBED(LABELS_COLUMN "," COLUMN("x", "float32", "[0]", "0", "false")), "shape"},
        {DESCRIBED(LABELS_COLUMN "," COLUMN("x", "float32", "[1,1,1,1,1,1,1,1,1]", "0", "false")),
         "rank"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct spec spec;
        struct arena arena = {0};
        struct feed_description d;
        read_spec(&spec);
        const err e =
            feed_read_description(cases[i].text, strlen(cases[i].text), &spec, &arena, &d);
        if (e != ERR_PROTOCOL) fail_msg("case %zu: %d", i, e);
        if (!strstr(error_text(), cases[i].why)) fail_msg("case %zu: %s", i, error_text());
        arena_free(&arena);
        spec_free(&spec);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_are_those_that_the_worker_would_read),
        cmocka_unit_test(a_worker_that_goes_elsewhere_gets_what_is_there),
        cmocka_unit_test(batches_that_are_handed_out_come_by_their_plan),
        cmocka_unit_test(another_life_of_the_chief_goes_on),
        cmocka_unit_test(a_worker_that_asks_for_what_it_may_not_is_refused),
        cmocka_unit_test(a_worker_believes_no_chief_that_says_what_none_would),
        cmocka_unit_test(a_description_that_is_none_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
