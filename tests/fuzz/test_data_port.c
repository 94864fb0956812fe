/* test_data_port.c - the port of a chief that feeds others (core/cluster/runner/feed): whoever
 * calls it says each kind of message with each number at and outside the ends of its range, in each
 * state that a caller may be in. Each breach is named, nothing is allocated for what a number only
 * announces, and the worker beside it gets the same batches, in as many turns of the loop at most
 * as twice without.
 */
#include "core/base/log.h"
#include "core/cluster/runner/feed/feed.h"
#include "core/cluster/runner/feed/feeder.h"
#include "core/train/session/session.h"
#include "tests/fuzz/allocated.h"
#include "tests/fuzz/lies.h"
#include "tests/fuzz/peer.h"

#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h> /* last: it has a macro named fail */

enum {
    LIAR = 1, /* beside the CHIEF */
    FED,
    WORKERS,
    AHEAD = 2, /* batches that the fed worker asks for */
    TIMES = 8, /* that a lie is said at once */
    TURNS_MAX = 200000,
    LIMIT_MS = 120000, /* of a batch that is read */
    ALLOCATED_MAX = 1 << 20,
    HANDED_OUT = 1 << 20, /* batches, all of which are given to whoever asks */
    SOME = 7,             /* of the lies, in states that others are like */
};

enum state { STRANGER, GREETED, ASKED, AMID_BATCHES, STATES };
static const char *const state_names[] = {"a stranger", "greeted", "asked", "amid batches"};

#define SPEC(BATCH)                                                                                \
    "{\"name\":\"port\",\"seed\":1,\"data\":{\"train\":{\"format\":\"digits\",\"rows\":600},"      \
    "\"batch_size\":" BATCH ",\"scale\":0.004},\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\"," \
    "\"units\":10}],\"loss\":\"softmax_cross_entropy\",\"optimizer\":\"adam\","                    \
    "\"train\":{\"last_step\":8,\"replication\":\"in_graph\"}}"
static const char *const spec_texts[] = {SPEC("8"), SPEC("600" /* in several parts */)};

static const char *ps_hosts[] = {"ps:1"}, *worker_hosts[] = {"a:1", "b:1", "c:1"};

/* ---- callers ---- */

struct caller {
    struct peer_place place;
    struct peer_link peer;
    bool has_greeted, has_asked, is_told;            /* what it has said; that DATA have come */
    uint64_t next, end;                              /* batches */
    size_t came;                                     /* bytes of the next one */
    uint64_t sum;                                    /* of what all batches said */
    char refused[LINK_TEXT_MAX], why[LINK_TEXT_MAX]; /* "": it was not; of the link's end */
};

struct port {
    struct device device;
    struct session session;
    struct spec spec;
    struct batch_source *fed; /* whose batches the fed worker gets */
    struct loop *loop;        /* of the feeder, when it runs */
    struct caller liar, worker;
    bool is_handed_out;
    enum state state;
    struct lie lie;
    int step;               /* of the lies, 0: none is said */
    int asked, said, turns; /* asked: turns since the worker has asked for batches */
    bool is_over;
    sem_t over;
    char wrong[512]; /* found in the feeder's thread, told in the test's */
};
static struct port *port; /* the one that runs */

static void end(void)
{
    if (!port->is_over) sem_post(&port->over);
    port->is_over = true;
}

static void note_wrong(const char *what)
{
    char text[LIE_TEXT_MAX];
    if (!port->wrong[0])
        snprintf(port->wrong, sizeof port->wrong, "%s, %s: %s; refused: \"%s\", ended: \"%s\"",
                 state_names[port->state], lie_show(&port->lie, text), what, port->liar.refused,
                 port->liar.why);
    end();
}

static void ask(struct caller *c, uint64_t end)
{
    uint64_t plan[] = {0, 0, HANDED_OUT};
    struct message m = {.type = MESSAGE_FEED,
                        .task = (uint32_t)c->place.task,
                        .job = JOB_WORKER,
                        .feed = {c->next, 1, .end = end}};
    if (port->is_handed_out) {
        m.body = plan;
        m.body_bytes = sizeof plan;
    }
    c->has_asked = true;
    c->end = end;
    if (c->peer.link->state == LINK_OPEN) (void)link_send(c->peer.link, &m);
}

static void take_part(struct caller *c, const struct message *m)
{
    const uint8_t *bytes = m->body;
    if (m->batch.number != c->next || m->batch.offset != c->came)
        note_wrong("a part that is not the next one");
    for (uint32_t i = 0; i < m->body_bytes; i++) c->sum = c->sum * 31 + bytes[i];
    c->came += m->body_bytes;
    if (m->body_bytes == FEED_PART_BYTES) return; /* more follow */
    c->came = 0;
    c->next++;
    if (c == &port->worker) ask(c, c->next + AHEAD);
}

static void on_opened(void *context, struct link *link)
{
    (void)context;
    (void)link;
}

static void on_message(void *context, struct link *link, const struct message *m)
{
    struct caller *c = context;
    (void)link;
    peer_note(&c->peer, m);
    c->is_told |= m->type == MESSAGE_DATA;
    if (m->type == MESSAGE_REFUSED)
        snprintf(c->refused, sizeof c->refused, "%.*s", (int)m->body_bytes, (const char *)m->body);
    if (m->type == MESSAGE_BATCH && c == &port->worker) take_part(c, m);
}

static void on_closed(void *context, struct link *link, err why)
{
    struct caller *c = context;
    (void)link;
    (void)why;
    c->peer.link = NULL;
    snprintf(c->why, sizeof c->why, "%s", error_text());
    if (c == &port->worker) note_wrong("the worker beside it is hung up on");
}

static const struct link_events events = {
    .opened = on_opened, .message = on_message, .closed = on_closed};

static void come(struct caller *c)
{
    *c = (struct caller){.place = c->place};
    if (transport_inproc.connect(port->loop, worker_hosts[CHIEF], &events, c, &c->peer.link))
        note_wrong("nobody can call");
}

static void leave(struct caller *c)
{
    if (c->peer.link) link_close(c->peer.link);
    c->peer.link = NULL;
}

static bool is_open(const struct caller *c)
{
    return c->peer.link && c->peer.link->state == LINK_OPEN;
}

static void greet(struct caller *c)
{
    peer_greet(&c->peer, &c->place, MESSAGE_HELLO);
    c->has_greeted = true;
}

/* ---- a turn ---- */

/* true: it is there. */
static bool bring_liar_to_its_state(void)
{
    struct caller *c = &port->liar;
    if (!c->peer.link) come(c);
    if (!is_open(c)) return false;
    if (port->state == STRANGER) return true;
    if (!c->has_greeted) greet(c);
    if (!c->is_told || port->state == GREETED) return c->is_told;
    if (!c->has_asked) ask(c, port->state == ASKED ? 1 : FEED_AHEAD_MAX);
    return true;
}

static void lie(void)
{
    struct message m = {.type = port->lie.type, .task = LIAR, .job = JOB_WORKER};
    if (m.type == MESSAGE_FEED) m.feed = (struct message_feed){0, 1, .end = 1};
    lie_into(&m, &port->lie);
    for (int i = 0; i < TIMES && is_open(&port->liar); i++) peer_send(&port->liar.peer, &m);
}

/* Whether words for it say what was said: its kind, or what a FEED asks for. What is no message of
 * a link at all ends the link before the port hears it, which says why. */
static bool names_it(const char *words)
{
    const struct lie *l = &port->lie;
    const bool is_of_link =
        l->type == MESSAGE_WINDOWS || l->field == LIE_OFFSET || l->field == LIE_LENGTH;
    return strstr(words, message_name(l->type)) ||
           (l->type == MESSAGE_FEED && strstr(words, "asks for")) ||
           (is_of_link && port->liar.why[0]);
}

/* Two turns after it: what may not be said is refused, by its name. */
static void judge(void)
{
    const struct lie *l = &port->lie;
    const bool may_be = port->state == STRANGER
                            ? l->type == MESSAGE_HELLO
                            : l->type == MESSAGE_FEED && lie_is_allowed(l, FROM_WORKER);
    if (!may_be && port->liar.peer.link) note_wrong("is not hung up on");
    if (!may_be && !names_it(port->liar.refused)) note_wrong("is not named");
}

static void go_on_lying(void)
{
    if (port->said) {
        if (port->said++ < 2) return;
        judge();
        leave(&port->liar);
        port->said = 0;
        for (int i = 0; i < port->step; i++)
            if (!lies_next(&port->lie)) end();
        return;
    }
    if (!bring_liar_to_its_state()) return;
    lie();
    port->said = 1;
}

uint64_t __real_clock_ms(void);

/* So that turns do not depend on how fast batches are read. */
static void await_batch(void)
{
    const uint64_t until_ms = __real_clock_ms() + LIMIT_MS;
    while (!port->fed->calls->ready(port->fed)) {
        if (__real_clock_ms() > until_ms) note_wrong("a batch is not read");
        if (port->is_over) return;
        sched_yield();
    }
}

static void turn(void)
{
    struct caller *w = &port->worker;
    if (!w->peer.link) come(w);
    if (is_open(w) && !w->has_greeted) greet(w);
    if (w->is_told && !w->has_asked) ask(w, AHEAD);
    if (!w->has_asked || port->asked++ == 0) return;
    port->turns++;
    await_batch();
    if (port->step) go_on_lying();
    if (port->turns > TURNS_MAX) note_wrong("it does not end");
}

bool __real_loop_poll(struct loop *, int timeout_ms);
bool __wrap_loop_poll(struct loop *, int timeout_ms);

bool __wrap_loop_poll(struct loop *loop, int timeout_ms)
{
    if (!port) return __real_loop_poll(loop, timeout_ms);
    port->loop = loop;
    if (!port->is_over) turn();
    return __real_loop_poll(loop, port->is_over ? timeout_ms : 0);
}

err __real_session_open_share(const struct session *, int worker, struct session_share *ret);
err __wrap_session_open_share(const struct session *, int worker, struct session_share *ret);

err __wrap_session_open_share(const struct session *s, int worker, struct session_share *ret)
{
    const err e = __real_session_open_share(s, worker, ret);
    if (worker == FED) port->fed = ret->source;
    return e;
}

/* ---- a port ---- */

static void read_spec(const char *text, struct spec *ret)
{
    const struct spec_options options = {.path = "memory://port.json", .data_dir = "/", .seed = -1};
    const uint8_t *bytes = (const uint8_t *)text;
    memory_file("port.json", (struct view){bytes, bytes + strlen(text)});
    if (spec_load(&options, ret)) fail_msg("%s", error_text());
    memory_clear();
}

static void open_port(struct port *p, int text)
{
    read_spec(spec_texts[text], &p->spec);
    assert_int_equal(device_open_cpu(1, NULL, &p->device), OK);
    const struct session_options options = {.spec = &p->spec,
                                            .device = &p->device,
                                            .worker = CHIEF,
                                            .workers = WORKERS,
                                            .ps_count = 1,
                                            .batches_per_push = 1,
                                            .is_handed_out = p->is_handed_out};
    if (session_open(&options, &p->session)) fail_msg("%s", error_text());
    p->liar.place = (struct peer_place){JOB_WORKER, LIAR, "\"ps:1\"", "\"a:1\", \"b:1\", \"c:1\""};
    p->worker.place = p->liar.place;
    p->worker.place.task = FED;
}

static void run_port(struct port *p)
{
    struct feeder *feeder;
    struct loop *loop;
    const struct cluster_spec cluster = {
        .hosts = {[JOB_PS] = {ps_hosts, 1}, [JOB_WORKER] = {worker_hosts, WORKERS}},
        .job = JOB_WORKER,
        .is_distributed = true,
    };
    assert_int_equal(loop_open(&loop), OK);
    const struct task_options options = {.cluster = &cluster,
                                         .loop = loop,
                                         .transport = &transport_inproc,
                                         .fingerprint = p->spec.fingerprint,
                                         .limits.start_ms = LIMIT_MS};
    assert_int_equal(feeder_open(&options, &feeder), OK);
    assert_int_equal(sem_init(&p->over, 0, 0), 0);
    port = p;
    allocated_most(); /* from here on */
    if (feeder_start(feeder, &p->session)) fail_msg("%s", error_text());
    while (sem_wait(&p->over)) {
    } /* ends: a signal alone interrupts it */
    const size_t most = allocated_most();
    feeder_close(feeder);
    port = NULL;
    loop_close(loop);
    sem_destroy(&p->over);
    session_close(&p->session);
    device_close(&p->device);
    spec_free(&p->spec);
    if (p->wrong[0]) fail_msg("%s", p->wrong);
    if (most > ALLOCATED_MAX) fail_msg("%zu bytes at once", most);
}

static void try_state(enum state state, bool is_handed_out, int step)
{
    static struct port p;
    p = (struct port){.is_handed_out = is_handed_out, .state = state, .step = step};
    if (!lies_next(&p.lie)) fail_msg("there is nothing to say");
    open_port(&p, state == AMID_BATCHES);
    run_port(&p);
    /* without a liar it gets a batch in each turn */
    if (p.worker.next < (uint64_t)p.turns / 2)
        fail_msg("%s: %llu batches in %d turns", state_names[state],
                 (unsigned long long)p.worker.next, p.turns);
}

static void whoever_calls_is_named_and_slows_nobody(void **unused)
{
    (void)unused;
    try_state(STRANGER, false, 1);
    try_state(GREETED, false, 1);
    try_state(ASKED, false, SOME);
    try_state(AMID_BATCHES, false, 3 * SOME);
}

static void likewise_where_batches_are_handed_out(void **unused)
{
    (void)unused;
    try_state(GREETED, true, SOME);
    try_state(ASKED, true, SOME);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whoever_calls_is_named_and_slows_nobody),
        cmocka_unit_test(likewise_where_batches_are_handed_out),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
