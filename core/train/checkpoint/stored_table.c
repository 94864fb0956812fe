/* stored_table.c - see stored_table.h. */
#include "core/train/checkpoint/stored_table.h"

#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"
#include "core/train/variables/growing/growing.h"

/* Of a part: its rows, and of one that grows its keys, from which the rows' ids are taken in turn.
 */
struct part {
    const struct stored_table *table;
    const struct stored_rows_taker *taker;
    const struct bundle_entry *rows, *keys;
    int index;
    int64_t next_key, last_key; /* last_key: of all parts */
    int64_t ids[STORED_ROWS_MAX];
    int64_t read[STORED_ROWS_MAX][SHARD_KEY_COLUMNS];
    int64_t read_at, read_count;
};

/* ---- what it is ---- */

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

static err read_keys(struct part *p)
{
    int64_t numbers[STORED_ROWS_MAX];
    const int64_t left = p->keys->shape.dim[0] - p->next_key;
    p->read_at = 0;
    p->read_count = left < STORED_ROWS_MAX ? left : STORED_ROWS_MAX;
    for (int64_t i = 0; i < p->read_count; i++) numbers[i] = p->next_key + i;
    p->next_key += p->read_count;
    return bundle_pick_rows(p->table->bundle, p->keys, numbers, p->read_count, p->read);
}

/* Ids that were seen too seldom for a row are passed over. ret -1: there is no other. */
static err next_id(struct part *p, int64_t *ret)
{
    struct key_state state;
    for (*ret = -1;;) { /* ends: so do the keys */
        if (p->read_at == p->read_count) TRY(read_keys(p));
        if (p->read_count == 0) return OK;
        const int64_t *row = p->read[p->read_at++];
        TRY(shard_next_key(p->table->bundle, p->keys, row, &p->last_key, &state));
        if (state.sights) continue;
        *ret = row[SHARD_KEY_ID];
        return OK;
    }
}

static err fail_unequal(const struct part *p)
{
    return fail(ERR_INPUT, "%s: %s has other keys than rows", bundle_prefix(p->table->bundle),
                p->keys->name);
}

static err name_ids(struct part *p, int64_t first, int64_t count)
{
    const int64_t parts = p->table->parts ? p->table->parts : 1;
    for (int64_t i = 0; i < count; i++) {
        p->ids[i] = (first + i) * parts + p->index;
        if (p->keys) TRY(next_id(p, &p->ids[i]));
        if (p->ids[i] < 0) return fail_unequal(p);
    }
    return OK;
}

static err take_rows(void *context, int64_t first, int64_t count, const void *elements)
{
    struct part *p = context;
    const float *rows = elements;
    for (int64_t at = 0; at < count; at += STORED_ROWS_MAX) {
        const int64_t left = count - at, some = left < STORED_ROWS_MAX ? left : STORED_ROWS_MAX;
        TRY(name_ids(p, first + at, some));
        TRY(p->taker->take(p->taker->context, p->ids, some, rows + at * p->table->width));
    }
    return OK;
}

static err read_part(struct part *p)
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

err stored_table_read(const struct stored_table *t, const struct stored_rows_taker *taker)
{
    struct part *p = malloc(sizeof *p);
    if (!p) return fail(ERR_MEMORY, "no memory for the ids of %s", t->name);
    *p = (struct part){.table = t, .taker = taker, .last_key = -1};
    err e = OK;
    for (; !e && p->index < (t->parts ? t->parts : 1); p->index++) e = read_part(p);
    free(p);
    return e;
}
