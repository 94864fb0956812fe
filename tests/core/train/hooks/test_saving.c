/* test_saving.c - when checkpoints are asked for. */
#include "tests/core/train/hooks/rig.h"

#define SAVES(...)                                                                                 \
    ((const char *const[]){"train.checkpoint_dir=/tmp/unused", "train.summary_dir=null",           \
                           "train.save_summaries_steps=0", "train.log_step_count_steps=0",         \
                           __VA_ARGS__, NULL})

/* No folder for summaries: nothing is written anywhere. */
static void start(struct rig *rig, const char *const sets[])
{
    rig_prepare(rig, sets);
    rig->view.summary_dir = NULL;
    rig_must(rig_open(rig));
}

static void values_that_are_there_are_saved_at_once(void **state)
{
    struct rig *rig = *state;
    start(rig, SAVES("train.save_checkpoint_steps=1000"));
    assert_int_equal(rig->saves, 0);
    rig_adopt(rig, 0, 0);
    assert_int_equal(rig->saves, 1);
    rig_adopt(rig, 0, 1); /* a recovery: again */
    assert_int_equal(rig->saves, 2);
}

static void by_steps_every_so_many_are_saved(void **state)
{
    struct rig *rig = *state;
    start(rig, SAVES("train.save_checkpoint_steps=10"));
    rig_adopt(rig, 0, 0);
    for (uint64_t step = 1; step < 10; step++) rig_step(rig, step, 1000);
    assert_int_equal(rig->saves, 1);
    rig_step(rig, 10, 1000);
    assert_int_equal(rig->saves, 2);
    rig_step(rig, 10, 1000); /* a step whose gradient was dropped has the same number */
    assert_int_equal(rig->saves, 2);
    rig_step(rig, 25, 1000);
    rig_step(rig, 30, 1000);
    assert_int_equal(rig->saves, 3);
    rig_step(rig, 35, 1000);
    assert_int_equal(rig->saves, 4);
}

static void the_step_that_is_due_has_not_left_when_it_is_asked_for(void **state)
{
    struct rig *rig = *state;
    start(rig, SAVES("train.save_checkpoint_steps=10"));
    rig_adopt(rig, 0, 0);
    rig->view.global_step = 10;
    rig_must(rig_tell(rig, OCCASION_COMPUTED));
    assert_int_equal(rig->saves, 2);
    rig_must(rig_tell(rig, OCCASION_STEPPED));
    assert_int_equal(rig->saves, 2);
}

static void wait_until(struct rig *rig, double seconds)
{
    rig->view.now_ns = (uint64_t)(seconds * 1e9);
    rig_must(rig_tell(rig, OCCASION_WAITED));
}

static void while_nothing_comes_steps_since_the_last_are_saved(void **state)
{
    struct rig *rig = *state;
    start(rig, SAVES("train.save_checkpoint_secs=60"));
    rig_adopt(rig, 0, 0);
    wait_until(rig, 70);
    assert_int_equal(rig->saves, 1);
    rig_step(rig, 1, 71);
    assert_int_equal(rig->saves, 2);
    rig_step(rig, 2, 72);
    wait_until(rig, 130);
    assert_int_equal(rig->saves, 2);
    wait_until(rig, 132);
    assert_int_equal(rig->saves, 3);
    wait_until(rig, 1000);
    assert_int_equal(rig->saves, 3);
}

static void what_another_one_was_in_the_way_of_is_saved_while_nothing_comes(void **state)
{
    struct rig *rig = *state;
    start(rig, SAVES("train.save_checkpoint_secs=60"));
    rig_adopt(rig, 0, 0);
    rig->is_saving = true;
    rig_step(rig, 1, 61);
    wait_until(rig, 62);
    assert_int_equal(rig->saves, 1);
    rig->is_saving = false;
    wait_until(rig, 63);
    assert_int_equal(rig->saves, 2);
    wait_until(rig, 64);
    assert_int_equal(rig->saves, 2);
}

static void what_a_delta_was_in_the_way_of_is_saved_soon_after(void **state)
{
    struct rig *rig = *state;
    start(rig, SAVES("train.save_checkpoint_steps=10", "train.publish={\"every_secs\": 1}"));
    rig->is_saving = true;
    rig_adopt(rig, 0, 0); /* what is being written is of these values */
    rig->is_saving = false;
    rig_step(rig, 5, 1);
    assert_int_equal(rig->saves, 0);
    rig->is_saving = true;
    rig_step(rig, 10, 2);
    assert_int_equal(rig->saves, 0);
    rig->is_saving = false;
    rig_step(rig, 11, 3);
    assert_int_equal(rig->saves, 1);
    rig_step(rig, 12, 4);
    assert_int_equal(rig->saves, 1);
}

static void by_default_600_seconds_pass(void **state)
{
    struct rig *rig = *state;
    start(rig, SAVES("train.keep_checkpoint_max=5"));
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 599.9);
    assert_int_equal(rig->saves, 1);
    rig_step(rig, 2, 600);
    assert_int_equal(rig->saves, 2);
    rig_step(rig, 3, 1199);
    assert_int_equal(rig->saves, 2);
}

static void zero_turns_saving_off(void **state)
{
    struct rig *rig = *state;
    start(rig, SAVES("train.save_checkpoint_secs=0"));
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 10000);
    assert_int_equal(rig->saves, 0);
}

static void one_in_the_list_takes_the_place_of_the_keys_one(void **state)
{
    struct rig *rig = *state;
    start(rig, SAVES("train.save_checkpoint_steps=1",
                     "train.hooks=[{\"type\": \"checkpoint_saver\", \"save_steps\": 5}]"));
    rig_adopt(rig, 0, 0);
    for (uint64_t step = 1; step <= 5; step++) rig_step(rig, step, 0);
    assert_int_equal(rig->saves, 2); /* at once, and step 5 */
}

static void a_worker_that_is_no_chief_saves_nothing(void **state)
{
    struct rig *rig = *state;
    rig_prepare(rig, SAVES("train.save_checkpoint_steps=1",
                           "train.hooks=[{\"type\": \"checkpoint_saver\", \"save_steps\": 5}]"));
    rig->view.is_chief = false;
    rig_must(rig_open(rig));
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 0);
    assert_int_equal(rig->saves, 0);
}

#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(values_that_are_there_are_saved_at_once),
        WITH_RIG(by_steps_every_so_many_are_saved),
        WITH_RIG(the_step_that_is_due_has_not_left_when_it_is_asked_for),
        WITH_RIG(while_nothing_comes_steps_since_the_last_are_saved),
        WITH_RIG(what_another_one_was_in_the_way_of_is_saved_while_nothing_comes),
        WITH_RIG(what_a_delta_was_in_the_way_of_is_saved_soon_after),
        WITH_RIG(by_default_600_seconds_pass),
        WITH_RIG(zero_turns_saving_off),
        WITH_RIG(one_in_the_list_takes_the_place_of_the_keys_one),
        WITH_RIG(a_worker_that_is_no_chief_saves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
