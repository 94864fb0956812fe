/* test_store.c - one block or many, the update is the same to the bit. */
#include "tests/core/train/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/variables/store.h"

/* FLOATS: more than two tiles, no whole number of them */
enum { FLOATS = 20016, GRADIENTS_MAX = 5, STEPS = 3 };

static const char *const optimizers[] = {
    "{\"optimizer\": {\"type\": \"gradient_descent\", \"learning_rate\": 0.1}}",
    "{\"optimizer\": {\"type\": \"momentum\", \"learning_rate\": 0.1, \"momentum\": 0.9}}",
    "{\"optimizer\": {\"type\": \"momentum\", \"learning_rate\": 0.1, \"momentum\": 0.9, "
    "\"nesterov\": true}}",
    "{\"optimizer\": {\"type\": \"adagrad\", \"learning_rate\": 0.1}}",
    "{\"optimizer\": \"adam\"}",
    "{\"optimizer\": {\"type\": \"rmsprop\", \"learning_rate\": 0.01, \"momentum\": 0.5}}",
    "{\"optimizer\": {\"type\": \"rmsprop\", \"learning_rate\": 0.01, \"momentum\": 0.5, "
    "\"centered\": true}}",
    "{\"optimizer\": {\"type\": \"ftrl\", \"learning_rate\": 0.1, \"l1\": 0.01}}",
    "{\"optimizer\": {\"type\": \"adagrad_da\", \"learning_rate\": 0.1, \"l1\": 0.01}}",
};
enum { OPTIMIZERS = sizeof optimizers / sizeof optimizers[0] };

struct world {
    struct arena arena;
    struct device device;
    struct optimizer_spec spec;
};

static void open_world(struct world *world, const char *optimizer)
{
    *world = (struct world){.device = fixture_device()};
    world->spec = fixture_optimizer(optimizer, &world->arena);
}

static void close_world(struct world *world)
{
    arena_free(&world->arena);
    device_close(&world->device);
}

/* Random, of the device: the same for the same key. */
static float *random_floats(struct device *device, uint64_t key)
{
    float *at = fixture_block(device, FLOATS);
    for (int i = 0; i < FLOATS; i++) at[i] = random_normal(key, (uint64_t)i);
    return at;
}

/* Gradient g of a step, the same for all stores. */
static void make_gradients(struct device *device, float *ret[GRADIENTS_MAX])
{
    for (int g = 0; g < GRADIENTS_MAX; g++) ret[g] = random_floats(device, 100 + (uint64_t)g);
}

static void free_all(struct device *device, float *at[GRADIENTS_MAX])
{
    for (int g = 0; g < GRADIENTS_MAX; g++) fixture_release(device, at[g]);
}

/* What is left of a run: values and slots of all blocks, one behind the other. */
struct result {
    float *values, *slots[SLOTS_MAX];
    float powers[ALL_POWERS_MAX];
};

static void free_result(struct world *world, struct result *result)
{
    fixture_release(&world->device, result->values);
    for (int i = 0; i < SLOTS_MAX; i++) fixture_release(&world->device, result->slots[i]);
}

static void keep_slots(const struct store *store, int64_t begin, struct result *result)
{
    for (int i = 0; i < store->slot_count; i++) {
        if (!result->slots[i]) result->slots[i] = fixture_block(store->device, FLOATS);
        memcpy(result->slots[i] + begin, store->slots[i], (size_t)store->floats * sizeof(float));
    }
    memcpy(result->powers, store->powers, sizeof store->powers);
}

/* STEPS updates of floats begin .. end - 1, as one block, by the first `count` gradients. */
static void run_block(struct world *world, int64_t begin, int64_t end, int count,
                      struct result *result)
{
    struct device *device = &world->device;
    float *made[GRADIENTS_MAX];
    make_gradients(device, made);
    float *values = fixture_block(device, end - begin);
    float *snapshot = fixture_block(device, end - begin);
    const size_t bytes = (size_t)(end - begin) * sizeof(float);
    memcpy(values, result->values + begin, bytes);
    const void *gradients[GRADIENTS_MAX];
    for (int g = 0; g < count; g++) {
        float *shifted = fixture_block(device, end - begin);
        memcpy(shifted, made[g] + begin, bytes);
        gradients[g] = shifted;
    }
    struct store store;
    assert_int_equal(fixture_store(&world->spec, device, end - begin, values, &store), OK);
    for (int step = 0; step < STEPS; step++) {
        assert_int_equal(store_apply(&store, gradients, count, 1.0f / (float)count, step, snapshot),
                         OK);
        assert_memory_equal(snapshot, values, bytes);
    }
    assert_int_equal(store.version, STEPS);
    memcpy(result->values + begin, values, bytes);
    keep_slots(&store, begin, result);
    store_close(&store);
    for (int g = 0; g < count; g++) fixture_release(device, (float *)gradients[g]);
    fixture_release(device, values);
    fixture_release(device, snapshot);
    free_all(device, made);
}

/* The same floats in `blocks` blocks of different sizes. */
static struct result run_blocks(struct world *world, int blocks, int count)
{
    struct result result = {.values = random_floats(&world->device, 7)};
    int64_t begin = 0;
    for (int block = 1; block <= blocks; block++) {
        const int64_t end =
            block == blocks ? FLOATS : begin + (FLOATS / (blocks + 1) * block / 16 + 1) * 16;
        run_block(world, begin, end, count, &result);
        begin = end;
    }
    return result;
}

static void expect_same(const struct result *a, const struct result *b)
{
    const size_t bytes = FLOATS * sizeof(float);
    assert_memory_equal(a->values, b->values, bytes);
    assert_memory_equal(a->powers, b->powers, sizeof a->powers);
    for (int i = 0; i < SLOTS_MAX; i++) {
        assert_int_equal(!a->slots[i], !b->slots[i]);
        if (a->slots[i]) assert_memory_equal(a->slots[i], b->slots[i], bytes);
    }
}

static void one_block_or_several_give_the_same_bits(void **state)
{
    for (int i = 0; i < OPTIMIZERS; i++) {
        struct world world;
        open_world(&world, optimizers[i]);
        for (int count = 1; count <= GRADIENTS_MAX; count += 2) {
            struct result one = run_blocks(&world, 1, count);
            for (int blocks = 2; blocks <= 3; blocks++) {
                struct result several = run_blocks(&world, blocks, count);
                expect_same(&one, &several);
                free_result(&world, &several);
            }
            free_result(&world, &one);
        }
        close_world(&world);
    }
}

/* Two stores at the same values, of which the second takes its steps in pieces and takes some of
 * them back. */
struct twins {
    float *values[2], *made[GRADIENTS_MAX];
    struct store store[2];
};

static void expect_equal_twins(const struct twins *t)
{
    const size_t bytes = FLOATS * sizeof(float);
    assert_memory_equal(t->values[0], t->values[1], bytes);
    for (int i = 0; i < t->store[0].slot_count; i++)
        assert_memory_equal(t->store[0].slots[i], t->store[1].slots[i], bytes);
    assert_memory_equal(t->store[0].powers, t->store[1].powers, sizeof t->store[0].powers);
}

static void advance(struct twins *t, int step, int gradients, int64_t begin, int64_t end)
{
    assert_int_equal(store_advance(&t->store[1], (const void *const *)t->made, gradients,
                                   1.0f / (float)gradients, step, (struct range){begin, end}, NULL),
                     OK);
}

static void step_twins(struct twins *t, int step)
{
    const int64_t third = FLOATS / 48 * 16;
    advance(t, step, 1, 0, third); /* by others than in the end */
    advance(t, step, 1, 2 * third, FLOATS);
    store_take_back(&t->store[1], NULL);
    expect_equal_twins(t);
    advance(t, step, 3, 2 * third, 2 * third + 16); /* in any order, with gaps, and gaps closed */
    advance(t, step, 3, 16, third);
    advance(t, step, 3, 2 * third + 32, FLOATS);
    assert_int_equal(t->store[1].advanced_count, 3);
    advance(t, step, 3, 2 * third + 16, 2 * third + 32);
    assert_int_equal(t->store[1].advanced_count, 2);
    if (step % 3 == 1) {
        store_take_back(&t->store[1], NULL);
        expect_equal_twins(t);
    } else if (step % 3 == 2) {
        advance(t, step, 3, third, 2 * third);
        advance(t, step, 3, 0, 16);
        assert_int_equal(t->store[1].advanced_count, 1);
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            store_apply(&t->store[i], (const void *const *)t->made, 3, 1.0f / 3, step, NULL), OK);
    expect_equal_twins(t);
}

static void what_advances_by_pieces_ends_with_the_same_bits(void **state)
{
    for (int i = 0; i < OPTIMIZERS; i++) {
        struct world world;
        open_world(&world, optimizers[i]);
        struct twins t = {0};
        make_gradients(&world.device, t.made);
        for (int k = 0; k < 2; k++) {
            t.values[k] = random_floats(&world.device, 7);
            assert_int_equal(
                fixture_store(&world.spec, &world.device, FLOATS, t.values[k], &t.store[k]), OK);
        }
        for (int step = 0; step < STEPS && !world.device.is_separate; step++) step_twins(&t, step);
        for (int k = 0; k < 2; k++) {
            store_close(&t.store[k]);
            fixture_release(&world.device, t.values[k]);
        }
        free_all(&world.device, t.made);
        close_world(&world);
    }
}

static void gradients_are_summed_in_the_order_given(void **state)
{
    struct world world;
    open_world(&world, "{\"optimizer\": {\"type\": \"gradient_descent\", \"learning_rate\": 1}}");
    float *made[GRADIENTS_MAX];
    make_gradients(&world.device, made);
    float *values = fixture_block(&world.device, FLOATS);
    struct store store;
    assert_int_equal(fixture_store(&world.spec, &world.device, FLOATS, values, &store), OK);
    assert_int_equal(store_apply(&store, (const void *const *)made, 4, 0.25f, 0, NULL), OK);
    for (int i = 0; i < FLOATS; i++) {
        float sum = made[0][i];
        for (int g = 1; g < 4; g++) sum += made[g][i];
        assert_true(values[i] == -(0.25f * sum));
    }
    store_close(&store);
    fixture_release(&world.device, values);
    free_all(&world.device, made);
    close_world(&world);
}

static void a_single_gradient_is_the_sum_of_itself_and_is_not_written(void **state)
{
    struct world world;
    open_world(&world, optimizers[0]);
    float *gradient = random_floats(&world.device, 3), *copy = random_floats(&world.device, 3);
    float *values = fixture_block(&world.device, FLOATS),
          *other = fixture_block(&world.device, FLOATS),
          *zeros = fixture_block(&world.device, FLOATS);
    struct store a, b;
    assert_int_equal(fixture_store(&world.spec, &world.device, FLOATS, values, &a), OK);
    assert_int_equal(fixture_store(&world.spec, &world.device, FLOATS, other, &b), OK);
    assert_int_equal(store_apply(&a, (const void *const[]){gradient}, 1, 1.0f, 0, NULL), OK);
    assert_int_equal(store_apply(&b, (const void *const[]){gradient, zeros}, 2, 1.0f, 0, NULL), OK);
    assert_memory_equal(values, other, FLOATS * sizeof(float));
    assert_memory_equal(gradient, copy, FLOATS * sizeof(float));
    assert_int_equal(store_apply(&a, (const void *const[]){gradient}, 1, 0.5f, 1, NULL),
                     OK); /* scaled: not in place */
    assert_memory_equal(gradient, copy, FLOATS * sizeof(float));
    fixture_near(values[5], -0.15 * gradient[5], (struct tolerance){.relative = 1e-5}, "scaled");
    store_close(&a);
    store_close(&b);
    fixture_release(&world.device, gradient);
    fixture_release(&world.device, copy);
    fixture_release(&world.device, values);
    fixture_release(&world.device, other);
    fixture_release(&world.device, zeros);
    close_world(&world);
}

/* What is not finite reaches no value, wherever it stands, and leaves nothing where it is taken
 * back. */
static void a_gradient_that_is_not_finite_is_refused(void **state)
{
    const float bad[] = {NAN, INFINITY, -INFINITY};
    const int at[] = {0, FLOATS / 2, FLOATS - 1};
    const struct range all = {0, FLOATS};
    struct world world;
    open_world(&world, "{\"optimizer\": \"adam\"}");
    struct twins t = {0};
    make_gradients(&world.device, t.made);
    for (int k = 0; k < 2; k++) {
        t.values[k] = random_floats(&world.device, 7);
        assert_int_equal(
            fixture_store(&world.spec, &world.device, FLOATS, t.values[k], &t.store[k]), OK);
    }
    for (int i = 0; i < 3 && !world.device.is_separate; i++) {
        const void *const *made = (const void *const *)t.made;
        const float good = t.made[1][at[i]];
        t.made[1][at[i]] = bad[i];
        assert_int_equal(store_advance(&t.store[1], made, 3, 1.0f, i, all, NULL), ERR_NUMBER);
        store_take_back(&t.store[1], NULL);
        expect_equal_twins(&t);
        t.made[1][at[i]] = good;
        for (int k = 0; k < 2; k++)
            assert_int_equal(store_apply(&t.store[k], made, 3, 1.0f, i, NULL), OK);
        expect_equal_twins(&t);
    }
    const float before = t.values[0][FLOATS - 1];
    t.made[0][FLOATS - 1] = NAN;
    assert_int_equal(store_apply(&t.store[0], (const void *const[]){t.made[0]}, 1, 1.0f, 3, NULL),
                     ERR_NUMBER);
    assert_true(t.values[0][FLOATS - 1] == before);
    assert_int_equal(t.store[0].version, t.store[1].version);
    for (int k = 0; k < 2; k++) {
        store_close(&t.store[k]);
        fixture_release(&world.device, t.values[k]);
    }
    free_all(&world.device, t.made);
    close_world(&world);
}

/* A worker that writes to its window whenever somebody has looked at a gradient */
static struct {
    const struct kernels *honest;
    float *const *windows;
} meddler;

static bool look_then_spoil(struct device *device, const float *x, int64_t n)
{
    const bool is_finite = meddler.honest->all_finite(device, x, n);
    for (int g = 0; g < GRADIENTS_MAX; g++)
        memset(meddler.windows[g], 0xff, FLOATS * sizeof(float)); /* NaN, of whatever numbers */
    return is_finite;
}

static void expect_finite(const struct store *store)
{
    for (int i = 0; i < FLOATS; i++) {
        assert_true(isfinite(store->values[i]));
        for (int k = 0; k < store->slot_count; k++) assert_true(isfinite(store->slots[k][i]));
    }
}

static void meddle_with(struct world *world, enum number number, int count, bool advances)
{
    float *made[GRADIENTS_MAX], *values = random_floats(&world->device, 7);
    const float before = values[0];
    struct store store;
    make_gradients(&world->device, made);
    assert_int_equal(fixture_store(&world->spec, &world->device, FLOATS, values, &store), OK);
    store.number = number;
    meddler.windows = made;
    const void *const *gradients = (const void *const *)made;
    if (number != NUMBER_FLOAT32)
        for (int g = 0; g < GRADIENTS_MAX; g++) /* halves that are finite */
            memset(made[g], 0x11, FLOATS * sizeof(float));
    const err e = advances ? store_advance(&store, gradients, count, 1.0f / (float)count, 0,
                                           (struct range){0, FLOATS}, NULL)
                           : store_apply(&store, gradients, count, 1.0f / (float)count, 0, NULL);
    assert_int_equal(e, ERR_NUMBER); /* of the floats behind those that were looked at first */
    expect_finite(&store);
    assert_true(number != NUMBER_FLOAT32 || values[0] != before);
    store_close(&store);
    fixture_release(&world->device, values);
    free_all(&world->device, made);
}

/* The numbers that were looked at are those that are applied. */
static void what_a_worker_writes_behind_the_look_reaches_no_value(void **state)
{
    for (int i = 0; i < OPTIMIZERS; i++) {
        struct world world;
        open_world(&world, optimizers[i]);
        struct kernels kernels = *world.device.kernels;
        meddler.honest = world.device.kernels;
        kernels.all_finite = look_then_spoil;
        world.device.kernels = &kernels;
        for (int count = 1; count <= 3 && !world.device.is_separate; count++)
            for (int how = 0; how < 6; how++)
                meddle_with(&world, (enum number)(how / 2), count, how % 2);
        world.device.kernels = meddler.honest;
        close_world(&world);
    }
}

/* An update by rounded gradients is that of the floats that they are. */
static void gradients_of_half_the_bytes_are_what_they_were_rounded_to(void **state)
{
    for (enum number number = NUMBER_BF16; number <= NUMBER_FP16; number++) {
        struct world world;
        open_world(&world, "{\"optimizer\": \"adam\"}");
        const struct kernels *kernels = world.device.kernels;
        struct twins t = {0};
        float *rounded[GRADIENTS_MAX], *error = fixture_block(&world.device, FLOATS);
        make_gradients(&world.device, t.made);
        for (int g = 0; g < GRADIENTS_MAX; g++) {
            rounded[g] = fixture_block(&world.device, FLOATS);
            uint16_t *halves = (uint16_t *)rounded[g];
            kernels->fill(&world.device, error, 0, FLOATS);
            kernels->round_off(&world.device, halves, error, t.made[g], number, FLOATS);
            kernels->sum_rounded(&world.device, t.made[g], (const uint16_t *const[]){halves}, 1,
                                 number, 1.0f, FLOATS);
        }
        for (int k = 0; k < 2; k++) {
            t.values[k] = random_floats(&world.device, 7);
            assert_int_equal(
                fixture_store(&world.spec, &world.device, FLOATS, t.values[k], &t.store[k]), OK);
        }
        t.store[1].number = number;
        for (int count = 1; count <= 3; count += 2) {
            for (int k = 0; k < 2; k++)
                assert_int_equal(store_apply(&t.store[k],
                                             (const void *const *)(k ? rounded : t.made), count,
                                             1.0f / (float)count, count, NULL),
                                 OK);
            expect_equal_twins(&t);
        }
        for (int k = 0; k < 2; k++) {
            store_close(&t.store[k]);
            fixture_release(&world.device, t.values[k]);
        }
        fixture_release(&world.device, error);
        free_all(&world.device, rounded);
        free_all(&world.device, t.made);
        close_world(&world);
    }
}

/* The second of the twins folds `folded` of the gradients, some at a time. */
static void apply_folded(struct twins *t, float *const from[GRADIENTS_MAX], int folded)
{
    const void *const *gradients = (const void *const *)from;
    const float scale = 1.0f / GRADIENTS_MAX;
    for (int at = 0; at < folded; at += 2)
        assert_int_equal(store_fold(&t->store[1], gradients + at, folded - at > 1 ? 2 : 1), OK);
    assert_int_equal(store_apply(&t->store[0], gradients, GRADIENTS_MAX, scale, 1, NULL), OK);
    assert_int_equal(
        store_apply(&t->store[1], gradients + folded, GRADIENTS_MAX - folded, scale, 1, NULL), OK);
    expect_equal_twins(t);
}

static void fold_in_all_ways(struct twins *t, float *sent[GRADIENTS_MAX])
{
    for (int folded = 0; folded <= GRADIENTS_MAX; folded++) apply_folded(t, sent, folded);
    const void *spoiled = sent[0];
    assert_int_equal(store_fold(&t->store[1], &spoiled, 1), OK); /* and is taken out again */
    store_unfold(&t->store[1]);
    apply_folded(t, sent, 1);
    memset(sent[0], 0xff, 64);
    assert_int_equal(store_fold(&t->store[1], &spoiled, 1), ERR_NUMBER);
}

static void gradients_that_are_folded_end_with_the_same_bits(void **state)
{
    for (enum number number = NUMBER_FLOAT32; number <= NUMBER_FP16; number++) {
        struct world world;
        open_world(&world, "{\"optimizer\": \"adam\"}");
        struct twins t = {0};
        float *sent[GRADIENTS_MAX], *owed = fixture_block(&world.device, FLOATS);
        make_gradients(&world.device, t.made);
        for (int g = 0; g < GRADIENTS_MAX; g++) {
            sent[g] = fixture_block(&world.device, FLOATS);
            if (number == NUMBER_FLOAT32)
                memcpy(sent[g], t.made[g], FLOATS * sizeof(float));
            else
                world.device.kernels->round_off(&world.device, (uint16_t *)sent[g], owed, t.made[g],
                                                number, FLOATS);
        }
        for (int k = 0; k < 2; k++) {
            t.values[k] = random_floats(&world.device, 7);
            assert_int_equal(
                fixture_store(&world.spec, &world.device, FLOATS, t.values[k], &t.store[k]), OK);
            t.store[k].number = number;
        }
        if (!world.device.is_separate) fold_in_all_ways(&t, sent); /* only a ps folds */
        for (int k = 0; k < 2; k++) {
            store_close(&t.store[k]);
            fixture_release(&world.device, t.values[k]);
        }
        fixture_release(&world.device, owed);
        free_all(&world.device, sent);
        free_all(&world.device, t.made);
        close_world(&world);
    }
}

/* What the snapshot holds beside what the values are rounded to here */
static void expect_shown(const struct store *store, const uint16_t *snapshot)
{
    struct device *device = store->device;
    float *error = fixture_block(device, FLOATS), *rounded = fixture_block(device, FLOATS);
    device->kernels->round_off(device, (uint16_t *)rounded, error, store->values, store->shown,
                               FLOATS);
    assert_memory_equal(snapshot, rounded, FLOATS * sizeof *snapshot);
    fixture_release(device, error);
    fixture_release(device, rounded);
}

/* A step of the first twin, and of the second one by way of pieces that are shown as well. */
static void step_shown(struct twins *t, int step, uint16_t *snapshot)
{
    const void *const *made = (const void *const *)t->made;
    const struct range ranges[] = {{FLOATS / 32 * 16, FLOATS}, {0, 16}};
    for (int i = 0; i < 2 && !t->store[1].device->is_separate; i++) {
        assert_int_equal(store_advance(&t->store[1], made, 3, 1.0f / 3, step, ranges[i], snapshot),
                         OK);
        expect_shown(&t->store[1], snapshot);
    }
    if (step % 2) store_take_back(&t->store[1], snapshot);
    expect_shown(&t->store[1], snapshot);
    for (int k = 0; k < 2; k++)
        assert_int_equal(store_apply(&t->store[k], made, 3, 1.0f / 3, step, k ? snapshot : NULL),
                         OK);
    expect_shown(&t->store[1], snapshot);
    expect_equal_twins(t);
}

/* Whatever happens to them; and they stay the floats that they are where nothing is shown. */
static void values_are_shown_in_half_the_bytes(void **state)
{
    for (enum number number = NUMBER_BF16; number <= NUMBER_FP16; number++) {
        struct world world;
        open_world(&world, "{\"optimizer\": \"adam\"}");
        struct twins t = {0};
        float *snapshot = fixture_block(&world.device, FLOATS);
        make_gradients(&world.device, t.made);
        for (int k = 0; k < 2; k++) {
            t.values[k] = random_floats(&world.device, 7);
            assert_int_equal(
                fixture_store(&world.spec, &world.device, FLOATS, t.values[k], &t.store[k]), OK);
        }
        t.store[1].shown = number;
        store_show(&t.store[1], snapshot);
        expect_shown(&t.store[1], (uint16_t *)snapshot);
        for (int step = 0; step < STEPS; step++) step_shown(&t, step, (uint16_t *)snapshot);
        for (int k = 0; k < 2; k++) {
            store_close(&t.store[k]);
            fixture_release(&world.device, t.values[k]);
        }
        fixture_release(&world.device, snapshot);
        free_all(&world.device, t.made);
        close_world(&world);
    }
}

static void the_rate_is_that_of_the_step_before_its_increment(void **state)
{
    struct world world;
    open_world(&world, "{\"optimizer\": {\"type\": \"gradient_descent\", \"learning_rate\": "
                       "{\"type\": \"piecewise_constant\", \"boundaries\": [4], "
                       "\"values\": [1, 0.5]}}}");
    float *values = fixture_block(&world.device, 16), *gradient = fixture_block(&world.device, 16);
    gradient[0] = 1.0f;
    struct store store;
    assert_int_equal(fixture_store(&world.spec, &world.device, 16, values, &store), OK);
    assert_int_equal(store_apply(&store, (const void *const[]){gradient}, 1, 1.0f, 4, NULL), OK);
    assert_true(values[0] == -1.0f);
    assert_int_equal(store_apply(&store, (const void *const[]){gradient}, 1, 1.0f, 5, NULL), OK);
    assert_true(values[0] == -1.5f);
    store_close(&store);
    fixture_release(&world.device, values);
    fixture_release(&world.device, gradient);
    close_world(&world);
}

static void a_reset_store_starts_anew_but_keeps_the_values(void **state)
{
    struct world world;
    open_world(&world, "{\"optimizer\": {\"type\": \"rmsprop\", \"learning_rate\": 0.1, "
                       "\"centered\": true}}");
    float *values = fixture_block(&world.device, 16), *gradient = fixture_block(&world.device, 16);
    values[0] = gradient[0] = 1.0f;
    struct store store;
    assert_int_equal(fixture_store(&world.spec, &world.device, 16, values, &store), OK);
    assert_int_equal(store.slot_count, 3);
    assert_int_equal(store_apply(&store, (const void *const[]){gradient}, 1, 1.0f, 0, NULL), OK);
    const float after = values[0];
    assert_true(after < 1.0f && store.slots[1][0] > 0.0f);
    store_reset(&store);
    assert_true(values[0] == after);
    assert_int_equal(store.version, 0);
    for (int i = 0; i < 16; i++) {
        assert_true(store.slots[0][i] == 1.0f);
        assert_true(store.slots[1][i] == 0.0f && store.slots[2][i] == 0.0f);
    }
    store_close(&store);
    fixture_release(&world.device, values);
    fixture_release(&world.device, gradient);
    close_world(&world);
}

static void powers_advance_once_per_update_even_where_there_is_nothing_to_update(void **state)
{
    struct world world;
    open_world(&world, "{\"optimizer\": {\"type\": \"adam\", \"beta1\": 0.5, \"beta2\": 0.25}}");
    float *nothing = fixture_block(&world.device, 16);
    struct store store;
    assert_int_equal(fixture_store(&world.spec, &world.device, 0, nothing, &store), OK);
    assert_int_equal(
        store_apply(&store, (const void *const[]){nothing, nothing}, 2, 0.5f, 0, nothing), OK);
    assert_true(store.powers[0] == 0.25f && store.powers[1] == 0.0625f);
    assert_int_equal(store.version, 1);
    store_close(&store);
    fixture_release(&world.device, nothing);
    close_world(&world);
}

/* A device that has memory for so many more allocations; counts what is not given back. */
static struct {
    const struct kernels *real;
    int left, held;
} limited;

static err limited_allocate(struct device *device, size_t bytes, void **ret)
{
    if (limited.left-- <= 0) return (fail)(ERR_MEMORY, "none left");
    limited.held++;
    return limited.real->allocate(device, bytes, ret);
}

static void limited_release(struct device *device, void *memory)
{
    limited.held--;
    limited.real->release(device, memory);
}

static void a_store_that_finds_no_memory_gives_back_what_it_took(void **state)
{
    struct world world;
    open_world(&world, "{\"optimizer\": \"adam\"}");
    struct kernels kernels = *world.device.kernels;
    limited.real = world.device.kernels;
    kernels.allocate = limited_allocate;
    kernels.release = limited_release;
    struct device device = world.device;
    device.kernels = &kernels;
    float *values = fixture_block(&world.device, 16);
    struct store store;
    int allocations = 0;
    for (;; allocations++) {
        assert_in_range(allocations, 0, 8);
        limited.left = allocations;
        if (fixture_store(&world.spec, &device, 16, values, &store) == OK) break;
        assert_string_equal(error_text(), "optimizer state of 16 floats: none left");
        assert_int_equal(limited.held, 0);
    }
    assert_int_equal(allocations, 2 + device.is_separate); /* two slots; scratch memory */
    store_close(&store);
    assert_int_equal(limited.held, 0);
    store_close(&store); /* closed already: nothing happens */
    fixture_release(&world.device, values);
    close_world(&world);
}

/* Between floats of an optimizer: the mean of what the batches measured, whatever was pushed ahead
 * or taken back; no slot of theirs is touched. */
static void values_that_move_go_towards_what_batches_measured(void **state)
{
    static const struct section sections[] = {
        {0, 0, 160}, {OPTIMIZER_NONE, 0.25f, 320}, {OPTIMIZER_NONE, 0.5f, 336}, {0, 0, FLOATS}};
    struct world world;
    struct store store;
    float *made[GRADIENTS_MAX];
    open_world(&world, "{\"optimizer\": \"adam\"}");
    make_gradients(&world.device, made);
    float *values = random_floats(&world.device, 7), *before = random_floats(&world.device, 7);
    const struct optimizers one = optimizers_make(&world.spec, 1, &world.arena);
    const void *const *gradients = (const void *const *)made;
    assert_int_equal(store_open(&one, sections, 4, &world.device, FLOATS, values, &store), OK);
    if (!world.device.is_separate) {
        const struct range range = {144, 336};
        assert_int_equal(store_advance(&store, gradients, 2, 0.5f, 0, range, NULL), OK);
        assert_true(values[200] != before[200]);
        store_take_back(&store, NULL);
        assert_memory_equal(values, before, FLOATS * sizeof(float));
    }
    assert_int_equal(store_apply(&store, gradients, 2, 0.5f, 0, NULL), OK);
    for (int i = 160; i < 336; i++) {
        const double measured = ((double)made[0][i] + made[1][i]) / 2;
        const double wanted = before[i] - (before[i] - measured) * (i < 320 ? 0.25 : 0.5);
        fixture_near(values[i], wanted, (struct tolerance){1e-6, 1e-6}, "moved");
        assert_true(store.slots[0][i] == 0 && store.slots[1][i] == 0);
    }
    assert_true(store.slots[0][159] != 0 && store.slots[0][336] != 0);
    store_close(&store);
    fixture_release(&world.device, values);
    fixture_release(&world.device, before);
    free_all(&world.device, made);
    close_world(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_block_or_several_give_the_same_bits),
        cmocka_unit_test(what_advances_by_pieces_ends_with_the_same_bits),
        cmocka_unit_test(gradients_are_summed_in_the_order_given),
        cmocka_unit_test(a_single_gradient_is_the_sum_of_itself_and_is_not_written),
        cmocka_unit_test(a_gradient_that_is_not_finite_is_refused),
        cmocka_unit_test(what_a_worker_writes_behind_the_look_reaches_no_value),
        cmocka_unit_test(gradients_of_half_the_bytes_are_what_they_were_rounded_to),
        cmocka_unit_test(gradients_that_are_folded_end_with_the_same_bits),
        cmocka_unit_test(values_are_shown_in_half_the_bytes),
        cmocka_unit_test(the_rate_is_that_of_the_step_before_its_increment),
        cmocka_unit_test(a_reset_store_starts_anew_but_keeps_the_values),
        cmocka_unit_test(powers_advance_once_per_update_even_where_there_is_nothing_to_update),
        cmocka_unit_test(values_that_move_go_towards_what_batches_measured),
        cmocka_unit_test(a_store_that_finds_no_memory_gives_back_what_it_took),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
