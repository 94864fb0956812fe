/* test_floods.c - each kind of message over and over, by who has greeted as worker/1 and by a
 * stranger, its numbers right or at an end of their ranges: the chief trains at half of its speed
 * at least, in turns of the loop, and nothing is allocated for what a number only announces. */
#include "tests/fuzz/allocated.h"
#include "tests/fuzz/job.h"

#include "core/base/log.h"
#include "core/cluster/role/ps_role.h"
#include "core/cluster/role/verdict.h"
#include "core/cluster/role/worker_role.h"
#include "core/cluster/runner/runner_ps.h"
#include "core/cluster/runner/runner_worker_inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h> /* last: it has a macro named fail */

enum {
    EACH_TURN = 100,
    TURNS_MAX = 20000,
    WAITED_MS = 20,
    MEASURED = JOB_LAST_STEP - 2, /* the last step may be one that a worker has, and waits for it */
    ALLOCATED_MAX = 1 << 20,      /* more than the job's own needs: none of its blocks has 32 KiB */
    NUMBERS = 16,                 /* bytes of an input, of which each makes a number, or a body */
};

/* ---- a job ---- */

struct flood {
    uint32_t type;
    uint8_t number; /* what each is (tests/fuzz/peer.c) */
    bool is_any, greets;
    bool is_early; /* as soon as the chief leads, before any ps serves */
};

struct scene {
    struct loop *loop;
    struct runner_ps *ps;
    struct runner_worker *chief;
    struct peer_place place;
    struct peer_link peer;
    struct flood flood;
    bool has_greeted;
    int began, ended; /* turns of the first (or what is_early says) and the last step */
};

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
    const struct window block = {.bytes = runner_worker_block_bytes(s->chief, 0)};
    const struct window rows = {.bytes = rows_window_bytes(&s->chief->session.rows, 0)};
    s->has_greeted = false;
    assert_int_equal(transport_inproc.connect(s->loop, "ps:1", &events, s, &s->peer.link), OK);
    link_expect(s->peer.link, &(struct link_windows){block, block, rows});
}

/* Whoever is hung up on comes again, at once. */
static void say_much(struct scene *s)
{
    if (!s->peer.link) come(s);
    if (s->peer.link->state != LINK_OPEN) return;
    if (!s->has_greeted && s->flood.greets) {
        const struct message joins = {.type = MESSAGE_JOIN,
                                      .task = (uint32_t)s->place.task,
                                      .job = JOB_WORKER,
                                      .generation = s->peer.heard.generation,
                                      .join.number = 1};
        peer_greet(&s->peer, &s->place, MESSAGE_HELLO);
        (void)link_send(s->peer.link, &joins);
    }
    s->has_greeted = true;
    for (int i = 0; i < EACH_TURN && s->peer.link; i++) {
        uint8_t bytes[2 + NUMBERS] = {(uint8_t)s->flood.type};
        memset(bytes + 2, s->flood.number, NUMBERS);
        struct view input = {bytes, bytes + sizeof bytes};
        peer_say(&s->peer, &s->place, &input);
    }
}

static void drive(void *context, int turn)
{
    struct scene *s = context;
    const uint64_t step = ps_role_step(runner_ps_task(s->ps)->role);
    const struct role *chief = runner_worker_task(s->chief)->role;
    if (!s->began && (s->flood.is_early ? worker_role_leads(chief) : step > 0)) s->began = turn;
    if (!s->ended && step >= MEASURED) s->ended = turn;
    if (s->began && !s->ended && s->flood.is_any) say_much(s);
    if (s->ended && s->peer.link) {
        link_close(s->peer.link);
        s->peer.link = NULL;
    }
    if (s->ended) peer_pass(WAITED_MS);
}

/* From the first step to the last that is measured */
static int turns_of(uint8_t kind, struct flood flood)
{
    struct scene s = {.flood = flood, .place = job_place(JOB_WORKER, 1)};
    struct spec *spec = job_spec(kind);
    const struct cluster_spec of_ps = job_cluster(JOB_PS, 0), of_chief = job_cluster(JOB_WORKER, 0);
    assert_int_equal(loop_open(&s.loop), OK);
    struct task_options ps_options = job_options(&of_ps, s.loop, spec);
    struct runner_worker_options options = {
        .task = job_options(&of_chief, s.loop, spec), .spec = spec, .device = job_device()};
    if (flood.is_early) /* others could lead */
        ps_options.limits.chief_ms = options.task.limits.chief_ms = ps_options.limits.start_ms;
    assert_int_equal(runner_ps_open(&ps_options, job_device(), &s.ps), OK);
    assert_int_equal(runner_worker_open(&options, &s.chief), OK);
    struct task *const tasks[] = {runner_ps_task(s.ps), runner_worker_task(s.chief)};
    struct job_turns turns = {.drive = drive, .context = &s, .most = TURNS_MAX};
    allocated_most();
    job_run(&turns, tasks, 2);
    if (tasks[1]->code != EXIT_DONE)
        fail_msg("%s, numbers %d: %s", message_name(flood.type), flood.number, tasks[1]->text);
    assert_int_equal(runner_worker_end(s.chief), OK);
    runner_worker_close(s.chief);
    runner_ps_close(s.ps);
    loop_close(s.loop);
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

static void try_all(uint8_t kind, bool greets, bool is_early)
{
    static const uint8_t numbers[] = {8 /* right */, 0, 1, 2, 4, 6};
    const int quiet = turns_of(kind, (struct flood){.is_early = is_early});
    for (uint32_t type = 0; type < MESSAGE_TYPES + 2; type++)
        for (size_t i = 0; i < sizeof numbers; i++) {
            if (ends_a_job(type) && greets) continue;
            const struct flood flood = {type, numbers[i], true, greets, is_early};
            const int turns = turns_of(kind, flood);
            if (turns > 2 * quiet)
                fail_msg("%s, numbers %d: %d turns, %d without", message_name(type), numbers[i],
                         turns, quiet);
            const size_t most = allocated_most();
            if (most > ALLOCATED_MAX)
                fail_msg("%s, numbers %d: %zu bytes at once", message_name(type), numbers[i], most);
        }
}

static void a_worker_that_floods_a_ps_slows_nobody(void **state)
{
    (void)state;
    try_all(0, true, false);
    try_all(2, true, false);
}

static void a_worker_that_floods_a_ps_before_it_serves_takes_nothing(void **state)
{
    (void)state;
    try_all(0, true, true);
}

static void a_stranger_that_floods_a_ps_slows_nobody(void **state)
{
    (void)state;
    try_all(0, false, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_that_floods_a_ps_slows_nobody),
        cmocka_unit_test(a_worker_that_floods_a_ps_before_it_serves_takes_nothing),
        cmocka_unit_test(a_stranger_that_floods_a_ps_slows_nobody),
    };
    log_set_level(LOG_ERROR);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
