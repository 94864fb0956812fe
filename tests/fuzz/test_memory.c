/* test_memory.c - a job of processes that share memory, one of which is hostile: what both ends map
 * (rings, windows of gradients, values and rows) changes while the other end reads it.
 *
 * The hostile worker is this process: it comes again and again, says what a seed draws, writes all
 * over what it maps, and the ps and the chief train on. The hostile ps is one whose thread writes
 * over all that it shares with a worker: nobody's process dies of it, or stays. So it is with a ps
 * that follows another one, too (core/base/replicas.h).
 */
#include "core/base/clock.h"
#include "core/base/log.h"
#include "core/base/random.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/runner/runner_ps_inside.h"
#include "core/cluster/runner/runner_worker_inside.h"
#include "net/shm/shm.h"
#include "tests/fuzz/job.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* last: it has a macro named fail */

enum {
    VISITS = 20, /* of the hostile worker, each with windows */
    SAID_MAX = 60,
    WRITTEN_MAX = 400,        /* between two words; */
    WRITTEN_LONG_MAX = 20000, /* while rows are asked for */
    COUNTS = 2,               /* words of a front that say how long it is */
    LAST_STEP = 1000,
    JOBS_MAX = 100,
    LIMIT_MS = 4 * 60 * 1000,    /* of a wait of the job's */
    SHORT_LIMIT_MS = 4000,       /* of one whose ps is hostile: any wait may come to that */
    BUSY_LIMIT_MS = 64 * 1000,   /* of such a one, where no shorter wait was enough */
    PATIENCE_MS = 5 * 60 * 1000, /* of this test */
    EXIT_FINE = 0,
    EXIT_WRONG = 3,
    HELD_TWICE = 3, /* ps, of which the last one follows the one before, */
    TWICE = 4,      /* in kinds of jobs from this one on, which are otherwise as those before */
    KINDS = 6,
    TASKS_MAX = HELD_TWICE + JOB_WORKERS, /* ps/0, ..., worker/0, worker/1 */
};

struct scene {
    int ps_count;
    int listens[HELD_TWICE]; /* descriptors */
    char ps_host[HELD_TWICE][ADDRESS_MAX], ps_hosts[HELD_TWICE * (ADDRESS_MAX + 4)];
    struct spec spec;
    const char *at_ps[HELD_TWICE], *at_worker[2];
    uint64_t limit_ms;
    int log; /* where processes write what they log */
};

static void open_scene(struct scene *s, uint8_t kind, uint64_t limit_ms)
{
    *s = (struct scene){
        .spec = *job_spec(kind), .log = memfd_create("log", 0), .limit_ms = limit_ms};
    s->spec.train.last_step = LAST_STEP;
    s->spec.placement.is_held_twice = kind >= TWICE;
    s->ps_count = kind >= TWICE ? HELD_TWICE : 1;
    for (int i = 0; i < s->ps_count; i++) {
        const size_t used = strlen(s->ps_hosts);
        assert_int_equal(address_reserve("127.0.0.1:0", s->ps_host[i], &s->listens[i]), OK);
        snprintf(s->ps_hosts + used, sizeof s->ps_hosts - used, "%s\"%s\"", i ? ", " : "",
                 s->ps_host[i]);
        s->at_ps[i] = s->ps_host[i];
    }
    s->at_worker[0] = "a:1";
    s->at_worker[1] = "b:1";
}

static void close_scene(struct scene *s)
{
    for (int i = 0; i < s->ps_count; i++) close(s->listens[i]);
    close(s->log);
}

/* Of a ps that is hostile: what it shares with worker/1 */
static struct scribbled {
    struct shm_control *control;
    struct link_windows windows;
    pthread_t thread;
    uint64_t key; /* 0: none is */
    int ps;
} hostile;

/* ---- processes ---- */

static struct cluster_spec cluster_of(const struct scene *s, enum job job, int task)
{
    struct cluster_spec c = job_cluster(job, task);
    c.hosts[JOB_PS] = (struct strings){(const char **)s->at_ps, s->ps_count};
    c.hosts[JOB_WORKER].at = (const char **)s->at_worker;
    return c;
}

static struct task_options options_of(const struct scene *s, const struct cluster_spec *c,
                                      struct loop *loop)
{
    struct task_options o = job_options(c, loop, &s->spec);
    o.transport = &transport_shm;
    o.limits = (struct wait_limits){.start_ms = s->limit_ms,
                                    .step_ms = s->limit_ms,
                                    .end_ms = s->limit_ms,
                                    .restart_ms = s->limit_ms,
                                    .ps_ms = s->limit_ms,
                                    .stop_ms = s->limit_ms,
                                    .save_ms = s->limit_ms};
    return o;
}

/* How a task has ended */
static int run_ps(const struct scene *s, int task, struct loop *loop)
{
    char listens[32];
    const struct cluster_spec c = cluster_of(s, JOB_PS, task);
    struct task_options o = options_of(s, &c, loop);
    struct runner_ps *ps = NULL;
    snprintf(listens, sizeof listens, "fd:%d", s->listens[task]);
    o.listen = listens;
    fuzz_holds(runner_ps_open(&o, job_device(), &ps) == OK, error_text());
    struct task *const tasks[] = {runner_ps_task(ps)};
    fuzz_holds(tasks_run(tasks, 1) == OK, error_text());
    const int code = tasks[0]->code;
    runner_ps_close(ps);
    return code;
}

static int run_worker(struct scene *s, int task, struct loop *loop)
{
    const struct cluster_spec c = cluster_of(s, JOB_WORKER, task);
    const struct runner_worker_options o = {
        .task = options_of(s, &c, loop), .spec = &s->spec, .device = job_device()};
    struct runner_worker *worker = NULL;
    fuzz_holds(runner_worker_open(&o, &worker) == OK, error_text());
    struct task *const tasks[] = {runner_worker_task(worker)};
    fuzz_holds(tasks_run(tasks, 1) == OK, error_text());
    const int code = tasks[0]->code;
    (void)runner_worker_end(worker);
    runner_worker_close(worker);
    return code;
}

/* i: ps/0, ..., worker/0, worker/1. may_fail: whatever the job comes to, a task ends as tasks do.
 */
static pid_t start(struct scene *s, int i, bool may_fail)
{
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child) return child;
    struct loop *loop;
    char name[TASK_NAME_MAX];
    const int worker = i - s->ps_count;
    if (i != hostile.ps) hostile.key = 0;
    log_set_task(task_name(worker < 0 ? JOB_PS : JOB_WORKER, worker < 0 ? i : worker, name));
    log_set_level(LOG_INFO);
    fuzz_holds(dup2(s->log, STDERR_FILENO) >= 0, "a log");
    fuzz_holds(loop_open(&loop) == OK, error_text());
    const int code = worker < 0 ? run_ps(s, i, loop) : run_worker(s, worker, loop);
    loop_close(loop);
    const bool is_fine = may_fail || code == EXIT_DONE || code == EXIT_NUMBER;
    if (!is_fine) fprintf(stderr, "ended with %d\n", code);
    exit(is_fine ? EXIT_FINE : EXIT_WRONG); /* and what leaks is told */
}

static char *log_of(const struct scene *s)
{
    const off_t bytes = lseek(s->log, 0, SEEK_END);
    char *text = calloc(1, (size_t)bytes + 1);
    assert_non_null(text);
    assert_int_equal(pread(s->log, text, (size_t)bytes, 0), bytes);
    return text;
}

/* Whether it has ended, and then well. */
static bool has_ended(const struct scene *s, pid_t *child, uint64_t since_ms)
{
    int status = 0;
    if (!*child) return true;
    const pid_t ended = waitpid(*child, &status, WNOHANG);
    if (!ended && clock_ms() - since_ms < PATIENCE_MS) return false;
    if (!ended) kill(*child, SIGKILL);
    *child = 0;
    if (!ended || status) {
        char *text = log_of(s);
        print_error("%s\n", text);
        free(text);
        fail_msg("%s, status %x", ended ? "a process died" : "a process does not end", status);
    }
    return true;
}

/* ---- a hostile worker ---- */

struct visitor {
    struct loop *loop, *idle;
    struct cluster_spec cluster;
    struct runner_worker *like; /* it could be this one, which never runs */
    struct peer_place place;
    int ps; /* that it visits */
    struct link_windows expected;
    struct peer_link peer;
    char shm[ADDRESS_MAX]; /* where the ps listens over it; "" not known */
    bool has_windows;
    bool spares_rings; /* on this visit: what it says is mostly right, and is what brings numbers */
    uint64_t key, draws, asked;
    int visits;
};

static uint64_t draw(struct visitor *v)
{
    return random_u64(v->key, v->draws++);
}

static void on_opened(void *context, struct link *link)
{
    struct visitor *v = context;
    (void)link;
    peer_greet(&v->peer, &v->place, MESSAGE_HELLO);
}

/* It says where it listens as "shm": "dtrain-..." */
static void note_name(struct visitor *v, const struct message *m)
{
    const char *body = m->body;
    const char *name = body ? memmem(body, m->body_bytes, "dtrain-", strlen("dtrain-")) : NULL;
    size_t bytes = 0;
    if (!name) return;
    while (name + bytes < body + m->body_bytes && name[bytes] != '"') bytes++;
    if (bytes < sizeof v->shm) snprintf(v->shm, sizeof v->shm, "%.*s", (int)bytes, name);
}

static void on_message(void *context, struct link *link, const struct message *m)
{
    struct visitor *v = context;
    const struct message joins = {.type = MESSAGE_JOIN,
                                  .task = (uint32_t)v->place.task,
                                  .job = JOB_WORKER,
                                  .generation = m->generation,
                                  .join.number = 1};
    const struct message heard = {
        .type = MESSAGE_VERDICT, .task = (uint32_t)v->place.task, .job = JOB_WORKER};
    peer_note(&v->peer, m);
    if (m->type == MESSAGE_WELCOME) note_name(v, m);
    if (m->type == MESSAGE_VERDICT && link->state == LINK_OPEN) (void)link_send(link, &heard);
    if (m->type == MESSAGE_STATE && m->generation && link->state == LINK_OPEN)
        (void)link_send(link, &joins);
}

static void on_shared(void *context, struct link *link, const struct link_windows *windows)
{
    (void)link;
    (void)windows;
    ((struct visitor *)context)->has_windows = true;
}

static void on_closed(void *context, struct link *link, err why)
{
    (void)link;
    (void)why;
    ((struct visitor *)context)->peer.link = NULL;
}

static const struct link_events visitor_events = {
    .opened = on_opened, .message = on_message, .shared = on_shared, .closed = on_closed};

/* By what it means: whoever belongs to a job may end it. */
static bool ends_a_job(uint32_t type)
{
    return type == MESSAGE_SETUP || type == MESSAGE_STOP || type == MESSAGE_VERDICT ||
           type == MESSAGE_FINISHED || type == MESSAGE_LEAVE || type == MESSAGE_ASK;
}

static uint8_t draw_type(struct visitor *v)
{
    static const uint8_t bring[] = {MESSAGE_PUSH, MESSAGE_ROWS, MESSAGE_JOIN, MESSAGE_PART};
    const uint64_t drawn = draw(v);
    return (uint8_t)(v->spares_rings && drawn % 8 ? bring[drawn / 8 % sizeof bring]
                                                  : drawn / 8 % (MESSAGE_TYPES + 2));
}

static void say(struct visitor *v)
{
    enum { RIGHT = 18 /* by tests/fuzz/peer.c; and no body */ };
    uint8_t bytes[64] = {draw_type(v)};
    for (size_t i = 2; i < sizeof bytes; i++) {
        const uint64_t drawn = draw(v);
        bytes[i] = drawn % (v->spares_rings ? 64 : 4) ? RIGHT : (uint8_t)(drawn >> 8);
    }
    if (ends_a_job(bytes[0])) return;
    struct view input = {bytes, bytes + sizeof bytes};
    peer_say(&v->peer, &v->place, &input);
}

/* Rows as a worker would ask for them, of ids that were drawn: what follows is to change while it
 * is read. */
static void ask_for_rows(struct visitor *v)
{
    const struct rows_link *own = &v->like->session.rows.links[0];
    const struct window *w = v->peer.link ? &v->peer.link->shared.windows.rows : NULL;
    if (!w || v->peer.link->state != LINK_OPEN || !w->base || !w->bytes) return;
    struct area_counts counts = own->counts;
    area_counts_clear(&own->area, &counts);
    for (int i = 0; i < own->area.count; i++)
        counts.wanted[i] = (int64_t)(draw(v) % (uint64_t)(own->area.slices[i].most + 1));
    area_counts_sum(&own->area, &counts);
    area_write_counts(&own->area, &counts, w->base);
    int64_t *ids = area_wanted_ids(&own->area, &counts, w->base);
    for (int64_t i = 0; i < counts.wanted_rows; i++) ids[i] = (int64_t)(draw(v) >> 40);
    const struct message m = {.type = MESSAGE_ROWS,
                              .task = (uint32_t)v->place.task,
                              .job = JOB_WORKER,
                              .generation = v->peer.heard.generation,
                              .length = area_front_bytes(&own->area, &counts, true),
                              .rows = {ROWS_ASKED, .request_id = ++v->asked}};
    (void)link_send(v->peer.link, &m);
}

/* What is small and what is near to what stood there leads further than what is random. */
static void change(_Atomic uint64_t *word, uint64_t drawn)
{
    const uint64_t was = atomic_load(word), small = drawn >> 58;
    atomic_store(word, drawn & 1 ? was + small - 32 : drawn & 2 ? small : drawn);
    if (drawn & 4) atomic_store(word, was); /* back, before it is looked at again */
}

static void change_window(const struct window *w, uint64_t at, uint64_t drawn)
{
    if (w->base && w->bytes >= 8) change((_Atomic uint64_t *)w->base + at % (w->bytes / 8), drawn);
}

/* Not what kind of message it is, so that none ends the job. */
static void change_ring(struct ring *ring, uint64_t at, uint64_t drawn)
{
    struct ring_slot *slot = &ring->slots[at % RING_SLOTS];
    const uint64_t word = at / RING_SLOTS % RING_HEADER_WORDS;
    if (word)
        change(&slot->words[word], drawn);
    else
        change(&slot->turn, drawn & ~UINT64_C(2)); /* never all anew: the ring would go round */
}

static void scribble(struct visitor *v)
{
    const struct link *link = v->peer.link;
    if (!link || link->state != LINK_OPEN || !link->shared.is_there) return;
    struct shm_control *control = ((struct shm *)link)->control;
    const uint64_t drawn = draw(v), at = draw(v);
    switch (v->spares_rings ? 4 + at % 12 : at >> 60) {
    case 0:
        change(&control->ring[1].consumed, drawn);
        break;
    case 1:
        atomic_store(&control->ring[1].taker_sleeps, (uint32_t)drawn);
        atomic_store(&control->ring[0].putter_waits, (uint32_t)(drawn >> 32));
        break;
    case 2:
    case 3:
        change_ring(&control->ring[0], at, drawn);
        break;
    case 4:
    case 5:
    case 6:
    case 7: /* mostly, for a moment, how much is asked for */
        if (v->spares_rings && at >> 61)
            change_window(&link->shared.windows.rows, at / 16 % COUNTS, drawn | 4);
        else
            change_window(&link->shared.windows.rows, at, drawn);
        break;
    default:
        change_window(&link->shared.windows.gradients, at, drawn);
    }
}

static void leave(struct visitor *v)
{
    if (v->peer.link) link_close(v->peer.link);
    v->peer.link = NULL;
    v->has_windows = false;
}

/* Over TCP it hears where the memory is; then it comes there. */
static void come(struct visitor *v, const struct scene *s)
{
    const struct transport *t = v->shm[0] ? &transport_shm : &transport_tcp;
    v->peer = (struct peer_link){0};
    if (t->connect(v->loop, v->shm[0] ? v->shm : s->ps_host[v->ps], &visitor_events, v,
                   &v->peer.link))
        v->peer.link = NULL;
    else
        link_expect(v->peer.link, &v->expected);
}

static void visit(struct visitor *v, const struct scene *s)
{
    if (!v->peer.link) come(v, s);
    loop_poll(v->loop, 1);
    const bool is_shm = v->peer.link && link_transport(v->peer.link) == &transport_shm;
    if (v->shm[0] && v->peer.link && !is_shm) leave(v);
    if (!v->has_windows || !is_shm) return;
    v->spares_rings = draw(v) % 2;
    for (uint64_t i = draw(v) % SAID_MAX; i > 0 && v->peer.link; i--) {
        for (uint64_t k = draw(v) % WRITTEN_MAX; k > 0; k--) scribble(v);
        say(v);
        const bool asks = v->spares_rings && i % 2;
        if (asks) ask_for_rows(v);
        const uint64_t most = asks ? WRITTEN_LONG_MAX : WRITTEN_MAX;
        for (uint64_t k = draw(v) % most; k > 0; k--) scribble(v);
        if (i % 4 == 0) loop_poll(v->loop, 0);
    }
    v->visits++;
    leave(v);
}

static void measure(struct scene *s, struct visitor *v)
{
    v->cluster = cluster_of(s, JOB_WORKER, 1);
    const struct runner_worker_options o = {
        .task = options_of(s, &v->cluster, v->idle), .spec = &s->spec, .device = job_device()};
    assert_int_equal(runner_worker_open(&o, &v->like), OK);
    const struct window block = {.bytes = runner_worker_block_bytes(v->like, v->ps)};
    const size_t rows = v->ps ? 0 : rows_window_bytes(&v->like->session.rows, 0);
    v->expected = (struct link_windows){block, block, {.bytes = rows}};
}

/* For which the ps waits. */
static void hear_end(struct visitor *v, const struct scene *s)
{
    if (!v->peer.link) come(v, s);
    loop_poll(v->loop, 1);
}

/* One job, trained by others to its end */
static int visits_of(uint8_t kind, uint64_t seed)
{
    struct scene s;
    struct visitor v = {.key = random_key(seed, "memory"),
                        .ps = kind < TWICE ? 0 : HELD_TWICE - 1 - (int)(seed % 2)};
    open_scene(&s, kind, LIMIT_MS);
    assert_int_equal(loop_open(&v.loop), OK);
    assert_int_equal(loop_open(&v.idle), OK);
    /* Before there are threads: one of them may hold a lock of the allocator, which then nobody
     * gives back in a child. */
    pid_t children[HELD_TWICE + 1];
    for (int i = 0; i <= s.ps_count; i++) children[i] = start(&s, i, false);
    pid_t *const chief = &children[s.ps_count];
    measure(&s, &v);
    v.place = job_place(JOB_WORKER, 1);
    v.place.ps_hosts = s.ps_hosts;
    const uint64_t since_ms = clock_ms();
    while (!has_ended(&s, chief, since_ms)) visit(&v, &s);
    for (int i = 0; i < s.ps_count; i++)
        while (!has_ended(&s, &children[i], since_ms)) hear_end(&v, &s);
    leave(&v);
    runner_worker_close(v.like);
    loop_close(v.idle);
    loop_close(v.loop);
    char *text = log_of(&s);
    if (v.visits && !strstr(text, "worker/1")) fail_msg("nobody is named: %s", text);
    free(text);
    close_scene(&s);
    return v.visits;
}

static void try_kind(uint8_t kind)
{
    int visits = 0;
    for (uint64_t job = 0; job < JOBS_MAX && visits < VISITS; job++)
        visits += visits_of(kind, 100 * kind + job);
    assert_true(visits >= VISITS);
}

static void a_worker_that_writes_over_shared_memory_stops_nobody(void **state)
{
    (void)state;
    /* Not the last kind: it is synchronous, and the ps that this worker does not visit would wait
     * for it. */
    for (uint8_t kind = 0; kind < KINDS - 1; kind++) try_kind(kind);
}

/* ---- a hostile ps ---- */

static const char WRITES_OVER[] = "writes over what it shares with worker/1";

/* Another place where the same memory is, which nobody else unmaps. */
static void *map_again(void *at, size_t bytes)
{
    void *ret = bytes ? mremap(at, 0, bytes, MREMAP_MAYMOVE) : NULL;
    return ret == MAP_FAILED ? NULL : ret;
}

static void *write_all_over(void *context)
{
    (void)context;
    _Atomic uint64_t *ring = (_Atomic uint64_t *)&hostile.control->ring[1];
    for (uint64_t i = 0; i < UINT64_MAX; i += 2) {
        const uint64_t drawn = random_u64(hostile.key, i), at = random_u64(hostile.key, i + 1);
        switch (at >> 61) {
        case 0:
            change(&ring[at % (sizeof(struct ring) / 8)], drawn);
            break;
        case 1:
            change(&hostile.control->ring[0].consumed, drawn);
            break;
        case 2:
            change_window(&hostile.windows.rows, at, drawn);
            break;
        default:
            change_window(&hostile.windows.values, at, drawn);
        }
        if (i % 1024 == 0) usleep(100); /* the tasks have their turn, too */
    }
    return NULL;
}

err __real_link_share(struct link *, const struct link_windows *);
err __wrap_link_share(struct link *, const struct link_windows *);

/* The ps and a worker have memory in common: from now on it changes. */
err __wrap_link_share(struct link *link, const struct link_windows *windows)
{
    const struct connection *c = hostile.key ? link->context : NULL;
    if (c && c->worker == 1 && link->ops->shares_memory && !hostile.control) {
        hostile.control = map_again(((struct shm *)link)->control, sizeof *hostile.control);
        hostile.windows = *windows;
        hostile.windows.rows.base = map_again(windows->rows.base, windows->rows.bytes);
        hostile.windows.values.base = map_again(windows->values.base, windows->values.bytes);
        fuzz_holds(hostile.control && hostile.windows.values.base, "memory is mapped twice");
        fuzz_holds(!pthread_create(&hostile.thread, NULL, write_all_over, NULL), "a thread");
        log_line(LOG_INFO, "%s", WRITES_OVER);
    }
    return __real_link_share(link, windows);
}

/* Whether the ps came to write */
static bool writes_over(uint8_t kind, uint64_t job, uint64_t limit_ms)
{
    const uint64_t seed = job * KINDS + kind;
    struct scene s;
    pid_t children[TASKS_MAX];
    open_scene(&s, kind, limit_ms);
    const int tasks = s.ps_count + JOB_WORKERS;
    const uint64_t since_ms = clock_ms();
    hostile.key = random_key(seed, "ps");
    hostile.ps = s.ps_count == 1 ? 0 : HELD_TWICE - 1 - (int)(job % 2);
    for (int i = 0; i < tasks; i++) children[i] = start(&s, i, true);
    for (int i = 0; i < tasks; i++)
        while (!has_ended(&s, &children[i], since_ms)) usleep(1000);
    char *text = log_of(&s);
    const bool ret = strstr(text, WRITES_OVER) != NULL;
    free(text);
    close_scene(&s);
    return ret;
}

static void a_ps_that_writes_over_shared_memory_stops_no_process(void **state)
{
    enum { JOBS = 3 };
    (void)state;
    for (uint8_t kind = 0; kind < KINDS; kind++) {
        bool has_written = false;
        uint64_t job = 0;
        for (; job < JOBS; job++) has_written |= writes_over(kind, job, SHORT_LIMIT_MS);
        /* Where the machine is busy, tasks may need longer until they share anything. */
        for (uint64_t ms = 2 * SHORT_LIMIT_MS; !has_written && ms <= BUSY_LIMIT_MS; ms *= 2)
            has_written = writes_over(kind, job++, ms);
        assert_true(has_written);
    }
    hostile.key = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_writes_over_shared_memory_stops_nobody),
        cmocka_unit_test(a_ps_that_writes_over_shared_memory_stops_no_process),
    };
    log_set_level(LOG_ERROR);
#ifdef __SANITIZE_THREAD__
    return 77; /* a race is what it makes: the other side may be any program */
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
