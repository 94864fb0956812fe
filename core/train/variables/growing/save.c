/* save.c - a growing table to a checkpoint and from one: see growing.h. */
#include <string.h>

#include "core/train/variables/growing/growing_inside.h"

enum { SAVED_AT_ONCE = 1 << 14 }; /* floats, or keys: whoever changes rows waits for no more */

void growing_save_begin(struct growing *t)
{
    aside_begin(&t->aside, RECORD_FLOATS + t->width * t->array_count);
    t->saved_keys = t->seen_count + t->row_count;
    t->saved_rows = t->row_count;
    t->saved_step = t->step;
}

void growing_save_end(struct growing *t)
{
    aside_end(&t->aside);
}

void growing_saved(const struct growing *t, int64_t *ret_keys, int64_t *ret_rows)
{
    *ret_keys = t->saved_keys;
    *ret_rows = t->saved_rows;
}

/* A key as it was; rows: its row in all arrays, where that is aside */
struct saved {
    struct key_state state;
    const float *rows;
    int64_t number;
};

/* The next that was there, from the key *from on. False: there are no more, or *most were looked
 * at. */
static bool next_saved(const struct growing *t, int64_t *from, int64_t *most, struct saved *ret)
{
    const struct entry *entry = key_index_from(&t->index, t->index.start + *from);
    for (; entry && entry < t->index.at + t->index.end; entry++) {
        if (!entry->mark) continue;
        if (--*most < 0) return false;
        const int64_t key = entry->mark - 1;
        const float *aside = aside_find(&t->aside, key);
        struct key_record record = growing_record(t, entry);
        if (aside) memcpy(&record, aside, sizeof record);
        *from = key - t->index.start + 1;
        if (record.sights == NOT_THERE) continue;
        *ret = (struct saved){
            .state = {key, record.sights, t->period_steps ? record.used : t->saved_step},
            .rows = aside ? aside + RECORD_FLOATS : NULL,
            .number = entry->state};
        return true;
    }
    return false;
}

/* Keys, or of those that have one the row in an array, whichever is given. */
struct wanted {
    struct key_state *keys;
    float *rows;
    int array;
};

static void take_row(const struct growing *t, const struct saved *saved, int array, float *ret)
{
    const float *row =
        saved->rows ? saved->rows + array * t->width : t->arrays[array] + saved->number * t->width;
    memcpy(ret, row, (size_t)t->width * sizeof *ret);
}

/* *ret_count of them are there already. Returns whether there are more, of `count` or at all. */
static bool save_some(const struct growing *t, int64_t *from, int64_t count,
                      const struct wanted *wanted, int64_t *ret_count)
{
    struct saved saved;
    int64_t most = SAVED_AT_ONCE / t->width + 1;
    while (*ret_count < count) {
        if (!next_saved(t, from, &most, &saved)) return most < 0;
        if (wanted->rows && saved.state.sights) continue;
        if (wanted->rows)
            take_row(t, &saved, wanted->array, wanted->rows + *ret_count * t->width);
        else
            wanted->keys[*ret_count] = saved.state;
        ++*ret_count;
    }
    return false;
}

static err save(struct growing *t, int64_t *from, int64_t count, const struct wanted *wanted,
                int64_t *ret_count)
{
    bool has_more = true, lacks = false;
    *ret_count = 0;
    while (has_more && !lacks) {
        aside_begin_reading(&t->aside);
        lacks = t->aside.lacks;
        has_more = !lacks && save_some(t, from, count, wanted, ret_count);
        aside_end_reading(&t->aside);
    }
    return lacks ? fail(ERR_MEMORY, "table %s: no memory to set rows aside", t->is.name) : OK;
}

err growing_save_keys(struct growing *t, int64_t *from, int64_t count, struct key_state *ret,
                      int64_t *ret_count)
{
    return save(t, from, count, &(struct wanted){.keys = ret}, ret_count);
}

err growing_save_rows(struct growing *t, int array, int64_t *from, int64_t count, float *ret,
                      int64_t *ret_count)
{
    return save(t, from, count, &(struct wanted){.rows = ret, .array = array}, ret_count);
}

/* ---- restoring ---- */

void growing_restore_begin(struct growing *t, int64_t step)
{
    t->step = step > 0 ? step - 1 : 0; /* of the update before it */
    t->period = t->period_steps ? t->step / t->period_steps : 0;
}

/* What a byte cannot tell of a long time ago is long enough ago. */
static uint8_t period_of(const struct growing *t, int64_t used)
{
    if (!t->period_steps) return 0;
    int64_t age = t->period - used / t->period_steps;
    if (age < 0) age = 0;
    return (uint8_t)(t->period - (age > t->idle_periods ? t->idle_periods + 1 : age));
}

err growing_restore(struct growing *t, const struct key_state *state, int64_t *ret_number)
{
    struct entry *entry;
    TRY(growing_add(t, state->key, &entry));
    entry->period = period_of(t, state->used);
    *ret_number = -1;
    if (state->sights) {
        entry->state = ENTRY_SEEN | (uint32_t)state->sights;
        t->seen_count++;
        return OK;
    }
    TRY(growing_make_row(t, state->key, ret_number));
    entry->state = (uint32_t)*ret_number;
    return OK;
}

void growing_write(struct growing *t, int array, int64_t number, int64_t count, const float *from)
{
    memcpy(t->arrays[array] + number * t->width, from, (size_t)(count * t->width) * sizeof *from);
}
