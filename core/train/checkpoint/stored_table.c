/* stored_table.c - see stored_table.h. */
#include "core/train/checkpoint/stored_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/ascending.h"
#include "core/train/checkpoint/shard_inside.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/table.h"

/* A part of a table: its rows and, if it grows, its keys, from which the ids of the rows are taken
 * in turn. */
struct stored_part {
    const struct stored_table *table;
    const struct stored_rows_taker *taker;
    const struct bundle_entry *rows, *keys;
    int index;
    int64_t next_key, last_key; /* last_key: of all parts */
    int64_t ids[STORED_ROWS_MAX];
    int64_t read[STORED_ROWS_MAX][SHARD_KEY_COLUMNS];
    int64_t read_at, read_count;
    float *laid;   /* [STORED_ROWS_MAX, width] rows with newer values applied; NULL: there are none
                    */
    bool *is_laid; /* [newer.count] newer rows that replace one of the checkpoint */
};

/* ---- finding the table ---- */

/* NULL: the checkpoint has none of this name. */
static const struct bundle_entry *entry_of(const struct stored_table *t, int part, const char *what)
{
    char name[BUNDLE_NAME_MAX];
    if (!t->grows && !t->parts) return bundle_find(t->bundle, t->name);
    const err e = t->grows ? shard_growing_name(t->name, NULL, part, what, name)
                           : shard_part_name(t->name, part, NULL, name);
    return e ? NULL : bundle_find(t->bundle, name);
}

static err add_part(struct stored_table *t, const struct bundle_entry *entry)
{
    const struct bundle_shape *shape = &entry->shape;
    const bool is_one = entry->dtype == BUNDLE_FLOAT && shape->rank == 2 && shape->dim[1] > 0;
    if (!is_one || (t->rows && shape->dim[1] != t->width))
        return fail(ERR_INPUT, "%s: %s is %s of rank %d: a table is a matrix of floats",
                    bundle_prefix(t->bundle), entry->name, bundle_dtype_name(entry->dtype),
                    shape->rank);
    t->width = shape->dim[1];
    t->rows += shape->dim[0];
    return OK;
}

static err count_parts(struct stored_table *t)
{
    const struct bundle_entry *entry;
    const int most = t->grows ? PS_MAX : t->parts ? t->parts : 1;
    int found = 0;
    for (; found < most && (entry = entry_of(t, found, "rows")); found++) TRY(add_part(t, entry));
    if (t->grows) t->parts = found;
    return found
               ? OK
               : fail(ERR_INPUT, "%s: %s has keys, and no rows", bundle_prefix(t->bundle), t->name);
}

static bool may_be_table(const struct bundle_entry *entry)
{
    return entry->shape.rank == 2 && !strstr(entry->name, "/part_");
}

static err fail_absent(struct bundle *bundle, const char *name)
{
    return fail(ERR_INPUT,
                "%s: no table \"%.128s\"%s; dtrain checkpoint show lists all tensors (of "
                "TABLE/part_00000/rows, TABLE is the name)",
                bundle_prefix(bundle), name, bundle_nearest(bundle, name, may_be_table).text);
}

err stored_table_find(struct bundle *bundle, const char *name, struct stored_table *ret)
{
    struct stored_table t = {.bundle = bundle, .name = name};
    t.grows = shard_grows_there(bundle, name);
    const bool is_whole = !t.grows && bundle_find(bundle, name);
    if (!t.grows && !is_whole) t.parts = shard_parts_there(bundle, name, NULL);
    if (!t.grows && !is_whole && !t.parts) return fail_absent(bundle, name);
    TRY(count_parts(&t));
    *ret = t;
    return OK;
}

/* ---- its rows ---- */

static err read_keys(struct stored_part *p)
{
    int64_t numbers[STORED_ROWS_MAX];
    const int64_t left = p->keys->shape.dim[0] - p->next_key;
    p->read_at = 0;
    p->read_count = left < STORED_ROWS_MAX ? left : STORED_ROWS_MAX;
    for (int64_t i = 0; i < p->read_count; i++) numbers[i] = p->next_key + i;
    p->next_key += p->read_count;
    return bundle_pick_rows(p->table->bundle, p->keys, numbers, p->read_count, p->read);
}

/* Skips ids that do not have a row yet. ret -1: the end. */
static err next_id(struct stored_part *p, int64_t *ret)
{
    struct key_state state;
    for (*ret = -1;;) { /* until the keys end */
        if (p->read_at == p->read_count) TRY(read_keys(p));
        if (p->read_count == 0) return OK;
        const int64_t *row = p->read[p->read_at++];
        TRY(shard_next_key(p->table->bundle, p->keys, row, &p->last_key, &state));
        if (state.sights) continue;
        *ret = row[SHARD_KEY_ID];
        return OK;
    }
}

static err fail_unequal(const struct stored_part *p)
{
    return fail(ERR_INPUT, "%s: %s has other keys than rows", bundle_prefix(p->table->bundle),
                p->keys->name);
}

static err name_ids(struct stored_part *p, int64_t first, int64_t count)
{
    const int64_t parts = p->table->parts ? p->table->parts : 1;
    for (int64_t i = 0; i < count; i++) {
        p->ids[i] = (first + i) * parts + p->index;
        if (p->keys) TRY(next_id(p, &p->ids[i]));
        if (p->ids[i] < 0) return fail_unequal(p);
    }
    return OK;
}

bool stored_row_is_gone(const struct stored_table *t, const float *row)
{
    for (int64_t i = 0; i < t->width; i++)
        if (row[i] != 0) return false;
    return t->grows;
}

/* The newest values of a row of the checkpoint */
static const float *newest(struct stored_part *p, int64_t id, const float *row)
{
    const struct table_changes *newer = p->table->newer;
    const int64_t at = ascending_place(newer->ids, newer->count, id);
    if (at == newer->count || newer->ids[at] != id) return row;
    p->is_laid[at] = true;
    row = newer->rows + at * p->table->width;
    return stored_row_is_gone(p->table, row) ? NULL : row;
}

static err give(struct stored_part *p, int64_t count, const float *rows)
{
    const size_t width = (size_t)p->table->width;
    int64_t left = 0;
    if (!p->table->newer) return p->taker->take(p->taker->context, p->ids, count, rows);
    for (int64_t i = 0; i < count; i++) {
        const float *row = newest(p, p->ids[i], rows + (size_t)i * width);
        if (!row) continue;
        memcpy(p->laid + (size_t)left * width, row, width * sizeof *row);
        p->ids[left++] = p->ids[i];
    }
    return p->taker->take(p->taker->context, p->ids, left, p->laid);
}

/* Passes on rows that a growing table created since the checkpoint */
static err give_new(struct stored_part *p)
{
    const struct table_changes *newer = p->table->newer;
    for (int64_t i = 0; newer && p->table->grows && i < newer->count; i++) {
        const float *row = newer->rows + i * p->table->width;
        if (p->is_laid[i] || stored_row_is_gone(p->table, row)) continue;
        TRY(p->taker->take(p->taker->context, &newer->ids[i], 1, row));
    }
    return OK;
}

static err take_rows(void *context, int64_t first, int64_t count, const void *elements)
{
    struct stored_part *p = context;
    const float *rows = elements;
    for (int64_t at = 0; at < count; at += STORED_ROWS_MAX) {
        const int64_t left = count - at, some = left < STORED_ROWS_MAX ? left : STORED_ROWS_MAX;
        TRY(name_ids(p, first + at, some));
        TRY(give(p, some, rows + at * p->table->width));
    }
    return OK;
}

static err read_part(struct stored_part *p)
{
    struct bundle *bundle = p->table->bundle;
    p->rows = entry_of(p->table, p->index, "rows");
    p->keys = p->table->grows ? entry_of(p->table, p->index, "keys") : NULL;
    p->next_key = p->read_at = p->read_count = 0;
    if (p->table->grows && !p->keys)
        return fail(ERR_INPUT, "%s: %s has no keys", bundle_prefix(bundle), p->rows->name);
    if (p->keys) {
        TRY(shard_check_keys(bundle, p->keys));
        TRY(bundle_check(bundle, p->keys));
    }
    const struct bundle_box all = bundle_whole(&p->rows->shape);
    TRY(bundle_read_rows(bundle, p->rows, &all, &(struct bundle_taker){p, take_rows}));
    int64_t more = -1;
    if (p->keys) TRY(next_id(p, &more));
    return more < 0 ? OK : fail_unequal(p);
}

static err make_room(struct stored_part *p)
{
    const struct table_changes *newer = p->table->newer;
    if (!newer) return OK;
    p->laid = malloc((size_t)(STORED_ROWS_MAX * p->table->width) * sizeof *p->laid);
    p->is_laid = calloc((size_t)newer->count + 1, sizeof *p->is_laid);
    return p->laid && p->is_laid ? OK
                                 : fail(ERR_MEMORY, "no memory for rows of %s", p->table->name);
}

err stored_table_read(const struct stored_table *t, const struct stored_rows_taker *taker)
{
    struct stored_part *p = malloc(sizeof *p);
    if (!p) return fail(ERR_MEMORY, "no memory for the ids of %s", t->name);
    *p = (struct stored_part){.table = t, .taker = taker, .last_key = -1};
    err e = make_room(p);
    for (; !e && p->index < (t->parts ? t->parts : 1); p->index++) e = read_part(p);
    if (!e) e = give_new(p);
    free(p->laid);
    free(p->is_laid);
    free(p);
    return e;
}
