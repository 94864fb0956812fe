/* test_broken.c - a GPU that fails in the middle of training, or has too little memory, on the
 * emulated one: the error is told by the step, with the call that failed and the node. */
#include "tests/cuda/emulator/emulated.h"
#include "tests/device/scenes.h"

#include <stdio.h>
#include <string.h>

enum { PLACE_MAX = 128, EVALUATIONS = 100 };

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
    break_at("cudaStreamQuery");
}

/* Where the failure of the launch after so many others is told to lie; "": none failed. */
static void place_of(struct rig *r, int launches, char ret[PLACE_MAX])
{
    double loss = 0;
    *ret = '\0';
    emulated_break("cudaLaunchKernelEx", launches);
    const err e = session_step(&r->session[0], &loss);
    emulated_break(NULL, 0);
    const char *place = strstr(error_text(), ", at or before ");
    if (e) assert_non_null(place);
    if (e) snprintf(ret, PLACE_MAX, "%s", place + strlen(", at or before "));
}

/* Launches are told of at once, so whatever is marked is the very node. */
static void an_error_names_the_node(void **state)
{
    static const char *const places[] = {
        "forward of node \"dense\"",    "forward of node \"dense_1\"",
        "forward of node \"dense_2\"",  "loss \"softmax_cross_entropy\"",
        "backward of node \"dense_2\"", "backward of node \"dense_1\"",
        "backward of node \"dense\"",   "what follows backward of node \"dense\""};
    enum { PLACES = sizeof places / sizeof *places };
    static struct rig r;
    struct tape tape = {0};
    char place[PLACE_MAX];
    int at = 0, launches = 0;
    rig_open(&r, &scene_mlp_momentum, ON_GPU);
    rig_step(&r, 0, &tape);
    for (place_of(&r, 0, place); *place; place_of(&r, ++launches, place)) {
        if (strcmp(place, places[at]) != 0) at++;
        assert_in_range(at, 0, PLACES - 1);
        assert_string_equal(place, places[at]);
    }
    assert_int_equal(at, PLACES - 1);
    rig_close(&r);
    tape_free(&tape);
}

/* A wait tells of what was queued before it: here the first is that of the loss, after all nodes.
 */
static void an_error_that_is_noticed_late_says_so(void **state)
{
    static struct rig r;
    struct tape tape = {0};
    double loss = 0;
    rig_open(&r, &scene_softmax_sgd, ON_GPU);
    rig_step(&r, 0, &tape);
    emulated_break("cudaStreamQuery", 0);
    assert_int_equal(session_step(&r.session[0], &loss), ERR_LOST);
    emulated_break(NULL, 0);
    assert_non_null(strstr(error_text(), ", at or before what follows backward of node \"dense\""));
    rig_close(&r);
    tape_free(&tape);
}

static void a_watched_gpu_names_the_node_that_failed(void **state)
{
    struct device d;
    void *memory;
    assert_int_equal(device_open_gpu(&(struct gpu_options){.is_watched = true}, &d), OK);
    assert_int_equal(d.kernels->allocate(&d, 400, &memory), OK);
    d.kernels->mark(&d, "backward of node", "dense");
    emulated_break("cudaStreamQuery", 0);
    d.kernels->fill(&d, memory, 1, 100);
    emulated_break(NULL, 0);
    d.kernels->mark(&d, "forward of node", "another");
    assert_int_equal(d.kernels->synchronize(&d), ERR_LOST);
    assert_non_null(strstr(error_text(), "last kernel: fill, in backward of node \"dense\""));
    d.kernels->mark(&d, NULL, NULL);
    emulated_break("cudaStreamQuery", 0);
    assert_int_equal(d.kernels->synchronize(&d), ERR_LOST);
    emulated_break(NULL, 0);
    assert_null(strstr(error_text(), "node"));
    d.kernels->release(&d, memory);
    device_close(&d);
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
        emulated_break("cudaEventQuery",
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
    assert_true(device.kernels->reserved > 100000000);
    emulated_set_memory(own + device.kernels->reserved + 900000);
    const struct session_options options = {
        .spec = &spec, .device = &device, .workers = 1, .ps_count = 1, .batches_per_push = 1};
    assert_int_equal(session_open(&options, &session), ERR_MEMORY);
    assert_non_null(strstr(error_text(), "activations"));
    assert_non_null(strstr(error_text(), "would fit"));
    assert_null(strstr(error_text(), "no data.batch_size"));
    assert_int_equal(emulated_memory_taken(), own);
    device_close(&device);
    assert_int_equal(emulated_memory_taken(), taken);
    emulated_set_memory(1 << 30);
    spec_free(&spec);
}

/* Of a plan with two convolutions: batch and labels too, since the device is apart. */
static void a_plan_takes_what_was_measured(void **state)
{
    static struct rig r;
    struct plan_size size;
    struct plan *plan;
    rig_open(&r, &scene_cnn_adam, ON_GPU);
    struct graph *graph = r.session[0].graph;
    const size_t labels = (size_t)graph->batch * sizeof(int32_t);
    plan_close(r.session[0].replica.plan);
    const size_t before = emulated_memory_taken();
    assert_int_equal(plan_measure(graph, &r.device, &size), OK);
    assert_true(size.workspace > 0);
    assert_int_equal(plan_open(graph, &r.device, &plan), OK);
    assert_int_equal(emulated_memory_taken() - before, size.block + size.workspace + labels);
    r.session[0].replica.plan = plan;
    rig_close(&r);
}

/* The last test: what the GPU has then is never given back. */
static void a_gpu_that_hangs_is_lost_and_its_session_closes_all_the_same(void **state)
{
    static struct rig r;
    struct tape tape = {0};
    double loss = 0;
    rig_open(&r, &scene_mlp_momentum, ON_GPU);
    rig_step(&r, 0, &tape);
    rig_evaluate(&r, &tape);
    emulated_set_wait_limit(&r.device, 50);
    emulated_set_hung(true);
    assert_int_equal(session_step(&r.session[0], &loss), ERR_LOST);
    assert_non_null(strstr(error_text(), "GPU 0: no answer for 0.05 s"));
    /* far more than its queue holds, after which whoever queues would wait for ever */
    struct evaluation e;
    for (int i = 0; i < EVALUATIONS; i++)
        assert_int_equal(session_evaluate(&r.session[0], &e), ERR_LOST);
    rig_close(&r);
    emulated_set_hung(false);
    tape_free(&tape);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_step_on_a_gpu_that_fails_is_an_error_with_the_call),
        cmocka_unit_test(an_error_names_the_node),
        cmocka_unit_test(an_error_that_is_noticed_late_says_so),
        cmocka_unit_test(a_watched_gpu_names_the_node_that_failed),
        cmocka_unit_test(evaluation_on_a_gpu_that_fails_is_an_error),
        cmocka_unit_test(predictions_that_did_not_all_come_are_an_error),
        cmocka_unit_test(a_plan_takes_what_was_measured),
        cmocka_unit_test(too_little_memory_is_told_before_the_first_step),
        cmocka_unit_test(a_gpu_that_hangs_is_lost_and_its_session_closes_all_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
