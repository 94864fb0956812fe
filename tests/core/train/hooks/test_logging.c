/* test_logging.c - lines about steps: their form, and when they come. */
#include "tests/core/train/hooks/rig.h"

#include <string.h>

#define HOOKS(list) ((const char *const[]){"train.hooks=" list, NULL})

static void a_line_has_the_values_in_the_order_of_the_spec(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, HOOKS("[{\"type\": \"logging\", \"values\": [\"loss\", \"global_step\", "
                         "\"learning_rate\"], \"every_n_iter\": 2}]"));
    rig_step(rig, 7, 1);
    assert_string_equal(rig_log(rig), "loss = 0.25, global_step = 7, learning_rate = 0.5\n");
    rig_step(rig, 8, 2);
    assert_string_equal(rig_log(rig), "");
    rig->view.loss = 1.0 / 3;
    rig_step(rig, 9, 1.1234);
    assert_string_equal(rig_log(rig),
                        "loss = 0.3333333, global_step = 9, learning_rate = 0.5 (0.123 sec)\n");
}

static void without_names_all_values_are_there_sorted(void **state)
{
    struct rig *rig = *state;
    char wanted[256];
    rig_start(rig, HOOKS("[{\"type\": \"logging\", \"every_n_iter\": 1}]"));
    rig->view.gradient_norm = 2;
    rig->view.staleness = 3;
    rig->view.push_seconds = 0.001;
    rig_step(rig, 1, 0);
    snprintf(wanted, sizeof wanted,
             "accuracy = %.7g, global_step = 1, gradient_norm = 2, learning_rate = 0.5, "
             "loss = 0.25, push_seconds = 0.001, staleness = 3\n",
             session_metric(&rig->session, 0));
    assert_string_equal(rig_log(rig), wanted);
}

static void the_norm_is_measured_where_clipping_has_not(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, HOOKS("[{\"type\": \"logging\", \"values\": [\"gradient_norm\"], "
                         "\"every_n_iter\": 2, \"at_end\": true}]"));
    const int64_t floats = rig->session.layout->block_floats[0];
    for (int64_t i = 0; i < floats; i++) rig->gradients[i] = 0;
    rig->session.graph->params[1]->gradient[0] = 3;
    rig->session.graph->params[1]->gradient[9] = -4;
    rig_step(rig, 1, 0);
    rig->session.graph->params[1]->gradient[0] = 0;
    rig_step(rig, 2, 1);
    rig_end(rig, 0);
    assert_string_equal(rig_log(rig), "gradient_norm = 5\ngradient_norm = 4 (1.000 sec)\n");
}

static void iterations_are_the_workers_own_steps(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, HOOKS("[{\"type\": \"logging\", \"values\": [\"global_step\"], "
                         "\"every_n_iter\": 3}]"));
    for (uint64_t i = 0; i < 7; i++) rig_step(rig, 100 * i + 5, 0);
    assert_string_equal(rig_log(rig), "global_step = 5\nglobal_step = 305 (0.000 sec)\n"
                                      "global_step = 605 (0.000 sec)\n");
}

static void by_seconds_it_waits_for_the_clock(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, HOOKS("[{\"type\": \"logging\", \"values\": [\"global_step\"], "
                         "\"every_n_secs\": 2}]"));
    for (uint64_t i = 1; i <= 5; i++) rig_step(rig, i, 0.9 * (double)i);
    assert_string_equal(rig_log(rig), "global_step = 1\nglobal_step = 4 (2.700 sec)\n");
}

static void at_the_end_the_last_numbers_are_told(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, HOOKS("[{\"type\": \"logging\", \"values\": [\"loss\", \"global_step\"], "
                         "\"at_end\": true}]"));
    rig_step(rig, 1, 0);
    rig->view.loss = 0.125;
    rig_step(rig, 2, 1);
    assert_string_equal(rig_log(rig), "");
    rig->view.global_step = 40; /* the others went on */
    rig_end(rig, 0);
    assert_string_equal(rig_log(rig), "loss = 0.125, global_step = 40\n");
}

static void after_a_recovery_there_is_nothing_to_tell_before_the_next_step(void **state)
{
    struct rig *rig = *state;
    rig_start(rig,
              HOOKS("[{\"type\": \"logging\", \"values\": [\"accuracy\"], \"at_end\": true}]"));
    rig_step(rig, 1, 0);
    rig_must(session_seek(&rig->session, 5)); /* frees the last batch */
    rig_adopt(rig, 0, 1);
    rig_end(rig, 0);
    assert_string_equal(rig_log(rig), "");
}

static void a_loss_that_is_no_number_is_told_as_it_is(void **state)
{
    struct rig *rig = *state;
    rig_start(rig,
              HOOKS("[{\"type\": \"nan\", \"fail_on_nan_loss\": false}, {\"type\": \"logging\", "
                    "\"values\": [\"loss\"], \"every_n_iter\": 1}]"));
    rig->view.loss = __builtin_nan("");
    rig_step(rig, 1, 0);
    const char *line = strrchr(rig_log(rig), '=');
    assert_string_equal(line, "= nan\n");
}

static void workers_that_are_no_chief_log_too(void **state)
{
    struct rig *rig = *state;
    rig_prepare(rig,
                HOOKS("[{\"type\": \"logging\", \"values\": [\"loss\"], \"every_n_iter\": 1}]"));
    rig->view.is_chief = false;
    rig_must(rig_open(rig));
    rig_step(rig, 1, 0);
    assert_string_equal(rig_log(rig), "loss = 0.25\n");
}

/* ---- step_counter ---- */

static void speed_is_steps_by_seconds_and_the_clock_starts_behind_the_first_step(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, HOOKS("[{\"type\": \"step_counter\", \"every_n_steps\": 50}]"));
    rig_step(rig, 1, 10);
    rig_step(rig, 2, 11);
    rig_step(rig, 50, 12);
    assert_string_equal(rig_log(rig), "");
    rig_step(rig, 51, 11.49);
    assert_string_equal(rig_log(rig), "global_step/sec: 100\n");
    rig_step(rig, 112, 11.99);
    assert_string_equal(rig_log(rig), "global_step/sec: 122\n");
}

/* A step that was slow ends when others are far ahead of its number, and the next one shows that.
 */
static void a_step_that_takes_longer_than_those_of_others_makes_no_peak(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, HOOKS("[{\"type\": \"step_counter\", \"every_n_steps\": 50}]"));
    rig_step_from(rig, 1, 10, 11); /* the first, while others take 1000 */
    rig_step_from(rig, 1001, 11, 11.001);
    assert_string_equal(rig_log(rig), "");
    rig_step_from(rig, 1101, 11.1, 15); /* it stood still */
    assert_string_equal(rig_log(rig), "global_step/sec: 1000\n");
    rig_step_from(rig, 5001, 15, 15.001);
    assert_string_equal(rig_log(rig), "global_step/sec: 1000\n");
}

static void a_recovery_starts_the_clock_anew(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, HOOKS("[{\"type\": \"step_counter\", \"every_n_steps\": 50}]"));
    rig_step(rig, 100, 0);
    rig_step(rig, 60, 5);
    assert_string_equal(rig_log(rig), "");
    rig_step(rig, 110, 6);
    assert_string_equal(rig_log(rig), "global_step/sec: 50\n");
}

static void a_step_that_does_not_grow_is_said_five_times(void **state)
{
    struct rig *rig = *state;
    int lines = 0;
    rig_start(rig, HOOKS("[\"step_counter\"]"));
    for (int i = 0; i < 9; i++) rig_step(rig, 3, i);
    const char *log = rig_log(rig);
    for (const char *c = log; *c; c++) lines += *c == '\n';
    assert_int_equal(lines, 5);
    assert_non_null(strstr(log,
                           "WARNING: the global step did not grow during the last 3 steps of this "
                           "worker: it is still 3\n"));
}

static void two_steps_may_have_one_number(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, HOOKS("[\"step_counter\"]"));
    for (uint64_t i = 2; i < 20; i++) rig_step(rig, i / 2, (double)i);
    assert_string_equal(rig_log(rig), "");
}

static void without_a_folder_for_summaries_the_keys_make_no_counter(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){"train.log_step_count_steps=1", NULL});
    for (uint64_t step = 1; step < 9; step++) rig_step(rig, step, (double)step);
    assert_string_equal(rig_log(rig), "");
}

#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(a_line_has_the_values_in_the_order_of_the_spec),
        WITH_RIG(without_names_all_values_are_there_sorted),
        WITH_RIG(the_norm_is_measured_where_clipping_has_not),
        WITH_RIG(iterations_are_the_workers_own_steps),
        WITH_RIG(by_seconds_it_waits_for_the_clock),
        WITH_RIG(at_the_end_the_last_numbers_are_told),
        WITH_RIG(after_a_recovery_there_is_nothing_to_tell_before_the_next_step),
        WITH_RIG(a_loss_that_is_no_number_is_told_as_it_is),
        WITH_RIG(workers_that_are_no_chief_log_too),
        WITH_RIG(speed_is_steps_by_seconds_and_the_clock_starts_behind_the_first_step),
        WITH_RIG(a_step_that_takes_longer_than_those_of_others_makes_no_peak),
        WITH_RIG(a_recovery_starts_the_clock_anew),
        WITH_RIG(a_step_that_does_not_grow_is_said_five_times),
        WITH_RIG(two_steps_may_have_one_number),
        WITH_RIG(without_a_folder_for_summaries_the_keys_make_no_counter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
