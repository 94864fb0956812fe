/* test_choice.c - which device a task is to use: the words, and who of one host gets which GPU. */
#include "core/cluster/description/cluster_spec.h"
#include "core/train/session/device_choice.h"
#include "tests/device/rig.h"

#include <stdlib.h>
#include <string.h>

static void assert_choice(const char *text, enum device_kind kind, int index)
{
    struct device_choice choice = {DEVICE_AUTO, -7};
    assert_int_equal(device_choice_parse(text, &choice), OK);
    assert_int_equal(choice.kind, kind);
    assert_int_equal(choice.index, index);
}

static void the_four_words_are_read(void **state)
{
    assert_choice("auto", DEVICE_AUTO, -1);
    assert_choice("cpu", DEVICE_CPU, -1);
    assert_choice("gpu", DEVICE_GPU, -1);
    assert_choice("gpu:0", DEVICE_GPU, 0);
    assert_choice("gpu:63", DEVICE_GPU, 63);
}

static void other_words_are_refused(void **state)
{
    static const char *const wrong[] = {"",       "GPU",    "gpu:",   "gpu:-1",  "gpu:+1",
                                        "gpu: 1", "gpu:1 ", "gpu:64", "gpu:999", "gpu:4294967296",
                                        "gpux",   "cpu:0",  "cuda",   "auto "};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct device_choice choice = {DEVICE_CPU, 5};
        assert_int_equal(device_choice_parse(wrong[i], &choice), ERR_INPUT);
        assert_int_equal(choice.kind, DEVICE_CPU);
        assert_int_equal(choice.index, 5);
    }
}

static void a_spec_with_another_word_is_refused_with_its_path(void **state)
{
    char path[] = "/tmp/device-XXXXXX";
    struct spec spec;
    const char *text =
        "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":50},\"batch_size\":10},"
        "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":10}],\"loss\":"
        "\"softmax_cross_entropy\",\"optimizer\":{\"type\":\"adam\",\"learning_rate\":"
        "0.1},\"train\":{\"last_step\":9},\"device\":\"gpu:x\"}";
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    const struct spec_options options = {.path = path, .seed = -1};
    assert_int_equal(spec_load(&options, &spec), ERR_INPUT);
    assert_non_null(strstr(error_text(), ": device: expected auto, cpu, gpu or gpu:N"));
    assert_int_equal(remove(path), 0);
}

static void load(const char *device, const char *precision, struct spec *ret)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":50},\"batch_size\":10},"
             "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dense\",\"units\":10}],\"loss\":"
             "\"softmax_cross_entropy\",\"optimizer\":{\"type\":\"adam\",\"learning_rate\":0.1},"
             "\"train\":{\"last_step\":9},\"device\":\"%s\",\"precision\":\"%s\"}",
             device, precision);
    rig_load_spec(text, ret);
}

/* Tasks may compute in different places, but not in different ways. */
static void tasks_may_differ_in_their_device_and_not_in_their_precision(void **state)
{
    struct spec cpu, gpu, tf32, bf16;
    load("cpu", "float32", &cpu);
    load("gpu:1", "float32", &gpu);
    load("cpu", "tf32", &tf32);
    load("cpu", "bf16", &bf16);
    assert_string_equal(cpu.fingerprint, gpu.fingerprint);
    assert_string_not_equal(cpu.fingerprint, tf32.fingerprint);
    assert_string_not_equal(tf32.fingerprint, bf16.fingerprint);
    assert_int_equal(cpu.precision, PRECISION_FLOAT32);
    assert_int_equal(bf16.precision, PRECISION_BF16);
    assert_int_equal(tf32.precision, PRECISION_TF32);
    spec_free(&cpu);
    spec_free(&gpu);
    spec_free(&tf32);
    spec_free(&bf16);
}

static int gpu_of(const char *text, int local_index, int gpus)
{
    struct device_choice choice;
    int index = -1;
    assert_int_equal(device_choice_parse(text, &choice), OK);
    assert_int_equal(device_choice_gpu(&choice, local_index, gpus, &index), OK);
    return index;
}

static void tasks_of_a_host_share_the_gpus_out_in_turn(void **state)
{
    assert_int_equal(gpu_of("auto", 0, 1), 0);
    assert_int_equal(gpu_of("auto", 5, 1), 0);
    assert_int_equal(gpu_of("gpu", 1, 4), 1);
    assert_int_equal(gpu_of("auto", 6, 4), 2);
}

static void a_gpu_that_is_named_is_taken_whoever_asks(void **state)
{
    assert_int_equal(gpu_of("gpu:2", 0, 4), 2);
    assert_int_equal(gpu_of("gpu:2", 3, 4), 2);
}

static void a_gpu_that_is_not_there_is_refused(void **state)
{
    struct device_choice choice = {DEVICE_GPU, 2};
    int index = 9;
    assert_int_equal(device_choice_gpu(&choice, 0, 2, &index), ERR_INPUT);
    assert_int_equal(index, 9);
}

/* ---- who is where ---- */

#define WORKERS "a:1,b:1,a:2,b:2,a:3"

static int local_index(const char *job, int task)
{
    struct arena arena = {0};
    struct cluster_spec spec;
    const struct cluster_flags flags = {job, task, "a:9,b:9", WORKERS};
    if (cluster_spec_make(&flags, NULL, &arena, &spec)) fail_msg("%s", error_text());
    const int index = cluster_local_index(&spec);
    arena_free(&arena);
    return index;
}

static void workers_are_counted_by_the_host_of_their_address(void **state)
{
    static const int wanted[] = {0, 0, 1, 1, 2};
    for (int i = 0; i < 5; i++) assert_int_equal(local_index("worker", i), wanted[i]);
}

static void the_evaluator_comes_after_the_workers_of_its_host(void **state)
{
    assert_int_equal(local_index("evaluator", 0), 3);
}

static void others_are_number_zero(void **state)
{
    const struct cluster_spec alone = {0};
    assert_int_equal(cluster_local_index(&alone), 0);
    assert_int_equal(local_index("ps", 0), 0);
    assert_int_equal(local_index("ps", 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_four_words_are_read),
        cmocka_unit_test(other_words_are_refused),
        cmocka_unit_test(a_spec_with_another_word_is_refused_with_its_path),
        cmocka_unit_test(tasks_may_differ_in_their_device_and_not_in_their_precision),
        cmocka_unit_test(tasks_of_a_host_share_the_gpus_out_in_turn),
        cmocka_unit_test(a_gpu_that_is_named_is_taken_whoever_asks),
        cmocka_unit_test(a_gpu_that_is_not_there_is_refused),
        cmocka_unit_test(workers_are_counted_by_the_host_of_their_address),
        cmocka_unit_test(the_evaluator_comes_after_the_workers_of_its_host),
        cmocka_unit_test(others_are_number_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
