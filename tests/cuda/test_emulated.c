/* test_emulated.c - the GPU device as a whole, on an emulated GPU: memory of its own and the way
 * there, failures and what is said of them, and the same numbers as the CPU's. */
#include "tests/cuda/emulator/emulated.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/random.h"
#include "tests/kernels/support.h"

enum { LARGE = (9 << 20) + 13 }; /* bytes: more than two pieces of staging, and a piece of one */

static struct device open_gpu(void)
{
    struct device d;
    if (device_open_emulated(&d)) fail_msg("%s", error_text());
    return d;
}

static void *device_memory(struct device *d, size_t bytes)
{
    void *memory;
    if (d->kernels->allocate(d, bytes, &memory)) fail_msg("%s", error_text());
    return memory;
}

static void the_emulated_gpu_is_listed_and_has_memory_of_its_own(void **state)
{
    struct gpus gpus;
    assert_int_equal(gpu_list(&gpus), OK);
    assert_int_equal(gpus.count, 1);
    assert_string_equal(gpus.at[0].name, "emulated");
    assert_string_equal(gpus.at[0].bus, "0001:3b:02.0");
    assert_true(gpus.at[0].bytes > 0 && gpus.at[0].free_bytes <= gpus.at[0].bytes);
    assert_non_null(strstr(gpus.libraries, "products of our own"));

    struct device d = open_gpu();
    assert_true(d.is_separate);
    assert_non_null(strstr(d.kernels->name, "cuda emulated, own products"));
    device_close(&d);
    assert_int_equal(emulated_memory_taken(), 0);
}

static void a_gpu_that_is_not_there_is_bad_input_and_no_gpu_a_reason(void **state)
{
    struct device d;
    struct gpus gpus;
    assert_int_equal(device_open_gpu(&(struct gpu_options){.index = 1}, &d), ERR_INPUT);
    assert_string_equal(error_text(), "there is no GPU 1: they are 0 to 0");
    emulated_set_gpus(0);
    assert_int_equal(gpu_list(&gpus), ERR_DEVICE);
    assert_string_equal(error_text(), "the driver sees no GPU");
    setenv("CUDA_VISIBLE_DEVICES", "7", 1);
    assert_int_equal(device_open_gpu(&(struct gpu_options){0}, &d), ERR_DEVICE);
    assert_string_equal(error_text(), "none left by CUDA_VISIBLE_DEVICES=7");
    emulated_set_gpus(1);
    emulated_break_by(101);
    emulated_break("cudaGetDeviceCount", 0);
    assert_int_equal(device_open_gpu(&(struct gpu_options){0}, &d), ERR_DEVICE);
    assert_string_equal(error_text(),
                        "cudaGetDeviceCount: another error, with CUDA_VISIBLE_DEVICES=7");
    emulated_break(NULL, 0);
    emulated_break_by(719);
    unsetenv("CUDA_VISIBLE_DEVICES");
}

/* The host's memory is changed as soon as upload() has returned. */
static void what_crosses_in_pieces_arrives_whole(void **state)
{
    const size_t sizes[] = {0, 1, 63, 4096, 4 << 20, (4 << 20) + 1, LARGE};
    char *from = test_malloc(LARGE), *back = test_malloc(LARGE);
    struct device d = open_gpu();
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const size_t bytes = sizes[i];
        void *there = device_memory(&d, bytes);
        for (size_t j = 0; j < bytes; j++) from[j] = (char)random_u64(i, j);
        d.kernels->upload(&d, there, from, bytes);
        memset(from, 0, bytes);
        memset(back, 1, bytes);
        d.kernels->download(&d, back, there, bytes);
        for (size_t j = 0; j < bytes; j++)
            if (back[j] != (char)random_u64(i, j)) fail_msg("byte %zu of %zu", j, bytes);
        d.kernels->release(&d, there);
    }
    assert_int_equal(d.kernels->synchronize(&d), OK);
    device_close(&d);
    test_free(from);
    test_free(back);
}

static void memory_comes_zeroed_and_goes_back(void **state)
{
    struct device d = open_gpu();
    const size_t before = emulated_memory_taken(), left = d.kernels->available(&d);
    float x[1000];
    void *memory = device_memory(&d, sizeof x);
    assert_int_equal(emulated_memory_taken(), before + sizeof x);
    assert_int_equal(d.kernels->available(&d), left - sizeof x);
    d.kernels->download(&d, x, memory, sizeof x);
    for (int i = 0; i < 1000; i++) assert_true(x[i] == 0);
    d.kernels->release(&d, memory);
    d.kernels->release(&d, NULL);
    assert_int_equal(emulated_memory_taken(), before);
    device_close(&d);
}

static void too_much_memory_is_refused_and_no_harm_done(void **state)
{
    struct device d = open_gpu();
    void *never, *memory;
    const size_t left = d.kernels->available(&d);
    assert_int_equal(d.kernels->allocate(&d, left + 1, &never), ERR_MEMORY);
    char said[64];
    snprintf(said, sizeof said, "no memory for %zu bytes on GPU 0", left + 1);
    assert_non_null(strstr(error_text(), said));
    assert_int_equal(d.kernels->synchronize(&d), OK);
    memory = device_memory(&d, 100);
    d.kernels->release(&d, memory);
    device_close(&d);
}

/* Of the host, which may touch it whenever it likes. */
static void a_watched_device_takes_no_memory_of_the_gpu(void **state)
{
    struct device d;
    float *x, y[100];
    assert_int_equal(device_open_gpu(&(struct gpu_options){.is_watched = true}, &d), OK);
    const size_t before = emulated_memory_taken();
    assert_int_equal(d.kernels->allocate(&d, sizeof y, (void **)&x), OK);
    assert_int_equal(emulated_memory_taken(), before);
    for (int i = 0; i < 100; i++) assert_true(x[i] == 0);
    d.kernels->fill(&d, x, 3.0f, 100);
    d.kernels->download(&d, y, x, sizeof y);
    for (int i = 0; i < 100; i++) assert_true(x[i] == 3.0f && y[i] == 3.0f);
    d.kernels->release(&d, x);
    d.kernels->release(&d, NULL);
    assert_int_equal(d.kernels->synchronize(&d), OK);
    device_close(&d);
    assert_int_equal(emulated_memory_taken(), 0);
}

/* Told by the call itself, and not again by synchronize(). */
static void assert_refused(struct device *d, size_t bytes, err kind, const char *text)
{
    void *never;
    assert_int_equal(d->kernels->allocate(d, bytes, &never), kind);
    assert_string_equal(error_text(), text);
    emulated_break(NULL, 0);
    assert_int_equal(d->kernels->synchronize(d), OK);
}

static void memory_that_is_refused_for_another_reason_is_not_said_to_lack(void **state)
{
    struct device d = open_gpu();
    emulated_break("cudaMalloc", 0);
    assert_refused(&d, 100, ERR_LOST, "GPU 0: cudaMalloc: unspecified launch failure");
    emulated_break_by(801); /* not supported: does not ruin the context */
    emulated_break("cudaMalloc", 0);
    assert_refused(&d, 100, ERR_DEVICE, "GPU 0: cudaMalloc: another error");
    emulated_break("cudaMemGetInfo", 0);
    assert_refused(&d, (size_t)1 << 40, ERR_MEMORY, "no memory for 1099511627776 bytes on GPU 0");
    emulated_break_by(719);
    device_close(&d);
}

static void a_gpu_without_room_for_itself_is_not_opened(void **state)
{
    struct device d;
    emulated_set_memory(1000);
    assert_int_equal(device_open_emulated(&d), ERR_MEMORY);
    emulated_set_memory(1 << 30);
    assert_int_equal(emulated_memory_taken(), 0);
}

/* The first failure is told, with its call and the kernel before it, and told once. */
static void a_failure_of_queued_work_comes_out_of_synchronize(void **state)
{
    struct device d = open_gpu();
    float *x = device_memory(&d, 400);
    d.kernels->fill(&d, x, 1.0f, 100);
    emulated_break("cudaLaunchKernelEx", 1);
    d.kernels->scale(&d, x, 2.0f, 100);
    d.kernels->axpy(&d, x, 2.0f, x, 100);
    d.kernels->fill(&d, x, 1.0f, 100);
    emulated_break(NULL, 0);
    assert_int_equal(d.kernels->synchronize(&d), ERR_LOST);
    assert_string_equal(error_text(), "GPU 0: cudaLaunchKernelEx: unspecified launch failure, "
                                      "last kernel: axpy");
    assert_int_equal(d.kernels->synchronize(&d), OK);
    d.kernels->release(&d, x);
    device_close(&d);
}

static void every_call_that_can_fail_is_looked_at(void **state)
{
    static const char *const calls[] = {"cudaMemcpyAsync", "cudaStreamQuery", "cudaEventRecord",
                                        "cudaEventQuery",  "cudaMemsetAsync", "cudaLaunchKernelEx",
                                        "cudaSetDevice"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct device d = open_gpu();
        float *x = device_memory(&d, 400), y[100] = {0};
        emulated_break(calls[i], 0);
        void *more;
        err refused = d.kernels->allocate(&d, 100, &more);
        d.kernels->upload(&d, x, y, sizeof y);
        (void)kernels_sum(&d, x, 100);
        d.kernels->download(&d, y, x, sizeof y);
        emulated_break(NULL, 0);
        assert_int_equal(d.kernels->synchronize(&d), ERR_LOST);
        assert_non_null(strstr(error_text(), calls[i]));
        if (!refused) d.kernels->release(&d, more);
        d.kernels->release(&d, x);
        device_close(&d);
    }
}

static void a_gpu_that_fails_while_it_is_opened_leaves_nothing(void **state)
{
    static const char *const calls[] = {"cudaGetDeviceCount",
                                        "cudaGetDeviceProperties",
                                        "cudaSetDevice",
                                        "cudaHostAlloc",
                                        "cudaStreamCreateWithFlags",
                                        "cudaEventCreateWithFlags",
                                        "cudaMalloc",
                                        "cudaStreamQuery"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct device d;
        emulated_break(calls[i], 0);
        assert_int_equal(device_open_emulated(&d), ERR_DEVICE);
        assert_non_null(strstr(error_text(), calls[i]));
        emulated_break(NULL, 0);
        assert_int_equal(emulated_memory_taken(), 0);
    }
}

/* Kernels are loaded by their first launch: code for another GPU, PTX that the driver cannot
 * compile. Or they run, and nothing right comes of it. */
static void a_gpu_that_cannot_run_our_kernels_is_not_opened(void **state)
{
    static const int errors[] = {209, 221, 222, 223, 719};
    struct device d;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        emulated_break_by(errors[i]);
        emulated_break("cudaLaunchKernelEx", i % 2 ? 1 : 0); /* each of the two */
        assert_int_equal(device_open_emulated(&d), ERR_DEVICE);
        assert_non_null(strstr(error_text(), "GPU 0 (emulated): cannot run this build's kernels: "
                                             "cudaLaunchKernelEx: "));
        emulated_break(NULL, 0);
        assert_int_equal(emulated_memory_taken(), 0);
    }
    emulated_break_by(719);
    emulated_set_idle(true);
    assert_int_equal(device_open_emulated(&d), ERR_DEVICE);
    assert_non_null(strstr(error_text(), "kernels: 64 ones add up to "));
    emulated_set_idle(false);
    assert_int_equal(emulated_memory_taken(), 0);
}

/* Numbers as CUDA's header has them */
static void a_gpu_that_broke_is_lost_and_a_mistake_is_not(void **state)
{
    static const struct {
        int error;
        err kind;
    } errors[] = {{46, ERR_LOST},  {100, ERR_LOST},   {201, ERR_LOST},   {702, ERR_LOST},
                  {709, ERR_LOST}, {802, ERR_LOST},   {805, ERR_LOST},   {806, ERR_LOST},
                  {807, ERR_LOST}, {810, ERR_LOST},   {911, ERR_LOST},   {214, ERR_LOST},
                  {220, ERR_LOST}, {226, ERR_LOST},   {719, ERR_LOST},   {999, ERR_LOST},
                  {2, ERR_MEMORY}, {700, ERR_DEVICE}, {716, ERR_DEVICE}, {1, ERR_DEVICE}};
    struct device d = open_gpu();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        emulated_break_by(errors[i].error);
        emulated_break("cudaStreamQuery", 0);
        assert_int_equal(d.kernels->synchronize(&d), errors[i].kind);
        emulated_break(NULL, 0);
    }
    emulated_break_by(719);
    device_close(&d);
}

/* What is not answered for so long is lost, and that is all that is ever heard of it: nothing that
 * follows waits again, or the emulated GPU would end the process. */
static void hang(struct device *d, float *x)
{
    float y[64] = {0};
    void *more;
    d->kernels->fill(d, x, 1.0f, 64);
    emulated_set_wait_limit(d, 50);
    emulated_set_hung(true);
    d->kernels->upload(d, x, y, sizeof y);
    d->kernels->download(d, y, x, sizeof y);
    assert_int_equal(d->kernels->synchronize(d), ERR_LOST);
    assert_string_equal(error_text(), "GPU 0: no answer for 0.05 s, last kernel: fill");
    emulated_set_wait_limit(d, 1 << 30);
    assert_int_equal(d->kernels->synchronize(d), ERR_LOST);
    assert_int_equal(d->kernels->allocate(d, 100, &more), ERR_LOST);
    assert_false(d->kernels->all_finite(d, x, 64));
    d->kernels->release(d, x);
    device_close(d);
}

/* Whoever waited would hear that the GPU hangs. */
static void as_many_uploads_as_there_is_staging_wait_for_none_of_each_other(void **state)
{
    struct device d = open_gpu();
    float x[100] = {1, 2, 3}, y[100];
    float *there = device_memory(&d, sizeof x), *beside = device_memory(&d, sizeof x);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(d.kernels->synchronize(&d), OK);
        emulated_set_wait_limit(&d, 1);
        emulated_set_hung(true);
        d.kernels->upload(&d, there, x, sizeof x);
        d.kernels->upload(&d, beside, x, sizeof x);
        emulated_set_hung(false);
        emulated_set_wait_limit(&d, 600000); /* now it works, as fast as this machine lets it */
        assert_int_equal(d.kernels->synchronize(&d), OK);
        d.kernels->download(&d, y, beside, sizeof y); /* the turn is at the other one after it */
        assert_memory_equal(x, y, sizeof x);
    }
    d.kernels->release(&d, there);
    d.kernels->release(&d, beside);
    device_close(&d);
}

/* Whether a process that does this comes to a bad end. Its complaint is not for the log. */
static bool ends_badly(void (*act)(struct device *, float *x))
{
    struct device d = open_gpu();
    float *x = device_memory(&d, 64 * sizeof(float));
    int status;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        (void)signal(SIGSEGV, SIG_DFL);
        (void)close(STDERR_FILENO);
        act(&d, x);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    d.kernels->release(&d, x);
    device_close(&d);
    return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void a_gpu_that_hangs_is_waited_for_until_the_limit_and_never_again(void **state)
{
    assert_false(ends_badly(hang));
}

static void stay_inside(struct device *d, float *x)
{
    d->kernels->fill(d, x, 1.0f, 64);
    (void)d->kernels->synchronize(d);
}

static void touch_from_host(struct device *d, float *x)
{
    stay_inside(d, x);
    *(volatile float *)x = 1.0f;
}

static void write_behind(struct device *d, float *x)
{
    d->kernels->fill(d, x, 1.0f, 65);
    (void)d->kernels->synchronize(d);
}

static void whoever_touches_memory_that_is_not_theirs_is_caught(void **state)
{
    assert_false(ends_badly(stay_inside));
    assert_true(ends_badly(touch_from_host));
    assert_true(ends_badly(write_behind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_emulated_gpu_is_listed_and_has_memory_of_its_own),
        cmocka_unit_test(a_gpu_that_is_not_there_is_bad_input_and_no_gpu_a_reason),
        cmocka_unit_test(what_crosses_in_pieces_arrives_whole),
        cmocka_unit_test(memory_comes_zeroed_and_goes_back),
        cmocka_unit_test(too_much_memory_is_refused_and_no_harm_done),
        cmocka_unit_test(a_watched_device_takes_no_memory_of_the_gpu),
        cmocka_unit_test(memory_that_is_refused_for_another_reason_is_not_said_to_lack),
        cmocka_unit_test(a_gpu_without_room_for_itself_is_not_opened),
        cmocka_unit_test(a_failure_of_queued_work_comes_out_of_synchronize),
        cmocka_unit_test(every_call_that_can_fail_is_looked_at),
        cmocka_unit_test(a_gpu_that_fails_while_it_is_opened_leaves_nothing),
        cmocka_unit_test(a_gpu_that_cannot_run_our_kernels_is_not_opened),
        cmocka_unit_test(a_gpu_that_broke_is_lost_and_a_mistake_is_not),
        cmocka_unit_test(as_many_uploads_as_there_is_staging_wait_for_none_of_each_other),
        cmocka_unit_test(a_gpu_that_hangs_is_waited_for_until_the_limit_and_never_again),
        cmocka_unit_test(whoever_touches_memory_that_is_not_theirs_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
