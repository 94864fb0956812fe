/* test_beside.c - sessions on the emulated GPU whose batches come and whose gradients leave beside
 * the work, which is recorded: the same bits as on a GPU that does one thing after the other,
 * whatever happens to them meanwhile. */
#include "tests/cuda/emulator/emulated.h"
#include "tests/device/scenes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/data/source.h"

enum { FAILURES_MAX = 400 };

/* What the sessions are told of batches that lie ready: as it is, or always none. */
static bool is_slow;
static const struct source_calls *honest;

static int ready(struct batch_source *data)
{
    return is_slow ? 0 : honest->ready(data);
}

static void tell(struct rig *r)
{
    static struct source_calls told;
    honest = r->session[0].data.train->calls;
    told = *honest;
    told.ready = ready;
    for (int w = 0; w < r->workers; w++) r->session[w].data.train->calls = &told;
}

static void assert_nothing_left(void)
{
    assert_int_equal(emulated_memory_taken(), 0);
    assert_int_equal(emulated_pinned(), 0);
}

/* What happens before a step, and before the rig closes; NULL: nothing. */
typedef void event(struct rig *, int step);

static void record(const struct scene *scene, enum place place, event *before, struct tape *tape)
{
    static struct rig r;
    rig_open(&r, scene, place);
    tell(&r);
    for (int step = 0; step < RIG_STEPS; step++) {
        if (before) before(&r, step);
        rig_step(&r, step, tape);
        if (step == RIG_STEPS / 2) rig_evaluate(&r, tape);
    }
    rig_evaluate(&r, tape);
    if (before) before(&r, RIG_STEPS);
    rig_close(&r);
    assert_nothing_left();
}

/* One GPU does in turn what two others do beside: with early copies, and with late ones. */
static void check_events(const struct scene *scene, event *in_turn, event *beside)
{
    struct tape wanted = {0};
    record(scene, IN_TURN, in_turn, &wanted);
    for (int is_hasty = 0; is_hasty < 2; is_hasty++) {
        struct tape got = {0};
        emulated_set_hasty_copies(is_hasty);
        record(scene, ON_GPU, beside, &got);
        assert_same_tape(&wanted, &got);
        tape_free(&got);
    }
    emulated_set_hasty_copies(true);
    tape_free(&wanted);
}

static const struct scene *const scenes[] = {
    &scene_softmax_sgd,   &scene_mlp_momentum, &scene_cnn_adam, &scene_small_cnn_bf16,
    &scene_all_ops,       &scene_weighted,     &scene_squares,  &scene_huber,
    &scene_distances,     &scene_hinge,        &scene_sigmoid,  &scene_more_for_yes,
    &scene_probabilities, &scene_clipped_sums, &scene_sums,     &scene_clipped_values,
    &scene_regularized,   &scene_partitioned,  &scene_rounded,  &scene_rounded_late,
    &scene_narrow,        &scene_narrow_parts};
enum { SCENES = sizeof scenes / sizeof *scenes };

static void every_scene_comes_to_the_same_bits(void **state)
{
    for (int i = 0; i < SCENES; i++) {
        const int64_t recorded = emulated_work().recorded;
        check_events(scenes[i], NULL, NULL);
        assert_true(emulated_work().recorded > recorded);
    }
}

/* ---- batches ---- */

static void assert_none_is_sent(struct rig *r, int step)
{
    is_slow = step < RIG_STEPS;
    for (int w = 0; w < r->workers; w++) assert_int_equal(r->session[w].fed.sent_rows, 0);
}

static void batches_that_are_not_ready_are_not_waited_for(void **state)
{
    check_events(&scene_mlp_momentum, NULL, assert_none_is_sent);
    check_events(&scene_sums, NULL, assert_none_is_sent);
}

/* Now and then one is ready. */
static void be_slow_at_times(struct rig *r, int step)
{
    is_slow = step % 3 == 1;
}

static void a_pipeline_that_is_slow_at_times_gives_the_same_batches(void **state)
{
    check_events(&scene_mlp_momentum, NULL, be_slow_at_times);
    check_events(&scene_sums, NULL, be_slow_at_times);
    is_slow = false;
}

/* In stored order and as they are stored: no thread reads ahead. */
static const struct scene scene_stored = {
    "{\"data\":{\"train\":{\"format\":\"random\",\"rows\":30,\"shape\":[7],\"label_type\":"
    "\"number\"},\"eval\":{\"format\":\"random\",\"rows\":33,\"shape\":[7],\"label_type\":"
    "\"number\"},\"batch_size\":8,\"shuffle\":false},\"model\":[{\"op\":\"dense\",\"units\":1}],"
    "\"loss\":\"mean_squared_error\",\"metrics\":[\"loss\"],\"optimizer\":{\"type\":"
    "\"gradient_descent\",\"learning_rate\":0.05},\"train\":{\"mode\":\"sync\",\"last_step\":100}}",
    2, 1, 1};

static void assert_one_is_sent(struct rig *r, int step)
{
    assert_int_equal(honest->ready(r->session[0].data.train), -1);
    assert_int_equal(r->session[0].fed.sent_rows, step > 0 ? r->session[0].graph->batch : 0);
}

static void batches_that_lie_in_the_data_are_always_ready(void **state)
{
    check_events(&scene_stored, NULL, assert_one_is_sent);
}

/* Forwards, backwards, to where it stands, and twice. */
static void seek(struct rig *r, int step)
{
    static const uint64_t to[RIG_STEPS] = {0, 7, 3, 4, 0, 11};
    const uint64_t batches = (uint64_t)r->scene->batches_per_push;
    for (int w = 0; w < r->workers && step < RIG_STEPS; w++) {
        struct session *s = &r->session[w];
        if (step == 4) assert_int_equal(session_seek(s, 9 * batches), OK);
        assert_int_equal(session_seek(s, s->fed.batches), OK);
        assert_int_equal(session_seek(s, to[step] * batches), OK);
        assert_int_equal(s->fed.batches, to[step] * batches);
    }
}

static void a_seek_takes_the_batch_that_was_asked_for(void **state)
{
    check_events(&scene_mlp_momentum, seek, seek);
    check_events(&scene_clipped_sums, seek, seek);
    check_events(&scene_all_ops, seek, seek); /* draws go by the batch */
    check_events(&scene_stored, seek, seek);
}

/* ---- windows ---- */

/* Old ones, which nobody touches any more */
struct old {
    float *values, *gradients;
    int64_t floats;
};
static struct old olds[RIG_STEPS][RIG_PS_MAX];

static void spoil(float *block, int64_t floats)
{
    for (int64_t i = 0; i < floats; i++) block[i] = NAN;
}

static void assert_spoilt(const float *block, int64_t floats)
{
    for (int64_t i = 0; i < floats; i++) assert_true(isnan(block[i]));
}

static float *moved(const float *block, int64_t floats)
{
    float *other = rig_block(floats);
    memcpy(other, block, (size_t)floats * sizeof *other);
    return other;
}

/* As when a link is lost and another made: the same numbers in other memory. The store goes on with
 * the new block. Others may be bound at once, too. */
static void move_windows(struct rig *r, int step, int ps)
{
    struct old *old = &olds[step][ps];
    *old = (struct old){r->values[ps], r->gradients[ps][0], r->store[ps].floats};
    if (step != 3 || r->meanwhile) session_unbind(&r->session[0], ps);
    r->values[ps] = r->store[ps].values = moved(old->values, old->floats);
    r->gradients[ps][0] = moved(old->gradients, old->floats);
    spoil(old->values, old->floats);
    spoil(old->gradients, old->floats);
    session_bind(&r->session[0], ps, r->values[ps], r->gradients[ps][0]);
}

static void free_olds(void)
{
    for (int i = 0; i < RIG_STEPS; i++)
        for (int ps = 0; ps < RIG_PS_MAX; ps++) {
            struct old *old = &olds[i][ps];
            assert_spoilt(old->values, old->floats);
            assert_spoilt(old->gradients, old->floats);
            free(old->values);
            free(old->gradients);
            *old = (struct old){0};
        }
}

static void move_all(struct rig *r, int step)
{
    for (int ps = 0; ps < r->ps_count && step < RIG_STEPS; ps++)
        if (step % 2 == 1 || (step == 4 && ps == 1)) move_windows(r, step, ps);
    if (step == RIG_STEPS) free_olds();
}

static void windows_move_in_the_middle_of_a_run(void **state)
{
    static struct scene partitioned, sums;
    partitioned = scene_partitioned;
    sums = scene_sums;
    partitioned.workers = 1; /* whose values the rig binds to several sessions */
    check_events(&sums, NULL, move_all);
    check_events(&partitioned, NULL, move_all);
    check_events(&scene_softmax_sgd, NULL, move_all);
}

/* The link of the ps whose gradients are the first to be handed on is lost then, while backward
 * goes on and others are on their way. */
static int step_of_loss;

static void lose(struct rig *r, int worker, int ps)
{
    bool has_lost = false;
    for (int i = 0; i < r->ps_count; i++) has_lost |= olds[step_of_loss][i].values != NULL;
    if (!has_lost) move_windows(r, step_of_loss, ps);
}

static void lose_links(struct rig *r, int step)
{
    int lost = 0;
    for (int i = 0; i < step; i++)
        for (int ps = 0; ps < r->ps_count; ps++) lost += olds[i][ps].values != NULL;
    assert_int_equal(lost, step); /* one in each */
    r->meanwhile = lose;
    step_of_loss = step;
    if (step == RIG_STEPS) free_olds();
}

static void a_link_is_lost_in_the_middle_of_backward(void **state)
{
    static struct scene mlp;
    mlp = scene_mlp_momentum;
    mlp.workers = 1;
    check_events(&mlp, NULL, lose_links);
    check_events(&scene_sums, NULL, lose_links);
}

/* Somebody else has pinned the pages. */
static void refuse_one(struct rig *r, int step)
{
    const struct async *async = r->device.kernels->async;
    struct session *s = &r->session[0];
    float *block = r->gradients[1][0];
    if (step == 0) {
        session_unbind(s, 1);
        assert_true(
            async->pin(&r->device, block, (size_t)r->store[1].floats * sizeof(float), true));
        session_bind(s, 1, r->values[1], block);
    }
    assert_true(s->replica.mirror.pins_gradients[0] && !s->replica.mirror.pins_gradients[1]);
    assert_false(mirror_lets_leave(&s->replica.mirror));
    if (step < RIG_STEPS) return;
    session_unbind(s, 1);
    async->unpin(&r->device, block);
}

static void a_ps_whose_memory_cannot_be_pinned_is_served_all_the_same(void **state)
{
    check_events(&scene_sums, NULL, refuse_one);
}

static void refuse_all(struct rig *r, int step)
{
    for (int ps = 0; ps < r->ps_count && step == 0; ps++) {
        session_unbind(&r->session[0], ps);
        emulated_break("cudaHostRegister", 0);
        session_bind(&r->session[0], ps, r->values[ps], r->gradients[ps][0]);
        emulated_break(NULL, 0);
    }
    assert_false(mirror_lets_leave(&r->session[0].replica.mirror));
}

static void a_system_that_pins_nothing_is_no_failure(void **state)
{
    check_events(&scene_sums, NULL, refuse_all);
    check_events(&scene_softmax_sgd, NULL, refuse_all);
}

static void let_leave(struct rig *r, int step)
{
    for (int w = 0; w < r->workers; w++) {
        assert_true(mirror_lets_leave(&r->session[w].replica.mirror));
        assert_true(r->handed[w].times >= step * r->ps_count); /* and travel on */
    }
}

static void gradients_of_all_workers_leave_while_backward_goes_on(void **state)
{
    check_events(&scene_mlp_momentum, NULL, let_leave);
}

static int recordings_at_first;

static void count_recordings(struct rig *r, int step)
{
    const int made = emulated_calls("cudaGraphInstantiate");
    if (step == 0) recordings_at_first = made;
    if (step == RIG_STEPS) assert_int_equal(made - recordings_at_first, r->scene->batches_per_push);
}

/* The first batch, those in between, and the last, which tells of its nodes, are three passes. */
static void of_several_batches_only_the_last_sends_gradients(void **state)
{
    check_events(&scene_sums, NULL, count_recordings);
}

/* ---- failures ---- */

static const char *recording_breaks;

static void break_recordings(struct rig *r, int step)
{
    emulated_break(step < RIG_STEPS ? recording_breaks : NULL, 0);
}

/* The step that was to be recorded too: it is queued twice. */
static void steps_that_cannot_be_recorded_are_the_same(void **state)
{
    static const char *const calls[] = {"cudaStreamBeginCapture", "cudaStreamEndCapture",
                                        "cudaGraphInstantiate"};
    for (int i = 0; i < 3; i++) {
        recording_breaks = calls[i];
        check_events(&scene_softmax_sgd, NULL, break_recordings);
        check_events(&scene_sums, NULL, break_recordings);
        check_events(&scene_mlp_momentum, NULL, break_recordings);
    }
}

/* Whether a step after so many others fails where the call fails after so many. The session is
 * closed then, with the GPU as it is. */
static bool fails(const struct scene *scene, int steps, const char *call, int after)
{
    static struct rig r;
    struct tape tape = {0};
    double loss;
    rig_open(&r, scene, ON_GPU);
    for (int step = 0; step < steps; step++) rig_step(&r, step, &tape);
    emulated_break(call, after);
    const err e = session_step(&r.session[0], &loss);
    if (e) assert_int_equal(e, ERR_DEVICE);
    rig_check_handed(&r, 0);
    if (e) assert_non_null(strstr(error_text(), call));
    if (e && after % 2) session_close(&r.session[0]); /* while the GPU is broken */
    emulated_break(NULL, 0);
    (void)r.device.kernels->synchronize(&r.device); /* what closing found */
    rig_close(&r);
    assert_nothing_left();
    tape_free(&tape);
    return e != OK;
}

static void fail_everywhere(const struct scene *scene, const char *call)
{
    for (int steps = 0; steps < 3; steps++) {
        int after = 0;
        while (after < FAILURES_MAX && fails(scene, steps, call, after)) after += 1 + after / 3;
        assert_in_range(after, 0, FAILURES_MAX - 1);
    }
}

static void a_step_that_fails_anywhere_is_told_and_the_session_closed(void **state)
{
    static const char *const calls[] = {"cudaMemcpyAsync", "cudaEventRecord", "cudaStreamWaitEvent",
                                        "cudaEventQuery",  "cudaStreamQuery", "cudaGraphLaunch"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fail_everywhere(&scene_softmax_sgd, calls[i]);
        fail_everywhere(&scene_sums, calls[i]);
    }
}

static void load(const struct scene *scene, struct spec *spec, struct session_options *ret)
{
    rig_load_spec(scene->spec, spec);
    *ret = (struct session_options){.spec = spec,
                                    .workers = scene->workers,
                                    .ps_count = scene->ps_count,
                                    .batches_per_push = scene->batches_per_push};
}

static void a_session_that_cannot_be_opened_leaves_nothing(void **state)
{
    static const char *const calls[] = {"cudaMalloc", "cudaHostAlloc", "cudaEventCreateWithFlags"};
    struct spec spec;
    struct session_options options;
    struct device device;
    load(&scene_partitioned, &spec, &options);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(device_open_emulated(&device), OK);
        options.device = &device;
        const size_t taken = emulated_memory_taken(), pinned = emulated_pinned();
        int after = 0;
        for (bool is_open = false; !is_open && after < FAILURES_MAX; after++) {
            struct session session;
            emulated_break(calls[i], after);
            const err e = session_open(&options, &session);
            emulated_break(NULL, 0);
            is_open = !e;
            if (is_open) session_close(&session);
            assert_int_equal(emulated_memory_taken(), taken);
            assert_int_equal(emulated_pinned(), pinned);
        }
        assert_in_range(after, 2, FAILURES_MAX - 1);
        device_close(&device);
    }
    spec_free(&spec);
    assert_nothing_left();
}

/* ---- memory ---- */

/* With so many bytes beside what the device has and keeps for itself; runs what takes memory late
 * where it opens. */
static err open_with(const struct scene *scene, bool is_in_turn, size_t bytes, size_t *ret_taken)
{
    struct spec spec;
    struct session_options options;
    struct device device;
    struct kernels in_turn;
    struct session session;
    struct evaluation evaluation;
    load(scene, &spec, &options);
    assert_int_equal(device_open_emulated(&device), OK);
    in_turn = *device.kernels;
    in_turn.async = NULL;
    if (is_in_turn) device.kernels = &in_turn;
    options.device = &device;
    const size_t own = emulated_memory_taken();
    emulated_set_memory(own + device.kernels->reserved + bytes);
    const err e = session_open(&options, &session);
    if (!e) assert_int_equal(session_evaluate(&session, &evaluation), OK);
    *ret_taken = emulated_memory_taken() - own;
    if (!e) session_close(&session);
    emulated_set_memory(1 << 30);
    device_close(&device);
    spec_free(&spec);
    assert_nothing_left();
    return e;
}

/* Of what a session with all its parts takes, one byte less is refused, with the table. */
static size_t check_limit(const struct scene *scene, bool is_in_turn)
{
    size_t all, taken;
    assert_int_equal(open_with(scene, is_in_turn, 1 << 29, &all), OK);
    assert_int_equal(open_with(scene, is_in_turn, all, &taken), OK);
    assert_int_equal(taken, all);
    assert_int_equal(open_with(scene, is_in_turn, all - 1, &taken), ERR_MEMORY);
    assert_int_equal(taken, 0);
    assert_non_null(strstr(error_text(), "activations"));
    return all;
}

/* Features, labels, the draw and the scale of the gradient, each where copies like it: 20 images of
 * 28 x 28 */
static void where_the_next_batch_comes_is_counted(void **state)
{
    const size_t features = 20 * 28 * 28 * 4, labels = 20 * 4 + 48, numbers = 8 + 4;
    for (int i = 0; i < 2; i++) {
        const struct scene *scene = i ? &scene_clipped_sums : &scene_softmax_sgd;
        const size_t beside = check_limit(scene, false), in_turn = check_limit(scene, true);
        assert_int_equal(beside - in_turn, features + labels + numbers);
    }
    (void)check_limit(&scene_cnn_adam, false);
    (void)check_limit(&scene_partitioned, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scene_comes_to_the_same_bits),
        cmocka_unit_test(batches_that_are_not_ready_are_not_waited_for),
        cmocka_unit_test(a_pipeline_that_is_slow_at_times_gives_the_same_batches),
        cmocka_unit_test(batches_that_lie_in_the_data_are_always_ready),
        cmocka_unit_test(a_seek_takes_the_batch_that_was_asked_for),
        cmocka_unit_test(windows_move_in_the_middle_of_a_run),
        cmocka_unit_test(a_link_is_lost_in_the_middle_of_backward),
        cmocka_unit_test(a_ps_whose_memory_cannot_be_pinned_is_served_all_the_same),
        cmocka_unit_test(a_system_that_pins_nothing_is_no_failure),
        cmocka_unit_test(gradients_of_all_workers_leave_while_backward_goes_on),
        cmocka_unit_test(of_several_batches_only_the_last_sends_gradients),
        cmocka_unit_test(steps_that_cannot_be_recorded_are_the_same),
        cmocka_unit_test(a_step_that_fails_anywhere_is_told_and_the_session_closed),
        cmocka_unit_test(a_session_that_cannot_be_opened_leaves_nothing),
        cmocka_unit_test(where_the_next_batch_comes_is_counted),
    };
    emulated_break_by(INVALID_VALUE);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
