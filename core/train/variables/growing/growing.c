/* growing.c - see growing.h.
 *
 * Rows are numbered as they come and lie in this order in memory that was only reserved, so that
 * none is ever copied. A call first finds the numbers of its keys, which ascend as the index does,
 * and then works on the rows as on those of any table.
 */
#include "core/train/variables/growing/growing_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/random.h"
#include "core/train/variables/growing/keys.h"

enum {
    PERIODS = 100, /* periods until an unused key is evicted */
    AHEAD = 32,
    AT_ONCE = 256,     /* keys of a gather that are looked up together */
    FETCHED_MAX = 128, /* floats of a row that are prefetched */
    LINE_FLOATS = 16,
    THREAD_FLOATS = 1 << 15, /* less is not worth a second thread */
    HUGE_BYTES = 2 << 20,
    LOOSE_LEAST = 256, /* index entries beyond twice the keys in use: then it is cleaned */
};
static const int64_t ROWS_LEAST = 1 << 16;                            /* initial room for rows */
static const int64_t NO_ROW = -1, NEXT_MAKES_ROW = -2, IN_CROWD = -3; /* in `numbers` */

/* ---- life ---- */

/* The address space never has room for more rows than twice the host's memory. */
static void unmap(struct growing *t)
{
    for (int i = 0; i < t->array_count && t->arrays[i]; i++) {
        munmap(t->arrays[i], t->array_bytes);
        t->arrays[i] = NULL;
    }
}

static bool map_rows(struct growing *t, int64_t rows)
{
    t->room = rows;
    t->array_bytes = (size_t)(rows * t->width) * sizeof(float);
    for (int i = 0; i < t->array_count; i++) {
        void *array = mmap(NULL, t->array_bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (array == MAP_FAILED) {
            unmap(t);
            return false;
        }
        t->arrays[i] = array;
    }
    return true;
}

/* Reserves address space for more rows than memory holds, or for fewer if address space is limited.
 */
static err map(struct growing *t)
{
    const int64_t row_bytes = t->width * (int64_t)sizeof(float);
    const int64_t host = (int64_t)sysconf(_SC_PHYS_PAGES) * (int64_t)sysconf(_SC_PAGESIZE);
    int64_t rows = 2 * host / row_bytes;
    if (rows > GROWING_ROWS_MAX) rows = GROWING_ROWS_MAX;
    for (; rows >= ROWS_LEAST; rows /= 2)
        if (map_rows(t, rows)) return OK;
    return fail(ERR_MEMORY, "table %s: no room for %lld rows of %lld numbers, %d times", t->is.name,
                (long long)ROWS_LEAST, (long long)t->width, t->array_count);
}

/* A small table gets small pages. */
void growing_grow_pages(struct growing *t, int64_t used_before, int64_t used)
{
    const int64_t row = t->width * (int64_t)sizeof(float);
    if (used * row < HUGE_BYTES || used_before * row >= HUGE_BYTES) return;
    for (int i = 0; i < t->array_count; i++) madvise(t->arrays[i], t->array_bytes, MADV_HUGEPAGE);
}

/* 0: nothing is ever evicted. */
static int64_t period_steps(const struct growth *growth)
{
    return (growth->evict_after_steps + PERIODS - 1) / PERIODS;
}

static int64_t idle_periods(const struct growth *growth)
{
    const int64_t period = period_steps(growth);
    return period ? (growth->evict_after_steps + period - 1) / period : 0;
}

bool growth_is_idle(const struct growth *growth, int64_t step, int64_t used)
{
    const int64_t period = period_steps(growth);
    return period && step / period - used / period > idle_periods(growth);
}

err growing_open(const struct table_description *is, const struct updater *by,
                 struct device *device, struct growing **ret)
{
    struct growing *t = calloc(1, sizeof *t);
    assert(is->growth && !(by->optimizer && by->optimizer->sweeps));
    if (!t) return fail(ERR_MEMORY, "no memory");
    t->is = *is;
    t->by = *by;
    t->device = device;
    t->width = is->shape.dim[1];
    t->array_count = 1 + by->slot_count;
    t->given_back = NO_ROW;
    t->period_steps = period_steps(is->growth);
    t->idle_periods = idle_periods(is->growth);
    err e = key_index_open(is->start, is->length, &t->index);
    if (!e) e = map(t);
    if (e)
        growing_close(t);
    else
        *ret = t;
    return e;
}

void growing_close(struct growing *t)
{
    if (!t) return;
    growing_restore_end(t);
    unmap(t);
    key_index_close(&t->index);
    found_close(&t->found);
    aside_end(&t->aside);
    changes_end(&t->changes);
    free(t->numbers);
    free(t->gradients);
    free(t);
}

int64_t growing_rows(const struct growing *t)
{
    return t->row_count;
}

int64_t growing_bytes(const struct growing *t)
{
    return t->used * t->width * t->array_count * (int64_t)sizeof(float) +
           (int64_t)key_index_bytes(&t->index);
}

/* ---- rows ---- */

static size_t row_bytes(const struct growing *t)
{
    return (size_t)t->width * sizeof(float);
}

/* Whether the next update that names a key creates its row. sights: how often the key was seen so
 * far */
static bool next_makes_row(const struct growth *growth, int64_t sights)
{
    return sights + 1 >= growth->admit_after;
}

static void initial_values(const struct table_description *is, int64_t key, float *ret)
{
    const struct initial of = {
        .shape = &is->shape, .key = random_u64(is->key, (uint64_t)key), .count = is->shape.dim[1]};
    const err e = is->initializer->fill(is->initializer_attributes, &of, ret);
    assert(!e); /* table_open has checked */
    (void)e;
}

static err take_number(struct growing *t, int64_t *ret)
{
    if (t->given_back == NO_ROW && t->used == t->room)
        return fail(ERR_MEMORY,
                    "table %s: all %lld rows that this ps has room for are taken: more ps, or "
                    "evict_after_steps, or a larger admit_after",
                    t->is.name, (long long)t->used);
    *ret = t->given_back == NO_ROW ? t->used++ : t->given_back;
    if (t->given_back == NO_ROW) {
        growing_grow_pages(t, t->used - 1, t->used);
        return OK;
    }
    uint32_t next;
    memcpy(&next, t->arrays[0] + *ret * t->width, sizeof next);
    t->given_back = next == ENTRY_SEEN ? NO_ROW : (int64_t)next;
    return OK;
}

static void give_back(struct growing *t, int64_t number)
{
    const uint32_t next = t->given_back == NO_ROW ? ENTRY_SEEN : (uint32_t)t->given_back;
    memcpy(t->arrays[0] + number * t->width, &next, sizeof next);
    t->given_back = number;
    t->row_count--;
}

err growing_make_row(struct growing *t, int64_t key, int arrays, int64_t *ret_number)
{
    TRY(take_number(t, ret_number));
    if (arrays & 1) initial_values(&t->is, key, t->arrays[0] + *ret_number * t->width);
    for (int i = 0; i < t->by.slot_count; i++) {
        if (!(arrays >> (1 + i) & 1)) continue;
        const float initial = optimizer_initial(t->by.optimizer, t->by.attributes, i);
        float *slot = t->arrays[1 + i] + *ret_number * t->width;
        for (int64_t k = 0; k < t->width; k++) slot[k] = initial;
    }
    t->row_count++;
    changes_note(&t->changes, *ret_number, key);
    return OK;
}

static err add(struct growing *t, int64_t key, struct key_place *ret_place, struct entry *ret)
{
    if (key_index_is_full(&t->index)) TRY(key_index_make_room(&t->index, !aside_is_on(&t->aside)));
    *ret = (struct entry){.key = key, .state = ENTRY_SEEN};
    return key_index_add(&t->index, ret, ret_place);
}

/* ---- before a key changes ---- */

struct key_record growing_record(const struct growing *t, const struct entry *entry)
{
    if (!entry || entry->state == ENTRY_SEEN) return (struct key_record){.sights = NOT_THERE};
    const uint8_t age = (uint8_t)((uint8_t)t->period - entry->period);
    return (struct key_record){.sights = entry_has_row(entry) ? 0 : entry_sights(entry),
                               .used =
                                   t->period_steps ? (t->period - age) * t->period_steps : t->step};
}

static void set_aside(struct growing *t, int64_t key, const struct entry *entry)
{
    if (!aside_is_on(&t->aside)) return;
    const struct key_record record = growing_record(t, entry);
    const int64_t floats = record.sights == 0 ? t->width * t->array_count : 0;
    float *to = aside_add(&t->aside, key, RECORD_FLOATS + floats);
    if (!to) return;
    memcpy(to, &record, sizeof record);
    to += RECORD_FLOATS;
    for (int i = 0; floats && i < t->array_count; i++, to += t->width)
        memcpy(to, t->arrays[i] + entry->state * t->width, row_bytes(t));
}

struct giving_up {
    struct growing *table;
    int64_t period; /* the new period */
};

/* Evicts a key that was not used for evict_after_steps: it then counts as never seen, and its row
 * is free for another key. */
static void give_up_idle(void *context, const struct key_place *place, const struct entry *entry)
{
    const struct giving_up *g = context;
    struct growing *t = g->table;
    const bool is_all = g->period - t->period > t->idle_periods;
    if (entry->state == ENTRY_SEEN) return;
    if (!is_all && (uint8_t)((uint8_t)g->period - entry->period) <= t->idle_periods) return;
    set_aside(t, entry->key, entry);
    if (entry_has_row(entry)) {
        changes_leave(&t->changes, entry->state, entry->key);
        give_back(t, entry->state);
    } else {
        t->seen_count--;
    }
    const struct entry as_none = {entry->key, ENTRY_SEEN, entry->period};
    (void)key_index_set(&t->index, place, &as_none); /* takes no memory */
}

/* Called at the first update of a period. More periods than a byte can count may have passed
 * without an update. */
static err enter_period(struct growing *t, int64_t step)
{
    t->step = step;
    if (!t->period_steps || step / t->period_steps <= t->period) return OK;
    struct giving_up giving_up = {t, step / t->period_steps};
    found_forget(&t->found);
    key_index_each(&t->index, give_up_idle, &giving_up);
    t->period = giving_up.period;
    const int64_t left = t->seen_count + t->row_count;
    const bool is_loose = t->index.count > 2 * left + LOOSE_LEAST;
    return is_loose && !aside_is_on(&t->aside) ? key_index_make_room(&t->index, true) : OK;
}

/* Counts `times` more sights of a key, and creates its row if that is enough (admit_after). A
 * worker that was given zeros before has no gradient for the row's initial value: *ret_number is
 * NO_ROW then, too, and its gradient is dropped. */
static err count_sights(struct growing *t, struct entry *entry, int64_t times, int64_t *ret_number)
{
    const int64_t before = entry_sights(entry), sights = before + times;
    *ret_number = NO_ROW;
    if (before == 0) t->seen_count++;
    if (sights < t->is.growth->admit_after) {
        entry->state = ENTRY_SEEN | (uint32_t)sights;
        return OK;
    }
    TRY(growing_make_row(t, entry->key, ALL_ARRAYS, ret_number));
    entry->state = (uint32_t)*ret_number;
    t->seen_count--;
    if (!next_makes_row(t->is.growth, before)) *ret_number = NO_ROW;
    return OK;
}

/* An update names the key. */
static err see(struct growing *t, int64_t key, int64_t times, int64_t *ret_number)
{
    struct key_place place;
    struct entry entry;
    const bool is_known = key_index_find(&t->index, key, &place, &entry);
    set_aside(t, key, is_known ? &entry : NULL);
    if (!is_known) TRY(add(t, key, &place, &entry));
    const bool is_new = entry.period != (uint8_t)t->period || !entry_has_row(&entry);
    entry.period = (uint8_t)t->period;
    *ret_number = entry.state;
    if (!entry_has_row(&entry)) TRY(count_sights(t, &entry, times, ret_number));
    return is_new ? key_index_set(&t->index, &place, &entry) : OK;
}

/* Makes room for the keys of a call that neither gathers nor the index know: they are about to be
 * added, in ascending order. */
static err make_room_for_new(struct growing *t, const int64_t *keys, int64_t count)
{
    struct key_place place;
    struct entry entry;
    int64_t most = 0, added = 0;
    for (int64_t i = 0; i < count; i++) most += t->numbers[i] < 0;
    if (key_index_has_room(&t->index, most)) return OK;
    for (int64_t i = 0; i < count; i++)
        added += t->numbers[i] < 0 && !key_index_find(&t->index, keys[i], &place, &entry);
    return key_index_reserve(&t->index, added, !aside_is_on(&t->aside));
}

/* A row whose number a gather found counts as used in this period. */
static err see_all(struct growing *t, const int64_t *keys, int64_t count, const int64_t *times)
{
    if (found_take(&t->found, keys, count, t->numbers) && !aside_is_on(&t->aside)) return OK;
    TRY(make_room_for_new(t, keys, count));
    for (int64_t i = 0; i < count; i++) {
        const int64_t ahead = i + AHEAD, number = t->numbers[i];
        const struct entry found = {keys[i], (uint32_t)number, (uint8_t)t->period};
        if (ahead < count && t->numbers[ahead] < 0) (void)key_index_seek(&t->index, keys[ahead]);
        if (number >= 0)
            set_aside(t, keys[i], &found);
        else
            TRY(see(t, keys[i], row_times(times, i), &t->numbers[i]));
    }
    return OK;
}

/* ---- calls ---- */

static err reserve(struct growing *t, int64_t count)
{
    if (count <= t->call_room) return OK;
    free(t->numbers);
    free(t->gradients);
    t->call_room = count;
    t->numbers = malloc((size_t)count * sizeof *t->numbers);
    t->gradients = malloc((size_t)count * row_bytes(t));
    if (t->numbers && t->gradients) return OK;
    t->call_room = 0;
    return fail(ERR_MEMORY, "no memory for %lld rows of one message", (long long)count);
}

static int64_t grain(const struct growing *t)
{
    return THREAD_FLOATS / t->width + 1;
}

struct growing_reading {
    const struct growing *table;
    const int64_t *keys;
    float *ret;
    int64_t *found; /* [keys of the call] numbers cached for the update; or NULL */
    uint8_t period; /* the period of the next update, which may be the first one of it */
    bool trains;    /* whether rows are read for training */
};

static int64_t number_of(const struct growing_reading *r, const struct entry *entry)
{
    const struct growing *t = r->table;
    if (entry && (uint8_t)(r->period - entry->period) > t->idle_periods) entry = NULL;
    if (entry && entry_has_row(entry)) return entry->state;
    const int64_t sights = entry ? entry_sights(entry) : 0;
    return r->trains && next_makes_row(t->is.growth, sights) ? NEXT_MAKES_ROW : NO_ROW;
}

static inline __attribute__((always_inline)) void fetch_row(const struct growing *t, int64_t number)
{
    const int64_t n = t->width < FETCHED_MAX ? t->width : FETCHED_MAX;
    const float *row = t->arrays[0] + (number < 0 ? 0 : number) * t->width;
    for (int64_t at = 0; at < n; at += LINE_FLOATS) __builtin_prefetch(row + at, 0, SECOND_CACHE);
}

static void read_row(const struct growing *t, int64_t key, int64_t number, float *ret)
{
    if (number >= 0)
        memcpy(ret, t->arrays[0] + number * t->width, row_bytes(t));
    else if (number == NEXT_MAKES_ROW)
        initial_values(&t->is, key, ret);
    else
        memset(ret, 0, row_bytes(t));
}

/* The number to cache for an update of this period that names key i. entry NULL: there is none */
static inline int64_t found_number(const struct growing_reading *r, int64_t i,
                                   const struct entry *entry)
{
    const bool is_kept =
        entry && entry_has_row(entry) && entry->period == (uint8_t)r->table->period;
    if (r->found) r->found[i] = is_kept ? entry->state : NO_ROW;
    return is_kept && r->period == entry->period ? entry->state : number_of(r, entry);
}

static inline int64_t look_up(const struct growing_reading *r, int64_t i,
                              const struct key_sought *sought)
{
    struct key_place place;
    struct entry entry;
    switch (key_index_look(&r->table->index, r->keys[i], sought, &place, &entry)) {
    case KEY_THERE:
        return found_number(r, i, &entry);
    case KEY_CROWDED:
        return IN_CROWD;
    default:
        return found_number(r, i, NULL);
    }
}

static int64_t look_up_crowd(const struct growing_reading *r, int64_t i)
{
    struct key_place place;
    struct entry entry;
    const bool is_there = key_index_find_crowded(&r->table->index, r->keys[i], &place, &entry);
    return found_number(r, i, is_there ? &entry : NULL);
}

static void find_numbers(const struct growing_reading *r, int64_t begin, int64_t count,
                         int64_t *ret)
{
    struct key_sought sought[AT_ONCE];
    int crowd[AT_ONCE], crowd_count = 0;
    for (int64_t i = 0; i < count; i++)
        sought[i] = key_index_seek(&r->table->index, r->keys[begin + i]);
    for (int64_t i = 0; i < count; i++) {
        ret[i] = look_up(r, begin + i, &sought[i]);
        crowd[crowd_count] = (int)i;
        crowd_count += ret[i] == IN_CROWD;
    }
    for (int i = 0; i < crowd_count; i++) ret[crowd[i]] = look_up_crowd(r, begin + crowd[i]);
}

static void read_some(const struct growing_reading *r, int64_t begin, int64_t count)
{
    const struct growing *t = r->table;
    int64_t numbers[AT_ONCE];
    find_numbers(r, begin, count, numbers);
    for (int64_t i = 0; i < count; i++) fetch_row(t, numbers[i]);
    for (int64_t i = 0; i < count; i++)
        read_row(t, r->keys[begin + i], numbers[i], r->ret + (begin + i) * t->width);
}

/* Processes some keys at a time, in steps: seeks all of them, then looks them up, then prefetches
 * their rows and reads them. A prefetch waits for page tables, and the processor overlaps few such
 * waits unless they are close to each other in the program. */
static void read_rows(const void *arguments, int64_t begin, int64_t end)
{
    for (int64_t at = begin; at < end; at += AT_ONCE)
        read_some(arguments, at, end - at < AT_ONCE ? end - at : AT_ONCE);
}

static void gather(struct growing *t, const int64_t *keys, int64_t count, bool trains, float *ret)
{
    const int64_t period = t->period_steps ? (t->step + 1) / t->period_steps : 0;
    const struct growing_reading reading = {.table = t,
                                            .keys = keys,
                                            .ret = ret,
                                            .found =
                                                trains ? found_begin(&t->found, keys, count) : NULL,
                                            .period = (uint8_t)period,
                                            .trains = trains};
    t->device->kernels->spread(t->device, count, grain(t), read_rows, &reading);
}

void growing_gather(struct growing *t, const int64_t *keys, int64_t count, float *ret)
{
    gather(t, keys, count, true, ret);
}

void growing_gather_made(struct growing *t, const int64_t *keys, int64_t count, float *ret)
{
    gather(t, keys, count, false, ret);
}

/* Compacts the numbers of the keys that have rows, and their gradients; *ret: the gradients.
 * Returns how many. */
static int64_t take_rows(struct growing *t, int64_t count, const float *gradients,
                         const float **ret)
{
    int64_t rows = 0;
    for (int64_t i = 0; i < count; i++) rows += t->numbers[i] >= 0;
    *ret = rows == count ? gradients : t->gradients;
    if (rows == count) return rows;
    rows = 0;
    for (int64_t i = 0; i < count; i++) {
        if (t->numbers[i] < 0) continue;
        memcpy(t->gradients + rows * t->width, gradients + i * t->width, row_bytes(t));
        t->numbers[rows++] = t->numbers[i];
    }
    return rows;
}

static void update(struct growing *t, int64_t count, const float *gradients,
                   const struct juncture *now)
{
    _Alignas(max_align_t) unsigned char constants[CONSTANTS_BYTES_MAX];
    t->by.optimizer->derive(t->by.attributes, now, constants);
    struct row_update update = {.rule = t->by.optimizer->rule,
                                .constants = constants,
                                .value = t->arrays[0],
                                .ids = t->numbers,
                                .gradient = gradients,
                                .count = count,
                                .width = t->width,
                                .rows = t->used,
                                .form = t->by.form,
                                .decay = (float)(now->rate * t->by.decay)};
    for (int i = 0; i < t->by.slot_count; i++) update.slot[i] = t->arrays[1 + i];
    t->device->kernels->update_rows(t->device, &update);
}

static void note_changes(struct growing *t, const int64_t *keys, int64_t count)
{
    for (int64_t i = 0; t->changes.is_on && i < count; i++)
        if (t->numbers[i] >= 0) changes_note(&t->changes, t->numbers[i], keys[i]);
}

struct changes *growing_changes(struct growing *t)
{
    return &t->changes;
}

err growing_apply(struct growing *t, const int64_t *keys, int64_t count, const float *gradients,
                  const int64_t *times, const struct juncture *now)
{
    const float *of_rows = NULL;
    TRY(reserve(t, count));
    aside_begin_change(&t->aside);
    err e = enter_period(t, now->step);
    if (!e) e = see_all(t, keys, count, times);
    if (!e) {
        note_changes(t, keys, count);
        const int64_t rows = take_rows(t, count, gradients, &of_rows);
        update(t, rows, of_rows, now);
    }
    aside_end_change(&t->aside);
    return e;
}
