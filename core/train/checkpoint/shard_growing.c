/* shard_growing.c - growing tables in a checkpoint: see shard.h.
 *
 * A part is sorted by key, so the keys of one ps are contiguous there, and so are their rows: both
 * are read as ranges, and appended to the table's rows.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"
#include "core/train/variables/growing/growing.h"
#include "core/train/variables/growing/keys.h"

enum { KEYS_AT_ONCE = 1 << 12 };

err shard_growing_name(const char *variable, const char *slot, int part, const char *what,
                       char ret[BUNDLE_NAME_MAX])
{
    char end[32];
    TRY(shard_name(variable, slot, ret));
    snprintf(end, sizeof end, "part_%05d/%s", part, what);
    const size_t length = strlen(ret) + 1 + strlen(end);
    if (length >= BUNDLE_NAME_MAX)
        return fail(ERR_INPUT, "a name of %zu characters: a checkpoint's are shorter than %d",
                    length, (int)BUNDLE_NAME_MAX);
    strcat(strcat(ret, "/"), end);
    return OK;
}

/* ---- writing ---- */

/* The pieces of a growing table: keys, values, slots */
struct growing_pieces {
    struct bundle_piece at[2 + SLOTS_MAX];
    char names[2 + SLOTS_MAX][BUNDLE_NAME_MAX];
    struct key_state states[KEYS_AT_ONCE];
    int64_t keys[KEYS_AT_ONCE][SHARD_KEY_COLUMNS];
};
_Static_assert(2 + (int)SLOTS_MAX <= (int)BUNDLE_BESIDE_MAX, "they are written side by side");

static err name_pieces(const struct shard_table *table, const struct slot_names *names,
                       struct growing_pieces *ret)
{
    const struct slice *slice = table->slice;
    int64_t keys, rows;
    growing_saved(table_growing(table->rows), &keys, &rows);
    ret->at[0] = (struct bundle_piece){
        .name = ret->names[0], .dtype = BUNDLE_INT64, .shape = {2, {keys, SHARD_KEY_COLUMNS}}};
    TRY(shard_growing_name(slice->name, NULL, slice->part, "keys", ret->names[0]));
    for (int i = 0; i <= names->count; i++) {
        char *name = ret->names[1 + i];
        ret->at[1 + i] = (struct bundle_piece){
            .name = name, .dtype = BUNDLE_FLOAT, .shape = {2, {rows, slice->shape.dim[1]}}};
        TRY(shard_growing_name(slice->name, i ? names->at[i - 1] : NULL, slice->part, "rows",
                               name));
    }
    return OK;
}

static err append_saved(struct bundle_writer *writer, const struct saved_keys *saved, int arrays,
                        int64_t width, struct growing_pieces *pieces)
{
    for (int64_t i = 0; i < saved->count; i++) {
        pieces->keys[i][SHARD_KEY_ID] = id_of_key(saved->keys[i].key);
        pieces->keys[i][SHARD_KEY_SIGHTS] = saved->keys[i].sights;
        pieces->keys[i][SHARD_KEY_USED] = saved->keys[i].used;
    }
    TRY(bundle_append(writer, 0, pieces->keys, (size_t)saved->count * sizeof *pieces->keys));
    const size_t bytes = (size_t)(saved->row_count * width) * sizeof(float);
    for (int i = 0; i < arrays; i++) TRY(bundle_append(writer, 1 + i, saved->rows[i], bytes));
    return OK;
}

static err append_all(struct bundle_writer *writer, struct growing *g, int arrays, int64_t width,
                      struct growing_pieces *pieces)
{
    struct saved_keys saved = {.keys = pieces->states, .count = 1};
    struct shard_rows rows;
    int64_t from = 0;
    TRY(shard_rows_open(arrays, width, &rows));
    memcpy(saved.rows, rows.at, sizeof saved.rows);
    const int64_t most = rows.most < KEYS_AT_ONCE ? rows.most : KEYS_AT_ONCE;
    err e = OK;
    while (!e && saved.count) {
        e = growing_save_read(g, &from, most, &saved);
        if (!e) e = append_saved(writer, &saved, arrays, width, pieces);
    }
    free(rows.memory);
    return e;
}

err shard_write_growing(struct bundle_writer *writer, const struct shard_table *table,
                        const struct slot_names *names)
{
    const int arrays = 1 + names->count;
    struct growing_pieces *pieces = malloc(sizeof *pieces);
    if (!pieces) return fail(ERR_MEMORY, "no memory for the keys of a table");
    err e = name_pieces(table, names, pieces);
    if (!e) e = bundle_begin(writer, pieces->at, 1 + arrays);
    if (!e)
        e = append_all(writer, table_growing(table->rows), arrays, table->slice->shape.dim[1],
                       pieces);
    if (!e) e = bundle_end(writer);
    free(pieces);
    return e;
}

/* ---- reading ---- */

/* A part that is being read */
struct read_part {
    struct growing *growing;
    const struct table *table;
    const struct bundle_entry *entry; /* its keys */
    const struct bundle *bundle;
    int64_t last;         /* the last key read, over all parts: keys ascend from part to part */
    int64_t rows;         /* rows of all ids so far */
    int64_t first, count; /* rows of keys that belong to this ps */
    int64_t number;       /* of the first of them, in the table */
    int array;
};

static err fail_damaged(const struct bundle *bundle, const struct bundle_entry *keys,
                        const char *what)
{
    return fail(ERR_INPUT, "%s: %s: %s", bundle_prefix(bundle), keys->name, what);
}

err shard_key_state(const struct bundle *bundle, const struct bundle_entry *keys,
                    const int64_t row[SHARD_KEY_COLUMNS], struct key_state *ret)
{
    const int64_t id = row[SHARD_KEY_ID], sights = row[SHARD_KEY_SIGHTS];
    const int64_t used = row[SHARD_KEY_USED];
    if (id < 0 || id >= ANY_ID || sights < 0 || sights > SIGHTS_MAX || used < 0)
        return fail_damaged(bundle, keys, "a number that cannot be there");
    *ret = (struct key_state){key_of_id(id), sights, used};
    return OK;
}

err shard_next_key(const struct bundle *bundle, const struct bundle_entry *keys,
                   const int64_t row[SHARD_KEY_COLUMNS], int64_t *last, struct key_state *ret)
{
    TRY(shard_key_state(bundle, keys, row, ret));
    if (ret->key <= *last)
        return fail_damaged(bundle, keys, "its ids are not in the order of their keys");
    *last = ret->key;
    return OK;
}

static err take_key(struct read_part *p, const int64_t row[SHARD_KEY_COLUMNS])
{
    struct key_state state;
    int64_t number = -1;
    TRY(shard_next_key(p->bundle, p->entry, row, &p->last, &state));
    if (table_has(p->table, &state.key, 1)) {
        TRY(growing_restore(p->growing, &state, &number));
        if (state.sights == 0 && p->count++ == 0) {
            p->first = p->rows;
            p->number = number;
        }
    }
    p->rows += state.sights == 0;
    return OK;
}

static err take_keys(void *context, int64_t first, int64_t count, const void *elements)
{
    const int64_t(*rows)[SHARD_KEY_COLUMNS] = elements;
    for (int64_t i = 0; i < count; i++) TRY(take_key(context, rows[i]));
    return OK;
}

err shard_check_keys(const struct bundle *bundle, const struct bundle_entry *keys)
{
    const struct bundle_shape *shape = &keys->shape;
    if (keys->dtype == BUNDLE_INT64 && shape->rank == 2 && shape->dim[1] == SHARD_KEY_COLUMNS)
        return OK;
    return fail_damaged(bundle, keys, "keys are int64 [ids, 3]");
}

static err read_keys(struct bundle *bundle, struct read_part *p)
{
    TRY(shard_check_keys(bundle, p->entry));
    const struct bundle_box all = bundle_whole(&p->entry->shape);
    return bundle_read_rows(bundle, p->entry, &all, &(struct bundle_taker){p, take_keys});
}

static err find_rows(struct bundle *bundle, const char *name, int64_t rows, int64_t width,
                     const struct bundle_entry **ret)
{
    const struct bundle_entry *entry = bundle_find(bundle, name);
    if (!entry) return fail(ERR_INPUT, "%s: no \"%s\"", bundle_prefix(bundle), name);
    const struct bundle_shape *shape = &entry->shape;
    const bool fits = entry->dtype == BUNDLE_FLOAT && shape->rank == 2 && shape->dim[0] == rows &&
                      shape->dim[1] == width;
    *ret = entry;
    return fits ? OK
                : fail(ERR_INPUT, "%s: %s: expected %lld rows of %lld numbers",
                       bundle_prefix(bundle), name, (long long)rows, (long long)width);
}

/* Reads rows into the table: their numbers are consecutive. */
static err read_rows(struct bundle *bundle, struct read_part *p, const char *name, int64_t width)
{
    const struct bundle_entry *entry = NULL;
    TRY(find_rows(bundle, name, p->rows, width, &entry));
    const struct bundle_box box = {.start = {p->first, 0}, .length = {p->count, width}};
    if (!p->count) return OK;
    return bundle_read(bundle, entry, &box, growing_place(p->growing, p->array, p->number),
                       (size_t)(p->count * width) * sizeof(float));
}

static err read_arrays(struct bundle *bundle, const struct warm_start *warm,
                       const struct slice *slice, const struct slot_names *names, int slots,
                       int index, struct read_part *part)
{
    char wanted[BUNDLE_NAME_MAX], stored[BUNDLE_NAME_MAX], name[BUNDLE_NAME_MAX];
    for (part->array = 0; part->array <= slots; part->array++) {
        const char *slot = part->array ? names->at[part->array - 1] : NULL;
        TRY(shard_name(slice->name, slot, wanted));
        if (shard_map_skips(warm, wanted)) continue;
        TRY(shard_map(warm, slice->name, slot, stored));
        TRY(shard_growing_name(stored, NULL, index, "rows", name));
        TRY(read_rows(bundle, part, name, slice->shape.dim[1]));
    }
    return OK;
}

/* ret_entry NULL: no such part. */
static err find_part(struct bundle *bundle, const struct warm_start *warm, const char *variable,
                     int part, const struct bundle_entry **ret_entry)
{
    char stored[BUNDLE_NAME_MAX], name[BUNDLE_NAME_MAX];
    TRY(shard_map(warm, variable, NULL, stored));
    TRY(shard_growing_name(stored, NULL, part, "keys", name));
    *ret_entry = bundle_find(bundle, name);
    if (*ret_entry || part > 0) return OK;
    const bool is_fixed = shard_is_there(bundle, stored); /* its keys do not exist */
    const err e =
        is_fixed ? fail(ERR_INPUT,
                        "%s: %s has fixed rows there, and grows here (\"capacity\": \"dynamic\")",
                        bundle_prefix(bundle), stored)
                 : fail(ERR_INPUT, "%s: no \"%s\"", bundle_prefix(bundle), name);
    return shard_fail_or_skip(e, warm, is_fixed);
}

/* The number of rows of a part, or 0 if invalid: that is checked where they are read. */
static err rows_of_part(struct bundle *bundle, const struct warm_start *warm,
                        const struct slice *slice, int part, int64_t *ret)
{
    char stored[BUNDLE_NAME_MAX], name[BUNDLE_NAME_MAX];
    TRY(shard_map(warm, slice->name, NULL, stored));
    TRY(shard_growing_name(stored, NULL, part, "rows", name));
    const struct bundle_entry *entry = bundle_find(bundle, name);
    *ret = entry && entry->shape.rank == 2 ? entry->shape.dim[0] : 0;
    return OK;
}

/* Estimates the number of keys to restore: keys are uniformly distributed, so this slice has its
 * share of all keys. */
static err expected(struct bundle *bundle, const struct warm_start *warm, const struct slice *slice,
                    int64_t *ret_keys, int64_t *ret_rows)
{
    const struct bundle_entry *entry;
    const double share = (double)slice->length / (double)KEYS;
    int64_t keys = 0, rows = 0, more;
    for (int k = 0; k < PS_MAX; k++) {
        TRY(find_part(bundle, warm, slice->name, k, &entry));
        if (!entry) break;
        TRY(shard_check_keys(bundle, entry));
        TRY(rows_of_part(bundle, warm, slice, k, &more));
        keys += entry->shape.dim[0];
        rows += more;
    }
    *ret_keys = (int64_t)((double)keys * share);
    *ret_rows = (int64_t)((double)rows * share);
    return OK;
}

/* The arrays that read_arrays skips, one bit each */
static err initial_arrays(const struct warm_start *warm, const struct slice *slice,
                          const struct slot_names *names, int slots, int *ret)
{
    char name[BUNDLE_NAME_MAX];
    *ret = (int)(~0u << (1 + slots));
    for (int i = 0; i <= slots; i++) {
        TRY(shard_name(slice->name, i ? names->at[i - 1] : NULL, name));
        if (shard_map_skips(warm, name)) *ret |= 1 << i;
    }
    return OK;
}

static err read_all_parts(struct bundle *bundle, const struct warm_start *warm,
                          const struct slice *slice, const struct slot_names *names, int slots,
                          struct read_part *part)
{
    for (int k = 0; k < PS_MAX; k++) {
        TRY(find_part(bundle, warm, slice->name, k, &part->entry));
        if (!part->entry) return OK;
        part->rows = part->count = 0;
        TRY(read_keys(bundle, part));
        TRY(read_arrays(bundle, warm, slice, names, slots, k, part));
    }
    return OK;
}

err shard_read_growing(struct bundle *bundle, const struct warm_start *warm,
                       const struct shard_table *table, const struct slot_names *names, int slots,
                       int64_t step)
{
    const struct slice *slice = table->slice;
    struct read_part part = {
        .growing = table_growing(table->rows), .table = table->rows, .bundle = bundle, .last = -1};
    int64_t keys, rows;
    int initial;
    TRY(expected(bundle, warm, slice, &keys, &rows));
    TRY(initial_arrays(warm, slice, names, slots, &initial));
    err e = growing_restore_begin(part.growing, step, keys, rows, initial);
    if (!e) e = read_all_parts(bundle, warm, slice, names, slots, &part);
    growing_restore_end(part.growing);
    return e;
}

bool shard_grows_there(const struct bundle *bundle, const char *variable)
{
    char name[BUNDLE_NAME_MAX];
    return !shard_growing_name(variable, NULL, 0, "keys", name) && bundle_find(bundle, name);
}

bool shard_is_there(const struct bundle *bundle, const char *variable)
{
    return bundle_find(bundle, variable) || shard_grows_there(bundle, variable) ||
           shard_parts_there(bundle, variable, NULL);
}

err shard_find_keys(struct bundle *bundle, const struct slice *slice, int part,
                    const struct bundle_entry **ret)
{
    return find_part(bundle, NULL, slice->name, part, ret);
}

err shard_find_rows(struct bundle *bundle, const struct slice *slice, int part, int64_t rows,
                    const struct bundle_entry **ret)
{
    char name[BUNDLE_NAME_MAX];
    TRY(shard_growing_name(slice->name, NULL, part, "rows", name));
    return find_rows(bundle, name, rows, slice->shape.dim[1], ret);
}
