/* test_exchange.c - a step whose values come while forward goes on, and whose gradients leave while
 * backward does, is the step of one that has and keeps all of them, to the bit.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/train/session/session.h"
#include "tests/train/fixture.h"

enum { PS_COUNT = 2, STEPS = 4 };

static const char spec_json[] =
    "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":70},\"batch_size\":8,\"scale\":0.0039},"
    "\"model\":[{\"op\":\"flatten\"},"
    "{\"op\":\"dense\",\"units\":64,\"activation\":\"relu\",\"kernel_regularizer\":{\"l2\":0.01}},"
    "{\"op\":\"dense\",\"units\":32,\"activation\":\"tanh\"},"
    "{\"op\":\"dense\",\"units\":10,\"kernel_regularizer\":{\"l1\":0.001}}],"
    "\"loss\":\"softmax_cross_entropy\",\"optimizer\":\"adam\",\"train\":{\"last_step\":100},"
    "\"placement\":{\"partitioner\":{\"type\":\"fixed_size\",\"num_shards\":2}}}";

struct fixture {
    struct spec spec;
    struct device device;
    struct session session;
    struct exchange exchange;
    float *values[PS_COUNT], *gradients[PS_COUNT]; /* bound */
    float *sent[PS_COUNT], *taken[PS_COUNT];       /* by the other side */
    int awaited, left;
    bool awaits_in_vain;
};

static float *block(struct fixture *f, int ps)
{
    float *memory = calloc((size_t)f->session.layout->block_floats[ps], sizeof *memory);
    assert_non_null(memory);
    return memory;
}

static void spoil(float *at, int64_t floats)
{
    for (int64_t i = 0; i < floats; i++) at[i] = NAN;
}

static bool await(void *context, const struct bucket *b)
{
    struct fixture *f = context;
    if (f->awaits_in_vain) return false;
    assert_int_equal(f->left, 0); /* nothing leaves before all has come */
    memcpy(f->values[b->ps] + b->offset, f->sent[b->ps] + b->offset,
           (size_t)b->floats * sizeof(float));
    f->awaited++;
    return true;
}

/* What comes ahead of the next values may take the place of these. */
static void leave(void *context, const struct bucket *b)
{
    struct fixture *f = context;
    memcpy(f->taken[b->ps] + b->offset, f->gradients[b->ps] + b->offset,
           (size_t)b->floats * sizeof(float));
    spoil(f->values[b->ps] + b->offset, b->floats);
    f->left++;
}

static void load_spec(struct spec *ret)
{
    char path[] = "/tmp/exchange-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, spec_json, sizeof spec_json - 1), sizeof spec_json - 1);
    close(fd);
    const struct spec_options options = {.path = path, .seed = -1};
    if (spec_load(&options, ret)) fail_msg("%s", error_text());
    unlink(path);
}

static void open_fixture(struct fixture *f, bool has_exchange, int batches_per_push,
                         enum number number)
{
    *f = (struct fixture){.device = fixture_device()};
    f->exchange = (struct exchange){await, leave, f};
    load_spec(&f->spec);
    const struct session_options options = {.spec = &f->spec,
                                            .device = &f->device,
                                            .workers = 1,
                                            .ps_count = PS_COUNT,
                                            .batches_per_push = batches_per_push,
                                            .number = number,
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
            spoil(f->values[ps], floats);
        else
            memcpy(f->values[ps], f->sent[ps], (size_t)floats * sizeof(float));
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
    open_fixture(&plain, false, batches_per_push, NUMBER_FLOAT32);
    open_fixture(&f, true, batches_per_push, NUMBER_FLOAT32);
    assert_true(f.session.layout->slice_count > f.session.layout->variable_count);
    assert_same_steps(&plain, &f);
    close_fixture(&f);
    close_fixture(&plain);
}

static void values_come_and_gradients_leave_within_a_step(void **state)
{
    check(1);
}

static void of_several_batches_the_first_awaits_and_the_last_leaves(void **state)
{
    check(3);
}

/* A pass without its values leaves no trace: the batch comes again, and what rounding owes is what
 * it was. */
static void a_step_without_its_values_is_none(void **state)
{
    static struct fixture calm, f;
    double loss;
    open_fixture(&calm, true, 1, NUMBER_BF16);
    open_fixture(&f, true, 1, NUMBER_BF16);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_come_and_gradients_leave_within_a_step),
        cmocka_unit_test(of_several_batches_the_first_awaits_and_the_last_leaves),
        cmocka_unit_test(a_step_without_its_values_is_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
