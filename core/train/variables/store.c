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
#include <stdatomic.h>

enum {
    TILE_FLOATS = 8192,
    SEPARATE_TILE_FLOATS = 1 << 22,
    THREAD_FLOATS = 1 << 17, /* fewer are not worth a second thread */
};

/* The sum to apply: scale * (at[0] + at[1] + ...), each a whole block. */
struct gradients {
    const void *const *at;
    int count;
    float scale;
};

/* A ps may hold nothing; its pointers are valid all the same. */
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

/* Section i of the block */
static const struct section *section_at(const struct store *store, int i)
{
    return store->section_count ? &store->sections[i] : &store->whole;
}

/* The section in which a float lies. */
static int section_of(const struct store *store, int64_t at)
{
    int low = 0, high = store->section_count ? store->section_count - 1 : 0;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (section_at(store, middle)->end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct updater updater_of(const struct optimizer_spec *spec, int first_power)
{
    const struct optimizer *optimizer = optimizer_of(spec);
    const void *attributes = spec->optimizer.attributes;
    return (struct updater){
        .optimizer = optimizer,
        .attributes = attributes,
        .learning_rate = optimizer_learning_rate(spec),
        .form = optimizer_form(optimizer, attributes),
        .slot_count = optimizer_slots(optimizer, attributes),
        .first_power = first_power,
    };
}

err store_open(const struct optimizers *optimizers, const struct section *sections,
               int section_count, struct device *device, int64_t floats, float *values,
               struct store *ret)
{
    struct store store = {
        .device = device,
        .sections = sections,
        .section_count = section_count,
        .whole = {.end = floats},
        .floats = floats,
        .values = values,
        .slot_count = optimizers->slot_count,
        .average = optimizers->average,
        .updater_count = optimizers->count,
        .rate_factor = optimizers->rate_factor > 0 ? optimizers->rate_factor : 1,
    };
    for (int i = 0; i < optimizers->count; i++) {
        store.updaters[i] = updater_of(&optimizers->at[i], store.power_count);
        store.power_count += store.updaters[i].optimizer->power_count;
    }
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
    for (int i = 0; i < BLOCK_SLOTS_MAX; i++) {
        if (store->slots[i]) store->device->kernels->release(store->device, store->slots[i]);
    }
    for (int i = 0; i <= BLOCK_SLOTS_MAX; i++) {
        if (store->kept[i]) store->device->kernels->release(store->device, store->kept[i]);
    }
    if (store->sum) store->device->kernels->release(store->device, store->sum);
    if (store->scratch) store->device->kernels->release(store->device, store->scratch);
    *store = (struct store){0};
}

/* The updater of a section; NULL: none, and no slots. */
static const struct updater *updater_at(const struct store *store, const struct section *section)
{
    return section->optimizer == OPTIMIZER_NONE ? NULL : &store->updaters[section->optimizer];
}

/* Arrays beside the values: slots, and the average after them */
static int slots_of(const struct store *store, const struct updater *by)
{
    return by ? by->slot_count + (store->average.decay > 0) : 0;
}

/* NULL: there is no average */
static float *average_of(const struct store *store, const struct updater *by)
{
    return by && store->average.decay > 0 ? store->slots[by->slot_count] : NULL;
}

static void reset_section(struct store *store, const struct updater *by, int64_t begin, int64_t end)
{
    for (int i = 0; by && i < by->slot_count; i++) {
        const float initial = optimizer_initial(by->optimizer, by->attributes, i);
        if (initial == 0.0f && store->version == 0) continue; /* as allocated */
        store->device->kernels->fill(store->device, store->slots[i] + begin, initial, end - begin);
    }
}

void store_reset(struct store *store)
{
    int64_t at = 0;
    for (int i = 0; at < store->floats; i++) {
        const struct section *section = section_at(store, i);
        reset_section(store, updater_at(store, section), at, section->end);
        at = section->end;
    }
    for (int i = 0; i < store->updater_count; i++) {
        const struct updater *by = &store->updaters[i];
        for (int k = 0; k < by->optimizer->power_count; k++)
            store->powers[by->first_power + k] = by->optimizer->power[k].factor(by->attributes);
    }
    store->version = 0;
    store->has_sum = false;
}

void store_begin_averages(struct store *store)
{
    struct device *d = store->device;
    int64_t at = 0;
    for (int i = 0; at < store->floats; i++) {
        const struct section *section = section_at(store, i);
        float *average = average_of(store, updater_at(store, section));
        if (average) d->kernels->copy(d, average + at, store->values + at, section->end - at);
        at = section->end;
    }
}

/* The array with the averages from this float on (values if there are none), and the range for
 * which that holds. */
static const float *averages_from(const struct store *store, int64_t begin, struct range *ret)
{
    const struct section *section = section_at(store, section_of(store, begin));
    const float *average = average_of(store, updater_at(store, section));
    *ret = (struct range){begin, section->end};
    return average ? average : store->values;
}

void store_show_averages(const struct store *store, float *ret)
{
    struct device *d = store->device;
    for (struct range at = {0, 0}; at.end < store->floats;) { /* no section is empty */
        const float *array = averages_from(store, at.end, &at);
        d->kernels->copy(d, ret + at.begin, array + at.begin, range_count(at));
    }
}

/* What all tiles of an update share. */
struct application {
    const struct store *store;
    struct gradients sum;
    void *snapshot;          /* may be NULL */
    bool keeps;              /* keep overwritten values, so that store_take_back can restore them */
    bool was_looked_at;      /* the whole sum is known to be finite */
    int64_t begin, end;      /* floats */
    atomic_bool *is_spoiled; /* the sum of some tile is not finite */
    float rates[OPTIMIZERS_MAX]; /* the rate of each updater */
    float average_share;         /* share by which averages move towards values */
    /* of each updater's rule */
    _Alignas(max_align_t) unsigned char constants[OPTIMIZERS_MAX][CONSTANTS_BYTES_MAX];
};

float *store_array(const struct store *store, int array)
{
    return array == 0 ? store->values : store->slots[array - 1];
}

static void keep(const struct store *store, const struct updater *by, int64_t begin, int64_t n)
{
    for (int i = 0; i <= slots_of(store, by); i++)
        store->device->kernels->copy(store->device, store->kept[i] + begin,
                                     store_array(store, i) + begin, n);
}

/* Sums as kernels do, but `first` has floats and the others numbers of another type. */
static void sum_behind(const struct store *store, const float *first, const void *const sources[],
                       int count, float *ret, int64_t n)
{
    struct device *d = store->device;
    _Alignas(64) float next[TILE_FLOATS];
    const float *sum = first;
    for (int i = 0; i < count; i++) {
        d->kernels->sum_rounded(d, next, (const uint16_t *const *)&sources[i], 1, store->number,
                                1.0f, n);
        d->kernels->sum_ordered(d, ret, (const float *[]){sum, next}, 2, 1.0f, n);
        sum = ret;
    }
}

/* scale * (folded gradients + sources[0] + ...) of one tile */
static void sum_tile(const struct store *store, const struct gradients *sum, int64_t begin,
                     int64_t n, float *ret)
{
    struct device *d = store->device;
    const enum number as = store->number;
    const bool is_rounded = as != NUMBER_FLOAT32;
    const float *folded = store->has_sum ? store->sum + begin : NULL;
    const void *sources[1 + WORKERS_MAX];
    int count = 0;
    if (folded && !is_rounded) sources[count++] = folded;
    for (int i = 0; i < sum->count; i++)
        sources[count++] = (const char *)sum->at[i] + (size_t)begin * number_bytes(as);
    if (!is_rounded) {
        d->kernels->sum_ordered(d, ret, (const float *const *)sources, count, sum->scale, n);
    } else if (!folded) {
        d->kernels->sum_rounded(d, ret, (const uint16_t *const *)sources, count, as, sum->scale, n);
    } else {
        sum_behind(store, folded, sources, count, ret, n);
        const float *whole = count ? ret : folded;
        d->kernels->sum_ordered(d, ret, &whole, 1, sum->scale, n);
    }
}

/* The gradient of floats begin .. begin + n - 1, in memory that no worker can write: so what was
 * checked is what is applied, even if a worker writes to its window meanwhile. */
static const float *tile_gradient(const struct application *a, int64_t begin, int64_t n,
                                  float *scratch)
{
    struct device *d = a->store->device;
    const struct gradients *sum = &a->sum;
    const bool is_one = sum->count == 1 && sum->scale == 1.0f && a->store->number == NUMBER_FLOAT32;
    if (is_one && d->is_separate) return (const float *)sum->at[0] + begin; /* not a window */
    sum_tile(a->store, sum, begin, n, scratch);
    return scratch;
}

/* scratch: memory for n floats, overwritten. */
static void show(const struct store *store, void *snapshot, int64_t begin, int64_t n,
                 float *scratch)
{
    const struct kernels *kernels = store->device->kernels;
    const float *values = store->values + begin;
    if (store->shown == NUMBER_FLOAT32) {
        kernels->copy(store->device, (float *)snapshot + begin, values, n);
        return;
    }
    kernels->fill(store->device, scratch, 0.0f, n); /* no residual */
    kernels->round_off(store->device, (uint16_t *)snapshot + begin, scratch, values, store->shown,
                       n);
}

/* at -= (at - towards) * share */
static void move_some(struct device *d, float *at, float share, const float *towards, int64_t n)
{
    d->kernels->scale(d, at, 1 - share, n);
    d->kernels->axpy(d, at, share, towards, n);
}

/* Updates floats of one section by their gradients; NULL: no update. */
static void update_some(const struct application *a, const struct section *section, int64_t begin,
                        int64_t n, const float *gradient)
{
    const struct store *store = a->store;
    const struct updater *by = updater_at(store, section);
    if (a->keeps) keep(store, by, begin, n);
    if (!by && gradient && section->moving > 0)
        move_some(store->device, store->values + begin, section->moving, gradient, n);
    if (!by || !gradient) return;
    struct update update = {
        .rule = by->optimizer->rule,
        .constants = a->constants[section->optimizer],
        .value = store->values + begin,
        .gradient = gradient,
        .form = by->form,
        .decay = (float)(a->rates[section->optimizer] * section->decay),
    };
    for (int i = 0; i < by->slot_count; i++) update.slot[i] = store->slots[i] + begin;
    store->device->kernels->update(store->device, &update, n);
    float *average = average_of(store, by);
    if (average)
        move_some(store->device, average + begin, a->average_share, store->values + begin, n);
}

/* How many floats at the front have gradients; a window may hold anything for the frozen ones
 * behind them. */
static int64_t moved_floats(const struct store *store)
{
    return sections_moved(store->sections, store->section_count, store->floats);
}

static int64_t count_moved(const struct store *store, int64_t begin, int64_t n)
{
    const int64_t left = moved_floats(store) - begin;
    return left < 0 ? 0 : left < n ? left : n;
}

/* The sum is checked while it is in the first cache. If a gradient is not finite, neither is the
 * sum. */
static void apply_tile(const struct application *a, int64_t begin, int64_t n, float *scratch)
{
    const struct store *store = a->store;
    const float *gradient = tile_gradient(a, begin, n, scratch);
    const bool is_finite =
        a->was_looked_at ||
        store->device->kernels->all_finite(store->device, gradient, count_moved(store, begin, n));
    int64_t at = begin;
    if (!is_finite) *a->is_spoiled = true;
    for (int i = section_of(store, begin); at < begin + n; i++) {
        const struct section *section = section_at(store, i);
        const int64_t end = section->end < begin + n ? section->end : begin + n;
        update_some(a, section, at, end - at, is_finite ? gradient + (at - begin) : NULL);
        at = end;
    }
    if (a->snapshot) show(store, a->snapshot, begin, n, scratch);
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

/* Whether the sum is finite if its only source is: the scale does not enlarge it. */
static bool is_no_larger(const struct application *a)
{
    const struct gradients *sum = &a->sum;
    return sum->count == 1 && sum->scale <= 1 && a->store->number == NUMBER_FLOAT32;
}

/* For a device whose kernels run asynchronously: queues the tiles in order. Each check has to be
 * waited for, so there is at most one, before anything changes if possible, or none if the
 * gradients were checked elsewhere. */
static void apply_queued(struct application *a)
{
    const struct store *store = a->store;
    struct device *d = store->device;
    const int64_t tile = tile_floats(d, store->floats), last = store->floats;
    const struct finite_floats known = d->finite;
    d->finite = (struct finite_floats){0}; /* valid only once: the next gradients replace these */
    if (is_no_larger(a)) {
        a->was_looked_at = (known.at == a->sum.at[0] && known.count >= moved_floats(store)) ||
                           d->kernels->all_finite(d, a->sum.at[0], moved_floats(store));
        *a->is_spoiled = !a->was_looked_at;
        if (*a->is_spoiled) return;
    }
    for (int64_t at = 0; at < last; at += tile)
        apply_tile(a, at, last - at < tile ? last - at : tile, store->scratch);
}

/* In float, as in TensorFlow, so that checkpoints have the same bits. */
static void advance_powers(struct store *store)
{
    for (int i = 0; i < store->updater_count; i++) {
        const struct updater *by = &store->updaters[i];
        for (int k = 0; k < by->optimizer->power_count; k++)
            store->powers[by->first_power + k] *= by->optimizer->power[k].factor(by->attributes);
    }
}

struct juncture store_juncture(const struct store *store, int updater, int64_t step)
{
    const struct updater *by = &store->updaters[updater];
    const double rate = store->rate_factor * schedule_rate(by->learning_rate, step);
    return (struct juncture){
        .rate = (float)rate, .powers = store->powers + by->first_power, .step = step};
}

static void derive(const struct store *store, int64_t step, struct application *a)
{
    a->average_share = average_share(&store->average, step);
    for (int i = 0; i < store->updater_count; i++) {
        const struct updater *by = &store->updaters[i];
        const struct juncture now = store_juncture(store, i, step);
        a->rates[i] = now.rate;
        by->optimizer->derive(by->attributes, &now, a->constants[i]);
    }
}

static err apply(const struct store *store, struct application *a, int64_t step, struct range range)
{
    atomic_bool is_spoiled = false;
    assert(a->sum.count >= !store->has_sum && a->sum.count <= WORKERS_MAX);
    if (range_is_empty(range)) return OK;
    derive(store, step, a);
    a->is_spoiled = &is_spoiled;
    a->begin = range.begin;
    a->end = range.end;
    if (store->device->is_separate)
        apply_queued(a);
    else
        store->device->kernels->spread(store->device, (a->end - a->begin) / LAYOUT_ALIGN,
                                       THREAD_FLOATS / LAYOUT_ALIGN, apply_part, a);
    return is_spoiled ? fail(ERR_NUMBER, "a gradient is not finite") : OK;
}

err store_apply(struct store *store, const void *const gradients[], int count, float scale,
                int64_t step, void *snapshot)
{
    struct application application = {
        .store = store,
        .sum = {.at = gradients, .count = count, .scale = scale},
        .snapshot = snapshot,
    };
    int64_t at = 0;
    for (int i = 0; i < store->advanced_count; at = store->advanced[i++].end)
        TRY(apply(store, &application, step, (struct range){at, store->advanced[i].begin}));
    TRY(apply(store, &application, step, (struct range){at, store->floats}));
    advance_powers(store);
    store->advanced_count = 0;
    store->has_sum = false;
    store->version++;
    return OK;
}

/* What all tiles share when gradients are summed ahead of an update. */
struct folding {
    const struct store *store;
    struct gradients more;
    atomic_bool *is_spoiled;
};

/* In one thread, as apply_part. A window is read only once, as its worker may write to it. */
static void fold_part(const void *arguments, int64_t begin, int64_t end)
{
    const struct folding *f = arguments;
    struct device *d = f->store->device;
    const int64_t last = end * LAYOUT_ALIGN;
    for (int64_t at = begin * LAYOUT_ALIGN; at < last; at += TILE_FLOATS) {
        const int64_t n = last - at < TILE_FLOATS ? last - at : TILE_FLOATS;
        float *sum = f->store->sum + at;
        sum_tile(f->store, &f->more, at, n, sum);
        if (!d->kernels->all_finite(d, sum, count_moved(f->store, at, n))) *f->is_spoiled = true;
    }
}

err store_fold(struct store *store, const void *const gradients[], int count)
{
    struct device *d = store->device;
    atomic_bool is_spoiled = false;
    const struct folding f = {store, {gradients, count, 1.0f}, &is_spoiled};
    assert(!d->is_separate && !store->advanced_count && count >= 1 && count <= WORKERS_MAX);
    if (!store->sum) TRY(d->kernels->allocate(d, bytes_of(store->floats), (void **)&store->sum));
    d->kernels->spread(d, store->floats / LAYOUT_ALIGN, THREAD_FLOATS / LAYOUT_ALIGN, fold_part,
                       &f);
    store->has_sum = !is_spoiled;
    return is_spoiled ? fail(ERR_NUMBER, "a gradient is not finite") : OK;
}

void store_unfold(struct store *store)
{
    store->has_sum = false;
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

/* Adjacent ranges are merged. */
static void note_advanced(struct store *store, struct range range)
{
    struct range *const at = store->advanced;
    int i = store->advanced_count;
    for (; i > 0 && at[i - 1].begin > range.begin; i--) at[i] = at[i - 1];
    assert(store->advanced_count < ADVANCED_MAX && (i == 0 || at[i - 1].end <= range.begin));
    at[i] = range;
    store->advanced_count++;
    int kept = 0;
    for (int k = 1; k < store->advanced_count; k++) {
        assert(at[kept].end <= at[k].begin);
        if (at[kept].end == at[k].begin)
            at[kept].end = at[k].end;
        else
            at[++kept] = at[k];
    }
    store->advanced_count = kept + 1;
}

err store_advance(struct store *store, const void *const gradients[], int count, float scale,
                  int64_t step, struct range range, void *snapshot)
{
    struct application application = {
        .store = store,
        .sum = {.at = gradients, .count = count, .scale = scale},
        .snapshot = snapshot,
        .keeps = true,
    };
    assert(range.begin >= 0 && range.begin < range.end && range.end <= store->floats);
    assert(range.begin % LAYOUT_ALIGN == 0 && range.end % LAYOUT_ALIGN == 0);
    assert(!store->device->is_separate);
    TRY(open_kept(store));
    note_advanced(store, range); /* even if these floats will be taken back */
    return apply(store, &application, step, range);
}

struct showing {
    const struct store *store;
    void *snapshot;
    int64_t tile;
    int64_t begin; /* of show_part */
};

static void show_tiles(const struct showing *s, int64_t begin, int64_t end, float *scratch)
{
    for (int64_t at = begin; at < end; at += s->tile)
        show(s->store, s->snapshot, at, end - at < s->tile ? end - at : s->tile, scratch);
}

/* In one thread, as apply_part */
static void show_part(const void *arguments, int64_t begin, int64_t end)
{
    _Alignas(64) float scratch[TILE_FLOATS];
    const struct showing *s = arguments;
    show_tiles(s, s->begin + begin * LAYOUT_ALIGN, s->begin + end * LAYOUT_ALIGN, scratch);
}

static void show_range(const struct store *store, void *snapshot, struct range range)
{
    struct device *device = store->device;
    const struct showing s = {store, snapshot, tile_floats(device, store->floats), range.begin};
    if (device->is_separate)
        show_tiles(&s, range.begin, range.end, store->scratch);
    else
        device->kernels->spread(device, range_count(range) / LAYOUT_ALIGN,
                                THREAD_FLOATS / LAYOUT_ALIGN, show_part, &s);
}

void store_show(const struct store *store, void *snapshot)
{
    show_range(store, snapshot, (struct range){0, store->floats});
}

static void take_range_back(const struct store *store, struct range range)
{
    int64_t at = range.begin;
    for (int i = section_of(store, at); at < range.end; i++) {
        const struct section *section = section_at(store, i);
        const int64_t end = section->end < range.end ? section->end : range.end;
        const struct updater *by = updater_at(store, section);
        for (int k = 0; k <= slots_of(store, by); k++)
            store->device->kernels->copy(store->device, store_array(store, k) + at,
                                         store->kept[k] + at, end - at);
        at = end;
    }
}

void store_take_back(struct store *store, void *snapshot)
{
    for (int i = 0; i < store->advanced_count; i++) {
        take_range_back(store, store->advanced[i]);
        if (snapshot) show_range(store, snapshot, store->advanced[i]);
    }
    store->advanced_count = 0;
}
