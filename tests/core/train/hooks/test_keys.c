/* test_keys.c - the keys of "train" that say what is saved, restored, measured and evaluated. */
#include "tests/core/train/hooks/rig.h"

#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard.h"

#define SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

static const struct train_spec *load(struct rig *rig, const char *const sets[])
{
    spec_free(&rig->spec);
    rig_must(rig_load(rig, sets));
    return &rig->spec.train;
}

static void what_is_left_out_has_tensorflows_default(void **state)
{
    const struct train_spec *train = load(*state, SETS(NULL));
    assert_null(train->checkpoint.dir);
    assert_true(train->checkpoint.every_secs == 600);
    assert_int_equal(train->checkpoint.every_steps, 0);
    assert_int_equal(train->checkpoint.keep_max, 5);
    assert_true(train->checkpoint.keep_every_n_hours == 10000);
    assert_int_equal(train->checkpoint.on_corrupt, CORRUPT_ERROR);
    assert_null(train->warm_start.checkpoint);
    assert_true(train->absence.worker_timeout_ms == 60000);
    assert_int_equal(train->absence.min_workers, 1);
    assert_null(train->summary.dir);
    assert_int_equal(train->summary.every_steps, 100);
    assert_true(train->summary.every_secs == 0);
    assert_int_equal(train->summary.log_step_count_steps, 100);
    assert_int_equal(train->evaluation.every_steps, 0);
    assert_true(train->evaluation.every_secs == 0);
    assert_false(train->log_device_placement);
    assert_int_equal(train->hooks.count, 0);
    assert_int_equal(train->num_steps, 0);
}

static void a_default_stands_only_where_neither_of_two_keys_is_given(void **state)
{
    const struct train_spec *train = load(*state, SETS("train.save_checkpoint_steps=7"));
    assert_true(train->checkpoint.every_secs == 0);
    assert_int_equal(train->checkpoint.every_steps, 7);
    train = load(*state, SETS("train.save_checkpoint_secs=0"));
    assert_true(train->checkpoint.every_secs == 0);
    train = load(*state, SETS("train.save_checkpoint_secs=null"));
    assert_true(train->checkpoint.every_secs == 600);
    train = load(*state, SETS("train.save_summaries_secs=2.5"));
    assert_true(train->summary.every_secs == 2.5);
    assert_int_equal(train->summary.every_steps, 0);
    train = load(*state, SETS("train.save_summaries_steps=0", "train.save_summaries_secs=3"));
    assert_true(train->summary.every_secs == 3);
}

static void a_warm_start_says_what_is_read_from_where(void **state)
{
    const struct train_spec *train =
        load(*state, SETS("train.warm_start={\"checkpoint\": \"old/run\", \"map\": [[\"a/*\", "
                          "\"b/*\"], {\"from\": \"x\", \"to\": \"y\"}], \"skip\": [\"c/*\"], "
                          "\"slots\": true}"));
    const struct warm_start_spec *warm = &train->warm_start;
    const struct name_map *maps = warm->maps.at;
    assert_string_equal(warm->checkpoint, "old/run"); /* of the folder where dtrain is started */
    assert_int_equal(warm->maps.count, 2);
    assert_string_equal(maps[0].from, "a/*");
    assert_string_equal(maps[0].to, "b/*");
    assert_string_equal(maps[1].from, "x");
    assert_string_equal(maps[1].to, "y");
    assert_int_equal(warm->skip.count, 1);
    assert_string_equal(warm->skip.at[0], "c/*");
    assert_true(warm->slots);
}

static void steps_may_be_counted_from_where_the_run_begins(void **state)
{
    struct rig *rig = *state;
    load(rig, SETS("train.last_step=0", "train.num_steps=50"));
    assert_int_equal(rig->spec.train.num_steps, 50);
    assert_int_equal(spec_last_step(&rig->spec, 1000, 2), 50);
}

struct broken {
    const char *set, *message;
};

#define WARM "train.warm_start={\"checkpoint\": \"old\", \"map\": "

static const struct broken broken[] = {
    {"train={\"last_step\": 1, \"num_steps\": 5}",
     "train: expected one of last_step, epochs and num_steps, got two of them"},
    {"train={\"last_step\": 1, \"epochs\": 1, \"num_steps\": 1}",
     "train: expected one of last_step, epochs and num_steps, got all three"},
    {"train={\"last_step\": 1, \"save_checkpoint_secs\": 1, \"save_checkpoint_steps\": 1}",
     "train: expected save_checkpoint_secs or save_checkpoint_steps, got both"},
    {"train={\"last_step\": 1, \"save_summaries_secs\": 1, \"save_summaries_steps\": 1}",
     "train: expected save_summaries_secs or save_summaries_steps, got both"},
    {"train={\"last_step\": 1, \"evaluate_every_secs\": 1, \"evaluate_every_steps\": 1}",
     "train: expected evaluate_every_secs or evaluate_every_steps, got both"},
    {"train.save_checkpoint_secs=-1",
     "train.save_checkpoint_secs: expected a number from 0 to 1000000000, got -1"},
    {"train.checkpoint_dir=", "train.checkpoint_dir: expected a path, got \"\""},
    {"train.summary_dir=", "train.summary_dir: expected a path, got \"\""},
    {"train.on_corrupt=prevous",
     "train.on_corrupt: expected one of error, previous, got \"prevous\" (did you mean "
     "\"previous\"?)"},
    {"train.min_workers=0", "train.min_workers: expected an integer from 1 to 4096, got 0"},
    {"train.hooks=nan", "train.hooks: expected a list of 0 to 64 hooks, got \"nan\""},
    {"train.warm_start={}",
     "train.warm_start: required key \"checkpoint\" is missing: expected a string"},
    {"train.warm_start={\"checkpoint\": \"\"}",
     "train.warm_start.checkpoint: expected a path, got \"\""},
    {WARM "\"a\"}",
     "train.warm_start.map: expected a list of 0 to 4096 pairs [\"old name\", \"new name\"]"},
    {WARM "[[\"a\", \"b\"], [\"a\"]]}",
     "train.warm_start.map[1]: expected [\"old name\", \"new name\"]"},
    {WARM "[[\"a\", \"b\", \"c\"]]}",
     "train.warm_start.map[0]: expected [\"old name\", \"new name\"]"},
    {WARM "[{\"from\": \"a\", \"into\": \"b\"}]}",
     "train.warm_start.map[0]: expected [\"old name\", \"new name\"]"},
    {WARM "[[\"a/*\", \"b\"]]}",
     "train.warm_start.map[0]: expected one star in both names or in neither, got \"a/*\" and "
     "\"b\""},
    {WARM "[[\"*/*\", \"*/*\"]]}",
     "train.warm_start.map[0]: expected one star in both names or in neither, got \"*/*\" and "
     "\"*/*\""},
};

static void keys_that_do_not_fit_are_refused(void **state)
{
    struct rig *rig = *state;
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        if (rig_load(rig, SETS(broken[i].set)) != ERR_INPUT)
            fail_msg("%s was taken", broken[i].set);
        const char *message = strstr(error_text(), "spec.json: ");
        assert_non_null(message);
        assert_string_equal(message + strlen("spec.json: "), broken[i].message);
    }
}

static void evaluations_need_data_for_them(void **state)
{
    static const char data[] = "data={\"train\": \"digits\", \"batch_size\": 4}";
    struct rig *rig = *state;
    assert_int_equal(rig_load(rig, SETS(data, "train.evaluate_every_steps=5")), ERR_INPUT);
    assert_non_null(
        strstr(error_text(), "train.evaluate_every_steps: needs data.eval, which is not given"));
    rig_must(rig_load(rig, SETS(data)));
}

static void fingerprint_of(struct rig *rig, const char *set, char ret[17])
{
    load(rig, SETS(set));
    memcpy(ret, rig->spec.fingerprint, 17);
}

static void what_changes_nothing_that_is_computed_may_differ_between_tasks(void **state)
{
    static const char *const equal[] = {
        "train.checkpoint_dir=x",
        "train.save_checkpoint_secs=5",
        "train.save_checkpoint_steps=5",
        "train.keep_checkpoint_max=1",
        "train.on_corrupt=previous",
        "train.keep_checkpoint_every_n_hours=1",
        "train.summary_dir=x",
        "train.warm_start={\"checkpoint\": \"x\"}",
        "train.save_summaries_steps=5",
        "train.save_summaries_secs=5",
        "train.log_step_count_steps=5",
        "train.log_every_steps=5",
        "train.evaluate_every_steps=5",
        "train.evaluate_every_secs=5",
        "train.log_device_placement=true",
        "train.hooks=[\"nan\"]",
    };
    static const char *const different[] = {
        "train.last_step=999",         "train.mode=sync",     "train.max_staleness=3",
        "train.worker_timeout_secs=5", "train.min_workers=2",
    };
    char plain[17], changed[17];
    fingerprint_of(*state, NULL, plain);
    for (size_t i = 0; i < sizeof equal / sizeof *equal; i++) {
        fingerprint_of(*state, equal[i], changed);
        if (strcmp(plain, changed) != 0) fail_msg("%s changes the fingerprint", equal[i]);
    }
    for (size_t i = 0; i < sizeof different / sizeof *different; i++) {
        fingerprint_of(*state, different[i], changed);
        if (strcmp(plain, changed) == 0) fail_msg("%s changes no fingerprint", different[i]);
    }
}

static void the_text_of_a_spec_reads_back_as_the_same(void **state)
{
    struct rig *rig = *state;
    load(rig, SETS("train.last_step=77"));
    char *text = spec_text(&rig->spec);
    assert_non_null(text);
    json_t *json = json_loads(text, 0, NULL);
    assert_true(json_equal(json, rig->spec.json));
    json_decref(json);
    free(text);
}

#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(what_is_left_out_has_tensorflows_default),
        WITH_RIG(a_default_stands_only_where_neither_of_two_keys_is_given),
        WITH_RIG(a_warm_start_says_what_is_read_from_where),
        WITH_RIG(steps_may_be_counted_from_where_the_run_begins),
        WITH_RIG(keys_that_do_not_fit_are_refused),
        WITH_RIG(evaluations_need_data_for_them),
        WITH_RIG(what_changes_nothing_that_is_computed_may_differ_between_tasks),
        WITH_RIG(the_text_of_a_spec_reads_back_as_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
