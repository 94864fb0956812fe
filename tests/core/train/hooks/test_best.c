/* test_best.c - the best checkpoints by the evaluations of the run itself, and the values of the
 * best one at its end. */
#include "tests/core/train/hooks/rig.h"

#include <jansson.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/train/checkpoint/bundle/bundle.h"
#include "core/train/checkpoint/checkpoints_inside.h"

static double accuracy = 0.5;

static void start(struct rig *rig, const char *more)
{
    char folder[128], every[] = "train.evaluate_every_steps=10",
                      no_saver[] = "train.save_checkpoint_secs=0";
    snprintf(folder, sizeof folder, "train.checkpoint_dir=%s/run", rig->folder);
    rig_start(rig, (const char *const[]){folder, every, no_saver, more, NULL});
    rig_adopt(rig, 0, 0);
}

static void answer(struct rig *rig, double loss)
{
    rig->answer = (struct evaluation){.rows = 16, .loss = loss, .metrics = &accuracy};
}

/* A checkpoint of this step is there now. */
static void publish(struct rig *rig, uint64_t step)
{
    const struct bundle_piece piece = {"w", BUNDLE_FLOAT, {1, {1}}, NULL};
    const float value = (float)step;
    struct bundle_writer *writer;
    char prefix[160];
    snprintf(prefix, sizeof prefix, "%s/run/model.ckpt-%llu", rig->folder,
             (unsigned long long)step);
    rig_must(bundle_create(prefix, &writer));
    rig_must(bundle_add(writer, &piece, &value));
    rig_must(bundle_finish(writer));
    rig->view.global_step = step;
    rig_saved(rig, prefix, "");
}

static void steps(struct rig *rig, uint64_t from, uint64_t to)
{
    for (uint64_t step = from; step <= to; step++) rig_step(rig, step, 0);
}

static void last(struct rig *rig, uint64_t step, double loss)
{
    const struct evaluation evaluation = {16, loss, &accuracy};
    rig->view.global_step = step;
    rig_must(hooks_tell(&rig->view,
                        &(struct occasion){OCCASION_EVALUATED, .evaluated = {&evaluation, true}}));
}

static bool are_kept(const struct rig *rig, int count, const int *wanted)
{
    char path[160];
    snprintf(path, sizeof path, "%s/run/best/best.json", rig->folder);
    json_t *json = json_load_file(path, 0, NULL);
    const json_t *list = json_object_get(json, "best");
    bool ret = json_array_size(list) == (size_t)count;
    for (int i = 0; i < count && ret; i++)
        ret = json_integer_value(json_object_get(json_array_get(list, (size_t)i), "step")) ==
              wanted[i];
    json_decref(json);
    return ret;
}

/* The steps that are kept, best first, by their JSON, which a thread writes. */
static void expect_kept(const struct rig *rig, int count, const int *wanted)
{
    enum { LIMIT_MS = 120000 };
    const uint64_t until_ms = clock_ms() + LIMIT_MS;
    while (!are_kept(rig, count, wanted) && clock_ms() < until_ms) sched_yield();
    assert_true(are_kept(rig, count, wanted));
}

static void what_is_saved_is_evaluated_and_the_best_are_kept(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.keep_best=2");
    const double losses[] = {0.5, 0.3, 0.7, 0.4};
    for (int i = 0; i < 4; i++) {
        const uint64_t step = 10 * (uint64_t)(i + 1);
        answer(rig, losses[i]);
        steps(rig, step - 8, step);
        assert_int_equal(rig->saves, i + 1);
        assert_int_equal(rig->evaluations, i);
        if (i % 2) publish(rig, step); /* a checkpoint may be there before its evaluation */
        rig_step(rig, step + 1, 0);
        assert_int_equal(rig->evaluations, i + 1);
        if (i % 2 == 0) publish(rig, step);
    }
    expect_kept(rig, 2, (const int[]){20, 40});
    assert_string_equal(rig->restored, "");
}

static void leave(const struct rig *rig, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/run/%s", rig->folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fclose(file), 0);
}

static bool is_there(const struct rig *rig, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/run/%s", rig->folder, name);
    return access(path, F_OK) == 0;
}

/* A lease whose holder, if it lived, would have renewed it or ended long ago */
static void leave_old(const struct rig *rig, const char *name)
{
    char path[160];
    const time_t then = time(NULL) - LEASE_MAX_S - 5;
    const struct timespec times[] = {{.tv_sec = then}, {.tv_sec = then}};
    leave(rig, name);
    snprintf(path, sizeof path, "%s/run/%s", rig->folder, name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Its files, whole or not, which best.json does not name, and the lease on where they came from */
static void what_a_killed_chief_had_brought_goes_with_the_next_one(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.keep_best=2");
    answer(rig, 0.5);
    steps(rig, 1, 11);
    publish(rig, 10);
    expect_kept(rig, 1, (const int[]){10});
    leave_old(rig, ".lease-model.ckpt-7.best");
    leave(rig, "best/model.ckpt-7.data-00000-of-00001");
    leave_old(rig, ".lease-model.ckpt-8.best"); /* killed when it had named it */
    leave_old(rig, ".lease-model.ckpt-10.best");
    leave_old(rig, ".lease-model.ckpt-7.evaluator"); /* another's affair */
    leave(rig, ".lease-model.ckpt-9.best");          /* who may live, and be slow */
    leave(rig, "best/model.ckpt-9.data-00000-of-00001");
    leave(rig, "best/model.ckpt-6.index"); /* the user's own */
    answer(rig, 0.4);
    steps(rig, 12, 21);
    publish(rig, 20);
    expect_kept(rig, 2, (const int[]){20, 10});
    last(rig, 30, 0.9);
    rig_end(rig, 0);
    assert_false(is_there(rig, ".lease-model.ckpt-7.best"));
    assert_false(is_there(rig, "best/model.ckpt-7.data-00000-of-00001"));
    assert_false(is_there(rig, ".lease-model.ckpt-8.best"));
    assert_false(is_there(rig, ".lease-model.ckpt-10.best"));
    assert_true(is_there(rig, ".lease-model.ckpt-7.evaluator"));
    assert_true(is_there(rig, ".lease-model.ckpt-9.best"));
    assert_true(is_there(rig, "best/model.ckpt-9.data-00000-of-00001"));
    assert_true(is_there(rig, "best/model.ckpt-6.index"));
    assert_true(is_there(rig, "best/model.ckpt-10.index"));
}

static void evaluations_while_it_is_written_do_not_take_its_place(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.keep_best=2");
    answer(rig, 0.5);
    steps(rig, 1, 11);
    rig->is_saving = true;
    answer(rig, 0.6);
    steps(rig, 12, 21); /* it is due, and evaluated, and owed a checkpoint */
    assert_int_equal(rig->evaluations, 2);
    assert_int_equal(rig->saves, 1);
    publish(rig, 10);
    expect_kept(rig, 1, (const int[]){10});
    rig->is_saving = false;
    answer(rig, 0.4);
    steps(rig, 22, 23);
    assert_int_equal(rig->saves, 2);
    assert_int_equal(rig->evaluations, 3);
    publish(rig, 22);
    expect_kept(rig, 2, (const int[]){22, 10});
}

static void a_step_that_others_have_made_is_saved_before_it_is_evaluated(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.keep_best=1");
    answer(rig, 0.5);
    steps(rig, 1, 8);
    rig_step(rig, 15, 0); /* begins from 14 */
    assert_int_equal(rig->evaluations, 0);
    assert_int_equal(rig->saves, 1);
    rig_step(rig, 16, 0);
    assert_int_equal(rig->evaluations, 1);
    publish(rig, 15);
    expect_kept(rig, 1, (const int[]){15});
}

/* As where other workers push between the checkpoint and the evaluation. */
static void a_checkpoint_that_was_asked_for_may_be_of_an_earlier_step(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.keep_best=2");
    answer(rig, 0.5);
    steps(rig, 1, 10);
    rig_step(rig, 14, 0); /* evaluated at 13 */
    publish(rig, 12);
    expect_kept(rig, 1, (const int[]){12});
    answer(rig, 0.4);
    steps(rig, 15, 24);
    rig->view.global_step = 23;
    rig_saved(rig, NULL, "no space"); /* then a later one is not of this evaluation */
    publish(rig, 26);
    hooks_close(&rig->view);
    expect_kept(rig, 1, (const int[]){12});
}

static void at_the_end_the_last_one_gets_the_values_of_the_best(void **state)
{
    struct rig *rig = *state;
    char wanted[160];
    start(rig, "train.restore_best=true");
    answer(rig, 0.5);
    steps(rig, 1, 11);
    publish(rig, 10);
    publish(rig, 12);
    rig_log(rig);
    last(rig, 12, 0.6);
    snprintf(wanted, sizeof wanted, "%s/run/best/model.ckpt-10", rig->folder);
    assert_string_equal(rig->restored, wanted);
    assert_string_equal(rig_log(rig), "restore_best: the last checkpoint, of step 12, has the "
                                      "values of the best now: loss 0.5 at step 10\n");
}

static void the_last_one_may_be_the_best(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.restore_best=true");
    answer(rig, 0.5);
    steps(rig, 1, 11);
    publish(rig, 10);
    publish(rig, 12);
    last(rig, 12, 0.4);
    assert_string_equal(rig->restored, "");
    expect_kept(rig, 1, (const int[]){12});
}

static void a_better_one_that_was_not_saved_is_told(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.keep_best=1");
    rig->is_saving = true;
    answer(rig, 0.25);
    steps(rig, 1, 11);
    rig_log(rig);
    publish(rig, 12);
    last(rig, 12, 0.5);
    assert_non_null(strstr(rig_log(rig), "keep_best: loss 0.25 at step 10 was better"));
    expect_kept(rig, 1, (const int[]){12});
}

static void the_metric_is_that_of_early_stopping_unless_another_is_named(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.keep_best=1");
    hooks_close(&rig->view);
    rig->spec.train.evaluation.best_metric = "acuracy";
    assert_int_equal(rig_open(rig), ERR_INPUT);
    assert_string_equal(error_text(), "evaluation: train.best_metric: unknown metric \"acuracy\" "
                                      "(did you mean \"accuracy\"?); known are loss, accuracy");
}

static void a_run_that_starts_over_does_not_take_the_best_of_another(void **state)
{
    struct rig *rig = *state;
    start(rig, "train.keep_best=1");
    answer(rig, 0.5);
    steps(rig, 1, 11);
    publish(rig, 10);
    hooks_close(&rig->view);
    rig_must(rig_open(rig));
    rig->view.global_step = 10;
    rig_must(hooks_tell(&rig->view, &(struct occasion){OCCASION_ADOPTED, .adopted = {true}}));
    rig->view.global_step = 0;
    assert_int_equal(
        hooks_tell(&rig->view, &(struct occasion){OCCASION_ADOPTED, .adopted = {true}}), ERR_INPUT);
    assert_non_null(strstr(error_text(), "another run"));
}

/* A file that cannot be opened for once, as there are too many, does not make another day of it. */
static void the_best_of_a_day_outlast_a_disk_that_fails_once(void **state)
{
    struct rig *rig = *state;
    char path[160];
    start(rig, "train.keep_best=1");
    answer(rig, 0.5);
    steps(rig, 1, 11);
    publish(rig, 10);
    expect_kept(rig, 1, (const int[]){10});
    snprintf(path, sizeof path, "%s/run/day.json", rig->folder);
    FILE *day = fopen(path, "w");
    fputs("{\"files\": \"0123456789abcdef\", \"step\": 4}\n", day);
    assert_int_equal(fclose(day), 0);
    rig->spec.train.daily = true;
    hooks_close(&rig->view);
    rig_must(rig_open(rig));
    struct rlimit files, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    none = (struct rlimit){0, files.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rig_adopt(rig, 11, 0);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &files), 0);
    assert_non_null(strstr(rig_log(rig), "keep_best: "));
    answer(rig, 0.6); /* worse than what the day has */
    steps(rig, 12, 22);
    publish(rig, 21);
    hooks_close(&rig->view);
    expect_kept(rig, 1, (const int[]){10});
}

/* Each is held until the thread is done with it, whatever came of it. */
static void one_that_is_gone_is_told_at_the_end_too(void **state)
{
    struct rig *rig = *state;
    char prefix[160];
    start(rig, "train.keep_best=2");
    answer(rig, 0.5);
    steps(rig, 2, 11);
    snprintf(prefix, sizeof prefix, "%s/run/model.ckpt-10", rig->folder);
    rig_saved(rig, prefix, "");
    rig_end(rig, 0);
    assert_non_null(strstr(rig_log(rig), "best checkpoints: "));
    assert_false(lease_is_held(prefix, clock_unix_s()));
}

static void keys_that_cannot_work_are_refused(void **state)
{
    struct rig *rig = *state;
    assert_int_equal(rig_load(rig, (const char *const[]){"train.restore_best=true", NULL}),
                     ERR_INPUT);
    assert_non_null(strstr(error_text(), "train.restore_best: needs evaluations while training"));
}

#define TEST(NAME) cmocka_unit_test_setup_teardown(NAME, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_saved_is_evaluated_and_the_best_are_kept),
        TEST(what_a_killed_chief_had_brought_goes_with_the_next_one),
        TEST(evaluations_while_it_is_written_do_not_take_its_place),
        TEST(a_step_that_others_have_made_is_saved_before_it_is_evaluated),
        TEST(a_checkpoint_that_was_asked_for_may_be_of_an_earlier_step),
        TEST(at_the_end_the_last_one_gets_the_values_of_the_best),
        TEST(the_last_one_may_be_the_best),
        TEST(a_better_one_that_was_not_saved_is_told),
        TEST(the_metric_is_that_of_early_stopping_unless_another_is_named),
        TEST(a_run_that_starts_over_does_not_take_the_best_of_another),
        TEST(the_best_of_a_day_outlast_a_disk_that_fails_once),
        TEST(one_that_is_gone_is_told_at_the_end_too),
        TEST(keys_that_cannot_work_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
