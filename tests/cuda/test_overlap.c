/* test_overlap.c - copies beside the queue and recorded work, on the emulated GPU, which does what
 * no event forbids: copies before their time, and then again nothing until somebody waits. */
#include "tests/cuda/emulated.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/overlap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { COUNT = 3000, BYTES = COUNT * sizeof(float), PAGE = 4096, ROUNDS = 6 };

static struct device open_gpu(void)
{
    struct device d;
    if (device_open_emulated(&d)) fail_msg("%s", error_text());
    return d;
}

static void *device_memory(struct device *d)
{
    void *memory;
    if (d->kernels->allocate(d, BYTES, &memory)) fail_msg("%s", error_text());
    return memory;
}

/* Of the host, on pages of its own */
static float *host_memory(void)
{
    float *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(memory != MAP_FAILED);
    return memory;
}

static void set(float *x, float value)
{
    for (int i = 0; i < COUNT; i++) x[i] = value;
}

static void assert_all(const float *x, float value)
{
    for (int i = 0; i < COUNT; i++)
        if (!(x[i] == value))
            fail_msg("number %d is %g and not %g", i, (double)x[i], (double)value);
}

static void assert_device(struct device *d, const float *x, float value)
{
    static float here[COUNT];
    d->kernels->download(d, here, x, BYTES);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_all(here, value);
}

/* A GPU, and memory of it and of the host, which is pinned */
struct scene {
    struct device d;
    const struct overlap *overlap;
    float *x, *y;        /* of the device */
    float *from, *to;    /* of the host */
    struct inlet *inlet; /* of as much */
};

static void open_scene(struct scene *s)
{
    s->d = open_gpu();
    s->overlap = s->d.kernels->overlap;
    s->x = device_memory(&s->d);
    s->y = device_memory(&s->d);
    s->from = host_memory();
    s->to = host_memory();
    assert_true(s->overlap->pin(&s->d, s->from, BYTES, false));
    assert_true(s->overlap->pin(&s->d, s->to, BYTES, true));
    if (s->overlap->inlet_open(&s->d, BYTES, &s->inlet)) fail_msg("%s", error_text());
}

static void close_scene(struct scene *s)
{
    struct device *d = &s->d;
    s->overlap->inlet_close(d, s->inlet);
    s->overlap->unpin(d, s->from);
    s->overlap->unpin(d, s->to);
    munmap(s->from, BYTES);
    munmap(s->to, BYTES);
    d->kernels->release(d, s->x);
    d->kernels->release(d, s->y);
    assert_int_equal(d->kernels->synchronize(d), OK);
    device_close(d);
    assert_int_equal(emulated_memory_taken(), 0);
    assert_int_equal(emulated_pinned(), 0);
}

/* With copies as early as may be, and as late. */
static void play(void (*act)(struct scene *))
{
    for (int is_hasty = 0; is_hasty < 2; is_hasty++) {
        struct scene s;
        emulated_set_hasty_copies(is_hasty);
        open_scene(&s);
        act(&s);
        close_scene(&s);
    }
    emulated_set_hasty_copies(true);
}

/* ---- inlets ---- */

static void send(struct scene *s, float value)
{
    float *room = s->overlap->inlet_room(&s->d, s->inlet);
    assert_non_null(room);
    set(room, value);
    s->overlap->inlet_send(&s->d, s->inlet, BYTES);
}

static void take(struct scene *s, float *to)
{
    const struct inlet_part whole = {0, BYTES, to};
    s->overlap->inlet_take(&s->d, s->inlet, &whole, 1);
}

/* Each is worked on after the next has been sent: y becomes the number that they make as digits. */
static void stream_batches(struct scene *s)
{
    struct device *d = &s->d;
    float wanted = 0;
    send(s, 1);
    for (int i = 1; i <= ROUNDS; i++) {
        take(s, s->x);
        d->kernels->scale(d, s->y, 10, COUNT);
        d->kernels->axpy(d, s->y, 1, s->x, COUNT);
        if (i < ROUNDS) send(s, (float)(i + 1));
        wanted = 10 * wanted + (float)i;
    }
    assert_device(d, s->y, wanted);
}

static void batches_come_beside_the_work_in_their_order(void **state)
{
    play(stream_batches);
}

static void take_the_only_one(struct scene *s)
{
    send(s, 7);
    take(s, s->x);
    assert_device(&s->d, s->x, 7);
}

static void a_batch_that_nothing_follows_is_waited_for(void **state)
{
    play(take_the_only_one);
}

static void send_twice(struct scene *s)
{
    send(s, 1);
    send(s, 2);
    take(s, s->x);
    take(s, s->y);
    assert_device(&s->d, s->x, 2);
    assert_device(&s->d, s->y, 2);
}

static void what_was_sent_and_not_taken_is_gone(void **state)
{
    play(send_twice);
}

static void take_parts(struct scene *s)
{
    struct device *d = &s->d;
    enum { HALF = BYTES / 2 };
    float *room = s->overlap->inlet_room(d, s->inlet);
    for (int i = 0; i < COUNT; i++) room[i] = i < COUNT / 2 ? 1 : 2;
    s->overlap->inlet_send(d, s->inlet, BYTES);
    const struct inlet_part parts[] = {{0, HALF, s->x + COUNT / 2},
                                       {HALF, HALF, s->y},
                                       {HALF, HALF, s->x},
                                       {0, HALF, s->y + COUNT / 2}};
    s->overlap->inlet_take(d, s->inlet, parts, 4);
    d->kernels->axpy(d, s->x, -1, s->y, COUNT);
    assert_device(d, s->x, 0);
    d->kernels->scale(d, s->y + COUNT / 2, 2, COUNT / 2);
    assert_device(d, s->y, 2);
}

static void parts_go_where_they_are_wanted(void **state)
{
    play(take_parts);
}

static void close_early(struct scene *s)
{
    for (int is_taken = 0; is_taken < 2; is_taken++) {
        send(s, 5);
        if (is_taken) take(s, s->x);
        s->overlap->inlet_close(&s->d, s->inlet);
        if (s->overlap->inlet_open(&s->d, BYTES, &s->inlet)) fail_msg("%s", error_text());
    }
    assert_device(&s->d, s->x, 5);
    s->overlap->inlet_close(&s->d, NULL);
}

static void an_inlet_is_closed_while_a_batch_is_under_way(void **state)
{
    play(close_early);
}

/* ---- pinned memory ---- */

static void go_and_come(struct scene *s)
{
    struct device *d = &s->d;
    for (int i = 1; i <= ROUNDS; i++) {
        set(s->from, (float)i);
        set(s->to, 0);
        s->overlap->upload_pinned(d, s->x, s->from, BYTES);
        d->kernels->scale(d, s->x, 2, COUNT);
        s->overlap->download_pinned(d, s->to, s->x, BYTES);
        d->kernels->axpy(d, s->y, 1, s->x, COUNT);
        assert_int_equal(d->kernels->synchronize(d), OK);
        assert_all(s->to, (float)(2 * i));
    }
    assert_device(d, s->y, ROUNDS * (ROUNDS + 1));
}

static void pinned_memory_goes_up_and_comes_down_at_its_time(void **state)
{
    play(go_and_come);
}

/* Each when what was queued before it is done: the halves of x are filled one after the other. */
static void come_by_halves(struct scene *s)
{
    struct device *d = &s->d;
    for (int half = 0; half < 2; half++) {
        const int at = half * COUNT / 2;
        d->kernels->fill(d, s->x + at, 3, COUNT / 2);
        s->overlap->download_pinned(d, s->to + at, s->x + at, BYTES / 2);
    }
    s->overlap->download_pinned(d, s->to, s->x, 0);
    s->overlap->upload_pinned(d, s->x, s->to, 0);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_all(s->to, 3);
}

static void parcels_leave_one_by_one(void **state)
{
    play(come_by_halves);
}

static void unpin_early(struct scene *s)
{
    struct device *d = &s->d;
    set(s->from, 4);
    s->overlap->upload_pinned(d, s->x, s->from, BYTES);
    s->overlap->unpin(d, s->from);
    set(s->from, 0);
    s->overlap->download_pinned(d, s->to, s->x, BYTES);
    s->overlap->unpin(d, s->to);
    assert_all(s->to, 4);
    assert_true(s->overlap->pin(d, s->from, BYTES, false));
    assert_true(s->overlap->pin(d, s->to, BYTES, true));
}

static void nothing_is_on_its_way_when_memory_is_unpinned(void **state)
{
    play(unpin_early);
}

/* As the window of a ps on this host is: written by one side, mapped for reading by the other. */
static void pin_for_reading(struct scene *s)
{
    struct device *d = &s->d;
    const int fd = memfd_create("window", MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, BYTES), 0);
    float *ours = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
          *theirs = mmap(NULL, BYTES, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(ours != MAP_FAILED && theirs != MAP_FAILED);
    assert_false(s->overlap->pin(d, theirs, BYTES, true));
    assert_true(s->overlap->pin(d, theirs, BYTES, false));
    set(ours, 6);
    s->overlap->upload_pinned(d, s->x, theirs, BYTES);
    assert_device(d, s->x, 6);
    s->overlap->unpin(d, theirs);
    munmap(ours, BYTES);
    munmap(theirs, BYTES);
    close(fd);
}

static void memory_that_is_mapped_for_reading_is_pinned_for_uploads_alone(void **state)
{
    play(pin_for_reading);
}

static void pin_in_vain(struct scene *s)
{
    struct device *d = &s->d;
    float *more = host_memory();
    assert_false(s->overlap->pin(d, s->from, BYTES, false)); /* pinned already */
    assert_false(s->overlap->pin(d, more, 0, false));
    emulated_break("cudaHostRegister", 0);
    assert_false(s->overlap->pin(d, more, BYTES, true));
    assert_false(s->overlap->pin(d, more, BYTES, false));
    emulated_break(NULL, 0);
    assert_int_equal(d->kernels->synchronize(d), OK);
    d->kernels->fill(d, s->x, 1, COUNT); /* no error is left behind for a launch to find */
    assert_device(d, s->x, 1);
    munmap(more, BYTES);
}

static void what_cannot_be_pinned_is_no_failure(void **state)
{
    play(pin_in_vain);
}

/* ---- recordings ---- */

/* x becomes 10 x + y, and is brought to the host. */
static void queue_pass(struct scene *s)
{
    struct device *d = &s->d;
    d->kernels->scale(d, s->x, 10, COUNT);
    d->kernels->axpy(d, s->x, 1, s->y, COUNT);
    s->overlap->download_pinned(d, s->to, s->x, BYTES / 2);
    s->overlap->download_pinned(d, s->to + COUNT / 2, s->x + COUNT / 2, BYTES / 2);
}

static struct recording *record_pass(struct scene *s)
{
    struct recording *recording;
    if (s->overlap->record(&s->d)) fail_msg("%s", error_text());
    queue_pass(s);
    if (s->overlap->record_end(&s->d, &recording)) fail_msg("%s", error_text());
    return recording;
}

static void replay_some(struct scene *s)
{
    struct device *d = &s->d;
    struct recording *recording = record_pass(s);
    float wanted = 0;
    set(s->to, -1);
    assert_device(d, s->x, 0);
    assert_all(s->to, -1); /* noted and not done */
    for (int i = 1; i <= ROUNDS; i++) {
        d->kernels->fill(d, s->y, (float)i, COUNT);
        s->overlap->replay(d, recording);
        wanted = 10 * wanted + (float)i;
        if (i % 2) continue; /* two in a row without a wait between them */
        assert_int_equal(d->kernels->synchronize(d), OK);
        assert_all(s->to, wanted);
    }
    s->overlap->recording_close(d, recording);
}

static void recorded_work_is_done_as_often_as_it_is_asked_for(void **state)
{
    play(replay_some);
}

static void replay_between(struct scene *s)
{
    struct device *d = &s->d;
    struct recording *recording = record_pass(s);
    send(s, 1);
    take(s, s->y);
    s->overlap->replay(d, recording);
    send(s, 2);
    take(s, s->y);
    s->overlap->replay(d, recording);
    queue_pass(s);
    d->kernels->scale(d, s->y, 3, COUNT);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_all(s->to, 122);
    assert_device(d, s->y, 6);
    s->overlap->recording_close(d, recording);
}

static void recorded_work_keeps_its_place_among_other_work(void **state)
{
    play(replay_between);
}

/* A download that is under way is no part of what is recorded next. */
static void record_after_download(struct scene *s)
{
    struct device *d = &s->d;
    struct recording *recording;
    d->kernels->fill(d, s->x, 8, COUNT);
    s->overlap->download_pinned(d, s->to, s->x, BYTES);
    assert_int_equal(s->overlap->record(d), OK);
    d->kernels->scale(d, s->x, 2, COUNT);
    if (s->overlap->record_end(d, &recording)) fail_msg("%s", error_text());
    assert_all(s->to, 8);
    s->overlap->replay(d, recording);
    s->overlap->recording_close(d, recording); /* while it is under way */
    assert_device(d, s->x, 16);
    s->overlap->recording_close(d, NULL);
}

static void what_was_queued_before_a_recording_is_no_part_of_it(void **state)
{
    play(record_after_download);
}

static void batches_are_sent_while_work_is_recorded(struct scene *s)
{
    struct device *d = &s->d;
    struct recording *recording;
    send(s, 3);
    assert_int_equal(s->overlap->record(d), OK);
    d->kernels->scale(d, s->x, 2, COUNT);
    if (s->overlap->record_end(d, &recording)) fail_msg("%s", error_text());
    take(s, s->x);
    s->overlap->replay(d, recording);
    assert_device(d, s->x, 6);
    s->overlap->recording_close(d, recording);
}

static void a_batch_under_way_is_no_hindrance_to_a_recording(void **state)
{
    play(batches_are_sent_while_work_is_recorded);
}

/* ---- failures ---- */

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
                  {"cudaStreamSynchronize", 0}};
    const size_t taken = emulated_memory_taken(), pinned = emulated_pinned();
    for (size_t i = 0; i < sizeof breaks / sizeof *breaks; i++) {
        struct inlet *inlet = NULL;
        emulated_break(breaks[i].call, breaks[i].after);
        assert_int_equal(s->overlap->inlet_open(&s->d, BYTES, &inlet), ERR_LOST);
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
    assert_int_equal(d.kernels->overlap->inlet_open(&d, BYTES, &inlet), ERR_MEMORY);
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
    assert_int_equal(s->d.kernels->synchronize(&s->d), ERR_LOST);
    assert_non_null(strstr(error_text(), call));
    assert_int_equal(s->d.kernels->synchronize(&s->d), OK);
}

static void fail_to_copy(struct scene *s)
{
    static const char *const calls[] = {"cudaStreamWaitEvent", "cudaMemcpyAsync", "cudaEventRecord",
                                        "cudaSetDevice"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        float *room = s->overlap->inlet_room(&s->d, s->inlet);
        set(room, 1);
        emulated_break(calls[i], 0);
        s->overlap->inlet_send(&s->d, s->inlet, BYTES);
        assert_told(s, calls[i]);
        emulated_break(calls[i], 0);
        take(s, s->x);
        assert_told(s, calls[i]);
        emulated_break(calls[i], 0);
        s->overlap->download_pinned(&s->d, s->to, s->x, BYTES);
        assert_told(s, calls[i]);
    }
    emulated_break("cudaMemcpyAsync", 0);
    s->overlap->upload_pinned(&s->d, s->x, s->from, BYTES);
    assert_told(s, "cudaMemcpyAsync");
    take_the_only_one(s);
}

static void a_copy_that_fails_comes_out_of_synchronize(void **state)
{
    play(fail_to_copy);
}

static void fail_to_wait(struct scene *s)
{
    send(s, 1);
    emulated_break("cudaEventSynchronize", 0);
    assert_null(s->overlap->inlet_room(&s->d, s->inlet));
    assert_told(s, "cudaEventSynchronize");
    static const char *const joins[] = {"cudaEventRecord", "cudaStreamWaitEvent"};
    for (int i = 0; i < 2; i++) {
        s->overlap->download_pinned(&s->d, s->to, s->x, BYTES);
        emulated_break(joins[i], 0);
        assert_int_equal(s->d.kernels->synchronize(&s->d), ERR_LOST);
        emulated_break(NULL, 0);
        assert_non_null(strstr(error_text(), joins[i]));
    }
    go_and_come(s);
}

static void a_wait_that_fails_is_told_and_nothing_is_handed_out(void **state)
{
    play(fail_to_wait);
}

static void fail_to_unpin(struct scene *s)
{
    emulated_break("cudaHostUnregister", 0);
    s->overlap->unpin(&s->d, s->from);
    assert_told(s, "cudaHostUnregister");
    assert_true(s->overlap->pin(&s->d, s->from, BYTES, false));
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
    s->overlap->replay(d, recording);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_all(s->to, 122);
    s->overlap->recording_close(d, recording);
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
        assert_int_equal(s->overlap->record(&s->d), OK);
        emulated_break(breaks[i].call, breaks[i].after);
        queue_pass(s);
        assert_int_equal(s->overlap->record_end(&s->d, &recording), ERR_LOST);
        emulated_break(NULL, 0);
        assert_null(recording);
        assert_non_null(strstr(error_text(), breaks[i].call));
        assert_usable(s);
    }
    emulated_break("cudaStreamBeginCapture", 0);
    assert_int_equal(s->overlap->record(&s->d), ERR_LOST);
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
    assert_int_equal(s->overlap->record(&s->d), OK);
    queue_pass(s);
    assert_int_equal(s->d.kernels->allocate(&s->d, BYTES, &memory), ERR_DEVICE);
    assert_int_equal(s->overlap->record_end(&s->d, &recording), ERR_DEVICE);
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
    s->overlap->upload_pinned(&s->d, s->x, s->from, BYTES);
    emulated_break(NULL, 0);
    assert_int_equal(s->overlap->record(&s->d), ERR_LOST);
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
    s->overlap->replay(&s->d, recording);
    assert_told(s, "cudaGraphLaunch");
    static const char *const calls[] = {"cudaGraphExecDestroy", "cudaStreamSynchronize"};
    for (int i = 0; i < 2; i++) {
        if (i > 0) recording = record_pass(s);
        emulated_break(calls[i], 0);
        s->overlap->recording_close(&s->d, recording);
        assert_told(s, calls[i]);
    }
    assert_usable(s);
}

static void a_replay_that_fails_comes_out_of_synchronize(void **state)
{
    play(fail_to_replay);
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
    assert_null(d.kernels->overlap);
    device_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(batches_come_beside_the_work_in_their_order),
        cmocka_unit_test(a_batch_that_nothing_follows_is_waited_for),
        cmocka_unit_test(what_was_sent_and_not_taken_is_gone),
        cmocka_unit_test(parts_go_where_they_are_wanted),
        cmocka_unit_test(an_inlet_is_closed_while_a_batch_is_under_way),
        cmocka_unit_test(pinned_memory_goes_up_and_comes_down_at_its_time),
        cmocka_unit_test(parcels_leave_one_by_one),
        cmocka_unit_test(nothing_is_on_its_way_when_memory_is_unpinned),
        cmocka_unit_test(memory_that_is_mapped_for_reading_is_pinned_for_uploads_alone),
        cmocka_unit_test(what_cannot_be_pinned_is_no_failure),
        cmocka_unit_test(recorded_work_is_done_as_often_as_it_is_asked_for),
        cmocka_unit_test(recorded_work_keeps_its_place_among_other_work),
        cmocka_unit_test(what_was_queued_before_a_recording_is_no_part_of_it),
        cmocka_unit_test(a_batch_under_way_is_no_hindrance_to_a_recording),
        cmocka_unit_test(an_inlet_that_cannot_be_opened_leaves_nothing),
        cmocka_unit_test(an_inlet_is_memory_that_may_be_short),
        cmocka_unit_test(a_copy_that_fails_comes_out_of_synchronize),
        cmocka_unit_test(a_wait_that_fails_is_told_and_nothing_is_handed_out),
        cmocka_unit_test(memory_that_cannot_be_unpinned_is_told),
        cmocka_unit_test(a_recording_that_fails_says_so_and_leaves_nothing),
        cmocka_unit_test(taking_memory_breaks_a_recording_and_nothing_else),
        cmocka_unit_test(a_failure_before_a_recording_is_still_told),
        cmocka_unit_test(a_replay_that_fails_comes_out_of_synchronize),
        cmocka_unit_test(a_gpu_without_streams_for_copies_is_not_opened),
        cmocka_unit_test(a_watched_gpu_does_one_thing_at_a_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
