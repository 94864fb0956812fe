/* test_task_status.c - what a ps says of tasks comes to dtrain status as it was counted. */
#include "cmd/status/status.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/cluster/runner/board.h"

enum { NOW_MS = 1000000, AGE_MS = 1500 };

static struct task_status told_of(double loss)
{
    struct task_status status = {.task = "worker/2", .state = "computes", .index = 2};
    status.heard_ms = NOW_MS - AGE_MS;
    status.counters.at[COUNTER_LOSS] = loss;
    status.counters.at[COUNTER_STEPS] = 12345;
    return status;
}

static void hear(const struct task_status *status, struct job_status *ret)
{
    struct board *board;
    *ret = (struct job_status){0};
    assert_int_equal(board_open(&board), OK);
    assert_int_equal(board_put(board, JOB_WORKER, status->index, status), OK);
    json_t *answer = board_json(board, false, 0, 1, NOW_MS);
    assert_int_equal(job_status_add(ret, answer, NOW_MS), OK);
    json_decref(answer);
    board_close(board);
}

static void test_numbers_come_as_they_were_counted(void **state)
{
    const double losses[] = {
        0.25, -3, 1e-30, -1e300, 0x1p60, (double)NAN, (double)INFINITY, -(double)INFINITY};
    for (size_t i = 0; i < sizeof losses / sizeof *losses; i++) {
        const struct task_status said = told_of(losses[i]);
        struct job_status heard;
        hear(&said, &heard);
        assert_int_equal(heard.count, 1);
        const double loss = heard.tasks[0].counters.at[COUNTER_LOSS];
        assert_true(isnan(losses[i]) ? isnan(loss) : loss == losses[i]);
        assert_true(heard.tasks[0].counters.at[COUNTER_STEPS] == 12345);
        assert_int_equal(heard.tasks[0].heard_ms, NOW_MS - AGE_MS);
        assert_string_equal(heard.tasks[0].task, "worker/2");
        assert_string_equal(heard.tasks[0].state, "computes");
        job_status_free(&heard);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_come_as_they_were_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
