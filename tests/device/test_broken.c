/* test_broken.c - a GPU that fails in the middle of training, or has too little memory, on the
 * emulated one: the error is told by the step, with the call that failed. */
#include "tests/cuda/emulated.h"
#include "tests/device/scenes.h"

#include <string.h>

static void break_at(const char *call)
{
    static struct rig r;
    struct tape tape = {0};
    double loss = 0;
    rig_open(&r, &scene_softmax_sgd, ON_GPU);
    rig_step(&r, 0, &tape);
    emulated_break(call, 0);
    assert_int_equal(session_step(&r.session[0], &loss), ERR_LOST);
    assert_non_null(strstr(error_text(), call));
    emulated_break(NULL, 0);
    rig_close(&r);
    tape_free(&tape);
}

static void a_step_on_a_gpu_that_fails_is_an_error_with_the_call(void **state)
{
    break_at("cudaLaunchKernelEx");
    break_at("cudaMemcpyAsync");
    break_at("cudaStreamSynchronize");
}

static void evaluation_on_a_gpu_that_fails_is_an_error(void **state)
{
    static struct rig r;
    struct evaluation e;
    struct tape tape = {0};
    rig_open(&r, &scene_softmax_sgd, ON_GPU);
    rig_evaluate(&r, &tape);
    emulated_break("cudaLaunchKernelEx", 0);
    assert_int_equal(session_evaluate(&r.session[0], &e), ERR_LOST);
    emulated_break(NULL, 0);
    rig_close(&r);
    tape_free(&tape);
}

static err forget(void *context, const struct predictions *p)
{
    return OK;
}

/* 130 rows in batches of 50: the third is the last, and nothing waits for the GPU after it. */
static void predictions_that_did_not_all_come_are_an_error(void **state)
{
    static struct rig r;
    struct tape tape = {0};
    rig_open(&r, &scene_softmax_sgd, ON_GPU);
    rig_evaluate(&r, &tape);
    for (int batch = 0; batch < 3; batch++) {
        emulated_break("cudaEventSynchronize",
                       3 * (batch + 1)); /* after the values, features and labels */
        assert_int_equal(session_predict(&r.session[0], &(struct prediction_taker){forget, NULL}),
                         ERR_LOST);
    }
    emulated_break(NULL, 0);
    assert_int_equal(session_predict(&r.session[0], &(struct prediction_taker){forget, NULL}), OK);
    rig_close(&r);
    tape_free(&tape);
}

static void too_little_memory_is_told_before_the_first_step(void **state)
{
    struct spec spec;
    struct device device;
    struct session session;
    const size_t taken = emulated_memory_taken();
    rig_load_spec(scene_mlp_momentum.spec, &spec);
    assert_int_equal(device_open_emulated(&device), OK);
    const size_t own = emulated_memory_taken();
    emulated_set_memory(own + 500000);
    const struct session_options options = {
        .spec = &spec, .device = &device, .workers = 1, .ps_count = 1, .batches_per_push = 1};
    assert_int_equal(session_open(&options, &session), ERR_MEMORY);
    assert_non_null(strstr(error_text(), "activations"));
    assert_int_equal(emulated_memory_taken(), own);
    device_close(&device);
    assert_int_equal(emulated_memory_taken(), taken);
    spec_free(&spec);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_on_a_gpu_that_fails_is_an_error_with_the_call),
        cmocka_unit_test(evaluation_on_a_gpu_that_fails_is_an_error),
        cmocka_unit_test(predictions_that_did_not_all_come_are_an_error),
        cmocka_unit_test(too_little_memory_is_told_before_the_first_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
