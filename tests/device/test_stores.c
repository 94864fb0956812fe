/* test_stores.c - updates on a device with memory of its own, values read from a checkpoint into
 * it, and blocks that travel by way of it. */
#include "core/train/checkpoint/shard.h"
#include "tests/device/rig.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FLOATS = 20000 / 16 * 16, SOURCES = 3, ROUNDS = 4 };

/* Numbers that are the same each time and no two alike. */
static float number(int64_t i)
{
    return (float)((i * 2654435761u) % 10007) / 5003.5f - 1.0f;
}

static float *device_block(struct device *d, int64_t seed)
{
    void *memory;
    float *host = rig_block(FLOATS);
    for (int64_t i = 0; i < FLOATS; i++) host[i] = number(i + seed);
    assert_int_equal(d->kernels->allocate(d, FLOATS * sizeof(float), &memory), OK);
    d->kernels->upload(d, memory, host, FLOATS * sizeof(float));
    free(host);
    return memory;
}

static void add_block(struct device *d, const float *block, struct tape *tape)
{
    float *host = rig_block(FLOATS);
    d->kernels->download(d, host, block, FLOATS * sizeof(float));
    tape_add(tape, host, FLOATS * sizeof(float));
    free(host);
}

static void update(const struct spec *spec, enum place place, struct tape *tape)
{
    struct device d;
    struct store store;
    float *sources[SOURCES], *values, *snapshot;
    assert_int_equal(
        place == APART ? device_open_apart(SIZE_MAX, &d) : device_open_cpu(1, NULL, &d), OK);
    values = device_block(&d, 1);
    snapshot = device_block(&d, 2);
    for (int i = 0; i < SOURCES; i++) sources[i] = device_block(&d, 100 + i);
    assert_int_equal(store_open(&spec->optimizers, NULL, 0, &d, FLOATS, values, &store), OK);
    for (int64_t round = 0; round < ROUNDS; round++) {
        const int count = round % 2 ? SOURCES : 1;
        assert_int_equal(store_apply(&store, (const void *const *)sources, count,
                                     round == 2 ? 1.0f : 0.25f, round,
                                     round == 3 ? snapshot : NULL),
                         OK);
        add_block(&d, values, tape);
    }
    add_block(&d, snapshot, tape);
    for (int i = 0; i < store.slot_count; i++) add_block(&d, store.slots[i], tape);
    tape_add(tape, store.powers, sizeof store.powers);
    store_close(&store);
    d.kernels->release(&d, values);
    d.kernels->release(&d, snapshot);
    for (int i = 0; i < SOURCES; i++) d.kernels->release(&d, sources[i]);
    if (place == APART) assert_int_equal(device_apart_in_use(&d), 0);
    device_close(&d);
}

#define SPEC(optimizer)                                                                            \
    "{\"data\":{\"train\":{\"format\":\"digits\",\"rows\":50},\"eval\":{\"format\":\"digits\","    \
    "\"rows\":70},\"batch_size\":10,\"scale\":0.0039},\"model\":[{\"op\":\"flatten\"},{\"op\":"    \
    "\"dense\",\"units\":10}],\"loss\":\"softmax_cross_entropy\",\"metrics\":[\"accuracy\"],"      \
    "\"optimizer\":{\"type\":" optimizer ",\"learning_rate\":0.1},\"train\":{\"last_step\":9}}"

static void updates_of_every_optimizer_are_the_same_bits(void **state)
{
    static const char *const specs[] = {SPEC("\"gradient_descent\""),
                                        SPEC("\"momentum\",\"momentum\":0.9"), SPEC("\"adagrad\""),
                                        SPEC("\"adam\""), SPEC("\"rmsprop\",\"centered\":true")};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        struct spec spec;
        struct tape cpu = {0}, apart = {0};
        rig_load_spec(specs[i], &spec);
        update(&spec, ON_CPU, &cpu);
        update(&spec, APART, &apart);
        assert_same_tape(&cpu, &apart);
        tape_free(&cpu);
        tape_free(&apart);
        spec_free(&spec);
    }
}

/* ---- a gradient that is not finite ---- */

enum { LARGE_FLOATS = (1 << 23) + 16 }; /* three tiles of a device with memory of its own */

static float *large_block(struct device *d, const float *host)
{
    void *memory;
    assert_int_equal(d->kernels->allocate(d, LARGE_FLOATS * sizeof(float), &memory), OK);
    d->kernels->upload(d, memory, host, LARGE_FLOATS * sizeof(float));
    return memory;
}

static void a_gradient_is_looked_at_once_and_before_anything_advances(void **state)
{
    struct device d;
    struct spec spec;
    struct store store;
    float *host = rig_block(LARGE_FLOATS);
    rig_load_spec(SPEC("\"gradient_descent\""), &spec);
    assert_int_equal(device_open_apart(SIZE_MAX, &d), OK);
    float *values = large_block(&d, host);
    for (int64_t i = 0; i < LARGE_FLOATS; i++) host[i] = 1;
    float *good = large_block(&d, host);
    host[LARGE_FLOATS - 1] = INFINITY;
    float *bad = large_block(&d, host);
    if (store_open(&spec.optimizers, NULL, 0, &d, LARGE_FLOATS, values, &store))
        fail_msg("%s", error_text());

    assert_int_equal(store_apply(&store, (const void *[]){bad}, 1, 1, 0, NULL), ERR_NUMBER);
    assert_int_equal(store_apply(&store, (const void *[]){bad}, 1, 0.5f, 0, NULL), ERR_NUMBER);
    d.kernels->download(&d, host, values, LARGE_FLOATS * sizeof(float));
    for (int64_t i = 0; i < LARGE_FLOATS; i++) assert_true(host[i] == 0);

    const int64_t before = device_apart_traffic(&d).kernels;
    assert_int_equal(store_apply(&store, (const void *[]){good}, 1, 1, 0, NULL), OK);
    assert_int_equal(device_apart_traffic(&d).kernels - before, 1 + 3);

    store_close(&store);
    d.kernels->release(&d, values);
    d.kernels->release(&d, good);
    d.kernels->release(&d, bad);
    assert_int_equal(device_apart_in_use(&d), 0);
    device_close(&d);
    spec_free(&spec);
    free(host);
}

/* ---- checkpoints ---- */

/* Every variable from the initial values of seed 1, as a ps alone would save them. */
static void save(const char *prefix)
{
    static const struct scene scene = {SPEC("\"adam\""), 1, 1, 1};
    static struct rig r;
    rig_open(&r, &scene, ON_CPU);
    const struct layout *layout = r.session[0].layout;
    int64_t ledger[LEDGER_COLUMNS] = {0};
    const struct shard shard = {.ps_count = 1,
                                .slices = layout->slices,
                                .slice_count = layout->slice_count,
                                .values = r.values[0],
                                .workers = 1,
                                .ledger = ledger};
    if (shard_write(&shard, prefix)) fail_msg("%s", error_text());
    rig_close(&r);
}

static err take(void *context, const struct predictions *p)
{
    const struct predicted *head = &p->heads[0];
    tape_add(context, head->at, (size_t)(p->rows * head->columns) * sizeof(float));
    return OK;
}

static void evaluate_restored(const char *prefix, enum place place, struct tape *tape)
{
    struct device d;
    struct spec spec;
    struct session s;
    struct bundle *bundle;
    struct evaluation e;
    rig_load_spec(SPEC("\"adam\""), &spec);
    assert_int_equal(
        place == APART ? device_open_apart(SIZE_MAX, &d) : device_open_cpu(1, NULL, &d), OK);
    const struct session_options options = {.spec = &spec,
                                            .device = &d,
                                            .workers = 1,
                                            .ps_count = 1,
                                            .batches_per_push = 1,
                                            .only_evaluates = true};
    if (session_open(&options, &s)) fail_msg("%s", error_text());
    if (bundle_open(prefix, &bundle)) fail_msg("%s", error_text());
    for (int i = 0; i < 2; i++) { /* the evaluator does so again and again */
        if (session_restore(&s, bundle)) fail_msg("%s", error_text());
        assert_int_equal(session_evaluate(&s, &e), OK);
        tape_add(tape, &e.loss, sizeof e.loss);
        tape_add(tape, e.metrics, sizeof *e.metrics);
    }
    assert_int_equal(session_predict(&s, &(struct prediction_taker){take, tape}), OK);
    bundle_close(bundle);
    session_close(&s);
    if (place == APART) assert_int_equal(device_apart_in_use(&d), 0);
    device_close(&d);
    spec_free(&spec);
}

static void restored_values_evaluate_and_predict_the_same_bits(void **state)
{
    char folder[] = "/tmp/device-restore-XXXXXX", prefix[64];
    struct tape cpu = {0}, apart = {0};
    assert_non_null(mkdtemp(folder));
    snprintf(prefix, sizeof prefix, "%s/values", folder);
    save(prefix);
    evaluate_restored(prefix, ON_CPU, &cpu);
    evaluate_restored(prefix, APART, &apart);
    assert_same_tape(&cpu, &apart);
    assert_int_equal(bundle_remove(prefix), OK);
    assert_int_equal(rmdir(folder), 0);
    tape_free(&cpu);
    tape_free(&apart);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(updates_of_every_optimizer_are_the_same_bits),
        cmocka_unit_test(a_gradient_is_looked_at_once_and_before_anything_advances),
        cmocka_unit_test(restored_values_evaluate_and_predict_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
