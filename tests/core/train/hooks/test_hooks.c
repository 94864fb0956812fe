/* test_hooks.c - all hooks together: what is refused before anything starts, and what errors mean.
 */
#include "tests/core/train/hooks/rig.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>

struct broken {
    const char *set;
    const char *message; /* behind "spec.json: " */
};

static const struct broken broken[] = {
    {"train.hooks=[\"nann\"]", "train.hooks[0]: unknown hook \"nann\" (did you mean \"nan\"?)"},
    {"train.hooks=[{\"type\": \"stop_at_step\", \"last_step\": 5}]",
     "train.hooks[0]: unknown hook \"stop_at_step\": say train.last_step, or train.num_steps; "
     "known"},
    {"train.hooks=[{\"type\": \"nan\", \"fail\": true}]", "train.hooks[0]: unknown key \"fail\""},
    {"train.hooks=[\"nan\", \"checkpoint_saver\"]",
     "train.hooks[1]: checkpoint_saver: needs train.checkpoint_dir"},
    {"train={\"last_step\": 1, \"checkpoint_dir\": \"x\", \"hooks\": [\"checkpoint_saver\"]}",
     "train.hooks[0]: checkpoint_saver: expected save_secs or save_steps, got neither"},
    {"train={\"last_step\": 1, \"checkpoint_dir\": \"x\", \"hooks\": [{\"type\": "
     "\"checkpoint_saver\", \"save_secs\": 1, \"save_steps\": 1}]}",
     "train.hooks[0]: checkpoint_saver: expected save_secs or save_steps, got both"},
    {"train.hooks=[{\"type\": \"summary_saver\", \"save_steps\": 1}]",
     "train.hooks[0]: summary_saver: needs train.summary_dir or train.checkpoint_dir"},
    {"train={\"last_step\": 1, \"summary_dir\": \"x\", \"hooks\": [{\"type\": \"summary_saver\", "
     "\"save_secs\": 1, \"save_steps\": 1}]}",
     "train.hooks[0]: summary_saver: expected save_secs or save_steps, got both"},
    {"train.hooks=[{\"type\": \"step_counter\", \"every_n_secs\": 1, \"every_n_steps\": 1}]",
     "train.hooks[0]: step_counter: expected every_n_secs or every_n_steps, got both"},
    {"train.hooks=[\"logging\"]",
     "train.hooks[0]: logging: expected every_n_secs or every_n_iter, got neither"},
    {"train.hooks=[{\"type\": \"logging\", \"at_end\": true, \"every_n_secs\": 1, "
     "\"every_n_iter\": 1}]",
     "train.hooks[0]: logging: expected every_n_secs or every_n_iter, got both"},
    {"train={\"last_step\": 1, \"mode\": \"sync\", \"hooks\": [{\"type\": \"global_step_waiter\", "
     "\"wait_until_step\": 1}]}",
     "train.hooks[0]: global_step_waiter: has a meaning with mode async only"},
    {"train.hooks=[\"evaluation\"]",
     "train.hooks[0]: evaluation: expected every_n_secs or every_n_steps, got neither"},
    {"train.hooks=[{\"type\": \"early_stopping\", \"max_steps_without_decrease\": 5}]",
     "train.hooks[0]: early_stopping: needs evaluations while training"},
    {"train.hooks=[{\"type\": \"final_evaluation\", \"path\": \"\"}]",
     "train.hooks[0]: final_evaluation: path: expected 1 to 4091 bytes"},
    {"train.hooks=[{\"type\": \"command\", \"at\": [\"begin\"], \"command\": \"true\"}]",
     "train.hooks[0]: command: at[0]: unknown moment \"begin\"; known are start, checkpoint, "
     "evaluation, end"},
    {"train.hooks=[{\"type\": \"command\", \"at\": [], \"command\": \"true\"}]",
     "train.hooks[0].at: expected a list of 1 to 4 strings, got a list of 0"},
};

static void settings_that_do_not_fit_are_refused_with_the_spec(void **state)
{
    struct rig *rig = *state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        const struct broken *b = &broken[i];
        const err e = rig_load(rig, (const char *const[]){b->set, NULL});
        assert_int_equal(e, ERR_INPUT);
        const char *message = strstr(error_text(), "spec.json: ");
        assert_non_null(message);
        message += strlen("spec.json: ");
        if (strncmp(message, b->message, strlen(b->message)) != 0)
            fail_msg("%s\n    gave %s", b->message, message);
    }
}

static void hooks_that_evaluate_need_data_for_it(void **state)
{
    static const char *const wants[] = {
        "train.hooks=[{\"type\": \"evaluation\", \"every_n_steps\": 1}]",
        "train.hooks=[{\"type\": \"final_evaluation\", \"path\": \"x\"}]"};
    struct rig *rig = *state;
    for (int i = 0; i < 2; i++) {
        const char *const sets[] = {"data={\"train\": \"digits\", \"batch_size\": 4}", wants[i],
                                    NULL};
        assert_int_equal(rig_load(rig, sets), ERR_INPUT);
        assert_non_null(strstr(error_text(), "needs data.eval"));
    }
}

struct unknown {
    const char *set, *message;
};

static void a_name_of_no_value_is_refused_with_the_nearest(void **state)
{
    static const struct unknown cases[] = {
        {"train.hooks=[{\"type\": \"logging\", \"every_n_iter\": 1, \"values\": [\"loss\", "
         "\"acuracy\"]}]",
         "train.hooks[0]: logging: values[1]: unknown value \"acuracy\" (did you mean "
         "\"accuracy\"?); known are global_step, gradient_norm, learning_rate, loss, "
         "push_seconds, staleness, accuracy"},
        {"train.hooks=[{\"type\": \"early_stopping\", \"metric\": \"lost\", "
         "\"max_steps_without_decrease\": 5}]",
         "train.hooks[0]: early_stopping: metric: unknown metric \"lost\" (did you mean "
         "\"loss\"?); known are loss, accuracy"},
    };
    struct rig *rig = *state;
    rig_prepare(rig, (const char *const[]){"train.evaluate_every_steps=1", NULL});
    for (int i = 0; i < 2; i++) {
        struct spec first = rig->spec;
        rig_must(rig_load(
            rig, (const char *const[]){"train.evaluate_every_steps=1", cases[i].set, NULL}));
        assert_int_equal(rig_open(rig), ERR_INPUT);
        assert_string_equal(error_text(), cases[i].message);
        assert_null(rig->view.hooks);
        spec_free(&rig->spec);
        rig->spec = first;
    }
}

static void set_disk(rlim_t bytes)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

/* Warnings of the summaries that were logged since the last look; ret_is_last: no more will be. */
static int count_warnings(struct rig *rig, bool *ret_is_last)
{
    const char *log = rig_log(rig);
    int lines = 0;
    *ret_is_last |= strstr(log, " (further failures of it are not logged)\n") != NULL;
    for (const char *line = log; (line = strstr(line, "WARNING: summary_saver: ")); line++) lines++;
    return lines;
}

/* A limit on the size of files plays the full disk. A thread writes, so that a step tells what has
 * failed of one before it. */
static void a_full_disk_is_said_five_times_and_ends_nothing(void **state)
{
    enum { TOLD = 5, MORE = 20, TRIES_MAX = 1000000 };
    struct rig *rig = *state;
    char directory[128];
    int lines = 0;
    uint64_t step = 0;
    bool is_last = false;
    snprintf(directory, sizeof directory, "train.summary_dir=%s/run", rig->folder);
    rig_start(rig, (const char *const[]){directory, "train.save_summaries_steps=1",
                                         "train.log_step_count_steps=0", NULL});
    rig_adopt(rig, 0, 0);
    signal(SIGXFSZ, SIG_IGN);
    set_disk(0);
    while (lines < TOLD && step < TRIES_MAX) {
        step++;
        rig_step(rig, step, (double)step);
        lines += count_warnings(rig, &is_last);
        sched_yield();
    }
    assert_int_equal(lines, TOLD);
    assert_true(is_last);
    for (int i = 0; i < MORE; i++) {
        step++;
        rig_step(rig, step, (double)step);
        assert_int_equal(count_warnings(rig, &is_last), 0);
        sched_yield();
    }
    set_disk(RLIM_INFINITY);
    rig_step(rig, step + 1, 9); /* there is room again */
    assert_string_equal(rig_log(rig), "");
}

static void an_error_at_the_end_takes_no_end_from_the_others(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){
                       "train.hooks=[{\"type\": \"command\", \"at\": [\"end\"], \"command\": "
                       "\"exit 4\", \"on_failure\": \"stop\"}, {\"type\": \"logging\", \"values\": "
                       "[\"global_step\"], \"at_end\": true}]",
                       NULL});
    rig_step(rig, 5, 0);
    assert_int_equal(rig_tell(rig, OCCASION_END), ERR_DEVICE);
    assert_string_equal(
        error_text(), "train.hooks[0]: command: the command at end (\"exit 4\") ended with code 4");
    assert_string_equal(rig_log(rig), "global_step = 5\n");
}

static void a_spec_without_any_hook_runs_none(void **state)
{
    struct rig *rig = *state;
    rig_start(rig, (const char *const[]){NULL});
    rig_adopt(rig, 0, 0);
    for (uint64_t step = 1; step < 400; step++) rig_step(rig, step, (double)step);
    rig_end(rig, 0);
    assert_int_equal(rig->saves + rig->stops + rig->evaluations, 0);
    assert_string_equal(rig_log(rig), "");
}

static void every_hook_is_documented(void **state)
{
    const struct kind *kind;
    int count = 0;
    for (; (kind = hook_kinds.at(count)); count++) {
        const struct hook *hook = kind->descriptor;
        assert_ptr_equal(kind->object, &hook->object);
        assert_non_null(hook->object.summary);
        for (const struct field *f = hook->object.fields; f && f->name; f++)
            assert_true(f->help && *f->help);
    }
    assert_true(count >= 10);
}

#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(settings_that_do_not_fit_are_refused_with_the_spec),
        WITH_RIG(hooks_that_evaluate_need_data_for_it),
        WITH_RIG(a_name_of_no_value_is_refused_with_the_nearest),
        WITH_RIG(a_full_disk_is_said_five_times_and_ends_nothing),
        WITH_RIG(an_error_at_the_end_takes_no_end_from_the_others),
        WITH_RIG(a_spec_without_any_hook_runs_none),
        cmocka_unit_test(every_hook_is_documented),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
