/* test_stopping.c - runs that end before their last step, and workers that begin late. */
#include "tests/core/train/hooks/rig.h"

#include <math.h>
#include <string.h>

#define STOPPING(members)                                                                          \
    ((const char *const[]){"train.evaluate_every_steps=10",                                        \
                           "train.hooks=[{\"type\": \"early_stopping\", " members "}]", NULL})

static void evaluations_that_get_no_better_stop_the_run(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, STOPPING("\"max_steps_without_decrease\": 20"));
    rig_evaluated(rig, 10, 1.0, 0);
    rig_evaluated(rig, 20, 0.5, 0);
    rig_evaluated(rig, 30, 0.5, 0); /* equal is no decrease */
    assert_int_equal(rig->stops, 0);
    rig_evaluated(rig, 40, 0.6, 0);
    assert_int_equal(rig->stops, 1);
    assert_int_equal(rig->stop_kind, OK);
    assert_string_equal(rig->stop_why,
                        "no decrease of loss for 20 steps: the best is 0.5 of step 20");
    rig_evaluated(rig, 50, 0.6, 0);
    assert_int_equal(rig->stops, 1); /* once is enough */
}

static void each_new_best_gives_more_time(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, STOPPING("\"max_steps_without_decrease\": 20"));
    for (uint64_t step = 10; step <= 1000; step += 15)
        rig_evaluated(rig, step, 1.0 / (double)step, 0);
    assert_int_equal(rig->stops, 0);
}

static void what_grows_may_be_better(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, STOPPING("\"max_steps_without_decrease\": 10, \"metric\": \"accuracy\", "
                            "\"mode\": \"increase\""));
    rig_evaluated(rig, 10, 5, 0.5);
    rig_evaluated(rig, 20, 5, 0.6);
    assert_int_equal(rig->stops, 0);
    rig_evaluated(rig, 30, 1, 0.55);
    assert_int_equal(rig->stops, 1);
    assert_string_equal(rig->stop_why,
                        "no increase of accuracy for 10 steps: the best is 0.6 of step 20");
}

static void what_is_better_follows_from_the_metric(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, STOPPING("\"max_steps_without_decrease\": 10, \"metric\": \"accuracy\""));
    rig_evaluated(rig, 10, 5, 0.5);
    rig_evaluated(rig, 20, 5, 0.6);
    assert_int_equal(rig->stops, 0);
    rig_evaluated(rig, 30, 5, 0.6);
    assert_int_equal(rig->stops, 1);
}

static void early_evaluations_are_not_looked_at(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, STOPPING("\"max_steps_without_decrease\": 10, \"min_steps\": 100"));
    rig_evaluated(rig, 10, 0.1, 0);
    rig_evaluated(rig, 99, 0.9, 0);
    rig_evaluated(rig, 100, 0.8, 0);
    assert_int_equal(rig->stops, 0);
    rig_evaluated(rig, 110, 0.8, 0);
    assert_int_equal(rig->stops, 1);
}

static void a_recovery_forgets_a_best_that_was_undone(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, STOPPING("\"max_steps_without_decrease\": 20"));
    rig_evaluated(rig, 50, 0.1, 0);
    rig_adopt(rig, 30, 0);
    rig_evaluated(rig, 40, 0.5, 0);
    rig_evaluated(rig, 50, 0.4, 0);
    rig_evaluated(rig, 60, 0.3, 0);
    assert_int_equal(rig->stops, 0);
}

static void a_loss_that_is_no_number_is_never_better(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, STOPPING("\"max_steps_without_decrease\": 20"));
    rig_evaluated(rig, 10, NAN, 0);
    rig_evaluated(rig, 20, NAN, 0);
    assert_int_equal(rig->stops, 0);
    rig_evaluated(rig, 30, NAN, 0);
    assert_int_equal(rig->stops, 1);
}

static void what_is_undefined_is_passed_over(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, STOPPING("\"max_steps_without_decrease\": 20, \"metric\": \"accuracy\""));
    for (uint64_t step = 10; step <= 100; step += 10)
        rig_evaluated(rig, step, 1, metric_undefined(ALL_LABELS_ARE_0));
    rig_evaluated(rig, 110, 1, 0.5);
    rig_evaluated(rig, 150, 1, metric_undefined(ALL_LABELS_ARE_1));
    assert_int_equal(rig->stops, 0);
    rig_evaluated(rig, 160, 1, 0.5);
    assert_int_equal(rig->stops, 1);
    assert_non_null(strstr(rig->stop_why, "the best is 0.5 of step 110"));
}

/* ---- time_limit ---- */

static void when_its_time_is_over_the_run_stops_well(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){"train.hooks=[{\"type\": \"time_limit\", \"secs\": 2.5}]",
                                         NULL});
    rig_step(rig, 1, 100); /* what came before the first step does not count */
    rig_step(rig, 2, 102);
    rig_adopt(rig, 1, 102.1); /* and a recovery gives no more */
    rig_step(rig, 2, 102.4);
    assert_int_equal(rig->stops, 0);
    rig_step(rig, 3, 102.5);
    rig_step(rig, 4, 103);
    assert_int_equal(rig->stops, 1);
    assert_int_equal(rig->stop_kind, OK);
    assert_string_equal(rig->stop_why, "2.5 s of training are over (time_limit)");
}

static void a_time_limit_of_nothing_is_refused(void **state)
{
    struct rig *rig = *state;
    const char *const nothing[] = {"train.hooks=[{\"type\": \"time_limit\"}]", NULL};
    const char *const none[] = {"train.hooks=[{\"type\": \"time_limit\", \"secs\": 0}]", NULL};
    assert_int_equal(rig_load(rig, nothing), ERR_INPUT);
    assert_non_null(strstr(error_text(), "secs"));
    assert_int_equal(rig_load(rig, none), ERR_INPUT);
    assert_non_null(strstr(error_text(), "secs"));
}

/* ---- nan ---- */

#define NAN_HOOK(value)                                                                            \
    ((const char *const[]){"train.hooks=[{\"type\": \"nan\", \"fail_on_nan_loss\": " value "}]",   \
                           NULL})

static void spoil_values(struct rig *rig)
{
    rig->session.graph->params[0]->value[3] = NAN;
}

static void a_nan_loss_fails_the_step_and_names_the_variable(void **state)
{
    struct rig *rig = *state;
    double loss = 0;
    rig_start(rig, (const char *const[]){NULL});
    spoil_values(rig);
    assert_int_equal(session_step(&rig->session, &loss), ERR_NUMBER);
    assert_string_equal(error_text(), "the loss is NaN; first that is not finite: the value of "
                                      "logits/kernel");
}

static void with_fail_on_nan_loss_it_fails_all_the_same(void **state)
{
    struct rig *rig = *state;
    double loss = 0;
    rig_start(rig, NAN_HOOK("true"));
    spoil_values(rig);
    assert_int_equal(session_step(&rig->session, &loss), ERR_NUMBER);
    rig->view.loss = INFINITY;
    assert_int_equal(rig_tell(rig, OCCASION_COMPUTED), ERR_NUMBER);
    assert_non_null(strstr(error_text(), "train.hooks[0]: nan: the loss is infinite"));
}

static void without_it_the_run_stops_well_and_nothing_spoilt_leaves(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, NAN_HOOK("false"));
    rig->session.graph->params[1]->gradient[2] = INFINITY;
    rig->view.loss = NAN;
    rig_must(rig_tell(rig, OCCASION_COMPUTED));
    assert_int_equal(rig->stops, 1);
    assert_int_equal(rig->stop_kind, OK);
    assert_string_equal(rig->stop_why, "the loss is NaN; first that is not finite: the gradient of "
                                       "logits/bias");
    const int64_t floats = rig->session.layout->block_floats[0];
    for (int64_t i = 0; i < floats; i++) assert_true(rig->gradients[i] == 0.0f);
}

/* What lies where its gradient would be is anything. */
static void a_frozen_variable_is_not_the_one_that_is_named(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){"train.freeze=[\"logits/kernel\"]",
                                         "train.hooks=[{\"type\": \"nan\", "
                                         "\"fail_on_nan_loss\": false}]",
                                         NULL});
    rig->session.graph->params[0]->gradient[3] = NAN;
    rig->session.graph->params[1]->gradient[2] = INFINITY;
    rig->view.loss = NAN;
    rig_must(rig_tell(rig, OCCASION_COMPUTED));
    assert_string_equal(rig->stop_why, "the loss is NaN; first that is not finite: the gradient of "
                                       "logits/bias");
}

static void without_it_the_session_tells_the_loss(void **state)
{
    struct rig *rig = *state;
    double loss = 0;
    rig_start(rig, NAN_HOOK("false"));
    spoil_values(rig);
    rig_must(session_step(&rig->session, &loss));
    assert_true(isnan(loss));
}

static void workers_that_are_no_chief_watch_their_loss_too(void **state)
{
    struct rig *rig = *state;
    rig_prepare(rig, NAN_HOOK("false"));
    rig->view.is_chief = false;
    rig_must(rig_open(rig));
    rig->view.loss = NAN;
    rig_must(rig_tell(rig, OCCASION_COMPUTED));
    assert_int_equal(rig->stops, 1);
}

static void a_finite_loss_is_left_alone(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, NAN_HOOK("false"));
    rig->gradients[0] = 2;
    rig_must(rig_tell(rig, OCCASION_COMPUTED));
    assert_int_equal(rig->stops, 0);
    assert_true(rig->gradients[0] == 2.0f);
}

/* ---- global_step_waiter ---- */

#define WAITER "train.hooks=[{\"type\": \"global_step_waiter\", \"wait_until_step\": 500}]"

static void a_worker_waits_for_the_others_and_the_chief_does_not(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){WAITER, NULL});
    assert_int_equal(hooks_wait_step(rig->view.hooks), 0);
    hooks_close(&rig->view);
    rig->view.is_chief = false;
    rig->view.worker = 1;
    rig_must(rig_open(rig));
    assert_int_equal(hooks_wait_step(rig->view.hooks), 500);
}

static void without_a_waiter_nobody_waits(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){NULL});
    assert_int_equal(hooks_wait_step(rig->view.hooks), 0);
}

#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(evaluations_that_get_no_better_stop_the_run),
        WITH_RIG(each_new_best_gives_more_time),
        WITH_RIG(what_grows_may_be_better),
        WITH_RIG(what_is_better_follows_from_the_metric),
        WITH_RIG(early_evaluations_are_not_looked_at),
        WITH_RIG(a_recovery_forgets_a_best_that_was_undone),
        WITH_RIG(a_loss_that_is_no_number_is_never_better),
        WITH_RIG(when_its_time_is_over_the_run_stops_well),
        WITH_RIG(a_time_limit_of_nothing_is_refused),
        WITH_RIG(what_is_undefined_is_passed_over),
        WITH_RIG(a_nan_loss_fails_the_step_and_names_the_variable),
        WITH_RIG(with_fail_on_nan_loss_it_fails_all_the_same),
        WITH_RIG(without_it_the_run_stops_well_and_nothing_spoilt_leaves),
        WITH_RIG(a_frozen_variable_is_not_the_one_that_is_named),
        WITH_RIG(without_it_the_session_tells_the_loss),
        WITH_RIG(workers_that_are_no_chief_watch_their_loss_too),
        WITH_RIG(a_finite_loss_is_left_alone),
        WITH_RIG(a_worker_waits_for_the_others_and_the_chief_does_not),
        WITH_RIG(without_a_waiter_nobody_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
