/* test_exchange.c - a step whose values come while forward continues, or whose forward pass begins
 * before they are sure, and whose gradients leave while backward does, is the step of one that has
 * and keeps all of them, to the bit.
 */
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/train/session/session.h"
#include "tests/core/train/fixture.h"

enum { PS_COUNT = 2, STEPS = 4, AWAIT_MS_MAX = 60000 };

static const char spec_json[] =
    "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":70},\"batch_size\":8,\"scale\":0.0039},"
    "\"model\":[{\"op\":\"flatten\"},{\"op\":\"dropout\",\"rate\":0.25},"
    "{\"op\":\"dense\",\"units\":64,\"activation\":\"relu\",\"kernel_regularizer\":{\"l2\":0.01}},"
    "{\"op\":\"dense\",\"units\":32,\"activation\":\"tanh\"},"
    "{\"op\":\"dense\",\"units\":10,\"kernel_regularizer\":{\"l1\":0.001}}],"
    "\"loss\":\"softmax_cross_entropy\",\"metrics\":[\"accuracy\"],\"optimizer\":\"adam\","
    "\"train\":{\"last_step\":100},"
    "\"placement\":{\"partitioner\":{\"type\":\"fixed_size\",\"num_shards\":2}}}";

static const char *setting; /* of the spec; NULL: none */

struct fixture {
    struct spec spec;
    struct device device;
    struct session session;
    struct exchange exchange;
    float *values[PS_COUNT], *gradients[PS_COUNT]; /* bound */
    float *sent[PS_COUNT], *taken[PS_COUNT];       /* by the other side */
    int awaited, left;
    int there; /* slices, from the last one on, whose values are where they are bound ahead of a
                  step */
    bool awaits_in_vain;
};

/* Values that come as other numbers than floats take the front of a block. */
static size_t value_bytes(const struct fixture *f)
{
    return number_bytes(f->session.options.value_number);
}

static float *block(struct fixture *f, int ps)
{
    float *memory = calloc((size_t)f->session.layout->block_floats[ps], sizeof *memory);
    assert_non_null(memory);
    return memory;
}

/* All ones are no number, of any kind. */
static void spoil(const struct fixture *f, int ps, int64_t offset, int64_t count)
{
    const size_t bytes = value_bytes(f);
    memset((char *)f->values[ps] + (size_t)offset * bytes, 0xff, (size_t)count * bytes);
}

static bool await(void *context, int ps, struct range r)
{
    struct fixture *f = context;
    if (f->awaits_in_vain) return false;
    assert_int_equal(f->left, 0); /* nothing leaves before all has come */
    const size_t bytes = value_bytes(f), from = (size_t)r.begin * bytes;
    memcpy((char *)f->values[ps] + from, (char *)f->sent[ps] + from,
           (size_t)range_count(r) * bytes);
    f->awaited++;
    return true;
}

static bool is_there(void *context, int ps, struct range r)
{
    const struct fixture *f = context;
    const struct layout *layout = f->session.layout;
    for (int i = 0; i < f->there; i++) {
        const struct slice *slice = &layout->slices[i];
        if (slice->ps == ps && slice->offset == r.begin) return true;
    }
    return false;
}

/* What comes ahead of the next values may take the place of these. */
static void leave(void *context, int ps, struct range r)
{
    struct fixture *f = context;
    memcpy(f->taken[ps] + r.begin, f->gradients[ps] + r.begin,
           (size_t)range_count(r) * sizeof(float));
    spoil(f, ps, r.begin, range_count(r));
    f->left++;
}

static void load_spec(struct spec *ret)
{
    char path[] = "/tmp/exchange-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, spec_json, sizeof spec_json - 1), sizeof spec_json - 1);
    close(fd);
    const struct spec_options options = {
        .path = path, .overrides = {&setting, setting ? 1 : 0}, .seed = -1};
    if (spec_load(&options, ret)) fail_msg("%s", error_text());
    unlink(path);
}

static void open_fixture(struct fixture *f, bool has_exchange, int batches_per_push,
                         enum number number, enum number value_number)
{
    *f = (struct fixture){.device = fixture_device()};
    f->exchange =
        (struct exchange){.await = await, .leave = leave, .is_there = is_there, .context = f};
    load_spec(&f->spec);
    const struct session_options options = {.spec = &f->spec,
                                            .device = &f->device,
                                            .workers = 1,
                                            .ps_count = PS_COUNT,
                                            .batches_per_push = batches_per_push,
                                            .number = number,
                                            .value_number = value_number,
                                            .exchange = has_exchange ? &f->exchange : NULL};
    if (session_open(&options, &f->session)) fail_msg("%s", error_text());
    for (int ps = 0; ps < PS_COUNT; ps++) {
        f->values[ps] = block(f, ps);
        f->gradients[ps] = block(f, ps);
        f->sent[ps] = block(f, ps);
        f->taken[ps] = block(f, ps);
        session_bind(&f->session, ps, f->values[ps], f->gradients[ps]);
        assert_int_equal(session_initial_values(&f->session, ps, f->sent[ps]), OK);
    }
}

static void close_fixture(struct fixture *f)
{
    for (int ps = 0; ps < PS_COUNT; ps++) {
        free(f->values[ps]);
        free(f->gradients[ps]);
        free(f->sent[ps]);
        free(f->taken[ps]);
    }
    session_close(&f->session);
    device_close(&f->device);
    spec_free(&f->spec);
}

static double step(struct fixture *f)
{
    double loss;
    for (int ps = 0; ps < PS_COUNT; ps++) {
        const int64_t floats = f->session.layout->block_floats[ps];
        if (f->session.replica.exchange)
            spoil(f, ps, 0, floats);
        else
            memcpy(f->values[ps], f->sent[ps], (size_t)floats * value_bytes(f));
    }
    f->awaited = f->left = 0;
    if (session_step(&f->session, &loss)) fail_msg("%s", error_text());
    return loss;
}

/* Where gradients leave only after the last of several batches, or all at the end, they lie where
 * they are bound. */
static void assert_same_steps(struct fixture *plain, struct fixture *f)
{
    for (int i = 0; i < STEPS; i++) {
        const double expected = step(plain), loss = step(f);
        assert_memory_equal(&loss, &expected, sizeof loss);
        assert_int_equal(f->awaited, f->session.layout->slice_count);
        assert_true(f->left >= PS_COUNT);
        for (int ps = 0; ps < PS_COUNT; ps++)
            assert_memory_equal(f->taken[ps], plain->gradients[ps],
                                (size_t)f->session.layout->block_floats[ps] * sizeof(float));
    }
}

static void check(int batches_per_push)
{
    static struct fixture plain, f;
    open_fixture(&plain, false, batches_per_push, NUMBER_FLOAT32, NUMBER_FLOAT32);
    open_fixture(&f, true, batches_per_push, NUMBER_FLOAT32, NUMBER_FLOAT32);
    assert_true(f.session.layout->slice_count > f.session.layout->variable_count);
    assert_same_steps(&plain, &f);
    close_fixture(&f);
    close_fixture(&plain);
}

static void values_come_and_gradients_leave_within_a_step(void **state)
{
    check(1);
}

/* What has left may be gone from where it was read: x gets its gradient before. */
static void variables_that_are_not_cut_leave_within_a_step_too(void **state)
{
    static struct fixture plain, f;
    setting = "placement={}";
    open_fixture(&plain, false, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    open_fixture(&f, true, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    setting = NULL;
    assert_int_equal(f.session.layout->slice_count, f.session.layout->variable_count);
    assert_same_steps(&plain, &f);
    close_fixture(&f);
    close_fixture(&plain);
}

static void of_several_batches_the_first_awaits_and_the_last_leaves(void **state)
{
    check(3);
}

/* Of the first fixture the floats that those of the second are. */
static void round_sent(struct fixture *plain, struct fixture *f)
{
    const struct kernels *kernels = f->device.kernels;
    const enum number number = f->session.options.value_number;
    for (int ps = 0; ps < PS_COUNT; ps++) {
        const int64_t floats = f->session.layout->block_floats[ps];
        float *error = block(f, ps);
        uint16_t *const halves = (uint16_t *)f->sent[ps];
        kernels->round_off(&f->device, halves, error, plain->sent[ps], number, floats);
        kernels->sum_rounded(&f->device, plain->sent[ps], (const uint16_t *const[]){halves}, 1,
                             number, 1.0f, floats);
        free(error);
    }
}

static void assert_same_step(struct fixture *plain, struct fixture *f)
{
    const double expected = step(plain), loss = step(f);
    assert_memory_equal(&loss, &expected, sizeof loss);
    for (int ps = 0; ps < PS_COUNT; ps++)
        assert_memory_equal(f->gradients[ps], plain->gradients[ps],
                            (size_t)f->session.layout->block_floats[ps] * sizeof(float));
}

static void values_of_half_the_bytes_are_computed_with_as_the_floats_that_they_are(void **state)
{
    static struct fixture plain, f;
    for (enum number number = NUMBER_BF16; number <= NUMBER_FP16; number++) {
        for (int has_exchange = 0; has_exchange < 2; has_exchange++) {
            open_fixture(&plain, false, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
            open_fixture(&f, has_exchange, 1, NUMBER_FLOAT32, number);
            round_sent(&plain, &f);
            if (has_exchange)
                assert_same_steps(&plain, &f);
            else
                assert_same_step(&plain, &f);
            close_fixture(&f);
            close_fixture(&plain);
        }
    }
}

/* A pass without its values leaves no trace: the batch comes again, and what rounding owes is what
 * it was. */
static void a_step_without_its_values_is_none(void **state)
{
    static struct fixture calm, f;
    double loss;
    open_fixture(&calm, true, 1, NUMBER_BF16, NUMBER_FLOAT32);
    open_fixture(&f, true, 1, NUMBER_BF16, NUMBER_FLOAT32);
    for (int i = 0; i < STEPS; i++) {
        f.awaits_in_vain = true;
        f.left = 0;
        (void)session_step(&f.session, &loss); /* of whatever lies there: it may not be finite */
        assert_int_equal(f.left, 0);
        f.awaits_in_vain = false;
        assert_int_equal(session_seek(&f.session, (uint64_t)i), OK);
        const double expected = step(&calm);
        loss = step(&f);
        assert_memory_equal(&loss, &expected, sizeof loss);
        for (int ps = 0; ps < PS_COUNT; ps++)
            assert_memory_equal(f.taken[ps], calm.taken[ps],
                                (size_t)f.session.layout->block_floats[ps] * sizeof(uint16_t));
    }
    close_fixture(&f);
    close_fixture(&calm);
}

/* ---- speculated ---- */

/* One more slice, as it will be committed or as it will be taken back */
static void bring_ahead(struct fixture *f, bool is_right)
{
    const struct slice *slice = &f->session.layout->slices[f->there++];
    float *values = f->values[slice->ps] + slice->offset;
    memcpy(values, f->sent[slice->ps] + slice->offset, (size_t)slice->count * sizeof(float));
    for (int64_t i = 0; i < slice->count && !is_right; i++) values[i] += 0.5f;
}

/* A thread makes them. */
static void await_batch(const struct fixture *f)
{
    struct batch_source *data = f->session.data.train;
    const uint64_t until_ms = clock_ms() + AWAIT_MS_MAX;
    while (f->session.fed.sent_rows == 0 && data->calls->ready(data) == 0 && clock_ms() < until_ms)
        sched_yield();
}

/* Each in the order in which the graph wants it. Returns whether that helped. */
static bool speculate(struct fixture *f, int slices, bool is_right)
{
    bool has_helped = false;
    f->there = 0;
    await_batch(f);
    while (f->there < slices) {
        bring_ahead(f, is_right);
        has_helped |= session_speculate(&f->session);
        assert_false(session_speculate(&f->session)); /* until more is there */
    }
    return has_helped;
}

static double finish(struct fixture *f)
{
    double loss;
    f->awaited = f->left = 0;
    if (session_step(&f->session, &loss)) fail_msg("%s", error_text());
    return loss;
}

static void assert_same_gradients(struct fixture *plain, struct fixture *f)
{
    const double expected = step(plain), loss = finish(f);
    assert_memory_equal(&loss, &expected, sizeof loss);
    for (int ps = 0; ps < PS_COUNT; ps++)
        assert_memory_equal(f->taken[ps], plain->gradients[ps],
                            (size_t)f->session.layout->block_floats[ps] * sizeof(float));
}

static void a_forward_pass_begins_ahead_and_the_step_goes_on_from_there(void **state)
{
    static struct fixture plain, f;
    open_fixture(&plain, false, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    open_fixture(&f, true, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    const int slices = f.session.layout->slice_count;
    int before = slices;
    for (int ahead = 0; ahead <= slices; ahead++) {
        speculate(&f, ahead, true);
        assert_same_gradients(&plain, &f);
        assert_true(ahead == 0 ? f.awaited == slices : f.awaited <= before);
        before = f.awaited;
    }
    assert_int_equal(before, 0);
    close_fixture(&f);
    close_fixture(&plain);
}

static void speculation_on_values_that_are_taken_back_leaves_no_trace(void **state)
{
    static struct fixture plain, f;
    open_fixture(&plain, false, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    open_fixture(&f, true, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    const int slices = f.session.layout->slice_count;
    for (int again = 0; again < STEPS; again++) {
        for (int i = 0; i < again; i++) {
            assert_true(speculate(&f, slices - i, false));
            session_forget_speculation(&f.session);
        }
        if (again % 2) assert_true(speculate(&f, slices, true));
        assert_same_gradients(&plain, &f);
    }
    close_fixture(&f);
    close_fixture(&plain);
}

/* Whoever goes to another batch, or binds other memory, has speculated nothing. */
static void a_seek_and_a_bind_forget_speculation(void **state)
{
    static struct fixture plain, f;
    open_fixture(&plain, false, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    open_fixture(&f, true, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    for (uint64_t batch = 5; batch > 2; batch--) {
        speculate(&f, f.session.layout->slice_count, true);
        assert_int_equal(session_seek(&f.session, batch), OK);
        assert_int_equal(session_seek(&plain.session, batch), OK);
        if (batch == 3) speculate(&f, f.session.layout->slice_count, false);
        if (batch == 3) session_bind(&f.session, 0, f.values[0], f.gradients[0]);
        assert_same_gradients(&plain, &f);
        assert_int_equal(f.awaited, f.session.layout->slice_count);
    }
    close_fixture(&f);
    close_fixture(&plain);
}

/* The last step's numbers are asked for while the next one is speculated. */
static void metrics_are_those_of_the_last_step(void **state)
{
    static struct fixture plain, f;
    open_fixture(&plain, false, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    open_fixture(&f, true, 1, NUMBER_FLOAT32, NUMBER_FLOAT32);
    for (int i = 0; i < STEPS; i++) {
        assert_same_gradients(&plain, &f);
        speculate(&f, f.session.layout->slice_count, false);
        const double expected = session_metric(&plain.session, 0);
        const double metric = session_metric(&f.session, 0);
        assert_memory_equal(&metric, &expected, sizeof metric);
        session_forget_speculation(&f.session);
    }
    close_fixture(&f);
    close_fixture(&plain);
}

static void a_push_of_several_batches_is_not_speculated(void **state)
{
    static struct fixture f;
    open_fixture(&f, true, 3, NUMBER_FLOAT32, NUMBER_FLOAT32);
    assert_false(speculate(&f, f.session.layout->slice_count, true));
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_and_gradients_leave_within_a_step),
        cmocka_unit_test(variables_that_are_not_cut_leave_within_a_step_too),
        cmocka_unit_test(of_several_batches_the_first_awaits_and_the_last_leaves),
        cmocka_unit_test(values_of_half_the_bytes_are_computed_with_as_the_floats_that_they_are),
        cmocka_unit_test(a_step_without_its_values_is_none),
        cmocka_unit_test(a_forward_pass_begins_ahead_and_the_step_goes_on_from_there),
        cmocka_unit_test(speculation_on_values_that_are_taken_back_leaves_no_trace),
        cmocka_unit_test(a_seek_and_a_bind_forget_speculation),
        cmocka_unit_test(metrics_are_those_of_the_last_step),
        cmocka_unit_test(a_push_of_several_batches_is_not_speculated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
