/* store.c - one update of a block, tile by tile.
 *
 * A tile is small enough that gradients, values and slots of it stay in the first caches from the
 * sum over the workers until the snapshot, so that each of them crosses the memory bus once. Every
 * update rule is elementwise, so results do not depend on where tiles or blocks end.
 */
#include "core/train/store.h"

#include <assert.h>

#include "core/train/layout.h"

enum { TILE_FLOATS = 8192 };

/* What is to be summed: scale * (at[0] + at[1] + ...), each a whole block. */
struct gradients {
    const float *const *at;
    int count;
    float scale;
};

static int slots_in_use(const struct optimizer *optimizer, const void *attributes)
{
    return optimizer->slots_used ? optimizer->slots_used(attributes) : optimizer->slot_count;
}

/* A ps with fewer variables than tasks may hold nothing; its pointers are valid all the same. */
static size_t bytes_of(int64_t floats)
{
    return (size_t)(floats > 0 ? floats : LAYOUT_ALIGN) * sizeof(float);
}

static err allocate(struct store *store)
{
    struct device *device = store->device;
    for (int i = 0; i < store->slot_count; i++) {
        TRY(device->kernels->allocate(device, bytes_of(store->floats), (void **)&store->slots[i]));
    }
    const int64_t tile = store->floats < TILE_FLOATS ? store->floats : TILE_FLOATS;
    return device->kernels->allocate(device, bytes_of(tile), (void **)&store->tile);
}

err store_open(const struct optimizer_spec *spec, struct device *device, int64_t floats,
               float *values, struct store *ret)
{
    const struct optimizer *optimizer = spec->optimizer.kind->descriptor;
    struct store store = {
        .device = device,
        .optimizer = optimizer,
        .attributes = spec->optimizer.attributes,
        .learning_rate = optimizer_learning_rate(spec),
        .floats = floats,
        .values = values,
        .slot_count = slots_in_use(optimizer, spec->optimizer.attributes),
    };
    const err e = allocate(&store);
    if (e) {
        store_close(&store);
        return fail_prefix(e, "optimizer state of %lld floats", (long long)floats);
    }
    store_reset(&store);
    *ret = store;
    return OK;
}

void store_close(struct store *store)
{
    if (!store->device) return;
    for (int i = 0; i < SLOTS_MAX; i++) {
        if (store->slots[i]) store->device->kernels->release(store->device, store->slots[i]);
    }
    if (store->tile) store->device->kernels->release(store->device, store->tile);
    *store = (struct store){0};
}

void store_reset(struct store *store)
{
    const struct optimizer *optimizer = store->optimizer;
    for (int i = 0; i < store->slot_count; i++) {
        const float initial = optimizer->slot[i].initial(store->attributes);
        store->device->kernels->fill(store->device, store->slots[i], initial, store->floats);
    }
    for (int i = 0; i < optimizer->power_count; i++) {
        store->powers[i] = optimizer->power[i].factor(store->attributes);
    }
    store->version = 0;
}

/* The gradient of floats begin .. begin + n - 1. A single one is used where it lies. */
static const float *tile_gradient(const struct store *store, const struct gradients *sum,
                                  int64_t begin, int64_t n)
{
    if (sum->count == 1 && sum->scale == 1.0f) return sum->at[0] + begin;
    const float *sources[WORKERS_MAX];
    for (int i = 0; i < sum->count; i++) sources[i] = sum->at[i] + begin;
    store->device->kernels->sum_ordered(store->device, store->tile, sources, sum->count, sum->scale,
                                        n);
    return store->tile;
}

static void apply_tile(const struct store *store, const float *gradient, float rate, int64_t begin,
                       int64_t n)
{
    struct update update = {
        .value = store->values + begin, .gradient = gradient, .n = n, .rate = rate};
    for (int i = 0; i < store->slot_count; i++) update.slot[i] = store->slots[i] + begin;
    for (int i = 0; i < POWERS_MAX; i++) update.powers[i] = store->powers[i];
    store->optimizer->apply(store->attributes, store->device, &update);
}

/* In float, as TensorFlow multiplies them: a checkpoint holds the very same bits. */
static void advance_powers(struct store *store)
{
    const struct optimizer *optimizer = store->optimizer;
    for (int i = 0; i < optimizer->power_count; i++) {
        store->powers[i] *= optimizer->power[i].factor(store->attributes);
    }
}

void store_apply(struct store *store, const float *const gradients[], int count, float scale,
                 int64_t step, float *snapshot)
{
    assert(count >= 1 && count <= WORKERS_MAX);
    struct device *device = store->device;
    const struct gradients sum = {.at = gradients, .count = count, .scale = scale};
    const float rate = (float)schedule_rate(store->learning_rate, step);
    for (int64_t begin = 0; begin < store->floats; begin += TILE_FLOATS) {
        const int64_t left = store->floats - begin;
        const int64_t n = left < TILE_FLOATS ? left : TILE_FLOATS;
        apply_tile(store, tile_gradient(store, &sum, begin, n), rate, begin, n);
        if (snapshot) device->kernels->copy(device, snapshot + begin, store->values + begin, n);
    }
    advance_powers(store);
    store->version++;
}
