/* test_async_broken.c - calls of CUDA that fail beside the queue and while work is recorded: what
 * is told by whom, and that nothing is left behind. */
#include "tests/cuda/beside.h"

#include <string.h>

/* What makes nothing of it, and leaves nothing behind */
static void fail_to_open(struct scene *s)
{
    static const struct {
        const char *call;
        int after;
    } breaks[] = {{"cudaEventCreateWithFlags", 0},
                  {"cudaEventCreateWithFlags", 1},
                  {"cudaHostAlloc", 0},
                  {"cudaMalloc", 0},
                  {"cudaMemsetAsync", 0},
                  {"cudaStreamQuery", 0}};
    const size_t taken = emulated_memory_taken(), pinned = emulated_pinned();
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        struct inlet *inlet = NULL;
        emulated_break(breaks[i].call, breaks[i].after);
        assert_int_equal(s->async->inlet_open(&s->d, BYTES, &inlet), ERR_DEVICE);
        emulated_break(NULL, 0);
        assert_null(inlet);
        assert_int_equal(emulated_memory_taken(), taken);
        assert_int_equal(emulated_pinned(), pinned);
        (void)s->d.kernels->synchronize(&s->d); /* closing it may have failed too */
    }
}

static void an_inlet_that_cannot_be_opened_leaves_nothing(void **state)
{
    play(fail_to_open);
}

static void an_inlet_is_memory_that_may_be_short(void **state)
{
    struct device d = open_gpu();
    struct inlet *inlet;
    const size_t taken = emulated_memory_taken(), pinned = emulated_pinned();
    emulated_set_memory(taken + BYTES - 1);
    assert_int_equal(d.kernels->async->inlet_open(&d, BYTES, &inlet), ERR_MEMORY);
    assert_int_equal(emulated_memory_taken(), taken);
    assert_int_equal(emulated_pinned(), pinned);
    emulated_set_memory(1 << 30);
    assert_int_equal(d.kernels->synchronize(&d), OK);
    device_close(&d);
}

/* It is told by synchronize(), with the call, and the next one is fine. */
static void assert_told(struct scene *s, const char *call)
{
    emulated_break(NULL, 0);
    assert_int_equal(s->d.kernels->synchronize(&s->d), ERR_DEVICE);
    assert_non_null(strstr(error_text(), call));
    assert_int_equal(s->d.kernels->synchronize(&s->d), OK);
}

static void fail_to_copy(struct scene *s)
{
    static const char *const calls[] = {"cudaStreamWaitEvent", "cudaMemcpyAsync", "cudaEventRecord",
                                        "cudaSetDevice"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        float *room = s->async->inlet_room(&s->d, s->inlet);
        set_all(room, 1);
        emulated_break(calls[i], 0);
        s->async->inlet_send(&s->d, s->inlet, BYTES);
        assert_told(s, calls[i]);
        s->async->inlet_close(&s->d, s->inlet); /* though nobody knows how far it has come */
        assert_int_equal(s->async->inlet_open(&s->d, BYTES, &s->inlet), OK);
        emulated_break(calls[i], 0);
        take_batch(s, s->x);
        assert_told(s, calls[i]);
        emulated_break(calls[i], 0);
        s->async->download_pinned(&s->d, s->to, s->x, BYTES);
        assert_told(s, calls[i]);
    }
    emulated_break("cudaMemcpyAsync", 0);
    s->async->upload_pinned(&s->d, s->x, s->from, BYTES);
    assert_told(s, "cudaMemcpyAsync");
    send_batch(s, 7);
    take_batch(s, s->x);
    assert_device(&s->d, s->x, 7);
}

static void a_copy_that_fails_comes_out_of_synchronize(void **state)
{
    play(fail_to_copy);
}

static void fail_to_wait(struct scene *s)
{
    send_batch(s, 1);
    emulated_break("cudaEventQuery", 0);
    assert_null(s->async->inlet_room(&s->d, s->inlet));
    assert_told(s, "cudaEventQuery");
    static const char *const joins[] = {"cudaEventRecord", "cudaStreamWaitEvent"};
    for (int i = 0; i < 2; i++) {
        s->async->download_pinned(&s->d, s->to, s->x, BYTES);
        emulated_break(joins[i], 0);
        assert_int_equal(s->d.kernels->synchronize(&s->d), ERR_DEVICE);
        emulated_break(NULL, 0);
        assert_non_null(strstr(error_text(), joins[i]));
        s->async->unpin(&s->d, s->to); /* still waits for what could not be waited for */
        assert_true(s->async->pin(&s->d, s->to, BYTES, true));
    }
    s->d.kernels->fill(&s->d, s->x, 3, COUNT);
    s->async->download_pinned(&s->d, s->to, s->x, BYTES);
    assert_int_equal(s->d.kernels->synchronize(&s->d), OK);
    assert_all(s->to, 3);
}

static void a_wait_that_fails_is_told_and_nothing_is_handed_out(void **state)
{
    play(fail_to_wait);
}

static void fail_to_unpin(struct scene *s)
{
    emulated_break("cudaHostUnregister", 0);
    s->async->unpin(&s->d, s->from);
    assert_told(s, "cudaHostUnregister");
    assert_true(s->async->pin(&s->d, s->from, BYTES, false));
}

static void memory_that_cannot_be_unpinned_is_told(void **state)
{
    play(fail_to_unpin);
}

/* The device is as if nothing had been queued, and can do the same without a recording. */
static void assert_usable(struct scene *s)
{
    struct device *d = &s->d;
    assert_int_equal(d->kernels->synchronize(d), OK);
    d->kernels->fill(d, s->x, 1, COUNT);
    d->kernels->fill(d, s->y, 2, COUNT);
    queue_pass(s);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_all(s->to, 12);
    struct recording *recording = record_pass(s);
    s->async->replay(d, recording);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_all(s->to, 122);
    s->async->recording_close(d, recording);
}

static void fail_to_record(struct scene *s)
{
    static const struct {
        const char *call;
        int after;
    } breaks[] = {
        {"cudaStreamEndCapture", 0}, {"cudaGraphInstantiate", 0}, {"cudaLaunchKernelEx", 0},
        {"cudaLaunchKernelEx", 1},   {"cudaMemcpyAsync", 0},      {"cudaMemcpyAsync", 1},
        {"cudaEventRecord", 0},      {"cudaEventRecord", 1},      {"cudaEventRecord", 2},
        {"cudaStreamWaitEvent", 0},  {"cudaStreamWaitEvent", 1},  {"cudaStreamWaitEvent", 2}};
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        struct recording *recording = NULL;
        assert_int_equal(s->async->record(&s->d), OK);
        emulated_break(breaks[i].call, breaks[i].after);
        queue_pass(s);
        assert_int_equal(s->async->record_end(&s->d, &recording), ERR_DEVICE);
        emulated_break(NULL, 0);
        assert_null(recording);
        assert_non_null(strstr(error_text(), breaks[i].call));
        assert_usable(s);
    }
    emulated_break("cudaStreamBeginCapture", 0);
    assert_int_equal(s->async->record(&s->d), ERR_DEVICE);
    emulated_break(NULL, 0);
    assert_non_null(strstr(error_text(), "cudaStreamBeginCapture"));
    assert_usable(s);
}

static void a_recording_that_fails_says_so_and_leaves_nothing(void **state)
{
    play(fail_to_record);
}

/* Memory may not be taken meanwhile: that breaks the recording, and the recording alone. */
static void allocate_meanwhile(struct scene *s)
{
    struct recording *recording = NULL;
    void *memory;
    const size_t taken = emulated_memory_taken();
    assert_int_equal(s->async->record(&s->d), OK);
    queue_pass(s);
    assert_int_equal(s->d.kernels->allocate(&s->d, BYTES, &memory), ERR_DEVICE);
    assert_int_equal(s->async->record_end(&s->d, &recording), ERR_DEVICE);
    assert_null(recording);
    assert_int_equal(emulated_memory_taken(), taken);
    assert_usable(s);
}

static void taking_memory_breaks_a_recording_and_nothing_else(void **state)
{
    play(allocate_meanwhile);
}

/* Whoever can do without a recording must still hear of what was queued before it. */
static void fail_before(struct scene *s)
{
    emulated_break("cudaMemcpyAsync", 0);
    s->async->upload_pinned(&s->d, s->x, s->from, BYTES);
    emulated_break(NULL, 0);
    assert_int_equal(s->async->record(&s->d), ERR_DEVICE);
    assert_told(s, "cudaMemcpyAsync");
    assert_usable(s);
}

static void a_failure_before_a_recording_is_still_told(void **state)
{
    play(fail_before);
}

static void fail_to_replay(struct scene *s)
{
    struct recording *recording = record_pass(s);
    emulated_break("cudaGraphLaunch", 0);
    s->async->replay(&s->d, recording);
    assert_told(s, "cudaGraphLaunch");
    static const char *const calls[] = {"cudaGraphExecDestroy", "cudaStreamQuery"};
    for (int i = 0; i < 2; i++) {
        if (i > 0) recording = record_pass(s);
        emulated_break(calls[i], 0);
        s->async->recording_close(&s->d, recording);
        assert_told(s, calls[i]);
    }
    assert_usable(s);
}

static void a_replay_that_fails_comes_out_of_synchronize(void **state)
{
    play(fail_to_replay);
}

/* The first of a GPU, which tries replays: whatever fails there is not told. */
static void open_mark(const char *call, int after)
{
    struct device d = open_gpu();
    struct mark *mark;
    const size_t taken = emulated_memory_taken();
    emulated_break(call, after);
    assert_int_equal(d.kernels->async->mark_open(&d, &mark), OK);
    emulated_break(NULL, 0);
    assert_int_equal(emulated_memory_taken(), taken);
    assert_int_equal(d.kernels->synchronize(&d), OK);
    d.kernels->async->mark_close(&d, mark);
    device_close(&d);
    assert_int_equal(emulated_memory_taken(), 0);
}

static void a_gpu_whose_replays_cannot_be_tried_is_as_good(void **state)
{
    static const struct {
        const char *call;
        int after;
    } breaks[] = {
        {"cudaMalloc", 0},           {"cudaEventCreateWithFlags", 1}, {"cudaStreamBeginCapture", 0},
        {"cudaMemsetAsync", 0},      {"cudaMemsetAsync", 7},          {"cudaEventRecord", 0},
        {"cudaStreamEndCapture", 0}, {"cudaGraphInstantiate", 0},     {"cudaGraphLaunch", 0},
        {"cudaGraphLaunch", 1},      {"cudaGraphExecDestroy", 0}};
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++)
        open_mark(breaks[i].call, breaks[i].after);
    emulated_set_late_events(true);
    open_mark("cudaEventQuery", 0);
    emulated_set_late_events(false);
}

/* Streams and events are made in pairs. */
static void a_gpu_without_streams_for_copies_is_not_opened(void **state)
{
    static const char *const calls[] = {"cudaStreamCreateWithFlags", "cudaEventCreateWithFlags"};
    for (int i = 0; i < 2; i++)
        for (int after = 0; after < 3 + i; after++) {
            struct device d;
            emulated_break(calls[i], after);
            assert_int_equal(device_open_emulated(&d), ERR_DEVICE);
            emulated_break(NULL, 0);
            assert_int_equal(emulated_memory_taken(), 0);
            assert_int_equal(emulated_pinned(), 0);
        }
}

static void a_watched_gpu_does_one_thing_at_a_time(void **state)
{
    struct device d;
    assert_int_equal(device_open_gpu(&(struct gpu_options){.is_watched = true}, &d), OK);
    assert_null(d.kernels->async);
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_inlet_that_cannot_be_opened_leaves_nothing),
        cmocka_unit_test(an_inlet_is_memory_that_may_be_short),
        cmocka_unit_test(a_copy_that_fails_comes_out_of_synchronize),
        cmocka_unit_test(a_wait_that_fails_is_told_and_nothing_is_handed_out),
        cmocka_unit_test(memory_that_cannot_be_unpinned_is_told),
        cmocka_unit_test(a_recording_that_fails_says_so_and_leaves_nothing),
        cmocka_unit_test(taking_memory_breaks_a_recording_and_nothing_else),
        cmocka_unit_test(a_failure_before_a_recording_is_still_told),
        cmocka_unit_test(a_replay_that_fails_comes_out_of_synchronize),
        cmocka_unit_test(a_gpu_whose_replays_cannot_be_tried_is_as_good),
        cmocka_unit_test(a_gpu_without_streams_for_copies_is_not_opened),
        cmocka_unit_test(a_watched_gpu_does_one_thing_at_a_time),
    };
    emulated_break_by(INVALID_VALUE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
