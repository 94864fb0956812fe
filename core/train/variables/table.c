/* table.c - rows in reserved address space, which gets memory page by page.
 *
 * Values and each slot are separate arrays: a gather reads only values. Rows are anywhere in them,
 * so their cost is that of access to memory: lines are prefetched some rows ahead, and access to
 * page tables counts too. Pages are small until a good part of the rows of a region exists; then
 * the region becomes one huge page: huge ones from the beginning would be zeroed by the thousand in
 * the first steps, for a few rows each.
 */
#include "core/train/variables/table.h"

#include "core/train/variables/aside.h"
#include "core/train/variables/changes.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/keys.h"
#include "core/train/variables/mod.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    REGION_BYTES = 2 << 20, /* a huge page */
    REGIONS_ADVISED = 64,
    REGION_PART = 4,       /* a region becomes a huge page when 1 / REGION_PART of its rows exist */
    REGION_HUGE = 1 << 30, /* added to the region's count of rows after that */
    ROWS_AHEAD = 32,       /* how far ahead values are prefetched */
    BITS_AHEAD = 2 * ROWS_AHEAD,
    FETCHED_MAX = 128, /* floats of a row that are prefetched; the processor prefetches the rest of
                          a long row itself */
    LINE_FLOATS = 16,
    SECOND_CACHE = 2, /* of a prefetch: has room for more lines under way than the first cache */
    WORD_ROWS = 64,
    SAVED_AT_ONCE = 1 << 14,     /* floats */
    THREAD_FLOATS = 1 << 15,     /* fewer are not worth a second thread */
    PENALIZED_AT_ONCE = 1 << 18, /* floats */
    ADVICE_COLLAPSE = 25,        /* MADV_COLLAPSE of Linux 6.1, which older headers lack */
};

struct table {
    struct table_description is;
    struct growing *growing; /* the table, if it grows; NULL: it is in what follows */
    struct updater by;
    struct device *device;
    int64_t width;
    int array_count;
    float *arrays[1 + SLOTS_MAX]; /* [length, width]: values, slots */
    _Atomic uint64_t *bits;       /* [length] which rows exist */
    _Atomic uint64_t *full;       /* a bit for each word of `bits`: all of its rows exist */
    _Atomic int32_t *regions;     /* [regions of the arrays] how many of their rows exist */
    int64_t region_count;
    _Atomic int64_t made;
    atomic_int ripe;    /* number of regions with enough rows to become huge pages */
    int64_t last_grown; /* index of a region */
    char *memory;       /* the mapping that contains all of this */
    size_t bytes;

    struct aside aside; /* rows as they were when a save began */
    struct changes changes;

    /* With a penalty on all rows: memory for gradients of some rows, and for their numbers */
    float *penalized;
    int64_t *penalized_rows;
};

/* ---- memory ---- */

static size_t region_bytes(size_t bytes)
{
    return (bytes + REGION_BYTES - 1) / REGION_BYTES * REGION_BYTES;
}

/* Makes one mapping, whose regions are aligned for huge pages. */
static err map(struct table *t)
{
    const size_t floats = (size_t)t->is.length * (size_t)t->width;
    const size_t array = region_bytes(floats * sizeof(float));
    const size_t bits = region_bytes((size_t)t->is.length / 8 + sizeof *t->bits);
    t->region_count = (int64_t)(array / REGION_BYTES);
    const size_t counts = region_bytes((size_t)t->region_count * sizeof *t->regions);
    const size_t full = region_bytes((size_t)t->is.length / 8 / WORD_ROWS + sizeof *t->full);
    t->bytes = REGION_BYTES + array * (size_t)t->array_count + bits + full + counts;
    t->memory = mmap(NULL, t->bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (t->memory == MAP_FAILED) {
        t->memory = NULL;
        return fail(ERR_MEMORY, "table %s: no room for %lld rows of %lld numbers, %d times",
                    t->is.name, (long long)t->is.length, (long long)t->width, t->array_count);
    }
    madvise(t->memory, t->bytes, MADV_NOHUGEPAGE);
    char *at = t->memory + (REGION_BYTES - (uintptr_t)t->memory % REGION_BYTES) % REGION_BYTES;
    for (int i = 0; i < t->array_count; i++, at += array) t->arrays[i] = (float *)at;
    t->bits = (void *)at;
    t->full = (void *)(at + bits);
    t->regions = (void *)(at + bits + full);
    return OK;
}

struct table_description table_describe(const struct slice *slice, const struct table_spec *table)
{
    return (struct table_description){
        .name = slice->name,
        .shape = slice->shape,
        .start = slice->start,
        .length = slice->length,
        .initializer = table->initializer,
        .initializer_attributes = table->initializer_attributes,
        .key = table->key,
        .growth = table->growth,
        .mod = slice->mod,
        .penalty = table->penalty,
    };
}

/* An initializer fails for a shape with any element: tries one. */
static err check(const struct table_description *is)
{
    const struct initial one = {.shape = &is->shape, .key = is->key, .count = 1};
    float value;
    if (is->initializer->is_whole)
        return fail(ERR_INPUT, "table %s: %s makes all rows at once", is->name,
                    is->initializer->object.name);
    err e = is->initializer->fill(is->initializer_attributes, &one, &value);
    return e ? fail_prefix(e, "table %s", is->name) : OK;
}

static int64_t penalized_at_once(const struct table *t)
{
    return PENALIZED_AT_ONCE / t->width + 1;
}

static err make_penalized(struct table *t)
{
    const size_t rows = (size_t)penalized_at_once(t);
    t->penalized = malloc(rows * (size_t)t->width * sizeof(float));
    t->penalized_rows = malloc(rows * sizeof *t->penalized_rows);
    return t->penalized && t->penalized_rows
               ? OK
               : fail(ERR_MEMORY, "table %s: no memory for its penalty", t->is.name);
}

err table_open(const struct table_description *is, const struct updater *by, struct device *device,
               struct table **ret)
{
    assert(is->shape.rank == 2 && is->start >= 0 && is->length >= 0);
    assert(is->growth || is->start + is->length <= is->shape.dim[0]);
    assert(!device->is_separate);
    TRY(check(is));
    static const struct updater none = {0};
    if (!by) by = &none;
    if (is->growth && by->optimizer && by->optimizer->sweeps)
        return fail(ERR_INPUT, "table %s: it grows, and %s changes all rows at each step", is->name,
                    by->optimizer->object.name);
    struct table *t = calloc(1, sizeof *t);
    if (!t) return fail(ERR_MEMORY, "table %s: no memory", is->name);
    t->is = *is;
    t->by = *by;
    t->device = device;
    t->width = is->shape.dim[1];
    t->array_count = 1 + by->slot_count;
    err e = is->growth ? growing_open(is, by, device, &t->growing) : map(t);
    if (!e && by->optimizer && !regularizer_is_none(&is->penalty)) e = make_penalized(t);
    if (e) {
        table_close(t);
        return e;
    }
    *ret = t;
    return OK;
}

void table_close(struct table *t)
{
    if (!t) return;
    growing_close(t->growing);
    if (t->memory) munmap(t->memory, t->bytes);
    aside_end(&t->aside);
    changes_end(&t->changes);
    free(t->penalized);
    free(t->penalized_rows);
    free(t);
}

struct growing *table_growing(const struct table *t)
{
    return t->growing;
}

static size_t row_bytes(const struct table *t, int64_t count)
{
    return (size_t)(count * t->width) * sizeof(float);
}

/* ---- creating rows; `row` counts from the first of the slice ---- */

static bool has_bit(const _Atomic uint64_t *bits, int64_t i)
{
    const uint64_t word = atomic_load_explicit(&bits[i / WORD_ROWS], memory_order_relaxed);
    return word >> (i % WORD_ROWS) & 1;
}

/* Returns the word after the change. */
static uint64_t set_bit(_Atomic uint64_t *bits, int64_t i)
{
    const uint64_t bit = UINT64_C(1) << (i % WORD_ROWS);
    return atomic_fetch_or_explicit(&bits[i / WORD_ROWS], bit, memory_order_relaxed) | bit;
}

/* Looks first whether the whole word is full, which stays in the caches: for most rows of an old
 * table their own bit would cost a cache miss. */
static bool is_made(const struct table *t, int64_t row)
{
    return has_bit(t->full, row / WORD_ROWS) || has_bit(t->bits, row);
}

static void initial_stretch(const struct table *t, int64_t id, int64_t count, float *ret)
{
    const struct initial of = {
        .shape = &t->is.shape, .key = t->is.key, .first = id * t->width, .count = count * t->width};
    const err e = t->is.initializer->fill(t->is.initializer_attributes, &of, ret);
    assert(!e);
    (void)e;
}

/* The initial values that the whole variable would have there, in the order of its ids */
static void initial_values(const struct table *t, int64_t row, int64_t count, float *ret)
{
    const int64_t first = t->is.start + row, at_once = t->is.mod ? 1 : count;
    for (int64_t i = 0; i < count; i += at_once)
        initial_stretch(t, table_id(t, first + i), at_once, ret + i * t->width);
}

static void initial_array(const struct table *t, int array, int64_t row, int64_t count, float *ret)
{
    if (array == 0) {
        initial_values(t, row, count, ret);
        return;
    }
    const float initial = optimizer_initial(t->by.optimizer, t->by.attributes, array - 1);
    for (int64_t i = 0; i < count * t->width; i++) ret[i] = initial;
}

/* How many rows of a region must exist for a huge page */
static int32_t enough_rows(const struct table *t)
{
    const size_t rows = REGION_BYTES / REGION_PART / row_bytes(t, 1);
    return rows > 1 ? (int32_t)rows : 1;
}

static void count_made(struct table *t, int64_t row)
{
    _Atomic int32_t *region = &t->regions[row_bytes(t, row) / REGION_BYTES];
    const int32_t before = atomic_fetch_add_explicit(region, 1, memory_order_relaxed);
    if (before + 1 == enough_rows(t)) t->ripe++;
    atomic_fetch_add_explicit(&t->made, 1, memory_order_relaxed);
}

/* except: an array that the caller will fill, or -1 */
static void make_row(struct table *t, int64_t row, int except)
{
    for (int i = 0; i < t->array_count; i++)
        if (i != except) initial_array(t, i, row, 1, t->arrays[i] + row * t->width);
    if (set_bit(t->bits, row) == UINT64_MAX) set_bit(t->full, row / WORD_ROWS);
    count_made(t, row);
}

/* Advises Linux for aligned groups of regions, to limit the number of mappings. */
static void collapse(struct table *t, int64_t region)
{
    const int64_t first = region / REGIONS_ADVISED * REGIONS_ADVISED;
    const int64_t left = t->region_count - first;
    const size_t advised = (size_t)(left < REGIONS_ADVISED ? left : REGIONS_ADVISED) * REGION_BYTES;
    for (int i = 0; i < t->array_count; i++) {
        char *array = (char *)t->arrays[i];
        madvise(array + first * REGION_BYTES, advised, MADV_HUGEPAGE);
        madvise(array + region * REGION_BYTES, REGION_BYTES, ADVICE_COLLAPSE);
    }
}

/* Replaces the small pages of a region by a huge one, at most one region per call, as this copies
 * it. If Linux refuses, the region stays as it is. */
static void grow_pages(struct table *t)
{
    if (t->ripe == 0) return;
    t->ripe--;
    for (int64_t i = 0; i < t->region_count; i++) {
        t->last_grown = (t->last_grown + 1) % t->region_count;
        _Atomic int32_t *made = &t->regions[t->last_grown];
        if (*made < enough_rows(t) || *made >= REGION_HUGE) continue;
        *made += REGION_HUGE;
        collapse(t, t->last_grown);
        return;
    }
}

/* ---- rows of a message ---- */

struct table_reading {
    struct table *table;
    const int64_t *rows;
    float *ret; /* NULL: rows are only created */
};

/* Always inlined: the compiler takes these for functions without effect, and would drop calls. */
static inline __attribute__((always_inline)) void fetch_bits(const struct table_reading *r,
                                                             int64_t i)
{
    const struct table *t = r->table;
    const int64_t word = (r->rows[i] - t->is.start) / WORD_ROWS;
    if (!has_bit(t->full, word)) __builtin_prefetch(&t->bits[word]);
}

static inline __attribute__((always_inline)) void fetch_row(const struct table_reading *r,
                                                            int64_t i)
{
    const struct table *t = r->table;
    const float *row = t->arrays[0] + (r->rows[i] - t->is.start) * t->width;
    const int64_t n = t->width < FETCHED_MAX ? t->width : FETCHED_MAX;
    for (int64_t at = 0; at < n; at += LINE_FLOATS) __builtin_prefetch(row + at, 0, SECOND_CACHE);
}

static void read_rows(const void *arguments, int64_t begin, int64_t end)
{
    const struct table_reading *r = arguments;
    struct table *t = r->table;
    const size_t bytes = row_bytes(t, 1);
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = r->rows[i] - t->is.start;
        if (i + BITS_AHEAD < end) fetch_bits(r, i + BITS_AHEAD);
        if (i + ROWS_AHEAD < end && r->ret) fetch_row(r, i + ROWS_AHEAD);
        if (!is_made(t, row)) make_row(t, row, -1);
        if (r->ret) memcpy(r->ret + i * t->width, t->arrays[0] + row * t->width, bytes);
    }
}

static void make_stretch(const void *arguments, int64_t begin, int64_t end)
{
    const struct table_reading *r = arguments;
    for (int64_t row = begin; row < end; row++)
        if (!is_made(r->table, row)) make_row(r->table, row, -1);
}

static int64_t grain(const struct table *t)
{
    return THREAD_FLOATS / t->width + 1;
}

bool table_has(const struct table *t, const int64_t *rows, int64_t count)
{
    int64_t least = t->is.start;
    for (int64_t i = 0; i < count; i++) {
        if (rows[i] < least || rows[i] >= t->is.start + t->is.length) return false;
        least = rows[i] + 1;
    }
    return true;
}

/* ---- while a checkpoint reads ---- */

/* A row that does not exist is saved with its initial values. */
static void set_row_aside(struct table *t, int64_t row)
{
    float *record = aside_add(&t->aside, row, t->width * t->array_count);
    for (int i = 0; record && i < t->array_count; i++, record += t->width)
        if (is_made(t, row))
            memcpy(record, t->arrays[i] + row * t->width, row_bytes(t, 1));
        else
            initial_array(t, i, row, 1, record);
}

/* rows NULL: all rows of the slice */
static void set_aside(struct table *t, const int64_t *rows, int64_t count)
{
    for (int64_t i = 0; aside_is_on(&t->aside) && i < count; i++)
        set_row_aside(t, rows ? rows[i] - t->is.start : i);
}

void table_save_begin(struct table *t, struct aside_room *room)
{
    if (t->growing)
        growing_save_begin(t->growing, room);
    else
        aside_begin(&t->aside, room, (int64_t)row_bytes(t, t->is.length) * t->array_count);
}

static void read_aside(struct table *t, int64_t row, int64_t at, float *const ret[])
{
    struct aside_record *record = aside_take(&t->aside, row);
    for (int i = 0; record && i < t->array_count; i++)
        memcpy(ret[i] + at * t->width, record->at + i * t->width, row_bytes(t, 1));
    aside_free(&t->aside, record);
}

/* Row `first` goes to index `at` of ret. */
static void read_saved(struct table *t, int64_t first, int64_t count, int64_t at,
                       float *const ret[])
{
    const int64_t row = first - t->is.start;
    for (int i = 0; i < t->array_count; i++) table_read(t, i, first, count, ret[i] + at * t->width);
    for (int64_t i = 0; i < count && t->aside.count; i++) read_aside(t, row + i, at + i, ret);
    aside_has_read(&t->aside, row + count);
}

/* Reads a part at a time, so that threads that change rows wait for no more than that. */
err table_save_read(struct table *t, int64_t first, int64_t count, float *const ret[])
{
    const int64_t most = SAVED_AT_ONCE / t->width + 1;
    for (int64_t at = 0; at < count; at += most) {
        TRY(aside_begin_reading(&t->aside, t->is.name));
        read_saved(t, first + at, count - at < most ? count - at : most, at, ret);
        aside_end_reading(&t->aside);
    }
    return OK;
}

void table_save_over(struct table *t)
{
    if (t->growing)
        growing_save_over(t->growing);
    else
        aside_over(&t->aside);
}

void table_save_end(struct table *t)
{
    if (t->growing) growing_save_end(t->growing);
    aside_end(&t->aside);
}

void table_gather(struct table *t, const int64_t *rows, int64_t count, float *ret)
{
    const struct table_reading reading = {t, rows, ret};
    if (t->growing) {
        growing_gather(t->growing, rows, count, ret);
        return;
    }
    aside_begin_change(&t->aside); /* writing creates rows */
    t->device->kernels->spread(t->device, count, grain(t), read_rows, &reading);
    grow_pages(t);
    aside_end_change(&t->aside);
}

void table_gather_made(struct table *t, const int64_t *rows, int64_t count, float *ret)
{
    if (t->growing)
        growing_gather_made(t->growing, rows, count, ret);
    else
        table_gather(t, rows, count, ret);
}

int64_t table_id(const struct table *t, int64_t row)
{
    return t->growing ? id_of_key(row) : mod_id_of_row(t->is.shape.dim[0], t->is.mod, row);
}

/* ---- changes ---- */

static struct changes *changes_of(struct table *t)
{
    return t->growing ? growing_changes(t->growing) : &t->changes;
}

/* Whether an update changes all rows, because of the optimizer or a penalty */
static bool changes_all_rows(const struct table *t)
{
    return t->by.optimizer->sweeps || t->penalized;
}

static void note_changes(struct table *t, const int64_t *rows, int64_t count)
{
    const bool sweeps = changes_all_rows(t);
    for (int64_t i = 0; t->changes.is_on && i < (sweeps ? t->is.length : count); i++) {
        const int64_t row = sweeps ? i : rows[i] - t->is.start;
        changes_note(&t->changes, row, t->is.start + row);
    }
}

void table_note_changes(struct table *t, int64_t bytes_max)
{
    changes_begin(changes_of(t), bytes_max / ((int64_t)row_bytes(t, 1) + (int64_t)sizeof(int64_t)));
}

static err copy_changes(struct table *t, const struct changes *c, struct table_changes *ret)
{
    ret->count = c->count;
    ret->ids = malloc((size_t)c->count * sizeof *ret->ids + 1);
    ret->rows = malloc(row_bytes(t, c->count) + 1);
    if (!ret->ids || !ret->rows)
        return fail(ERR_MEMORY, "table %s: no memory for %lld rows that changed", t->is.name,
                    (long long)c->count);
    for (int64_t i = 0; i < c->count; i++) ret->ids[i] = table_id(t, c->rows[i]);
    table_gather_made(t, c->rows, c->count, ret->rows);
    return OK;
}

err table_take_changes(struct table *t, struct table_changes *ret)
{
    struct changes *c = changes_of(t);
    *ret = (struct table_changes){0};
    if (c->is_on) changes_sort(c);
    if (!c->is_on)
        return fail(ERR_INPUT, "table %s: %s", t->is.name,
                    c->is_lost ? "more rows have changed than go into a delta"
                               : "it is not known which rows have changed");
    const int64_t most = c->most;
    const err e = copy_changes(t, c, ret);
    if (e) {
        table_changes_free(ret);
        return e;
    }
    changes_begin(c, most);
    return OK;
}

void table_changes_free(struct table_changes *c)
{
    free(c->ids);
    free(c->rows);
    *c = (struct table_changes){0};
}

static int compare_changed(const void *a, const void *b)
{
    const struct changed_row *x = a, *y = b;
    return x->id != y->id ? (x->id > y->id) - (x->id < y->id) : (x->at > y->at) - (x->at < y->at);
}

err table_changes_in_order(const struct table_changes *c, bool by_key, struct changed_row **ret)
{
    struct changed_row *rows = malloc((size_t)c->count * sizeof *rows + 1);
    if (!rows) return fail(ERR_MEMORY, "no memory for %lld changed rows", (long long)c->count);
    for (int64_t i = 0; i < c->count; i++)
        rows[i] = (struct changed_row){by_key ? key_of_id(c->ids[i]) : c->ids[i], i};
    qsort(rows, (size_t)c->count, sizeof *rows, compare_changed);
    *ret = rows;
    return OK;
}

static err check_finite(const struct table *t, const int64_t *rows, int64_t count,
                        const float *gradients)
{
    const int64_t n = count * t->width;
    int64_t i = 0;
    if (t->device->kernels->all_finite(t->device, gradients, n)) return OK;
    while (i < n - 1 && isfinite(gradients[i])) i++;
    return fail(ERR_NUMBER, "table %s: the gradient of row %lld is not finite", t->is.name,
                (long long)table_id(t, rows[i / t->width]));
}

/* Computes the penalty's gradients for these rows, and adds the pushed ones, which it takes from
 * index *next on */
static void penalize(struct table *t, const struct row_update *came, int64_t first, int64_t count,
                     int64_t *next)
{
    const struct regularizer *penalty = &t->is.penalty;
    memset(t->penalized, 0, row_bytes(t, count));
    for (int64_t i = 0; i < count; i++) t->penalized_rows[i] = t->is.start + first + i;
    for (; *next < came->count && came->ids[*next] < t->is.start + first + count; ++*next)
        memcpy(t->penalized + (came->ids[*next] - t->is.start - first) * t->width,
               came->gradient + *next * t->width, row_bytes(t, 1));
    t->device->kernels->regularize(t->device, t->penalized, t->arrays[0] + first * t->width,
                                   (float)penalty->l1, (float)(2 * penalty->l2), count * t->width);
}

/* With a penalty every row has a gradient. */
static void update_penalized(struct table *t, const struct row_update *came)
{
    const int64_t at_once = penalized_at_once(t);
    struct row_update part = *came;
    int64_t next = 0;
    part.sweeps = false;
    part.ids = t->penalized_rows;
    part.gradient = t->penalized;
    for (int64_t first = 0; first < t->is.length; first += part.count) {
        part.count = t->is.length - first < at_once ? t->is.length - first : at_once;
        penalize(t, came, first, part.count, &next);
        t->device->kernels->update_rows(t->device, &part);
    }
}

err table_apply(struct table *t, const int64_t *rows, int64_t count, const float *gradients,
                const int64_t *times, const struct juncture *now)
{
    const struct kernels *kernels = t->device->kernels;
    const struct optimizer *optimizer = t->by.optimizer;
    const struct table_reading reading = {.table = t, .rows = rows};
    _Alignas(max_align_t) unsigned char constants[CONSTANTS_BYTES_MAX];
    TRY(check_finite(t, rows, count, gradients));
    if (!optimizer) return OK;
    if (t->growing) return growing_apply(t->growing, rows, count, gradients, times, now);
    aside_begin_change(&t->aside);
    note_changes(t, rows, count);
    const bool sweeps = changes_all_rows(t);
    set_aside(t, sweeps ? NULL : rows, sweeps ? t->is.length : count);
    if (sweeps && t->made < t->is.length)
        kernels->spread(t->device, t->is.length, grain(t), make_stretch, &reading);
    else
        kernels->spread(t->device, count, grain(t), read_rows, &reading);
    optimizer->derive(t->by.attributes, now, constants);
    struct row_update update = {.rule = optimizer->rule,
                                .constants = constants,
                                .value = t->arrays[0],
                                .ids = rows,
                                .gradient = gradients,
                                .count = count,
                                .width = t->width,
                                .start = t->is.start,
                                .rows = t->is.length,
                                .sweeps = optimizer->sweeps,
                                .form = t->by.form,
                                .decay = (float)(now->rate * t->by.decay)};
    for (int i = 0; i < t->by.slot_count; i++) update.slot[i] = t->arrays[1 + i];
    if (t->penalized)
        update_penalized(t, &update);
    else
        kernels->update_rows(t->device, &update);
    grow_pages(t);
    aside_end_change(&t->aside);
    return OK;
}

/* ---- runs of rows ---- */

/* End of the run of rows that, like the first one, all exist or all do not */
static int64_t run_end(const struct table *t, int64_t row, int64_t end)
{
    const bool first = is_made(t, row);
    do row++;
    while (row < end && is_made(t, row) == first);
    return row;
}

void table_read(const struct table *t, int array, int64_t first, int64_t count, float *ret)
{
    const int64_t begin = first - t->is.start, last = begin + count;
    assert(!t->growing && begin >= 0 && last <= t->is.length && array < t->array_count);
    for (int64_t row = begin, end; row < last; row = end) {
        float *to = ret + (row - begin) * t->width;
        end = run_end(t, row, last);
        if (is_made(t, row))
            memcpy(to, t->arrays[array] + row * t->width, row_bytes(t, end - row));
        else
            initial_array(t, array, row, end - row, to);
    }
}

void table_write(struct table *t, int array, int64_t first, int64_t count, const float *from)
{
    const int64_t begin = first - t->is.start;
    assert(!t->growing && begin >= 0 && begin + count <= t->is.length && array < t->array_count);
    for (int64_t row = begin; row < begin + count; row++)
        if (!is_made(t, row)) make_row(t, row, array);
    memcpy(t->arrays[array] + begin * t->width, from, row_bytes(t, count));
    grow_pages(t);
}

int64_t table_made(const struct table *t)
{
    return t->growing ? growing_rows(t->growing) : t->made;
}

int64_t table_bytes(const struct table *t)
{
    return t->growing ? growing_bytes(t->growing) : (int64_t)row_bytes(t, t->made) * t->array_count;
}
