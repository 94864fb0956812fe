/* test_floods.c - each kind of message over and over, its numbers right or at an end of their
 * ranges, to a ps by who has greeted as worker/1 and by a stranger, and to a chief and a worker by
 * the ps that serves them beside, also where one ps follows another (core/base/replicas.h): the job
 * trains at half of its speed at least, in turns of the loop, nothing is allocated for what a
 * number only announces, and what the job saves begins another one.
 */
#include "tests/fuzz/allocated.h"
#include "tests/fuzz/job.h"
#include "tests/fuzz/lies.h"

#include "core/base/log.h"
#include "core/cluster/role/ps_role.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role.h"
#include "core/cluster/runner/runner_ps.h"
#include "core/cluster/runner/runner_worker_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h> /* last: it has a macro named fail */

enum {
    EACH_TURN = LINK_MESSAGES_PER_LOOK_MAX + 8,
    EACH_TURN_OF_PS = 32, /* what it means comes behind them, over the same link */
    STEP_WAITS = 3 * 20,  /* turns of a round for a worker that comes, brings something and goes */
    SOME = 5,             /* of the kinds */
    LIES_OF_KIND_MAX = 200,
    TURNS_MAX = 20000,
    WAITED_MS = 20,
    MEASURED = JOB_LAST_STEP - 2, /* the last step may be one that a worker has, and waits for it */
    ALLOCATED_MAX = 1 << 20,      /* more than the job's own needs: none of its blocks has 32 KiB */
    KINDS = MESSAGE_TYPES + 2,
    HELD_TWICE = 3,       /* ps of a job whose last one follows the one before */
    PS_MISSED_MS = 10000, /* none is */
    NUMBERS = 16,         /* bytes of an input, of which each makes a number, or a body */
};

/* ---- a job ---- */

enum flooded_by { NOBODY_FLOODS, A_STRANGER, A_WORKER, THE_PS };

struct flood {
    enum flooded_by by;
    uint32_t type;  /* MESSAGE_TYPES + 2: it comes, and is silent */
    uint8_t number; /* what each is (tests/fuzz/peer.c); of THE_PS: those of lies.h, in turn */
    bool is_early;  /* as soon as the chief leads, before any ps serves */
    int ps;         /* that hears it; of THE_PS: which one */
    int victim;     /* of THE_PS: the worker that hears it */
    bool is_held_twice;
    const char *folder; /* of checkpoints, or NULL */
};

struct scene {
    struct loop *loop;
    int ps_count;
    struct runner_ps *ps[HELD_TWICE];
    struct runner_worker *chief, *worker; /* worker/1, or NULL: its place is free */
    struct peer_place place;
    struct peer_link peer;
    struct flood flood;
    bool has_greeted;
    struct lie lie;
    uint64_t last_step, from; /* from: of the first values that it saw */
    int began, ended;         /* turns of the first (or what is_early says) and the last step */
};

static const char *ps_hosts[HELD_TWICE] = {"ps:1", "ps:2", "ps:3"};

static struct scene scene_of(struct flood flood)
{
    struct scene s = {.flood = flood, .ps_count = 1, .place = job_place(JOB_WORKER, 1)};
    if (!flood.is_held_twice) return s;
    s.ps_count = HELD_TWICE;
    s.place.ps_hosts = "\"ps:1\", \"ps:2\", \"ps:3\"";
    return s;
}

static struct cluster_spec cluster_of(const struct scene *s, enum job job, int task)
{
    struct cluster_spec c = job_cluster(job, task);
    c.hosts[JOB_PS] = (struct strings){ps_hosts, s->ps_count};
    return c;
}

static void on_opened(void *context, struct link *link)
{
    (void)context;
    (void)link;
}

static void on_message(void *context, struct link *link, const struct message *m)
{
    (void)link;
    peer_note(&((struct scene *)context)->peer, m);
}

static void on_closed(void *context, struct link *link, err why)
{
    (void)link;
    (void)why;
    ((struct scene *)context)->peer.link = NULL;
}

static const struct link_events events = {
    .opened = on_opened, .message = on_message, .closed = on_closed};

static void come(struct scene *s)
{
    const int ps = s->flood.ps;
    const struct window block = {.bytes = runner_worker_block_bytes(s->chief, ps)};
    const struct window rows = {
        .bytes = s->ps_count == 1 ? rows_window_bytes(&s->chief->session.rows, ps) : 0};
    s->has_greeted = false;
    assert_int_equal(transport_inproc.connect(s->loop, ps_hosts[ps], &events, s, &s->peer.link),
                     OK);
    link_expect(s->peer.link, &(struct link_windows){block, block, rows});
}

/* Whoever is hung up on comes again, at once. */
static void say_much(struct scene *s)
{
    if (!s->peer.link) come(s);
    if (s->peer.link->state != LINK_OPEN) return;
    if (!s->has_greeted && s->flood.by == A_WORKER) {
        const struct message joins = {.type = MESSAGE_JOIN,
                                      .task = (uint32_t)s->place.task,
                                      .job = JOB_WORKER,
                                      .generation = s->peer.heard.generation,
                                      .join.number = 1};
        peer_greet(&s->peer, &s->place, MESSAGE_HELLO);
        (void)link_send(s->peer.link, &joins);
    }
    s->has_greeted = true;
    for (int i = 0; i < EACH_TURN && s->peer.link && s->flood.type < KINDS; i++) {
        uint8_t bytes[2 + NUMBERS] = {(uint8_t)s->flood.type};
        memset(bytes + 2, s->flood.number, NUMBERS);
        struct view input = {bytes, bytes + sizeof bytes};
        peer_say(&s->peer, &s->place, &input);
    }
}

/* The next one of this kind that no ps may say; false: all are within their ranges. */
static bool next_lie(struct scene *s)
{
    for (int tries = 0; tries < LIES_OF_KIND_MAX; tries++) {
        if (s->lie.type != s->flood.type) s->lie = (struct lie){.type = s->flood.type, .index = -1};
        if (!lies_next(&s->lie) || s->lie.type != s->flood.type) continue;
        if (s->lie.field < MESSAGE_PLACES && !lie_is_allowed(&s->lie, FROM_PS)) return true;
    }
    return false;
}

/* Over the link that the ps serves it by. */
static void say_much_as_ps(struct scene *s)
{
    const struct task *victim = runner_worker_task(s->flood.victim ? s->worker : s->chief);
    const struct link *link = victim->peers[s->flood.ps].link;
    if (!link || link->state != LINK_OPEN) return;
    struct peer_link ps = {.link = link->ops->other_end(link)};
    for (int i = 0; i < EACH_TURN_OF_PS && ps.link && next_lie(s); i++) {
        struct message m = {.type = s->flood.type,
                            .task = (uint32_t)s->flood.ps,
                            .job = JOB_PS,
                            .generation = worker_role_generation(victim->role)};
        lie_into(&m, &s->lie);
        peer_send(&ps, &m);
    }
}

static void flood(struct scene *s)
{
    if (s->flood.by == THE_PS)
        say_much_as_ps(s);
    else if (s->flood.by != NOBODY_FLOODS)
        say_much(s);
}

static void drive(void *context, int turn)
{
    struct scene *s = context;
    const uint64_t step = ps_role_step(runner_ps_task(s->ps[0])->role);
    const struct role *chief = runner_worker_task(s->chief)->role;
    if (!s->began && (s->flood.is_early ? worker_role_leads(chief) : step > 0)) s->began = turn;
    if (s->began && !s->from) s->from = step;
    if (!s->ended && step >= s->last_step - 2) s->ended = turn;
    if (s->began && !s->ended) flood(s);
    if (s->ended && s->peer.link) {
        link_close(s->peer.link);
        s->peer.link = NULL;
    }
    if (s->ended) peer_pass(WAITED_MS);
}

static bool has_files_in_hand(void *context)
{
    const struct scene *s = context;
    bool has = false;
    for (int i = 0; i < s->ps_count; i++) has |= job_has_files_in_hand(s->ps[i], s->chief);
    return has;
}

static void open_worker(struct scene *s, struct spec *spec, int task)
{
    static struct cluster_spec clusters[JOB_WORKERS];
    clusters[task] = cluster_of(s, JOB_WORKER, task);
    struct runner_worker_options options = {
        .task = job_options(&clusters[task], s->loop, spec), .spec = spec, .device = job_device()};
    if (s->flood.is_early) options.task.limits.chief_ms = options.task.limits.start_ms;
    options.task.limits.ps_ms = PS_MISSED_MS;
    if (runner_worker_open(&options, task ? &s->worker : &s->chief)) fail_msg("%s", error_text());
}

static void open_ps(struct scene *s, struct spec *spec, int task)
{
    static struct cluster_spec clusters[HELD_TWICE];
    clusters[task] = cluster_of(s, JOB_PS, task);
    struct task_options options = job_options(&clusters[task], s->loop, spec);
    if (s->flood.is_early)
        options.limits.chief_ms = options.limits.start_ms; /* others could lead */
    assert_int_equal(runner_ps_open(&options, job_device(), &s->ps[task]), OK);
}

static void close_job(struct scene *s)
{
    assert_int_equal(runner_worker_end(s->chief), OK);
    runner_worker_close(s->chief);
    if (s->worker) assert_int_equal(runner_worker_end(s->worker), OK);
    if (s->worker) runner_worker_close(s->worker);
    for (int i = 0; i < s->ps_count; i++) runner_ps_close(s->ps[i]);
    loop_close(s->loop);
}

static void run_job(struct scene *s, uint8_t kind)
{
    struct spec spec = *job_spec(kind);
    if (!s->last_step) s->last_step = JOB_LAST_STEP;
    spec.train.last_step = s->last_step;
    spec.train.checkpoint.dir = (char *)s->flood.folder;
    assert_int_equal(loop_open(&s->loop), OK);
    spec.placement.is_held_twice = s->flood.is_held_twice;
    struct task *tasks[HELD_TWICE + JOB_WORKERS];
    for (int i = 0; i < s->ps_count; i++) open_ps(s, &spec, i);
    open_worker(s, &spec, 0);
    if (s->flood.by == THE_PS) open_worker(s, &spec, 1);
    int count = 0;
    for (int i = 0; i < s->ps_count; i++) tasks[count++] = runner_ps_task(s->ps[i]);
    struct task *const chief = tasks[count++] = runner_worker_task(s->chief);
    if (s->worker) tasks[count++] = runner_worker_task(s->worker);
    struct job_turns turns = {
        .drive = drive, .context = s, .most = TURNS_MAX, .waits = has_files_in_hand};
    allocated_most();
    job_run(&turns, tasks, count);
    if (chief->code != EXIT_DONE)
        fail_msg("%s, numbers %d, ps/%d: %s", message_name(s->flood.type), s->flood.number,
                 s->flood.ps, chief->text);
    close_job(s);
}

/* From the first step to the last that is measured */
static int turns_of(uint8_t kind, struct flood flood)
{
    struct scene s = scene_of(flood);
    run_job(&s, kind);
    if (!s.began || s.ended < s.began)
        fail_msg("%s, numbers %d: %d to %d", message_name(flood.type), flood.number, s.began,
                 s.ended);
    return s.ended - s.began + 1;
}

/* By what it means, whoever says it */
static bool ends_a_job(uint32_t type)
{
    return type == MESSAGE_SETUP || type == MESSAGE_STOP || type == MESSAGE_VERDICT ||
           type == MESSAGE_FINISHED;
}

static void try_one(uint8_t kind, const struct flood *flood, int quiet)
{
    const int turns = turns_of(kind, *flood);
    if (turns > 2 * quiet)
        fail_msg("job %d, %s, numbers %d, ps/%d: %d turns, %d without", kind,
                 message_name(flood->type), flood->number, flood->ps, turns, quiet);
    const size_t most = allocated_most();
    if (most > ALLOCATED_MAX)
        fail_msg("%s, numbers %d: %zu bytes at once", message_name(flood->type), flood->number,
                 most);
}

static const uint8_t numbers[] = {8 /* right */, 0, 1, 2, 4, 6};
enum { SETS = sizeof numbers / sizeof *numbers };

/* A round waits for whoever has the place of a worker: three times worker_timeout_secs in each
 * step. step: of the pairs of kind and numbers */
static void try_all(uint8_t kind, struct flood flood, int step)
{
    const bool is_sync = kind % 2;
    const int turns = turns_of(kind, (struct flood){.is_early = flood.is_early,
                                                    .is_held_twice = flood.is_held_twice}) +
                      (is_sync && flood.by == A_WORKER ? MEASURED * STEP_WAITS / 2 : 0);
    for (int i = 0; i < KINDS * SETS; i += step) {
        flood.type = (uint32_t)(i / SETS);
        flood.number = numbers[i % SETS];
        if (!ends_a_job(flood.type) || flood.by == A_STRANGER) try_one(kind, &flood, turns);
    }
}

/* All of them to a ps with tables here, to one without in the next test, whose floods go on while
 * it serves. */
static void a_worker_that_floods_a_ps_slows_nobody(void **state)
{
    (void)state;
    for (uint8_t kind = 0; kind < 4; kind++)
        try_all(kind, (struct flood){.by = A_WORKER}, kind == 2 ? 1 : SOME);
}

static void a_worker_that_floods_a_ps_before_it_serves_takes_nothing(void **state)
{
    (void)state;
    try_all(0, (struct flood){.by = A_WORKER, .is_early = true}, 1);
}

static void a_stranger_that_floods_a_ps_slows_nobody(void **state)
{
    (void)state;
    try_all(0, (struct flood){.by = A_STRANGER}, 1);
}

/* A ps that serves, and says beside what none may say */
static void a_ps_that_floods_a_worker_slows_nobody(void **state)
{
    (void)state;
    for (uint8_t kind = 0; kind < 4; kind++) {
        const int quiet = turns_of(kind, (struct flood){.by = THE_PS, .type = KINDS});
        /* MESSAGE_WINDOWS ends the link */
        for (uint32_t type = MESSAGE_WINDOWS + 1; type < KINDS; type++) {
            const struct flood flood = {.by = THE_PS, .type = type, .victim = (int)type % 2};
            const struct flood other = {.by = THE_PS, .type = type, .victim = !flood.victim};
            try_one(kind, &flood, quiet);
            if (kind == 0) try_one(kind, &other, quiet);
        }
    }
}

/* Of two that hold the same, of which workers read one. */
static void a_worker_that_floods_a_ps_held_twice_slows_nobody(void **state)
{
    (void)state;
    for (uint8_t kind = 0; kind < 2; kind++)
        for (int ps = 0; ps < HELD_TWICE; ps++)
            try_all(kind, (struct flood){.by = A_WORKER, .ps = ps, .is_held_twice = true}, SOME);
}

static void a_ps_held_twice_that_floods_a_worker_slows_nobody(void **state)
{
    (void)state;
    for (uint8_t kind = 0; kind < 2; kind++) {
        struct flood flood = {.by = THE_PS, .type = KINDS, .is_held_twice = true};
        const int quiet = turns_of(kind, flood);
        for (flood.type = MESSAGE_WINDOWS + 1; flood.type < KINDS; flood.type++) {
            flood.victim = (int)flood.type % 2;
            for (flood.ps = 0; flood.ps < HELD_TWICE; flood.ps++) try_one(kind, &flood, quiet);
        }
    }
}

/* Another job begins from it, and trains on. */
static void restore(uint8_t kind, const struct flood *flood)
{
    struct scene s =
        scene_of((struct flood){.folder = flood->folder, .is_held_twice = flood->is_held_twice});
    s.last_step = 2 * JOB_LAST_STEP;
    run_job(&s, kind);
    if (s.from < JOB_LAST_STEP)
        fail_msg("job %d began at step %llu", kind, (unsigned long long)s.from);
}

static void save_and_restore(uint8_t kind, struct flood flood)
{
    char folder[] = "/tmp/floods-XXXXXX";
    assert_non_null(mkdtemp(folder));
    flood.folder = folder;
    flood.number = numbers[flood.type % SETS];
    flood.by = flood.type % 2 ? THE_PS : A_WORKER;
    if (flood.by == THE_PS || !ends_a_job(flood.type)) {
        turns_of(kind, flood);
        restore(kind, &flood);
    }
    job_remove(folder);
}

static void what_a_flooded_job_saves_begins_another(void **state)
{
    (void)state;
    for (uint32_t type = 1; type < KINDS; type += SOME) {
        save_and_restore((uint8_t)(type % 4), (struct flood){.type = type});
        save_and_restore(
            (uint8_t)(type / 2 % 2),
            (struct flood){.type = type, .ps = (int)type % HELD_TWICE, .is_held_twice = true});
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_floods_a_ps_slows_nobody),
        cmocka_unit_test(a_worker_that_floods_a_ps_before_it_serves_takes_nothing),
        cmocka_unit_test(a_stranger_that_floods_a_ps_slows_nobody),
        cmocka_unit_test(a_ps_that_floods_a_worker_slows_nobody),
        cmocka_unit_test(a_worker_that_floods_a_ps_held_twice_slows_nobody),
        cmocka_unit_test(a_ps_held_twice_that_floods_a_worker_slows_nobody),
        cmocka_unit_test(what_a_flooded_job_saves_begins_another),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
