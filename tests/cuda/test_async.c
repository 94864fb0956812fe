/* test_async.c - copies beside the queue and recorded work, on the emulated GPU, which does what
 * no event forbids: copies before their time, and then again nothing until somebody waits. */
#include "tests/cuda/beside.h"

#include <sys/mman.h>
#include <unistd.h>

#include "kernels/note.h"

/* ---- inlets ---- */

/* Each is worked on after the next has been sent: y becomes the number that they make as digits. */
static void stream_batches(struct scene *s)
{
    struct device *d = &s->d;
    float wanted = 0;
    send_batch(s, 1);
    for (int i = 1; i <= ROUNDS; i++) {
        take_batch(s, s->x);
        d->kernels->scale(d, s->y, 10, COUNT);
        d->kernels->axpy(d, s->y, 1, s->x, COUNT);
        if (i < ROUNDS) send_batch(s, (float)(i + 1));
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
    send_batch(s, 7);
    take_batch(s, s->x);
    assert_device(&s->d, s->x, 7);
}

static void a_batch_that_nothing_follows_is_waited_for(void **state)
{
    play(take_the_only_one);
}

static void send_twice(struct scene *s)
{
    send_batch(s, 1);
    send_batch(s, 2);
    take_batch(s, s->x);
    take_batch(s, s->y);
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
    float *room = s->async->inlet_room(d, s->inlet);
    for (int i = 0; i < COUNT; i++) room[i] = i < COUNT / 2 ? 1 : 2;
    s->async->inlet_send(d, s->inlet, BYTES);
    const struct inlet_part parts[] = {{0, HALF, s->x + COUNT / 2},
                                       {HALF, HALF, s->y},
                                       {HALF, HALF, s->x},
                                       {0, HALF, s->y + COUNT / 2}};
    s->async->inlet_take(d, s->inlet, parts, 4);
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
        send_batch(s, 5);
        if (is_taken) take_batch(s, s->x);
        s->async->inlet_close(&s->d, s->inlet);
        if (s->async->inlet_open(&s->d, BYTES, &s->inlet)) fail_msg("%s", error_text());
    }
    assert_device(&s->d, s->x, 5);
    s->async->inlet_close(&s->d, NULL);
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
        set_all(s->from, (float)i);
        set_all(s->to, 0);
        s->async->upload_pinned(d, s->x, s->from, BYTES);
        d->kernels->scale(d, s->x, 2, COUNT);
        s->async->download_pinned(d, s->to, s->x, BYTES);
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
        s->async->download_pinned(d, s->to + at, s->x + at, BYTES / 2);
    }
    s->async->download_pinned(d, s->to, s->x, 0);
    s->async->upload_pinned(d, s->x, s->to, 0);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_all(s->to, 3);
}

static void buckets_leave_one_by_one(void **state)
{
    play(come_by_halves);
}

static void unpin_early(struct scene *s)
{
    struct device *d = &s->d;
    set_all(s->from, 4);
    s->async->upload_pinned(d, s->x, s->from, BYTES);
    s->async->unpin(d, s->from);
    set_all(s->from, 0);
    s->async->download_pinned(d, s->to, s->x, BYTES);
    s->async->unpin(d, s->to);
    assert_all(s->to, 4);
    assert_true(s->async->pin(d, s->from, BYTES, false));
    assert_true(s->async->pin(d, s->to, BYTES, true));
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
    assert_false(s->async->pin(d, theirs, BYTES, true));
    assert_true(s->async->pin(d, theirs, BYTES, false));
    set_all(ours, 6);
    s->async->upload_pinned(d, s->x, theirs, BYTES);
    assert_device(d, s->x, 6);
    s->async->unpin(d, theirs);
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
    assert_false(s->async->pin(d, s->from, BYTES, false)); /* pinned already */
    assert_false(s->async->pin(d, more, 0, false));
    emulated_break("cudaHostRegister", 0);
    assert_false(s->async->pin(d, more, BYTES, true));
    assert_false(s->async->pin(d, more, BYTES, false));
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

/* ---- marks ---- */

/* The first half is there while the second may still be on its way, queued or recorded. */
static void mark_halves(struct scene *s, bool comes_early)
{
    struct device *d = &s->d;
    struct mark *first, *second;
    struct recording *recording;
    assert_int_equal(s->async->mark_open(d, &first), OK);
    assert_int_equal(s->async->mark_open(d, &second), OK);
    for (int round = 0; round < ROUNDS; round++) {
        const float wanted = (float)round + 1;
        set_all(s->to, -1);
        d->kernels->fill(d, s->x, wanted, COUNT);
        if (round == 1) assert_int_equal(s->async->record(d), OK);
        for (int half = 0; half < 2 && round < 2; half++) {
            float *at = s->x + half * COUNT / 2;
            d->kernels->scale(d, at, 2, COUNT / 2);
            s->async->download_pinned(d, s->to + half * COUNT / 2, at, BYTES / 2);
            s->async->mark_set(d, half ? second : first, MARK_DOWNLOADS);
        }
        if (round == 1 && s->async->record_end(d, &recording)) fail_msg("%s", error_text());
        if (round > 0) s->async->replay(d, recording);
        assert_true(s->async->mark_await(d, first));
        for (int i = 0; i < COUNT / 2; i++) assert_true(s->to[i] == 2 * wanted);
        if (round > 0) assert_true((s->to[COUNT - 1] == 2 * wanted) == !comes_early);
        assert_true(s->async->mark_await(d, second));
        assert_all(s->to, 2 * wanted);
    }
    s->async->recording_close(d, recording);
    s->async->mark_close(d, first);
    s->async->mark_close(d, second);
    s->async->mark_close(d, NULL);
}

static void await_halves(struct scene *s)
{
    mark_halves(s, true);
    assert_string_equal(device_note(&s->d), "");
}

static void what_comes_down_is_awaited_piece_by_piece(void **state)
{
    play(await_halves);
}

static void await_late_halves(struct scene *s)
{
    emulated_set_late_events(true);
    mark_halves(s, false);
    emulated_set_late_events(false);
    assert_string_equal(device_note(&s->d),
                        "GPU 0 tells too early that a part of a recorded step is done: gradients "
                        "leave when the step is over");
    assert_string_equal(device_note(&s->d), ""); /* told once */
}

static void what_a_replay_brings_down_is_never_taken_for_that_of_the_last(void **state)
{
    play(await_late_halves);
}

/* ---- recordings ---- */

static void replay_some(struct scene *s)
{
    struct device *d = &s->d;
    struct recording *recording = record_pass(s);
    float wanted = 0;
    set_all(s->to, -1);
    assert_device(d, s->x, 0);
    assert_all(s->to, -1); /* noted and not done */
    for (int i = 1; i <= ROUNDS; i++) {
        d->kernels->fill(d, s->y, (float)i, COUNT);
        s->async->replay(d, recording);
        wanted = 10 * wanted + (float)i;
        if (i % 2) continue; /* two in a row without a wait between them */
        assert_int_equal(d->kernels->synchronize(d), OK);
        assert_all(s->to, wanted);
    }
    s->async->recording_close(d, recording);
}

static void recorded_work_is_done_as_often_as_it_is_asked_for(void **state)
{
    play(replay_some);
}

static void replay_between(struct scene *s)
{
    struct device *d = &s->d;
    struct recording *recording = record_pass(s);
    send_batch(s, 1);
    take_batch(s, s->y);
    s->async->replay(d, recording);
    send_batch(s, 2);
    take_batch(s, s->y);
    s->async->replay(d, recording);
    queue_pass(s);
    d->kernels->scale(d, s->y, 3, COUNT);
    assert_int_equal(d->kernels->synchronize(d), OK);
    assert_all(s->to, 122);
    assert_device(d, s->y, 6);
    s->async->recording_close(d, recording);
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
    s->async->download_pinned(d, s->to, s->x, BYTES);
    assert_int_equal(s->async->record(d), OK);
    d->kernels->scale(d, s->x, 2, COUNT);
    if (s->async->record_end(d, &recording)) fail_msg("%s", error_text());
    assert_all(s->to, 8);
    s->async->replay(d, recording);
    s->async->recording_close(d, recording); /* while it is under way */
    assert_device(d, s->x, 16);
    s->async->recording_close(d, NULL);
}

static void what_was_queued_before_a_recording_is_no_part_of_it(void **state)
{
    play(record_after_download);
}

static void batches_are_sent_while_work_is_recorded(struct scene *s)
{
    struct device *d = &s->d;
    struct recording *recording;
    send_batch(s, 3);
    assert_int_equal(s->async->record(d), OK);
    d->kernels->scale(d, s->x, 2, COUNT);
    if (s->async->record_end(d, &recording)) fail_msg("%s", error_text());
    take_batch(s, s->x);
    s->async->replay(d, recording);
    assert_device(d, s->x, 6);
    s->async->recording_close(d, recording);
}

static void a_batch_under_way_is_no_hindrance_to_a_recording(void **state)
{
    play(batches_are_sent_while_work_is_recorded);
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
        cmocka_unit_test(buckets_leave_one_by_one),
        cmocka_unit_test(nothing_is_on_its_way_when_memory_is_unpinned),
        cmocka_unit_test(memory_that_is_mapped_for_reading_is_pinned_for_uploads_alone),
        cmocka_unit_test(what_cannot_be_pinned_is_no_failure),
        cmocka_unit_test(what_comes_down_is_awaited_piece_by_piece),
        cmocka_unit_test(what_a_replay_brings_down_is_never_taken_for_that_of_the_last),
        cmocka_unit_test(recorded_work_is_done_as_often_as_it_is_asked_for),
        cmocka_unit_test(recorded_work_keeps_its_place_among_other_work),
        cmocka_unit_test(what_was_queued_before_a_recording_is_no_part_of_it),
        cmocka_unit_test(a_batch_under_way_is_no_hindrance_to_a_recording),
    };
    emulated_break_by(INVALID_VALUE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
