/* test_gpu.c - the same training on a GPU: near the CPU's, and the same bits in every run.
 *
 * Linked with what the build has: a real GPU where there is one, else the test is skipped; or with
 * the emulated one.
 */
#include "tests/device/scenes.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
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

static void assert_near_losses(const struct losses *wanted, const struct losses *got)
{
    assert_int_equal(wanted->count, got->count);
    for (int i = 0; i < wanted->count; i++)
        if (!(fabs(got->at[i] - wanted->at[i]) <= tolerance * fabs(wanted->at[i])))
            fail_msg("loss %d: expected %.9g, got %.9g", i, wanted->at[i], got->at[i]);
}

static void check(const struct scene *scene)
{
    struct losses wanted = {0}, got = {0}, again = {0};
    struct tape cpu = {0}, first = {0}, second = {0};
    train(scene, ON_CPU, &wanted, &cpu);
    train(scene, ON_GPU, &got, &first);
    train(scene, ON_GPU, &again, &second);
    assert_same_tape(&first, &second);
    assert_near_losses(&wanted, &got);
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

/* From a loss of 2.3, of ten digits, on */
static void check_bf16(const struct scene *in_bf16, const struct scene *in_float32)
{
    const double wanted = loss_after(in_float32, ON_CPU, BF16_STEPS);
    const double got = loss_after(in_bf16, ON_GPU, BF16_STEPS);
    assert_true(wanted < 1.2); /* something was learned */
    if (!(fabs(got - wanted) <= 0.01 * 2.3)) fail_msg("loss: expected %.9g, got %.9g", wanted, got);
    assert_true(fabs(got - wanted) > 1e-5 * wanted);
}

static void a_curve_in_bf16_ends_within_a_hundredth_of_that_in_float32(void **state)
{
    check_bf16(&scene_small_cnn_bf16, &scene_small_cnn);
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

/* Batches and products of a size that keeps a GPU busy, so that what goes on beside it does */
static const struct scene scene_large = {
    "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":4096},\"eval\":{\"format\":\"digits\","
    "\"rows\":1024},\"batch_size\":1024,\"eval_batch_size\":1024,\"scale\":0.0039},\"model\":["
    "{\"op\":\"conv2d\",\"filters\":32,\"kernel_size\":5,\"padding\":\"same\",\"activation\":"
    "\"relu\"},"
    "{\"op\":\"max_pool\",\"pool_size\":2,\"padding\":\"same\"},{\"op\":\"conv2d\",\"filters\":64,"
    "\"kernel_size\":5,\"padding\":\"same\",\"activation\":\"relu\"},{\"op\":\"max_pool\",\"pool_"
    "size\":2,"
    "\"padding\":\"same\"},{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":2048,\"activation\":"
    "\"relu\"},"
    "{\"op\":\"dense\",\"units\":2048,\"activation\":\"relu\"},{\"op\":\"dense\",\"units\":10}],"
    "\"loss\":\"softmax_cross_entropy\",\"metrics\":[\"accuracy\",\"loss\"],\"optimizer\":\"adam\","
    "\"train\":{\"mode\":\"sync\",\"last_step\":100}}",
    1, 2, 1};

static bool is_emulated(void)
{
    static struct gpus gpus;
    return !gpu_list(&gpus) && strcmp(gpus.at[0].name, "emulated") == 0;
}

/* The emulated one, which takes hours for it, does the same in small (test_beside.c). */
static void a_large_model_trains_alike_in_turn_and_by_own_kernels(void **state)
{
    struct losses in_turn = {0}, beside = {0}, own = {0};
    struct tape first = {0}, second = {0}, third = {0};
    if (is_emulated()) skip();
    train(&scene_large, IN_TURN, &in_turn, &first);
    train(&scene_large, ON_GPU, &beside, &second);
    assert_same_tape(&first, &second);
    assert_int_equal(setenv("GPU_BARE", "1", 1), 0);
    train(&scene_large, ON_GPU, &own, &third);
    unsetenv("GPU_BARE");
    assert_near_losses(&in_turn, &own);
    tape_free(&first);
    tape_free(&second);
    tape_free(&third);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_curves_models_train_as_on_the_cpu),
        cmocka_unit_test(a_curve_in_bf16_ends_within_a_hundredth_of_that_in_float32),
        cmocka_unit_test(every_op_and_loss_trains_as_on_the_cpu),
        cmocka_unit_test(gradients_are_clipped_summed_and_regularized_as_on_the_cpu),
        cmocka_unit_test(a_large_model_trains_alike_in_turn_and_by_own_kernels),
    };
    int gpus;
    if (gpu_count(&gpus)) {
        printf("skipped: no GPU: %s\n", error_text());
        return SKIPPED;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
