/* test_dnn.c - who computes a convolution, with a library that only bears cuDNN's name. The
 * environment of the test leads the loader to it. That its numbers are right is asked by
 * tests/kernels/test_image.c, with the same library.
 *
 * test_dnn lacking: with one that lacks its functions
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/note.h"
#include "kernels/async.h"
#include "tests/cuda/emulator/emulated.h"
#include "tests/cuda/emulator/emulation.h"
#include "tests/cuda/named.h"
#include "tests/kernels/support.h"

enum { IN = 3, OUT = 5, PIXELS = 2 * 6 * 7, WEIGHTS = 9 * IN * OUT };

/* 2 images of 6 x 7, 3 x 3 cells, everything padded by one */
static const struct conv2d even = {{2, 6, 7, 6, 7, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}, IN, OUT};
/* Every other of them; as TensorFlow pads 6 pixels: none before, one behind */
static const struct conv2d uneven = {{2, 6, 7, 3, 4, 3, 3, 2, 2, 1, 1, 0, 1, 1, 1}, IN, OUT};

/* A device whose memory is of the host too, and what a convolution is given */
struct trial {
    struct device d;
    struct conv2d_plan *plan;
    float *x, *kernel, *y;
};

static struct trial open_trial(const struct conv2d *shape, enum precision precision)
{
    const struct gpu_options options = {.is_watched = true, .precision = precision};
    struct trial t;
    assert_int_equal(device_open_gpu(&options, &t.d), OK);
    t.x = random_floats(&t.d, PIXELS * IN, -1, 1, 1);
    t.kernel = random_floats(&t.d, WEIGHTS, -1, 1, 2);
    t.y = random_floats(&t.d, PIXELS * OUT, -1, 1, 3);
    assert_int_equal(t.d.kernels->conv2d_open(&t.d, shape, &t.plan), OK);
    return t;
}

static void close_trial(struct trial *t)
{
    t->d.kernels->conv2d_close(&t->d, t->plan);
    free_floats(&t->d, t->x);
    free_floats(&t->d, t->kernel);
    free_floats(&t->d, t->y);
    device_close(&t->d);
    assert_int_equal(emulated_memory_taken(), 0);
}

static int asked(const char *function)
{
    int (*count)(void);
    void *library = dlopen("libcudnn.so.9", RTLD_NOW);
    assert_non_null(library);
    void *found = dlsym(library, function);
    memcpy(&count, &found, sizeof count);
    return count();
}

/* How many convolutions the library has done, and how often it has been opened */
static int runs(void)
{
    return asked("fake_cudnn_runs");
}

static int opened(void)
{
    return asked("fake_cudnn_handles");
}

/* Where the GPU's memory is not the host's the library reaches it as kernels do. */
static void let_library_reach_memory(void)
{
    void (*reach)(void (*)(int), void (*)(void));
    void *library = dlopen("libcudnn.so.9", RTLD_NOW);
    void *found = library ? dlsym(library, "fake_cudnn_reach") : NULL;
    memcpy(&reach, &found, sizeof reach);
    if (found) reach(emulated_memory_open, emulated_memory_close);
}

static void run_forward(struct trial *t)
{
    t->d.kernels->conv2d_forward(&t->d, t->plan, t->y, t->x, t->kernel, NULL, NULL,
                                 ACTIVATION_LINEAR, 0);
}

/* Runs all directions; by how many of them the library was called */
static int runs_of_all(struct trial *t)
{
    const int before = runs();
    run_forward(t);
    t->d.kernels->conv2d_back_data(&t->d, t->plan, t->x, t->y, t->kernel, true);
    t->d.kernels->conv2d_back_kernel(&t->d, t->plan, t->kernel, t->y, t->x, true);
    assert_int_equal(t->d.kernels->synchronize(&t->d), OK);
    return runs() - before;
}

static int runs_of(const struct conv2d *shape, enum precision precision)
{
    struct trial t = open_trial(shape, precision);
    const int count = runs_of_all(&t);
    close_trial(&t);
    return count;
}

static void cudnn_is_found_and_told_of(void **state)
{
    assert_told_of("cuDNN 9.7.3 (/");
}

static void a_library_of_another_version_than_its_name_says_is_not_used(void **state)
{
    setenv("FAKE_CUDNN_MAJOR", "8", 1);
    assert_not_named("cuDNN 8", "cuDNN 9.7.3");
    unsetenv("FAKE_CUDNN_MAJOR");
}

/* A plan of this shape, opened and closed again: what there is to tell of it */
static void assert_note(const char *wanted)
{
    struct trial t = open_trial(&even, PRECISION_FLOAT32);
    const char *note = device_note(&t.d);
    if (!strstr(note, wanted)) fail_msg("\"%s\" is not in \"%s\"", wanted, note);
    assert_string_equal(device_note(&t.d), ""); /* told once */
    close_trial(&t);
}

/* A model without convolutions does not wait for it. */
static void cudnn_is_opened_by_the_first_convolution(void **state)
{
    struct device d;
    const int before = opened();
    assert_int_equal(device_open_emulated(&d), OK);
    assert_int_equal(opened(), before);
    assert_string_equal(device_note(&d), "");
    assert_true(d.kernels->conv2d_bytes(&d, &even) > 0);
    assert_int_equal(opened(), before + 1);
    assert_non_null(strstr(device_note(&d), "convolutions by cuDNN 9.7.3 (/"));
    assert_true(d.kernels->conv2d_bytes(&d, &even) > 0);
    assert_int_equal(opened(), before + 1);
    device_close(&d);
}

static void where_cudnn_cannot_be_set_up_convolutions_are_our_own(void **state)
{
    setenv("FAKE_CUDNN_BROKEN", "create", 1);
    assert_note("own convolutions: cudnnCreate: CUDNN_STATUS_NOT_INITIALIZED");
    assert_int_equal(runs_of(&even, PRECISION_FLOAT32), 0);
    unsetenv("FAKE_CUDNN_BROKEN");
}

static void a_library_that_lacks_functions_is_not_used(void **state)
{
    assert_note("own convolutions: /");
    assert_note(" lacks cudnnGetErrorString");
}

static void all_directions_of_a_shape_padded_alike_go_to_cudnn(void **state)
{
    assert_int_equal(runs_of(&even, PRECISION_FLOAT32), 3);
    assert_int_equal(runs_of(&even, PRECISION_TF32), 3);
}

/* More padding behind than before goes to our own, unless no window comes to lie there. */
static void what_is_padded_otherwise_is_our_own(void **state)
{
    struct conv2d unused = even;
    unused.window.stride_y = 2; /* 8 rows with the padding, of which the last is read by none */
    unused.window.out_y = 3;
    unused.window.pad_bottom = 0;
    assert_int_equal(runs_of(&uneven, PRECISION_FLOAT32), 0);
    assert_int_equal(runs_of(&unused, PRECISION_FLOAT32), 3);
}

static void bf16_is_left_to_our_own_kernels_and_the_name_says_why(void **state)
{
    const struct gpu_options options = {.precision = PRECISION_BF16};
    struct device d;
    assert_int_equal(device_open_gpu(&options, &d), OK);
    assert_non_null(strstr(d.kernels->name, ", own convolutions: cuDNN does not sum"));
    device_close(&d);
    assert_int_equal(runs_of(&even, PRECISION_BF16), 0);
}

/* 1 + 2^-12 is 1 where tensor cores multiply it. */
static void float32_is_multiplied_as_it_is_unless_tf32_was_asked_for(void **state)
{
    static const float wanted[] = {
        [PRECISION_FLOAT32] = 9 * IN * (1 + 0x1p-12f), [PRECISION_TF32] = 9 * IN};
    for (enum precision i = PRECISION_FLOAT32; i <= PRECISION_TF32; i++) {
        struct trial t = open_trial(&even, i);
        for (int j = 0; j < PIXELS * IN; j++) t.x[j] = 1 + 0x1p-12f;
        for (int j = 0; j < WEIGHTS; j++) t.kernel[j] = 1;
        run_forward(&t);
        assert_int_equal(t.d.kernels->synchronize(&t.d), OK);
        assert_true(t.y[(7 + 1) * OUT] == wanted[i]); /* no padding under its window */
        close_trial(&t);
    }
}

static void a_bare_device_uses_no_library(void **state)
{
    const struct gpu_options options = {.is_watched = true, .is_bare = true};
    struct device d;
    assert_int_equal(device_open_gpu(&options, &d), OK);
    assert_null(strstr(d.kernels->name, "cuBLAS"));
    assert_null(strstr(d.kernels->name, "cuDNN"));
    assert_non_null(strstr(d.kernels->name, "own convolutions: no library is wanted"));
    device_close(&d);
}

/* A descriptor of each kind, the tables of each direction, and what the offer needs */
static void what_cudnn_refuses_when_opened_is_our_own(void **state)
{
    static const struct refusal {
        const char *function;
        int runs;
    } refusals[] = {{"tensor", 0},           {"filter", 0},        {"convolution", 0},
                    {"workspace", 0},        {"forward offer", 2}, {"back data offer", 2},
                    {"back kernel offer", 2}};
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        setenv("FAKE_CUDNN_BROKEN", refusals[i].function, 1);
        assert_int_equal(runs_of(&even, PRECISION_FLOAT32), refusals[i].runs);
    }
    unsetenv("FAKE_CUDNN_BROKEN");
}

/* What tables offer and a GPU then refuses: the others stay the library's. */
static void a_direction_that_fails_when_it_is_tried_is_our_own_and_told(void **state)
{
    static const char *const directions[] = {"forward", "back data", "back kernel"};
    static const char *const notes[] = {
        "own kernels instead of cudnnConvolutionForward, algorithm 1: CUDNN_STATUS_EXECUTION",
        "own kernels instead of cudnnConvolutionBackwardData, algorithm 1: CUDNN_STATUS_EXEC",
        "own kernels instead of cudnnConvolutionBackwardFilter, algorithm 1: CUDNN_STATUS_EX"};
    for (int i = 0; i < 3; i++) {
        setenv("FAKE_CUDNN_BROKEN", directions[i], 1);
        assert_note(notes[i]);
        assert_int_equal(runs_of(&even, PRECISION_FLOAT32), 2);
    }
    setenv("FAKE_CUDNN_BROKEN", "run", 1);
    assert_note("cudnnConvolutionForward, algorithm 1: CUDNN_STATUS_EXECUTION_FAILED; own kernels");
    assert_int_equal(runs_of(&even, PRECISION_FLOAT32), 0);
    unsetenv("FAKE_CUDNN_BROKEN");
}

/* Of memory of its own, with none left for images, which trying takes beside the plan */
static void what_there_is_no_memory_to_try_is_taken_as_it_is(void **state)
{
    struct device d;
    struct conv2d_plan *plan;
    assert_int_equal(device_open_emulated(&d), OK);
    const size_t bytes = d.kernels->conv2d_bytes(&d, &even);
    const int before = runs();
    emulated_set_memory(emulated_memory_taken() + bytes + 100);
    assert_int_equal(d.kernels->conv2d_open(&d, &even, &plan), OK);
    emulated_set_memory(1 << 30);
    assert_int_equal(runs(), before);
    assert_null(strstr(device_note(&d), "own"));
    d.kernels->conv2d_close(&d, plan);
    assert_int_equal(d.kernels->conv2d_open(&d, &even, &plan), OK);
    assert_int_equal(runs(), before + 3);
    d.kernels->conv2d_close(&d, plan);
    device_close(&d);
    assert_int_equal(emulated_memory_taken(), 0);
}

static void what_takes_too_much_memory_is_our_own(void **state)
{
    setenv("FAKE_CUDNN_WORKSPACE", "67108840", 1); /* with what is added, 64 MiB to the byte */
    assert_int_equal(runs_of(&even, PRECISION_FLOAT32), 3);
    setenv("FAKE_CUDNN_WORKSPACE", "67108841", 1);
    assert_int_equal(runs_of(&even, PRECISION_FLOAT32), 0);
    unsetenv("FAKE_CUDNN_WORKSPACE");
}

/* Returns the bytes. */
static size_t check_bytes(const struct conv2d *shape)
{
    struct device d;
    struct conv2d_plan *plan;
    assert_int_equal(device_open_emulated(&d), OK);
    const size_t before = emulated_memory_taken();
    const size_t bytes = d.kernels->conv2d_bytes(&d, shape);
    assert_int_equal(emulated_memory_taken(), before);
    assert_int_equal(d.kernels->conv2d_open(&d, shape, &plan), OK);
    assert_int_equal(emulated_memory_taken() - before, bytes);
    d.kernels->conv2d_close(&d, plan);
    assert_int_equal(emulated_memory_taken(), before);
    device_close(&d);
    return bytes;
}

/* Whether cuDNN does all of it, nothing, or two directions beside our own */
static void what_is_counted_is_what_is_taken(void **state)
{
    enum {
        KERNEL_BYTES = 768,
        WORKSPACE = 1024
    }; /* 540 bytes rounded up; 1000 and what is added */
    assert_int_equal(check_bytes(&even), KERNEL_BYTES + WORKSPACE);
    struct conv2d many = even, many_uneven = uneven; /* of whose sums our own kernels make slices */
    many.window.batch = many_uneven.window.batch = 64;
    assert_int_equal(check_bytes(&uneven), 0);
    assert_true(check_bytes(&many_uneven) > 0);
    const size_t all = check_bytes(&many);
    setenv("FAKE_CUDNN_BROKEN", "back kernel offer", 1);
    assert_true(check_bytes(&many) > all);
    unsetenv("FAKE_CUDNN_BROKEN");
}

static void without_memory_nothing_is_left_behind(void **state)
{
    struct device d;
    struct conv2d_plan *plan;
    assert_int_equal(device_open_emulated(&d), OK);
    const size_t before = emulated_memory_taken();
    emulated_set_memory(before + 100);
    assert_int_equal(d.kernels->conv2d_open(&d, &even, &plan), ERR_MEMORY);
    emulated_set_memory(1 << 30);
    assert_int_equal(emulated_memory_taken(), before);
    device_close(&d);
}

static void a_convolution_that_fails_is_told_by_its_name_and_cudnns_words(void **state)
{
    struct trial t = open_trial(&even, PRECISION_FLOAT32);
    setenv("FAKE_CUDNN_BROKEN", "run", 1);
    run_forward(&t);
    assert_int_equal(t.d.kernels->synchronize(&t.d), ERR_DEVICE);
    assert_non_null(strstr(error_text(), "cudnnConvolutionForward: CUDNN_STATUS_EXECUTION_FAILED"));
    t.d.kernels->conv2d_back_data(&t.d, t.plan, t.x, t.y, t.kernel, false);
    assert_int_equal(t.d.kernels->synchronize(&t.d), ERR_DEVICE);
    assert_non_null(strstr(error_text(), "cudnnConvolutionBackwardData: CUDNN_STATUS"));
    t.d.kernels->conv2d_back_kernel(&t.d, t.plan, t.kernel, t.y, t.x, false);
    assert_int_equal(t.d.kernels->synchronize(&t.d), ERR_DEVICE);
    assert_non_null(strstr(error_text(), "cudnnConvolutionBackwardFilter: CUDNN_STATUS"));
    unsetenv("FAKE_CUDNN_BROKEN");
    close_trial(&t);
}

/* A GPU that broke under the library's convolution is told of, not the convolution. Nothing else
 * waits for the GPU here. */
static void a_convolution_on_a_gpu_that_broke_is_no_mistake_of_the_library(void **state)
{
    struct device d;
    struct conv2d_plan *plan;
    void *kernel;
    assert_int_equal(device_open_emulated(&d), OK);
    assert_int_equal(d.kernels->conv2d_open(&d, &even, &plan), OK);
    assert_int_equal(d.kernels->allocate(&d, WEIGHTS * sizeof(float), &kernel), OK);
    setenv("FAKE_CUDNN_BROKEN", "run", 1);
    emulated_break("cudaStreamQuery", 0);
    d.kernels->conv2d_forward(&d, plan, NULL, NULL, kernel, NULL, NULL, ACTIVATION_LINEAR, 0);
    emulated_break(NULL, 0);
    unsetenv("FAKE_CUDNN_BROKEN");
    assert_int_equal(d.kernels->synchronize(&d), ERR_LOST);
    d.kernels->release(&d, kernel);
    d.kernels->conv2d_close(&d, plan);
    device_close(&d);
}

/* What fails while it is recorded is told in the same words, and leaves nothing recorded. */
static void a_convolution_that_fails_while_recorded_ends_the_recording(void **state)
{
    struct device d;
    struct conv2d_plan *plan;
    struct recording *recording;
    assert_int_equal(device_open_emulated(&d), OK);
    assert_int_equal(d.kernels->conv2d_open(&d, &even, &plan), OK);
    assert_int_equal(d.kernels->async->record(&d), OK);
    setenv("FAKE_CUDNN_BROKEN", "run", 1);
    d.kernels->conv2d_forward(&d, plan, NULL, NULL, NULL, NULL, NULL, ACTIVATION_LINEAR, 0);
    unsetenv("FAKE_CUDNN_BROKEN");
    assert_int_equal(d.kernels->async->record_end(&d, &recording), ERR_DEVICE);
    assert_non_null(strstr(error_text(), "cudnnConvolutionForward: CUDNN_STATUS_EXECUTION_FAILED"));
    assert_int_equal(d.kernels->synchronize(&d), OK);
    d.kernels->conv2d_close(&d, plan);
    device_close(&d);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cudnn_is_found_and_told_of),
        cmocka_unit_test(a_library_of_another_version_than_its_name_says_is_not_used),
        cmocka_unit_test(cudnn_is_opened_by_the_first_convolution),
        cmocka_unit_test(where_cudnn_cannot_be_set_up_convolutions_are_our_own),
        cmocka_unit_test(all_directions_of_a_shape_padded_alike_go_to_cudnn),
        cmocka_unit_test(what_is_padded_otherwise_is_our_own),
        cmocka_unit_test(bf16_is_left_to_our_own_kernels_and_the_name_says_why),
        cmocka_unit_test(float32_is_multiplied_as_it_is_unless_tf32_was_asked_for),
        cmocka_unit_test(a_bare_device_uses_no_library),
        cmocka_unit_test(what_cudnn_refuses_when_opened_is_our_own),
        cmocka_unit_test(a_direction_that_fails_when_it_is_tried_is_our_own_and_told),
        cmocka_unit_test(what_there_is_no_memory_to_try_is_taken_as_it_is),
        cmocka_unit_test(what_takes_too_much_memory_is_our_own),
        cmocka_unit_test(what_is_counted_is_what_is_taken),
        cmocka_unit_test(without_memory_nothing_is_left_behind),
        cmocka_unit_test(a_convolution_that_fails_is_told_by_its_name_and_cudnns_words),
        cmocka_unit_test(a_convolution_on_a_gpu_that_broke_is_no_mistake_of_the_library),
        cmocka_unit_test(a_convolution_that_fails_while_recorded_ends_the_recording),
    };
    const struct CMUnitTest of_the_lacking[] = {
        cmocka_unit_test(a_library_that_lacks_functions_is_not_used),
    };
    let_library_reach_memory();
    if (argc > 1) return cmocka_run_group_tests(of_the_lacking, NULL, NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
