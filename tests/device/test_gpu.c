/* test_gpu.c - the same training on a GPU: near the CPU's, and the same bits in every run.
 *
 * Linked with what the build has: a real GPU where there is one, else the test is skipped; or with
 * the emulated one.
 */
#include "tests/device/scenes.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SKIPPED = 77, LOSSES_MAX = 64, BF16_STEPS = 40 };

/* Sums are taken in another order there: relative, after a few steps. */
static const double tolerance = 2e-4;

struct losses {
    int count;
    double at[LOSSES_MAX];
};

static void add_loss(struct losses *losses, double loss)
{
    assert_in_range(losses->count, 0, LOSSES_MAX - 1);
    losses->at[losses->count++] = loss;
}

/* The mean of all workers, of each step, and of the evaluation at the end. */
static void train(const struct scene *scene, enum place place, struct losses *losses,
                  struct tape *tape)
{
    static struct rig r;
    struct evaluation e;
    rig_open(&r, scene, place);
    for (int step = 0; step < RIG_STEPS; step++) {
        const size_t begin = tape->bytes;
        double loss;
        rig_step(&r, step, tape);
        memcpy(&loss, tape->at + begin, sizeof loss); /* the first worker's comes first */
        add_loss(losses, loss);
    }
    assert_int_equal(session_evaluate(&r.session[0], &e), OK);
    add_loss(losses, e.loss);
    rig_evaluate(&r, tape);
    rig_close(&r);
}

static void check(const struct scene *scene)
{
    struct losses wanted = {0}, got = {0}, again = {0};
    struct tape cpu = {0}, first = {0}, second = {0};
    train(scene, ON_CPU, &wanted, &cpu);
    train(scene, ON_GPU, &got, &first);
    train(scene, ON_GPU, &again, &second);
    assert_same_tape(&first, &second);
    assert_int_equal(wanted.count, got.count);
    for (int i = 0; i < wanted.count; i++)
        if (!(fabs(got.at[i] - wanted.at[i]) <= tolerance * fabs(wanted.at[i])))
            fail_msg("loss %d: expected %.9g, got %.9g", i, wanted.at[i], got.at[i]);
    tape_free(&cpu);
    tape_free(&first);
    tape_free(&second);
}

/* Loss of the evaluation after some steps */
static double loss_after(const struct scene *scene, enum place place, int steps)
{
    static struct rig r;
    struct evaluation e;
    struct tape tape = {0};
    rig_open(&r, scene, place);
    for (int step = 0; step < steps; step++) rig_step(&r, step, &tape);
    assert_int_equal(session_evaluate(&r.session[0], &e), OK);
    rig_close(&r);
    tape_free(&tape);
    return e.loss;
}

static void check_bf16(const struct scene *in_bf16, const struct scene *in_float32)
{
    const double wanted = loss_after(in_float32, ON_CPU, BF16_STEPS);
    const double got = loss_after(in_bf16, ON_GPU, BF16_STEPS);
    assert_true(wanted < 1.2); /* from 2.3 on: something was learned */
    if (!(fabs(got - wanted) <= 0.01 * wanted))
        fail_msg("loss: expected %.9g, got %.9g", wanted, got);
    assert_true(fabs(got - wanted) > 1e-5 * wanted);
}

static void curves_in_bf16_end_within_a_hundredth_of_those_in_float32(void **state)
{
    check_bf16(&scene_softmax_bf16, &scene_softmax_sgd);
    check_bf16(&scene_mlp_bf16, &scene_mlp_momentum);
}

static void the_curves_models_train_as_on_the_cpu(void **state)
{
    check(&scene_softmax_sgd);
    check(&scene_mlp_momentum);
    check(&scene_cnn_adam);
}

static void every_op_and_loss_trains_as_on_the_cpu(void **state)
{
    check(&scene_all_ops);
    check(&scene_weighted);
    check(&scene_squares);
    check(&scene_huber);
    check(&scene_distances);
    check(&scene_sigmoid);
    check(&scene_hinge);
    check(&scene_more_for_yes);
    check(&scene_probabilities);
}

static void gradients_are_clipped_summed_and_regularized_as_on_the_cpu(void **state)
{
    check(&scene_clipped_sums);
    check(&scene_clipped_values);
    check(&scene_sums);
    check(&scene_regularized);
    check(&scene_partitioned);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curves_models_train_as_on_the_cpu),
        cmocka_unit_test(curves_in_bf16_end_within_a_hundredth_of_those_in_float32),
        cmocka_unit_test(every_op_and_loss_trains_as_on_the_cpu),
        cmocka_unit_test(gradients_are_clipped_summed_and_regularized_as_on_the_cpu),
    };
    int gpus;
    if (gpu_count(&gpus)) {
        printf("skipped: no GPU: %s\n", error_text());
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
