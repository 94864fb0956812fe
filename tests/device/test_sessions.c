/* test_sessions.c - sessions on a device with memory of its own train, evaluate and predict the
 * same bits as on the CPU, and touch nothing where it does not lie. */
#include "tests/device/rig.h"

#include <math.h>
#include <string.h>

#define DIGITS                                                                                     \
    "\"data\":{\"train\":{\"format\":\"digits\",\"rows\":230},\"eval\":{\"format\":\"digits\","    \
    "\"rows\":130},\"batch_size\":20,\"eval_batch_size\":50,\"scale\":0.0039},"
#define RUN "\"train\":{\"mode\":\"sync\",\"last_step\":100}"
#define CLASSES "\"loss\":\"softmax_cross_entropy\",\"metrics\":[\"accuracy\",\"loss\"],"
#define BY(name) "\"optimizer\":{\"type\":\"" name "\",\"learning_rate\":0.05},"
#define MLP                                                                                        \
    "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":100,\"activation\":\"relu\"},"    \
    "{\"op\":\"dense\",\"units\":50,\"activation\":\"relu\"},{\"op\":\"dense\",\"units\":10}],"

static const struct scene softmax_sgd = {
    "{" DIGITS "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":10}]," CLASSES
    "\"optimizer\":{\"type\":\"gradient_descent\",\"learning_rate\":0.5}," RUN "}",
    1, 1, 1};

static const struct scene mlp_momentum = {
    "{" DIGITS MLP CLASSES
    "\"optimizer\":{\"type\":\"momentum\",\"learning_rate\":0.1,\"momentum\":0.9}," RUN "}",
    2, 2, 1};

static const struct scene cnn_adam = {
    "{" DIGITS "\"model\":[{\"op\":\"conv2d\",\"filters\":8,\"kernel_size\":5,\"padding\":\"same\","
    "\"activation\":\"relu\"},{\"op\":\"max_pool\",\"pool_size\":2,\"padding\":\"same\"},{\"op\":"
    "\"conv2d\",\"filters\":16,\"kernel_size\":5,\"padding\":\"same\",\"activation\":\"relu\"},"
    "{\"op\":\"max_pool\",\"pool_size\":2,\"padding\":\"same\"},{\"op\":\"flatten\"},{\"op\":"
    "\"dense\",\"units\":64,\"activation\":\"relu\"},{\"op\":\"dense\",\"units\":10}]," CLASSES
    "\"optimizer\":\"adam\"," RUN "}",
    2, 2, 1};

/* Every op that has no parameters, on the way from the features to the logits. */
static const struct scene all_ops = {
    "{" DIGITS "\"model\":[{\"op\":\"avg_pool\",\"pool_size\":2,\"name\":\"small\"},"
    "{\"op\":\"conv2d\",\"filters\":4,\"kernel_size\":3,\"padding\":\"same\",\"activation\":"
    "\"gelu\",\"name\":\"a\"},"
    "{\"op\":\"conv2d\",\"filters\":4,\"kernel_size\":3,\"padding\":\"same\",\"inputs\":[\"small\"]"
    ",\"name\":\"b\"},"
    "{\"op\":\"add\",\"inputs\":[\"a\",\"b\"],\"name\":\"sum\"},"
    "{\"op\":\"multiply\",\"inputs\":[\"a\",\"sum\"],\"name\":\"product\"},"
    "{\"op\":\"concat\",\"inputs\":[\"sum\",\"product\"],\"name\":\"both\"},"
    "{\"op\":\"swish\"},{\"op\":\"dropout\",\"rate\":0.25},{\"op\":\"flatten\"},"
    "{\"op\":\"dense\",\"units\":12,\"name\":\"wide\"},{\"op\":\"softmax\"},"
    "{\"op\":\"dense\",\"units\":10}]," CLASSES BY("adagrad") RUN "}",
    1, 1, 1};

static const struct scene weighted = {
    "{" DIGITS MLP
    "\"loss\":{\"op\":\"softmax_cross_entropy\",\"label_smoothing\":0.1,\"class_weights\":[1,0,2,1,"
    "1,0.5,1,1,3,1]},\"metrics\":[\"accuracy\",{\"op\":\"in_top_k\",\"k\":3}]," BY("rmsprop") RUN
    "}",
    1, 1, 1};

static const struct scene clipped_sums = {
    "{" DIGITS MLP CLASSES
    "\"optimizer\":{\"type\":\"gradient_descent\",\"learning_rate\":0.5,\"clip\":{\"type\":"
    "\"global_norm\",\"norm\":0.05}}," RUN "}",
    2, 2, 3};

static const struct scene clipped_values = {
    "{" DIGITS MLP CLASSES
    "\"optimizer\":{\"type\":\"gradient_descent\",\"learning_rate\":0.5,\"clip\":{\"type\":"
    "\"value\",\"min\":-0.001,\"max\":0.002}}," RUN "}",
    1, 1, 1};

static const struct scene sums = {"{" DIGITS MLP CLASSES "\"optimizer\":\"adam\"," RUN "}", 1, 2,
                                  3};

static const struct scene regularized = {
    "{" DIGITS
    "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":20,\"kernel_regularizer\":{\"l1\":"
    "0.001,\"l2\":0.01}},{\"op\":\"dense\",\"units\":10,\"kernel_regularizer\":{\"l2\":0.004}}]"
    "," CLASSES BY("gradient_descent") RUN "}",
    2, 1, 2};

static const struct scene partitioned = {
    "{" DIGITS MLP CLASSES
    "\"placement\":{\"partitioner\":{\"type\":\"fixed_size\",\"num_shards\":3}},\"optimizer\":"
    "{\"type\":\"adam\",\"clip\":{\"type\":\"norm\",\"norm\":0.1}}," RUN "}",
    2, 3, 2};

#define NUMBERS(loss)                                                                              \
    "{\"data\":{\"train\":{\"format\":\"random\",\"rows\":90,\"shape\":[7],\"label_type\":"        \
    "\"number\"},\"eval\":{\"format\":\"random\",\"rows\":33,\"shape\":[7],\"label_type\":"        \
    "\"number\"},\"batch_size\":8,\"eval_batch_size\":10},\"model\":[{\"op\":\"dense\",\"units\":" \
    "9,"                                                                                           \
    "\"activation\":\"tanh\"},{\"op\":\"dense\",\"units\":1}],\"loss\":\"" loss                    \
    "\",\"metrics\":[\"loss\"],\"optimizer\":{\"type\":\"momentum\",\"learning_rate\":0.05,"       \
    "\"momentum\":0.5}," RUN "}"

static const struct scene squares = {NUMBERS("mean_squared_error"), 1, 1, 1};
static const struct scene huber = {NUMBERS("huber"), 1, 1, 1};
static const struct scene sigmoid = {NUMBERS("sigmoid_cross_entropy"), 1, 1, 1};

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
    assert_null(session_not_finite(&r.session[0], &is_gradient));
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
    check(&softmax_sgd);
    check(&mlp_momentum);
    check(&cnn_adam);
}

static void every_op_computes_where_the_memory_is(void **state)
{
    check(&all_ops);
}

static void labels_of_every_loss_are_brought_to_the_device(void **state)
{
    check(&squares);
    check(&huber);
    check(&sigmoid);
}

static void class_weights_are_taken_to_the_device(void **state)
{
    check(&weighted);
}

static void clipping_is_of_the_devices_gradients(void **state)
{
    check(&clipped_values);
    check(&clipped_sums);
}

static void sums_of_several_batches_are_kept_on_the_device(void **state)
{
    check(&sums);
}

static void regularizers_read_the_devices_values(void **state)
{
    check(&regularized);
}

static void partitioned_variables_are_gathered_and_scattered_on_the_device(void **state)
{
    check(&partitioned);
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

static void a_loss_that_is_no_number_is_named_and_its_gradients_are_cleared(void **state)
{
    static struct rig r;
    struct tape tapes[2] = {0};
    for (int place = ON_CPU; place <= APART; place++) {
        rig_open(&r, &softmax_sgd, (enum place)place);
        spoil(&r, &tapes[place]);
        session_clear_gradients(&r.session[0]);
        assert_zero(&r);
        rig_close(&r);
    }
    assert_same_tape(&tapes[ON_CPU], &tapes[APART]);
    tape_free(&tapes[ON_CPU]);
    tape_free(&tapes[APART]);
}

/* What crosses in a step: values up, gradients down, one batch up. */
static void a_step_moves_each_block_once_and_each_batch_once(void **state)
{
    static struct rig r;
    struct tape tape = {0};
    rig_open(&r, &softmax_sgd, APART);
    rig_step(&r, 0, &tape);
    const struct traffic before = device_apart_traffic(&r.device);
    double loss;
    assert_int_equal(session_step(&r.session[0], &loss), OK);
    const struct traffic after = device_apart_traffic(&r.device);
    const int64_t block = r.store[0].floats * 4, batch = 20 * (28 * 28 + 1) * 4;
    assert_int_equal(after.uploaded - before.uploaded, block + batch);
    assert_int_equal(after.downloaded - before.downloaded, block);
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
        cmocka_unit_test(a_loss_that_is_no_number_is_named_and_its_gradients_are_cleared),
        cmocka_unit_test(a_step_moves_each_block_once_and_each_batch_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
