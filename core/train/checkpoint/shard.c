/* shard.c - writes one ps' part of a checkpoint: see shard.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"

struct bundle_shape shard_shape(const struct shape *shape)
{
    struct bundle_shape ret = {.rank = shape->rank};
    for (int i = 0; i < shape->rank; i++) ret.dim[i] = shape->dim[i];
    return ret;
}

/* A scalar has no axes, so its box has none. */
struct bundle_box shard_box(const struct slice *slice)
{
    const struct bundle_shape shape = shard_shape(&slice->shape);
    struct bundle_box box = bundle_whole(&shape);
    if (shape.rank > 0) {
        box.start[slice->axis] = slice->start;
        box.length[slice->axis] = slice->length;
    }
    return box;
}

void shard_name_state(struct shard *shard, const struct optimizers *optimizers)
{
    shard->slot_count = optimizers->slot_count;
    for (int i = 0; i < optimizers->count; i++) {
        const struct optimizer *optimizer = optimizer_of(&optimizers->at[i]);
        struct slot_names *names = &shard->slot_names[i];
        names->count = optimizer_slots(optimizer, optimizers->at[i].optimizer.attributes);
        for (int k = 0; k < names->count; k++) names->at[k] = optimizer->slot[k].name;
        names->is_averaged = optimizers->average.decay > 0;
        if (names->is_averaged) names->at[names->count] = AVERAGE_SLOT;
    }
    shard->power_count = optimizers->power_count;
    memcpy(shard->power_names, optimizers->power_names, sizeof shard->power_names);
}

const struct slot_names *shard_slots_of(const struct shard *shard, int optimizer)
{
    static const struct slot_names none = {0};
    return optimizer == OPTIMIZER_NONE ? &none : &shard->slot_names[optimizer];
}

const struct slot_names *shard_slots(const struct shard *shard, int slice)
{
    return shard_slots_of(shard, shard->optimizer_of ? shard->optimizer_of[slice] : 0);
}

err shard_name(const char *variable, const char *slot, char ret[BUNDLE_NAME_MAX])
{
    int length =
        snprintf(ret, BUNDLE_NAME_MAX, "%s%s%s", variable, slot ? "/" : "", slot ? slot : "");
    if (length < BUNDLE_NAME_MAX) return OK;
    return fail(ERR_INPUT, "a name of %d characters: a checkpoint's are shorter than %d", length,
                (int)BUNDLE_NAME_MAX);
}

/* A slice of values (slot NULL), or of one of the slots. */
static err add_slice(struct bundle_writer *writer, const struct slice *slice, const char *slot,
                     const float *block)
{
    char name[BUNDLE_NAME_MAX];
    TRY(shard_name(slice->name, slot, name));
    const struct bundle_box box = shard_box(slice);
    const struct bundle_piece piece = {
        .name = name,
        .dtype = BUNDLE_FLOAT,
        .shape = shard_shape(&slice->shape),
        .box = &box,
    };
    return bundle_add(writer, &piece, block + slice->offset);
}

/* Writes a variable's values and its slots one after the other: a ps reads them in this order,
 * front to back. */
static err add_slices(struct bundle_writer *writer, const struct shard *shard)
{
    for (int i = 0; i < shard->slice_count; i++) {
        const struct slice *slice = &shard->slices[i];
        TRY(add_slice(writer, slice, NULL, shard->values));
        const struct slot_names *names = shard_slots(shard, i);
        for (int s = 0; s < names->count + names->is_averaged && s < shard->slot_count; s++) {
            TRY(add_slice(writer, slice, names->at[s], shard->slots[s]));
        }
    }
    return OK;
}

/* The pieces of a table, written together: so a copy of a changed row is kept only until it has
 * been written, with all its slots. */
struct table_pieces {
    struct bundle_piece at[BUNDLE_BESIDE_MAX];
    char names[BUNDLE_BESIDE_MAX][BUNDLE_NAME_MAX];
    struct bundle_box box;
};

static err name_pieces(const struct slice *slice, const struct slot_names *names,
                       struct table_pieces *ret)
{
    ret->box = shard_box(slice);
    for (int i = 0; i <= names->count; i++) {
        const char *slot = i ? names->at[i - 1] : NULL;
        struct bundle_piece *piece = &ret->at[i];
        *piece = (struct bundle_piece){
            .name = ret->names[i], .dtype = BUNDLE_FLOAT, .shape = shard_shape(&slice->shape)};
        if (!slice->mod) {
            piece->box = &ret->box;
            TRY(shard_name(slice->name, slot, ret->names[i]));
            continue;
        }
        piece->shape.dim[0] = slice->length;
        TRY(shard_part_name(slice->name, slice->part, slot, ret->names[i]));
    }
    return OK;
}

err shard_rows_open(int arrays, int64_t width, struct shard_rows *ret)
{
    const size_t row_bytes = (size_t)width * sizeof(float);
    *ret = (struct shard_rows){.most = BUNDLE_STRETCH_BYTES / (int64_t)row_bytes + 1};
    ret->memory = malloc((size_t)arrays * (size_t)ret->most * row_bytes);
    if (!ret->memory) return fail(ERR_MEMORY, "no memory for %lld rows", (long long)ret->most);
    for (int i = 0; i < arrays; i++) ret->at[i] = ret->memory + i * ret->most * width;
    return OK;
}

static err append_rows(struct bundle_writer *writer, const struct shard_table *table, int arrays,
                       const struct shard_rows *rows)
{
    const struct slice *slice = table->slice;
    const int64_t end = slice->start + slice->length, row = slice->shape.dim[1] * sizeof(float);
    for (int64_t at = slice->start; at < end; at += rows->most) {
        const int64_t count = end - at < rows->most ? end - at : rows->most;
        TRY(table_save_read(table->rows, at, count, rows->at));
        for (int i = 0; i < arrays; i++)
            TRY(bundle_append(writer, i, rows->at[i], (size_t)(count * row)));
    }
    return OK;
}

static err add_fixed(struct bundle_writer *writer, const struct shard_table *table,
                     const struct slot_names *names, struct table_pieces *pieces)
{
    const int arrays = 1 + names->count;
    struct shard_rows rows;
    TRY(name_pieces(table->slice, names, pieces));
    TRY(shard_rows_open(arrays, table->slice->shape.dim[1], &rows));
    err e = bundle_begin(writer, pieces->at, arrays);
    if (!e) e = append_rows(writer, table, arrays, &rows);
    free(rows.memory);
    return e ? e : bundle_end(writer);
}

static err add_table(struct bundle_writer *writer, const struct shard *shard,
                     const struct shard_table *table)
{
    const struct slot_names *names = shard_slots_of(shard, table->optimizer);
    if (table_growing(table->rows)) return shard_write_growing(writer, table, names);
    struct table_pieces *pieces = malloc(sizeof *pieces);
    if (!pieces) return fail(ERR_MEMORY, "no memory for the names of a table");
    const err e = add_fixed(writer, table, names, pieces);
    free(pieces);
    return e;
}

static err add_tables(struct bundle_writer *writer, const struct shard *shard)
{
    for (int i = 0; i < shard->table_count; i++) {
        TRY(add_table(writer, shard, &shard->tables[i]));
        table_save_over(shard->tables[i].rows);
    }
    return OK;
}

/* TensorFlow stores them with the variable whose name sorts first: on a single ps. */
static err add_powers(struct bundle_writer *writer, const struct shard *shard)
{
    for (int i = 0; shard->owns_powers && i < shard->power_count; i++) {
        const struct bundle_piece piece = {.name = shard->power_names[i], .dtype = BUNDLE_FLOAT};
        TRY(bundle_add(writer, &piece, &shard->powers[i]));
    }
    return OK;
}

static err add_global_step(struct bundle_writer *writer, const struct shard *shard)
{
    const int64_t step = (int64_t)shard->global_step;
    const struct bundle_piece piece = {.name = SHARD_GLOBAL_STEP, .dtype = BUNDLE_INT64};
    return shard->ps == 0 ? bundle_add(writer, &piece, &step) : OK;
}

/* [workers, columns]; every ps writes one, even without variables, so that their number shows how
 * many ps wrote. */
static err add_ledger(struct bundle_writer *writer, const struct shard *shard)
{
    char name[BUNDLE_NAME_MAX];
    snprintf(name, sizeof name, SHARD_LEDGER, shard->ps);
    const struct bundle_piece piece = {
        .name = name,
        .dtype = BUNDLE_INT64,
        .shape = {.rank = 2, .dim = {shard->workers, LEDGER_COLUMNS}},
    };
    return bundle_add(writer, &piece, shard->ledger);
}

static err add_coverage(struct bundle_writer *writer, const struct shard *shard)
{
    const struct bundle_piece piece = {
        .name = SHARD_COVERAGE,
        .dtype = BUNDLE_INT64,
        .shape = {.rank = 1, .dim = {COVERAGE_COLUMNS}},
    };
    return shard->coverage ? bundle_add(writer, &piece, shard->coverage) : OK;
}

static err add_data(struct bundle_writer *writer, const struct shard *shard)
{
    const struct bundle_piece piece = {
        .name = SHARD_DATA_ORDER,
        .dtype = BUNDLE_INT64,
        .shape = {.rank = 1, .dim = {shard->data_count}},
    };
    return shard->data ? bundle_add(writer, &piece, shard->data) : OK;
}

static err add_all(struct bundle_writer *writer, const struct shard *shard)
{
    TRY(add_slices(writer, shard));
    TRY(add_tables(writer, shard));
    TRY(add_powers(writer, shard));
    TRY(add_global_step(writer, shard));
    TRY(add_ledger(writer, shard));
    TRY(add_coverage(writer, shard));
    return add_data(writer, shard);
}

/* In any case: updates must no longer wait for reads. */
static void end_reading(const struct shard *shard)
{
    for (int i = 0; i < shard->table_count; i++) table_save_over(shard->tables[i].rows);
}

err shard_write(const struct shard *shard, const char *prefix)
{
    struct bundle_writer *writer = NULL;
    err e = bundle_create(prefix, &writer);
    if (!e) e = add_all(writer, shard);
    end_reading(shard);
    if (!e) return bundle_finish(writer);
    bundle_abandon(writer);
    return e;
}
