/* store.c - one update of a block, tile by tile.
 *
 * Threads share the tiles. A tile is small enough that gradients, values and slots of it stay in
 * the first caches from the sum over the workers until the snapshot, so that each of them crosses
 * the memory bus once. A device with memory of its own has large tiles, since each kernel costs a
 * launch there, and they only bound its scratch memory. Every update rule is elementwise, so
 * results do not depend on where tiles or blocks end.
 */
#include "core/train/variables/store.h"

#include <assert.h>

#include "core/train/variables/layout.h"

enum {
    TILE_FLOATS = 8192,
    SEPARATE_TILE_FLOATS = 1 << 22,
    THREAD_FLOATS = 1 << 17, /* less is not worth a second thread */
};

/* What is to be summed: scale * (at[0] + at[1] + ...), each a whole block. */
struct gradients {
    const float *const *at;
    int count;
    float scale;
};

/* A ps with fewer variables than tasks may hold nothing; its pointers are valid all the same. */
static size_t bytes_of(int64_t floats)
{
    return (size_t)(floats > 0 ? floats : LAYOUT_ALIGN) * sizeof(float);
}

static int64_t tile_floats(const struct device *device, int64_t floats)
{
    const int64_t largest = device->is_separate ? SEPARATE_TILE_FLOATS : TILE_FLOATS;
    return floats < largest ? floats : largest;
}

size_t store_scratch_bytes(const struct device *device, int64_t floats)
{
    return device->is_separate ? bytes_of(tile_floats(device, floats)) : 0;
}

static err allocate(struct store *store)
{
    struct device *device = store->device;
    const size_t scratch = store_scratch_bytes(device, store->floats);
    if (scratch) TRY(device->kernels->allocate(device, scratch, (void **)&store->scratch));
    for (int i = 0; i < store->slot_count; i++) {
        TRY(device->kernels->allocate(device, bytes_of(store->floats), (void **)&store->slots[i]));
    }
    return OK;
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
        .slot_count = optimizer_slots(optimizer, spec->optimizer.attributes),
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
    for (int i = 0; i <= SLOTS_MAX; i++) {
        if (store->kept[i]) store->device->kernels->release(store->device, store->kept[i]);
    }
    if (store->scratch) store->device->kernels->release(store->device, store->scratch);
    *store = (struct store){0};
}

void store_reset(struct store *store)
{
    const struct optimizer *optimizer = store->optimizer;
    for (int i = 0; i < store->slot_count; i++) {
        const float initial = optimizer_initial(optimizer, store->attributes, i);
        if (initial == 0.0f && store->version == 0) continue; /* as allocated */
        store->device->kernels->fill(store->device, store->slots[i], initial, store->floats);
    }
    for (int i = 0; i < optimizer->power_count; i++) {
        store->powers[i] = optimizer->power[i].factor(store->attributes);
    }
    store->version = 0;
}

/* One update: all tiles have this in common. */
struct application {
    const struct store *store;
    struct gradients sum;
    const void *constants; /* of the rule */
    float *snapshot;       /* or NULL */
    bool keeps;            /* what was there */
    int64_t begin, end;    /* floats */
};

float *store_array(const struct store *store, int array)
{
    return array == 0 ? store->values : store->slots[array - 1];
}

static void keep_tile(const struct store *store, int64_t begin, int64_t n)
{
    for (int i = 0; i <= store->slot_count; i++)
        store->device->kernels->copy(store->device, store->kept[i] + begin,
                                     store_array(store, i) + begin, n);
}

/* The gradient of floats begin .. begin + n - 1. A single one is used where it lies. */
static const float *tile_gradient(const struct application *a, int64_t begin, int64_t n,
                                  float *scratch)
{
    struct device *device = a->store->device;
    if (a->sum.count == 1 && a->sum.scale == 1.0f) return a->sum.at[0] + begin;
    const float *sources[WORKERS_MAX];
    for (int i = 0; i < a->sum.count; i++) sources[i] = a->sum.at[i] + begin;
    device->kernels->sum_ordered(device, scratch, sources, a->sum.count, a->sum.scale, n);
    return scratch;
}

static void apply_tile(const struct application *a, int64_t begin, int64_t n, float *scratch)
{
    const struct store *store = a->store;
    struct update update = {
        .rule = store->optimizer->rule,
        .constants = a->constants,
        .value = store->values + begin,
        .gradient = tile_gradient(a, begin, n, scratch),
        .form = optimizer_form(store->optimizer, store->attributes),
    };
    for (int i = 0; i < store->slot_count; i++) update.slot[i] = store->slots[i] + begin;
    if (a->keeps) keep_tile(store, begin, n);
    store->device->kernels->update(store->device, &update, n);
    if (a->snapshot)
        store->device->kernels->copy(store->device, a->snapshot + begin, update.value, n);
}

/* In one thread: floats 16 * begin to 16 * end behind the application's first, so that no two
 * threads share a cache line. */
static void apply_part(const void *arguments, int64_t begin, int64_t end)
{
    const struct application *a = arguments;
    _Alignas(64) float scratch[TILE_FLOATS];
    const int64_t last = a->begin + end * LAYOUT_ALIGN;
    for (int64_t at = a->begin + begin * LAYOUT_ALIGN; at < last; at += TILE_FLOATS)
        apply_tile(a, at, last - at < TILE_FLOATS ? last - at : TILE_FLOATS, scratch);
}

/* Where kernels run by themselves: in their order. */
static void apply_queued(const struct application *a)
{
    const struct store *store = a->store;
    const int64_t tile = tile_floats(store->device, store->floats), last = store->floats;
    for (int64_t at = 0; at < last; at += tile)
        apply_tile(a, at, last - at < tile ? last - at : tile, store->scratch);
}

/* In float, as TensorFlow multiplies them: a checkpoint holds the very same bits. */
static void advance_powers(struct store *store)
{
    const struct optimizer *optimizer = store->optimizer;
    for (int i = 0; i < optimizer->power_count; i++) {
        store->powers[i] *= optimizer->power[i].factor(store->attributes);
    }
}

static void apply(const struct store *store, struct application *a, int64_t step)
{
    _Alignas(max_align_t) unsigned char constants[CONSTANTS_BYTES_MAX];
    const struct juncture now = {.rate = (float)schedule_rate(store->learning_rate, step),
                                 .powers = store->powers,
                                 .step = step};
    assert(a->sum.count >= 1 && a->sum.count <= WORKERS_MAX);
    store->optimizer->derive(store->attributes, &now, constants);
    a->constants = constants;
    if (store->device->is_separate)
        apply_queued(a);
    else
        store->device->kernels->spread(store->device, (a->end - a->begin) / LAYOUT_ALIGN,
                                       THREAD_FLOATS / LAYOUT_ALIGN, apply_part, a);
}

void store_apply(struct store *store, const float *const gradients[], int count, float scale,
                 int64_t step, float *snapshot)
{
    struct application application = {
        .store = store,
        .sum = {.at = gradients, .count = count, .scale = scale},
        .snapshot = snapshot,
        .begin = store->advanced,
        .end = store->floats,
    };
    assert(!snapshot || !store->advanced);
    apply(store, &application, step);
    advance_powers(store);
    store->advanced = 0;
    store->version++;
}

static err open_kept(struct store *store)
{
    struct device *device = store->device;
    for (int i = 0; i <= store->slot_count; i++)
        if (!store->kept[i])
            TRY(device->kernels->allocate(device, bytes_of(store->floats),
                                          (void **)&store->kept[i]));
    return OK;
}

err store_advance(struct store *store, const float *const gradients[], int count, float scale,
                  int64_t step, int64_t end)
{
    struct application application = {
        .store = store,
        .sum = {.at = gradients, .count = count, .scale = scale},
        .keeps = true,
        .begin = store->advanced,
        .end = end,
    };
    assert(end >= store->advanced && end <= store->floats && end % LAYOUT_ALIGN == 0);
    assert(!store->device->is_separate);
    TRY(open_kept(store));
    apply(store, &application, step);
    store->advanced = end;
    return OK;
}

void store_take_back(struct store *store)
{
    for (int i = 0; i <= store->slot_count && store->advanced; i++)
        store->device->kernels->copy(store->device, store_array(store, i), store->kept[i],
                                     store->advanced);
    store->advanced = 0;
}
