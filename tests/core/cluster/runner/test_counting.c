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
static int counted, told;
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

static void tell(struct task *t, const struct told *what)
{
    told++;
}

static struct told shown(const struct task *t)
{
    int found;
    struct told *all = board_copy(t->counting.board, true, &found);
    assert_non_null(all);
    assert_int_equal(found, 1);
    const struct told own = all[0];
    free(all);
    return own;
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
    assert_int_equal(told, 1);
    counting_close(&t);
    loop_close(t.options.loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_has_ended_says_so_and_tells_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
