/* test_evaluation.c - evaluations while training continues, and the file of the last one. */
#include "tests/core/train/hooks/rig.h"

#include <jansson.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/train/hooks/values.h"

static double accuracy = 0.5;

static void expect_answer(struct rig *rig)
{
    rig->answer = (struct evaluation){.rows = 16, .loss = 0.75, .metrics = &accuracy};
}

static void every_so_many_steps_the_values_at_hand_are_evaluated(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){"train.evaluate_every_steps=10", NULL});
    expect_answer(rig);
    rig_adopt(rig, 0, 0);
    for (uint64_t step = 1; step <= 10; step++) rig_step(rig, step, 0);
    assert_int_equal(rig->evaluations, 0); /* not what training started with */
    rig_step(rig, 11, 0);
    assert_int_equal(rig->evaluations, 1);
    assert_string_equal(rig_log(rig),
                        "step 10, test loss 0.7500, test accuracy 0.5000 (16 examples)\n");
    rig_step(rig, 12, 0);
    rig_step(rig, 25, 0);
    assert_int_equal(rig->evaluations, 2);
}

static void by_seconds_the_clock_starts_with_the_run(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){"train.evaluate_every_secs=5", NULL});
    expect_answer(rig);
    rig_adopt(rig, 0, 100);
    rig_step(rig, 2, 104.9);
    assert_int_equal(rig->evaluations, 0);
    rig_step(rig, 3, 105);
    rig_step(rig, 4, 106);
    assert_int_equal(rig->evaluations, 1);
}

static void every_hook_learns_of_an_evaluation_that_one_asked_for(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){"train.evaluate_every_steps=5",
                                         "train.hooks=[{\"type\": \"early_stopping\", "
                                         "\"max_steps_without_decrease\": 5}]",
                                         NULL});
    expect_answer(rig);
    rig_adopt(rig, 0, 0);
    for (uint64_t step = 1; step <= 10; step++) rig_step(rig, step, 0);
    assert_int_equal(rig->stops, 0);
    rig_step(rig, 11, 0);
    assert_int_equal(rig->stops, 1);
}

static void the_runners_own_evaluation_is_not_logged_here(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){"train.evaluate_every_steps=10", NULL});
    rig_adopt(rig, 0, 0);
    rig_evaluated(rig, 1000, 0.5, 0.9);
    assert_string_equal(rig_log(rig), "");
}

/* ---- final_evaluation ---- */

static void start_with_file(struct rig *rig, char path[128])
{
    char set[256];
    snprintf(path, 128, "%s/last.json", rig->folder);
    snprintf(set, sizeof set, "train.hooks=[{\"type\": \"final_evaluation\", \"path\": \"%s\"}]",
             path);
    rig_start(rig, (const char *const[]){set, NULL});
    rig_adopt(rig, 0, 0);
}

static void the_last_evaluation_is_written_at_the_end(void **state)
{
    struct rig *rig = *state;
    char path[128];
    start_with_file(rig, path);
    rig_evaluated(rig, 500, 0.9, 0.1);
    rig_evaluated(rig, 1000, 0.1, 0.75);
    assert_null(json_load_file(path, 0, NULL));
    rig_end(rig, 0);
    json_t *got = json_load_file(path, 0, NULL);
    json_t *wanted = json_pack("{s:i, s:i, s:f, s:{s:f}}", "step", 1000, "rows", 16, "loss", 0.1,
                               "metrics", "accuracy", 0.75);
    assert_non_null(got);
    assert_true(json_equal(got, wanted));
    json_decref(got);
    json_decref(wanted);
}

static void a_loss_that_is_no_number_is_null_in_the_file(void **state)
{
    struct rig *rig = *state;
    char path[128];
    start_with_file(rig, path);
    rig_evaluated(rig, 1000, NAN, INFINITY);
    rig_end(rig, 3);
    json_t *got = json_load_file(path, 0, NULL);
    assert_true(json_is_null(json_object_get(got, "loss")));
    assert_true(json_is_null(json_object_get(json_object_get(got, "metrics"), "accuracy")));
    json_decref(got);
}

static void without_an_evaluation_no_file_is_written(void **state)
{
    struct rig *rig = *state;
    char path[128];
    start_with_file(rig, path);
    rig_end(rig, 129);
    assert_null(fopen(path, "r"));
}

static void a_file_that_cannot_be_written_is_a_warning(void **state)
{
    struct rig *rig = *state;
    char path[128], part[160], wanted[256];
    start_with_file(rig, path);
    snprintf(part, sizeof part, "%s.tmp", path);
    assert_int_equal(mkdir(part, 0777), 0);
    rig_evaluated(rig, 1000, 0.1, 0.75);
    rig_end(rig, 0);
    snprintf(wanted, sizeof wanted,
             "WARNING: train.hooks[0]: final_evaluation: %s: Is a directory\n", part);
    assert_string_equal(rig_log(rig), wanted);
    assert_int_equal(rmdir(part), 0);
}

static void a_folder_that_is_not_there_is_an_error_at_the_start(void **state)
{
    struct rig *rig = *state;
    rig_prepare(
        rig, (const char *const[]){
                 "train.hooks=[{\"type\": \"final_evaluation\", \"path\": \"/nowhere/x\"}]", NULL});
    assert_int_equal(rig_open(rig), ERR_INPUT);
    assert_string_equal(error_text(), "train.hooks[0]: final_evaluation: path: cannot write "
                                      "/nowhere/x: No such file or directory");
}

/* Losses of regressions may be of any size. */
static void values_are_readable_whatever_their_size(void **state)
{
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0, "0.0000"},       {0.98765, "0.9877"},    {-23.10416, "-23.1042"},
                 {0.001, "0.0010"},   {1.234e-5, "1.23e-05"}, {152345.678, "152346"},
                 {100, "100"},        {4.2e10, "4.2e+10"},    {NAN, "nan"},
                 {-INFINITY, "-inf"}, {99.99996, "100.0000"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[VALUE_TEXT_MAX];
        assert_string_equal(value_text(cases[i].value, text), cases[i].text);
    }
}

#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(every_so_many_steps_the_values_at_hand_are_evaluated),
        WITH_RIG(by_seconds_the_clock_starts_with_the_run),
        WITH_RIG(every_hook_learns_of_an_evaluation_that_one_asked_for),
        WITH_RIG(the_runners_own_evaluation_is_not_logged_here),
        WITH_RIG(the_last_evaluation_is_written_at_the_end),
        cmocka_unit_test(values_are_readable_whatever_their_size),
        WITH_RIG(a_loss_that_is_no_number_is_null_in_the_file),
        WITH_RIG(without_an_evaluation_no_file_is_written),
        WITH_RIG(a_file_that_cannot_be_written_is_a_warning),
        WITH_RIG(a_folder_that_is_not_there_is_an_error_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
