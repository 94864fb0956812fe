/* test_sessions.c - sessions on a device with memory of its own train, evaluate and predict the
 * same bits as on the CPU, and touch nothing where it does not lie. */
#include "tests/device/scenes.h"

#include <math.h>
#include <string.h>

enum { GAPS_MAX = 128 }; /* bytes */

static void record(const struct scene *scene, enum place place, struct tape *tape)
{
    static struct rig r;
    rig_open(&r, scene, place);
    for (int step = 0; step < RIG_STEPS; step++) {
        rig_step(&r, step, tape);
        if (step == RIG_STEPS / 2) rig_evaluate(&r, tape);
    }
    rig_evaluate(&r, tape);
    bool is_gradient;
    assert_null(replica_not_finite(&r.session[0].replica, &is_gradient));
    rig_close(&r);
}

static void check(const struct scene *scene)
{
    struct tape cpu = {0}, apart = {0};
    record(scene, ON_CPU, &cpu);
    record(scene, APART, &apart);
    assert_same_tape(&cpu, &apart);
    tape_free(&cpu);
    tape_free(&apart);
}

static void the_curves_models_train_to_the_same_bits(void **state)
{
    check(&scene_softmax_sgd);
    check(&scene_mlp_momentum);
    check(&scene_cnn_adam);
}

static void every_op_computes_where_the_memory_is(void **state)
{
    check(&scene_all_ops);
}

static void labels_of_every_loss_are_brought_to_the_device(void **state)
{
    check(&scene_squares);
    check(&scene_huber);
    check(&scene_distances);
    check(&scene_sigmoid);
    check(&scene_hinge);
    check(&scene_more_for_yes);
    check(&scene_probabilities);
}

static void class_weights_are_taken_to_the_device(void **state)
{
    check(&scene_weighted);
}

static void clipping_is_of_the_devices_gradients(void **state)
{
    check(&scene_clipped_values);
    check(&scene_clipped_sums);
}

static void sums_of_several_batches_are_kept_on_the_device(void **state)
{
    check(&scene_sums);
}

static void regularizers_read_the_devices_values(void **state)
{
    check(&scene_regularized);
}

static void partitioned_variables_are_gathered_and_scattered_on_the_device(void **state)
{
    check(&scene_partitioned);
}

/* A value that is not finite, in the host's block. */
static void spoil(struct rig *r, struct tape *tape)
{
    double loss = 0;
    r->values[0][3] = NAN;
    assert_int_equal(session_step(&r->session[0], &loss), ERR_NUMBER);
    tape_add(tape, error_text(), strlen(error_text()));
    r->session[0].tolerates_nan = true;
    assert_int_equal(session_step(&r->session[0], &loss), OK);
    assert_true(isnan(loss));
}

static void assert_zero(const struct rig *r)
{
    for (int64_t i = 0; i < r->store[0].floats; i++) assert_true(r->gradients[0][0][i] == 0.0f);
}

static void gradients_are_rounded_where_they_were_computed(void **state)
{
    check(&scene_rounded);
    check(&scene_rounded_late);
}

static void values_are_widened_where_they_are_computed_with(void **state)
{
    check(&scene_narrow);
    check(&scene_narrow_parts);
}

static void a_loss_that_is_no_number_is_named_and_its_gradients_are_cleared(void **state)
{
    static struct rig r;
    struct tape tapes[2] = {0};
    for (int place = ON_CPU; place <= APART; place++) {
        rig_open(&r, &scene_softmax_sgd, (enum place)place);
        spoil(&r, &tapes[place]);
        session_clear_gradients(&r.session[0]);
        assert_zero(&r);
        rig_close(&r);
    }
    assert_same_tape(&tapes[ON_CPU], &tapes[APART]);
    tape_free(&tapes[ON_CPU]);
    tape_free(&tapes[APART]);
}

/* What crosses: in each step values up and gradients down; each batch up once, with gaps between
 * its parts. The next one may go up while the device works, or only when it is asked for: one more
 * than there were steps may have crossed. */
static void a_step_moves_each_block_once_and_each_batch_once(void **state)
{
    static struct rig r;
    struct tape tape = {0};
    rig_open(&r, &scene_softmax_sgd, APART);
    const struct traffic before = device_apart_traffic(&r.device);
    for (int step = 0; step < RIG_STEPS; step++) rig_step(&r, step, &tape);
    const struct traffic after = device_apart_traffic(&r.device);
    const int64_t block = r.store[0].floats * 4, draw = 8, batch = 20 * (28 * 28 + 1) * 4 + draw;
    const int64_t of_batches = after.uploaded - before.uploaded - RIG_STEPS * block;
    const int64_t batches = of_batches / batch; /* the gaps of all are less than one */
    assert_in_range(batches, RIG_STEPS, RIG_STEPS + 1);
    assert_in_range(of_batches, batches * batch, batches * (batch + GAPS_MAX));
    assert_int_equal(after.downloaded - before.downloaded, RIG_STEPS * block);
    rig_close(&r);
    tape_free(&tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curves_models_train_to_the_same_bits),
        cmocka_unit_test(every_op_computes_where_the_memory_is),
        cmocka_unit_test(labels_of_every_loss_are_brought_to_the_device),
        cmocka_unit_test(class_weights_are_taken_to_the_device),
        cmocka_unit_test(clipping_is_of_the_devices_gradients),
        cmocka_unit_test(sums_of_several_batches_are_kept_on_the_device),
        cmocka_unit_test(regularizers_read_the_devices_values),
        cmocka_unit_test(partitioned_variables_are_gathered_and_scattered_on_the_device),
        cmocka_unit_test(gradients_are_rounded_where_they_were_computed),
        cmocka_unit_test(values_are_widened_where_they_are_computed_with),
        cmocka_unit_test(a_loss_that_is_no_number_is_named_and_its_gradients_are_cleared),
        cmocka_unit_test(a_step_moves_each_block_once_and_each_batch_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
