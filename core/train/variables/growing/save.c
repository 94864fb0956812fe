/* save.c - saves and restores a growing table: see growing.h. */
#include <string.h>
#include <sys/mman.h>

#include "core/base/threads/thread.h"
#include "core/train/variables/growing/growing_inside.h"

enum {
    SAVED_AT_ONCE = 1 << 14, /* floats, or keys, read while updates are locked out */
    TOUCHED_AT_ONCE = 4 << 20,
    TOUCHED_LEAST = 16 << 20, /* bytes; less is not worth a thread */
};

void growing_save_begin(struct growing *t, struct aside_room *room)
{
    aside_begin(&t->aside, room, growing_bytes(t));
    t->saved.keys = t->seen_count + t->row_count;
    t->saved.rows = t->row_count;
    t->saved.step = t->step;
}

void growing_save_over(struct growing *t)
{
    aside_over(&t->aside);
}

void growing_save_end(struct growing *t)
{
    aside_end(&t->aside);
}

void growing_saved(const struct growing *t, int64_t *ret_keys, int64_t *ret_rows)
{
    *ret_keys = t->saved.keys;
    *ret_rows = t->saved.rows;
}

static void save_row(const struct growing *t, const struct entry *entry, const float *aside,
                     struct saved_keys *ret)
{
    for (int i = 0; i < t->array_count; i++) {
        const float *row = aside ? aside + i * t->width : t->arrays[i] + entry->state * t->width;
        memcpy(ret->rows[i] + ret->row_count * t->width, row, (size_t)t->width * sizeof *row);
    }
    ret->row_count++;
}

/* Saves the key as it was when the save began, if it was there then */
static void save_key(struct growing *t, const struct entry *entry, struct saved_keys *ret)
{
    const int64_t key = entry->key;
    struct aside_record *aside = aside_take(&t->aside, key);
    struct key_record record = growing_record(t, entry);
    if (aside) memcpy(&record, aside->at, sizeof record);
    if (record.sights != NOT_THERE)
        ret->keys[ret->count++] =
            (struct key_state){key, record.sights, t->period_steps ? record.used : t->saved.step};
    if (record.sights == 0) save_row(t, entry, aside ? aside->at + RECORD_FLOATS : NULL, ret);
    aside_free(&t->aside, aside);
}

/* Saves at most `count` keys under one lock. Returns whether there are more. */
static bool save_some(struct growing *t, int64_t *from, int64_t count, struct saved_keys *ret)
{
    int64_t next = t->index.start + *from, most = SAVED_AT_ONCE / t->width + 1;
    struct entry entry;
    while (ret->count < count && most > 0 && key_index_from(&t->index, next, &entry)) {
        save_key(t, &entry, ret);
        next = entry.key + 1;
        most--;
    }
    *from = next - t->index.start;
    aside_has_read(&t->aside, next);
    return ret->count < count && most == 0;
}

err growing_save_read(struct growing *t, int64_t *from, int64_t count, struct saved_keys *ret)
{
    bool has_more = true;
    ret->count = ret->row_count = 0;
    while (has_more) { /* ends: *from continues */
        TRY(aside_begin_reading(&t->aside, t->is.name));
        has_more = save_some(t, from, count, ret);
        aside_end_reading(&t->aside);
    }
    return OK;
}

/* ---- restoring ---- */

static void touch_array(struct growing *t, int array)
{
    const size_t bytes = (size_t)(t->restoring.rows * t->width) * sizeof(float);
    for (size_t at = 0; at < bytes && !t->restoring.is_over; at += TOUCHED_AT_ONCE) {
        const size_t left = bytes - at;
        void *from = (char *)t->arrays[array] + at;
        if (madvise(from, left < TOUCHED_AT_ONCE ? left : TOUCHED_AT_ONCE, MADV_POPULATE_WRITE))
            return; /* then the restoring thread accesses the pages itself, and reports errors */
    }
}

static void *touch(void *context)
{
    struct growing *t = context;
    for (int i = 0; i < t->array_count; i++) touch_array(t, i);
    return NULL;
}

static void touch_rows(struct growing *t, int64_t rows)
{
    struct restoring *touching = &t->restoring;
    touching->rows = rows < t->room ? rows : t->room;
    if (touching->rows * t->width * (int64_t)sizeof(float) < TOUCHED_LEAST) return;
    growing_grow_pages(t, t->used, touching->rows);
    touching->has_thread = !thread_start(&touching->thread, touch, t);
}

void growing_restore_end(struct growing *t)
{
    if (!t->restoring.has_thread) return;
    t->restoring.is_over = true;
    pthread_join(t->restoring.thread, NULL);
    t->restoring.is_over = false;
    t->restoring.has_thread = false;
}

err growing_restore_begin(struct growing *t, int64_t step, int64_t keys, int64_t rows, int arrays)
{
    t->step = step > 0 ? step - 1 : 0; /* the step of the update before */
    t->period = t->period_steps ? t->step / t->period_steps : 0;
    t->restoring.initial_arrays = arrays;
    TRY(key_index_reserve(&t->index, keys, false));
    touch_rows(t, rows);
    return OK;
}

/* A use longer ago than a byte can count is stored as long enough ago. */
static uint8_t period_of(const struct growing *t, int64_t used)
{
    if (!t->period_steps) return 0;
    int64_t age = t->period - used / t->period_steps;
    if (age < 0) age = 0;
    return (uint8_t)(t->period - (age > t->idle_periods ? t->idle_periods + 1 : age));
}

err growing_restore(struct growing *t, const struct key_state *state, int64_t *ret_number)
{
    struct key_place place;
    struct entry entry = {state->key, ENTRY_SEEN | (uint32_t)state->sights,
                          period_of(t, state->used)};
    *ret_number = -1;
    if (key_index_is_full(&t->index)) TRY(key_index_make_room(&t->index, false));
    if (state->sights) {
        t->seen_count++;
    } else {
        TRY(growing_make_row(t, state->key, t->restoring.initial_arrays, ret_number));
        entry.state = (uint32_t)*ret_number;
    }
    return key_index_add(&t->index, &entry, &place);
}

float *growing_place(struct growing *t, int array, int64_t number)
{
    return t->arrays[array] + number * t->width;
}
