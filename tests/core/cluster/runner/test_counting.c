/* test_counting.c - what a task puts up for others to look at (core/cluster/runner/counting.h). */
#include "core/base/error.h" /* before cmocka, which has a macro of the name fail */
#include "core/cluster/runner/counting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *hosts[] = {"a:1", "b:1"};
static const struct cluster_spec cluster = {
    .hosts = {[JOB_PS] = {hosts, 1}, [JOB_WORKER] = {hosts, 2}}, .job = JOB_WORKER, .task = 1};
static int counted, status;
static const char *now_is;

static void name_state(const struct role *role, char ret[ACTION_TEXT_MAX])
{
    snprintf(ret, ACTION_TEXT_MAX, "%s", now_is);
}

static bool count(struct task *t, struct counters *c)
{
    c->at[COUNTER_STEPS] = ++counted;
    return true;
}

static void tell(struct task *t, const struct task_status *what)
{
    status++;
}

static struct task_status shown(const struct task *t)
{
    int found;
    struct task_status *all = board_copy(t->counting.board, true, &found);
    assert_non_null(all);
    assert_int_equal(found, 1);
    const struct task_status own = all[0];
    free(all);
    return own;
}

static struct task_status heard(const struct task *t)
{
    int found;
    struct task_status *all = board_copy(t->counting.board, false, &found);
    assert_non_null(all);
    assert_int_equal(found, 1);
    const struct task_status one = all[0];
    free(all);
    return one;
}

static void a_task_that_has_ended_says_so_and_tells_nobody(void **state)
{
    static const struct role_ops role_ops = {.state = name_state};
    static const struct task_ops ops = {.count = count, .tell = tell};
    struct role role = {.ops = &role_ops};
    struct task t = {.ops = &ops, .role = &role, .job = JOB_WORKER, .index = 1, .started_ms = 1000};
    t.options.cluster = &cluster;
    assert_int_equal(loop_open(&t.options.loop), OK);
    assert_int_equal(counting_open(&t), OK);
    now_is = "computes";
    counting_tick(&t, 2000);
    assert_true(shown(&t).is_stepping);
    counting_tick(&t, 2000 + COUNTING_EVERY_MS / 2);
    assert_int_equal(counted, 1);
    assert_int_equal(board_turned_ms(t.counting.board), 2000 + COUNTING_EVERY_MS / 2);

    t.has_ended = true;
    now_is = "has ended";
    counting_tick(&t, 2000 + COUNTING_EVERY_MS);
    assert_false(shown(&t).is_stepping);
    assert_string_equal(shown(&t).state, "has ended");
    assert_true(shown(&t).counters.at[COUNTER_STEPS] == 1);
    assert_int_equal(board_turned_ms(t.counting.board), 2000 + COUNTING_EVERY_MS);
    assert_int_equal(status, 1);
    counting_close(&t);
    loop_close(t.options.loop);
}

static double recent_steps(struct board *b, uint64_t now_ms, double uptime_s, double steps,
                           double *ret_s)
{
    struct task_status now = {.index = 1, .heard_ms = now_ms};
    int found;
    now.counters.at[COUNTER_UPTIME] = uptime_s;
    now.counters.at[COUNTER_STEPS] = steps;
    now.counters.at[COUNTER_STEP] = steps; /* a gauge: as of now */
    assert_int_equal(board_put(b, JOB_WORKER, 1, &now), OK);
    struct task_status *all = board_copy(b, false, &found);
    assert_int_equal(found, 1);
    const struct task_status seen = all[0];
    free(all);
    assert_true(seen.recent.at[COUNTER_STEP] == 0);
    *ret_s = seen.recent_s;
    return seen.recent.at[COUNTER_STEPS];
}

static void what_was_counted_lately_is_known_apart(void **state)
{
    struct board *b;
    double seconds;
    assert_int_equal(board_open(&b), OK);
    assert_true(recent_steps(b, 1000, 1, 100, &seconds) == 0 && seconds == 0);
    assert_true(recent_steps(b, 11000, 11, 130, &seconds) == 30 && seconds == 10);
    assert_true(recent_steps(b, 16000, 16, 150, &seconds) == 50 && seconds == 15);
    assert_true(recent_steps(b, 30000, 30, 160, &seconds) == 60 && seconds == 29);
    assert_true(recent_steps(b, 31000, 31, 161, &seconds) == 61 && seconds == 30);
    assert_true(recent_steps(b, 32000, 32, 162, &seconds) == 12 && seconds == 16);
    assert_true(recent_steps(b, 33000, 1, 7, &seconds) == 0 && seconds == 0); /* another life */
    assert_true(recent_steps(b, 34000, 2, 9, &seconds) == 2 && seconds == 1);
    board_close(b);
}

/* Until it tells again, what it told last is not of this life. */
static void a_worker_that_comes_back_has_not_left(void **state)
{
    struct task t = {.job = JOB_PS};
    struct task_status worker = {.index = 1, .heard_ms = 1000, .state = "computes"};
    worker.counters.at[COUNTER_STEP_RATE] = 7;
    worker.counters.at[COUNTER_CLOCK] = 5;
    assert_int_equal(board_open(&t.counting.board), OK);
    assert_int_equal(board_put(t.counting.board, JOB_WORKER, 1, &worker), OK);
    counting_note_back(&t, 1); /* only its link was cut */
    assert_string_equal(heard(&t).state, "computes");
    assert_true(heard(&t).counters.at[COUNTER_STEP_RATE] == 7);
    counting_note_left(&t, 1);
    const struct task_status gone = heard(&t);
    assert_true(task_status_is_gone(&gone));
    assert_true(gone.counters.at[COUNTER_STEP_RATE] == 0);
    counting_note_back(&t, 1);
    const struct task_status back = heard(&t);
    assert_false(task_status_is_gone(&back));
    assert_true(back.heard_ms > gone.heard_ms); /* no silence is counted from its time away */
    assert_true(task_status_clock_s(&back, 90000) > 93.9 &&
                task_status_clock_s(&back, 90000) < 94.1);
    board_close(t.counting.board);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_has_ended_says_so_and_tells_nobody),
        cmocka_unit_test(what_was_counted_lately_is_known_apart),
        cmocka_unit_test(a_worker_that_comes_back_has_not_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
