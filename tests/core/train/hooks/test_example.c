/* test_example.c - the hook that examples/hooks shows works as it stands there. */
#include "tests/core/train/hooks/rig.h"

#include <stdlib.h>

extern const struct hook hook_best_loss;

/* A hook that is in no table, between its own begin and evaluated. */
static void tell(struct rig *rig, void *state, uint64_t step, double loss)
{
    const struct evaluation evaluation = {.rows = 16, .loss = loss};
    rig->view.global_step = step;
    const struct occasion told = {OCCASION_EVALUATED, .evaluated = {&evaluation}};
    rig_must(hook_best_loss.on[told.kind](state, &rig->view, &told));
}

static void each_best_evaluation_is_told_and_saved(void **state)
{
    struct rig *rig = *state;
    struct arena arena = {0};
    rig_prepare(rig, (const char *const[]){"train.checkpoint_dir=/tmp/unused", NULL});
    void *attributes = arena_new(&arena, hook_best_loss.object.size);
    void *memory = arena_new(&arena, hook_best_loss.state_bytes);
    rig_must(fields_defaults(&hook_best_loss.object, &arena, attributes));
    rig_must(hook_best_loss.check(attributes, &rig->spec));
    rig_must(hook_best_loss.begin(memory, attributes, &rig->view));
    tell(rig, memory, 10, 0.5);
    tell(rig, memory, 20, 0.5);
    tell(rig, memory, 30, 0.6);
    tell(rig, memory, 40, 0.25);
    arena_free(&arena);
    assert_int_equal(rig->saves, 2);
    assert_string_equal(rig_log(rig), "best loss so far: 0.5 at step 10\n"
                                      "best loss so far: 0.25 at step 40\n");
}

static void without_a_folder_for_checkpoints_it_is_refused(void **state)
{
    struct rig *rig = *state;
    rig_must(rig_load(rig, (const char *const[]){NULL}));
    assert_int_equal(hook_best_loss.check(NULL, &rig->spec), ERR_INPUT);
    assert_string_equal(error_text(), "needs train.checkpoint_dir");
}

#define WITH_RIG(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_RIG(each_best_evaluation_is_told_and_saved),
        WITH_RIG(without_a_folder_for_checkpoints_it_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
