/* delta.c - see delta.h. */
#include "core/train/checkpoint/delta.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"

#define DELTA_STEP "dtrain/delta/ps_"

/* ---- writing ---- */

/* "users", 2 and "ids" -> "users/changed_00002/ids" */
static err changed_name(const char *variable, int part, const char *what, char ret[BUNDLE_NAME_MAX])
{
    const int length = snprintf(ret, BUNDLE_NAME_MAX, "%s/changed_%05d/%s", variable, part, what);
    if (length < BUNDLE_NAME_MAX) return OK;
    return fail(ERR_INPUT, "a name of %d characters: a checkpoint's are shorter than %d", length,
                (int)BUNDLE_NAME_MAX);
}

/* slot: NULL for the values themselves */
static err add_dense(struct bundle_writer *writer, const struct slice *slice, const char *slot,
                     const float *values)
{
    char name[BUNDLE_NAME_MAX];
    TRY(shard_name(slice->name, slot, name));
    const struct bundle_box box = shard_box(slice);
    const struct bundle_piece piece = {
        .name = name, .dtype = BUNDLE_FLOAT, .shape = shard_shape(&slice->shape), .box = &box};
    return bundle_add(writer, &piece, values + slice->offset);
}

static err add_average(struct bundle_writer *writer, const struct shard *shard, int slice)
{
    const struct slot_names *names = shard_slots(shard, slice);
    if (!names->is_averaged) return OK;
    return add_dense(writer, &shard->slices[slice], names->at[names->count],
                     shard->slots[names->count]);
}

static err add_changes(struct bundle_writer *writer, const struct slice *slice,
                       const struct table_changes *changes)
{
    char name[BUNDLE_NAME_MAX];
    TRY(changed_name(slice->name, slice->part, "ids", name));
    const struct bundle_piece ids = {
        .name = name, .dtype = BUNDLE_INT64, .shape = {1, {changes->count}}};
    TRY(bundle_add(writer, &ids, changes->ids));
    TRY(changed_name(slice->name, slice->part, "rows", name));
    const struct bundle_piece rows = {
        .name = name, .dtype = BUNDLE_FLOAT, .shape = {2, {changes->count, slice->shape.dim[1]}}};
    return bundle_add(writer, &rows, changes->rows);
}

static err add_step(struct bundle_writer *writer, const struct shard *shard)
{
    char name[sizeof DELTA_STEP + 16];
    const int64_t step = (int64_t)shard->global_step;
    struct bundle_piece piece = {.name = name, .dtype = BUNDLE_INT64};
    snprintf(name, sizeof name, DELTA_STEP "%05d", shard->ps);
    TRY(bundle_add(writer, &piece, &step));
    piece.name = SHARD_GLOBAL_STEP;
    return shard->ps == 0 ? bundle_add(writer, &piece, &step) : OK;
}

static err add_all(struct bundle_writer *writer, const struct shard *shard,
                   const struct table_changes *changes)
{
    for (int i = 0; i < shard->slice_count; i++) {
        TRY(add_dense(writer, &shard->slices[i], NULL, shard->values));
        TRY(add_average(writer, shard, i));
    }
    for (int i = 0; i < shard->table_count; i++)
        if (changes[i].count) TRY(add_changes(writer, shard->tables[i].slice, &changes[i]));
    return add_step(writer, shard);
}

err delta_write(const struct shard *shard, const struct table_changes *changes, const char *prefix)
{
    struct bundle_writer *writer = NULL;
    TRY(bundle_create(prefix, &writer));
    const err e = add_all(writer, shard, changes);
    if (!e) return bundle_finish(writer);
    bundle_abandon(writer);
    return e;
}

/* ---- reading ---- */

static err fail_at(const struct bundle *bundle, const char *name, const char *what)
{
    return fail(ERR_INPUT, "%s: %s: %s", bundle_prefix(bundle), name, what);
}

/* Whether the entry holds the changed ids of a part of this table. */
static bool is_ids(const struct bundle_entry *entry, const char *variable)
{
    const size_t length = strlen(variable);
    int part, end = 0;
    if (strncmp(entry->name, variable, length) != 0) return false;
    return sscanf(entry->name + length, "/changed_%5d/ids%n", &part, &end) == 1 && end &&
           !entry->name[length + (size_t)end];
}

static bool is_list_of_ids(const struct bundle_entry *entry)
{
    return entry->dtype == BUNDLE_INT64 && entry->shape.rank == 1 && !entry->slice_count;
}

static err find_rows(struct bundle *bundle, const struct bundle_entry *ids, int64_t width,
                     const struct bundle_entry **ret)
{
    char name[BUNDLE_NAME_MAX];
    const int stem = (int)(strlen(ids->name) - strlen("ids"));
    snprintf(name, sizeof name, "%.*srows", stem, ids->name);
    const struct bundle_entry *rows = bundle_find(bundle, name);
    if (!is_list_of_ids(ids)) return fail_at(bundle, ids->name, "expected a list of ids");
    if (!rows || rows->dtype != BUNDLE_FLOAT || rows->shape.rank != 2 || rows->slice_count ||
        rows->shape.dim[0] != ids->shape.dim[0] || rows->shape.dim[1] != width)
        return fail_at(bundle, ids->name, "there are no rows of these, of the table's width");
    *ret = rows;
    return OK;
}

static err check_ids(const struct bundle *bundle, const struct bundle_entry *entry,
                     const struct slice *slice, const int64_t *ids)
{
    for (int64_t i = 0; i < entry->shape.dim[0]; i++)
        if (ids[i] < 0 || ids[i] >= slice->start + slice->length)
            return fail_at(bundle, entry->name, "an id that the table does not have");
    return OK;
}

static err read_part(struct bundle *bundle, const struct bundle_entry *entry,
                     const struct slice *slice, struct table_changes *ret)
{
    const int64_t count = entry->shape.dim[0], width = slice->shape.dim[1];
    const struct bundle_entry *rows = NULL;
    int64_t *ids = ret->ids + ret->count;
    TRY(find_rows(bundle, entry, width, &rows));
    TRY(bundle_read(bundle, entry, NULL, ids, (size_t)count * sizeof *ids));
    TRY(check_ids(bundle, entry, slice, ids));
    TRY(bundle_read(bundle, rows, NULL, ret->rows + ret->count * width,
                    (size_t)(count * width) * sizeof *ret->rows));
    ret->count += count;
    return OK;
}

/* At most as many ids as fit into the files, which bundle_open has checked; for a table that does
 * not grow at most its rows, each of which changes once. */
static err count_ids(const struct bundle *bundle, const struct slice *slice, int64_t *ret)
{
    *ret = 0;
    for (int i = 0; i < bundle_entries(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        if (!is_ids(entry, slice->name) || !is_list_of_ids(entry)) continue;
        if (entry->shape.dim[0] > slice->length - *ret)
            return fail_at(bundle, entry->name, "more ids than the table has rows");
        *ret += entry->shape.dim[0];
    }
    return OK;
}

static err read_parts(struct bundle *bundle, const struct slice *slice, struct table_changes *ret)
{
    for (int i = 0; i < bundle_entries(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        if (is_ids(entry, slice->name)) TRY(read_part(bundle, entry, slice, ret));
    }
    return OK;
}

err delta_read_rows(struct bundle *bundle, const struct slice *slice, struct table_changes *ret)
{
    const size_t row_bytes = (size_t)slice->shape.dim[1] * sizeof *ret->rows;
    int64_t count;
    TRY(count_ids(bundle, slice, &count));
    *ret = (struct table_changes){.ids = calloc((size_t)count + 1, sizeof *ret->ids),
                                  .rows = calloc((size_t)count + 1, row_bytes)};
    const err e = ret->ids && ret->rows ? read_parts(bundle, slice, ret)
                                        : fail(ERR_MEMORY, "no memory for %lld rows of %s",
                                               (long long)count, slice->name);
    if (e) table_changes_free(ret);
    return e;
}

err delta_read_step(struct bundle *bundle, int64_t *ret)
{
    uint64_t step;
    int parts = 0;
    TRY(shard_read_step(bundle, &step));
    *ret = (int64_t)step;
    for (int i = 0; i < bundle_entries(bundle); i++) {
        const struct bundle_entry *entry = bundle_at(bundle, i);
        int64_t of_part = -1;
        if (strncmp(entry->name, DELTA_STEP, strlen(DELTA_STEP)) != 0) continue;
        if (entry->dtype != BUNDLE_INT64 || entry->shape.rank != 0)
            return fail_at(bundle, entry->name, "expected a step");
        TRY(bundle_read(bundle, entry, NULL, &of_part, sizeof of_part));
        if (of_part != *ret) return fail_at(bundle, entry->name, "parts of several steps");
        parts++;
    }
    if (parts == bundle_shards(bundle)) return OK;
    return fail(ERR_INPUT, "%s: only %d of its %d files belong to a delta", bundle_prefix(bundle),
                parts, bundle_shards(bundle));
}
