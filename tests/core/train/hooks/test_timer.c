/* test_timer.c - when it is time again. */
#include "tests/core/train/hooks/rig.h"

static void the_first_question_fires(void **state)
{
    const struct hook_timer by_steps = {.every_steps = 10}, by_secs = {.every_secs = 10};
    assert_true(hook_timer_is_due(&by_steps, 0, 0));
    assert_true(hook_timer_is_due(&by_steps, 7, 0));
    assert_true(hook_timer_is_due(&by_secs, 0, 0));
}

static void by_steps_it_is_due_when_so_many_have_passed(void **state)
{
    struct hook_timer timer = {.every_steps = 10};
    hook_timer_fired(&timer, 5, 0);
    assert_false(hook_timer_is_due(&timer, 14, 1000 * (uint64_t)SECOND));
    assert_true(hook_timer_is_due(&timer, 15, 0));
    assert_true(hook_timer_is_due(&timer, 40, 0)); /* other workers took most of them */
}

static void by_time_it_is_due_when_so_much_has_passed(void **state)
{
    struct hook_timer timer = {.every_secs = 1.5};
    hook_timer_fired(&timer, 5, 10 * (uint64_t)SECOND);
    assert_false(hook_timer_is_due(&timer, 500, 11 * (uint64_t)SECOND));
    assert_true(hook_timer_is_due(&timer, 500, 11 * (uint64_t)SECOND + SECOND / 2));
}

static void it_is_never_due_twice_for_one_step(void **state)
{
    struct hook_timer by_steps = {.every_steps = 1}, by_secs = {.every_secs = 1};
    hook_timer_fired(&by_steps, 5, 0);
    hook_timer_fired(&by_secs, 5, 0);
    assert_false(hook_timer_is_due(&by_steps, 5, 9 * (uint64_t)SECOND));
    assert_false(hook_timer_is_due(&by_secs, 5, 9 * (uint64_t)SECOND));
    assert_true(hook_timer_is_due(&by_secs, 6, 9 * (uint64_t)SECOND));
}

static void steps_that_go_back_make_it_due(void **state)
{
    struct hook_timer timer = {.every_steps = 100};
    hook_timer_fired(&timer, 500, 0);
    assert_true(hook_timer_is_due(&timer, 400, 0));
}

static void with_neither_it_is_due_once(void **state)
{
    struct hook_timer timer = {0};
    hook_timer_fired(&timer, 1, 0);
    assert_false(hook_timer_is_due(&timer, 1000000, 1000 * (uint64_t)SECOND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_question_fires),
        cmocka_unit_test(by_steps_it_is_due_when_so_many_have_passed),
        cmocka_unit_test(by_time_it_is_due_when_so_much_has_passed),
        cmocka_unit_test(it_is_never_due_twice_for_one_step),
        cmocka_unit_test(steps_that_go_back_make_it_due),
        cmocka_unit_test(with_neither_it_is_due_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
