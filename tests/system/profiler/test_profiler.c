/* test_profiler.c - which steps the hook asks for, and what becomes of a timeline. */
#include "tests/core/train/hooks/rig.h"

#include <string.h>
#include <unistd.h>

/* What the hook asked for; a timeline is being made until the test tells one. */
struct asked {
    int count, steps;
    uint64_t first_step;
    bool is_busy;
};
static struct asked asked;

static bool trace(void *asker, uint64_t first_step, int steps)
{
    if (asked.is_busy) return false;
    asked = (struct asked){asked.count + 1, steps, first_step, true};
    return true;
}

static bool save(void *asker)
{
    fail_msg("a profiler saves nothing");
    return false;
}

static const struct run_asks asks = {.save = save, .trace = trace};

static void start(struct rig *rig, const char *profiler)
{
    char hooks[256], folder[128];
    snprintf(hooks, sizeof hooks, "train.hooks=[{\"type\": \"profiler\", %s}]", profiler);
    snprintf(folder, sizeof folder, "train.summary_dir=%s", rig->folder);
    asked = (struct asked){0};
    rig_prepare(rig, (const char *const[]){hooks, folder, "train.save_summaries_steps=0",
                                           "train.log_step_count_steps=0", NULL});
    rig->view.asks = &asks;
    rig_must(rig_open(rig));
}

static void set_mode(struct rig *rig, enum train_mode mode, int workers)
{
    rig->spec.train.mode = mode;
    rig->view.workers = workers;
}

/* The one that was asked for has come. */
static void tell(struct rig *rig)
{
    static const struct span step = {
        .begin_ns = 1000, .end_ns = 2000, .step = 1, .kind = SPAN_STEP};
    const struct timeline_part parts[] = {{.spans = &step, .span_count = 1},
                                          {.is_ps = true, .missing = "it is gone"}};
    const struct timeline timeline = {.graph = rig->session.graph,
                                      .first_step = asked.first_step,
                                      .steps = asked.steps,
                                      .parts = parts,
                                      .part_count = 2};
    asked.is_busy = false;
    rig_must(hooks_tell(&rig->view, &(struct occasion){OCCASION_TRACED, .traced = &timeline}));
}

static void steps_until(struct rig *rig, uint64_t first, uint64_t last)
{
    for (uint64_t step = first; step <= last; step++) rig_step(rig, step, (double)step);
}

static void synchronous_it_asks_one_step_ahead_of_each_multiple(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"save_steps\": 10, \"steps\": 3");
    set_mode(rig, MODE_SYNC, 4);
    rig_adopt(rig, 0, 0);
    steps_until(rig, 1, 8);
    assert_int_equal(asked.count, 0);
    rig_step(rig, 9, 9);
    assert_true(asked.count == 1 && asked.first_step == 10 && asked.steps == 3);
    rig_step(rig, 10, 10);
    tell(rig);
    steps_until(rig, 11, 19);
    assert_true(asked.count == 2 && asked.first_step == 20);
}

static void asynchronous_it_asks_a_round_of_all_workers_ahead(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"save_steps\": 10");
    set_mode(rig, MODE_ASYNC, 4);
    rig_adopt(rig, 0, 0);
    rig_step(rig, 5, 5);
    assert_int_equal(asked.count, 0);
    rig_step(rig, 6, 6);
    assert_true(asked.count == 1 && asked.first_step == 10 && asked.steps == 1);
}

static void the_first_step_of_a_process_is_never_asked_for(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"save_steps\": 1");
    set_mode(rig, MODE_SYNC, 1);
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 1);
    assert_true(asked.count == 1 && asked.first_step == 2);
}

static void after_a_restart_multiples_are_those_of_the_run(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"save_steps\": 100");
    set_mode(rig, MODE_SYNC, 1);
    rig_adopt(rig, 250, 0);
    steps_until(rig, 251, 298);
    assert_int_equal(asked.count, 0);
    rig_step(rig, 299, 299);
    assert_true(asked.count == 1 && asked.first_step == 300);
}

static void one_that_is_being_made_is_waited_for(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"save_steps\": 2");
    set_mode(rig, MODE_SYNC, 1);
    rig_adopt(rig, 0, 0);
    steps_until(rig, 1, 8);
    assert_true(asked.count == 1 && asked.first_step == 2);
    tell(rig);
    steps_until(rig, 9, 9);
    assert_true(asked.count == 2 && asked.first_step == 10);
}

static void a_recovery_forgets_what_was_being_made(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"save_steps\": 10");
    set_mode(rig, MODE_SYNC, 1);
    rig_adopt(rig, 0, 0);
    steps_until(rig, 1, 9);
    asked.is_busy = false; /* the runner has given it up */
    rig_adopt(rig, 3, 9);
    steps_until(rig, 4, 9);
    assert_true(asked.count == 2 && asked.first_step == 10);
}

static void by_seconds_it_asks_when_they_have_passed(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"save_secs\": 5");
    set_mode(rig, MODE_SYNC, 1);
    rig_adopt(rig, 0, 0);
    rig_step(rig, 1, 4.9);
    assert_int_equal(asked.count, 0);
    rig_step(rig, 2, 5.1);
    assert_true(asked.count == 1 && asked.first_step == 3);
    rig->view.now_ns = 8 * (uint64_t)SECOND; /* 7 s after the start */
    tell(rig);
    rig_step(rig, 4, 11.9);
    assert_int_equal(asked.count, 1);
    rig_step(rig, 5, 12.1);
    assert_int_equal(asked.count, 2);
}

static void steps_after_the_last_one_are_not_asked_for(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"save_steps\": 10");
    set_mode(rig, MODE_SYNC, 1);
    rig->view.last_step = 9;
    rig_adopt(rig, 0, 0);
    steps_until(rig, 1, 9);
    assert_int_equal(asked.count, 0);
}

static void a_timeline_becomes_a_file_and_a_line(void **state)
{
    struct rig *rig = *state;
    char path[128];
    start(rig, "\"save_steps\": 10");
    set_mode(rig, MODE_SYNC, 1);
    rig_adopt(rig, 0, 0);
    steps_until(rig, 1, 9);
    tell(rig);
    snprintf(path, sizeof path, "%s/timeline-10.json", rig->folder);
    assert_int_equal(access(path, R_OK), 0);
    const char *log = rig_log(rig);
    assert_non_null(strstr(log, "timeline-10.json: 1 step in 0.00 ms: compute 0 %"));
    assert_non_null(strstr(log, "ps/0 is missing: it is gone"));
}

static void the_folder_is_made(void **state)
{
    struct rig *rig = *state;
    char attributes[160], path[160];
    snprintf(attributes, sizeof attributes, "\"save_steps\": 10, \"output_dir\": \"%s/lines\"",
             rig->folder);
    start(rig, attributes);
    set_mode(rig, MODE_SYNC, 1);
    rig_adopt(rig, 0, 0);
    steps_until(rig, 1, 9);
    tell(rig);
    snprintf(path, sizeof path, "%s/lines/timeline-10.json", rig->folder);
    assert_int_equal(access(path, R_OK), 0);
}

static void a_disk_that_refuses_is_a_warning(void **state)
{
    struct rig *rig = *state;
    start(rig, "\"save_steps\": 10, \"output_dir\": \"/proc/none/lines\"");
    set_mode(rig, MODE_SYNC, 1);
    rig_adopt(rig, 0, 0);
    steps_until(rig, 1, 9);
    tell(rig);
    assert_non_null(strstr(rig_log(rig), "train.hooks[0]: profiler: /proc/none/lines"));
    steps_until(rig, 10, 19);
    assert_int_equal(asked.count, 2);
}

static void without_anybody_who_traces_nothing_happens(void **state)
{
    static const struct run_asks nobody = {.save = save};
    struct rig *rig = *state;
    start(rig, "\"save_steps\": 10");
    rig->view.asks = &nobody;
    rig_adopt(rig, 0, 0);
    steps_until(rig, 1, 30);
    assert_int_equal(asked.count, 0);
}

static void assert_refused(struct rig *rig, const char *hook, const char *words)
{
    char hooks[256];
    snprintf(hooks, sizeof hooks, "train.hooks=[{\"type\": \"profiler\"%s}]", hook);
    assert_int_equal(rig_load(rig, (const char *const[]){hooks, NULL}), ERR_INPUT);
    if (!strstr(error_text(), words)) fail_msg("%s", error_text());
    spec_free(&rig->spec);
}

static void what_does_not_fit_together_is_refused(void **state)
{
    struct rig *rig = *state;
    assert_refused(rig, ", \"output_dir\": \"x\"", "expected save_secs or save_steps, got neither");
    assert_refused(rig, ", \"output_dir\": \"x\", \"save_steps\": 1, \"save_secs\": 1", "got both");
    assert_refused(rig, ", \"save_steps\": 1", "needs output_dir, train.summary_dir");
    assert_refused(rig, ", \"output_dir\": \"x\", \"save_steps\": 1, \"steps\": 101",
                   "from 1 to 100");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define RIGGED(test) cmocka_unit_test_setup_teardown(test, rig_setup, rig_teardown)
        RIGGED(synchronous_it_asks_one_step_ahead_of_each_multiple),
        RIGGED(asynchronous_it_asks_a_round_of_all_workers_ahead),
        RIGGED(the_first_step_of_a_process_is_never_asked_for),
        RIGGED(after_a_restart_multiples_are_those_of_the_run),
        RIGGED(one_that_is_being_made_is_waited_for),
        RIGGED(a_recovery_forgets_what_was_being_made),
        RIGGED(by_seconds_it_asks_when_they_have_passed),
        RIGGED(steps_after_the_last_one_are_not_asked_for),
        RIGGED(a_timeline_becomes_a_file_and_a_line),
        RIGGED(the_folder_is_made),
        RIGGED(a_disk_that_refuses_is_a_warning),
        RIGGED(without_anybody_who_traces_nothing_happens),
        RIGGED(what_does_not_fit_together_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
