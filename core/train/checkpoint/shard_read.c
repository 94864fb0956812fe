/* shard_read.c - reads one ps' part of a checkpoint, whoever wrote it: see shard.h. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"

enum { SHAPE_CHARACTERS_MAX = BUNDLE_RANK_MAX * 22 + 3 };

/* One tensor to look for. */
struct wish {
    const char *kind;     /* "variable", "slot", "value": for messages */
    bool is_of_optimizer; /* state of an optimizer, not of the model: another optimizer does not
                             save it */
    bool is_average;      /* an average, which is neither */
    char wanted[BUNDLE_NAME_MAX]; /* its name here */
    char stored[BUNDLE_NAME_MAX]; /* its name in the checkpoint */
    int dtype;
    struct bundle_shape shape;
};

static const char *text_of(const struct bundle_shape *shape, char text[SHAPE_CHARACTERS_MAX])
{
    int length = snprintf(text, SHAPE_CHARACTERS_MAX, "[");
    for (int i = 0; i < shape->rank; i++) {
        length += snprintf(text + length, SHAPE_CHARACTERS_MAX - (size_t)length, "%s%lld",
                           i ? ", " : "", (long long)shape->dim[i]);
    }
    snprintf(text + length, SHAPE_CHARACTERS_MAX - (size_t)length, "]");
    return text;
}

static bool is_same(const struct bundle_shape *a, const struct bundle_shape *b)
{
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof a->dim[0]) == 0;
}

static err fail_absent(const struct bundle *bundle, const struct wish *wish)
{
    if (shard_grows_there(bundle, wish->stored))
        return fail(ERR_INPUT,
                    "%s: %s grows there (\"capacity\": \"dynamic\"), and has fixed rows here",
                    bundle_prefix(bundle), wish->stored);
    const struct suggestion near = bundle_nearest(bundle, wish->stored, NULL);
    const bool is_mapped = strcmp(wish->wanted, wish->stored) != 0;
    const char *why =
        wish->is_of_optimizer
            ? "; another optimizer saved it: train.warm_start takes values without slots"
            : "";
    if (wish->is_average)
        why = "; it was saved without train.average_decay: train.warm_start takes values, at which "
              "averages then begin";
    return fail(ERR_INPUT, "%s: no %s \"%s\"%s%s%s%s%s", bundle_prefix(bundle), wish->kind,
                wish->stored, is_mapped ? " for \"" : "", is_mapped ? wish->wanted : "",
                is_mapped ? "\"" : "", near.text, why);
}

/* Finds the entry, which must have the wanted type and shape. Types are not converted: a variable
 * of another type is most likely another variable. */
static err find(const struct bundle *bundle, const struct wish *wish,
                const struct bundle_entry **ret)
{
    const struct bundle_entry *entry = bundle_find(bundle, wish->stored);
    if (!entry) return fail_absent(bundle, wish);
    if (entry->dtype != wish->dtype)
        return fail(ERR_INPUT, "%s: %s is %s there, %s here", bundle_prefix(bundle), entry->name,
                    bundle_dtype_name(entry->dtype), bundle_dtype_name(wish->dtype));
    if (!is_same(&entry->shape, &wish->shape)) {
        char there[SHAPE_CHARACTERS_MAX], here[SHAPE_CHARACTERS_MAX];
        return fail(ERR_INPUT, "%s: %s has shape %s there, %s here", bundle_prefix(bundle),
                    entry->name, text_of(&entry->shape, there), text_of(&wish->shape, here));
    }
    *ret = entry;
    return OK;
}

/* The parts of a table whose ids were dealt to them in turn, if it is not stored whole. */
static err find_parts(const struct bundle *bundle, const struct warm_start *warm,
                      const struct slice *slice, const struct wish *wish, struct shard_source *ret)
{
    char whole[BUNDLE_NAME_MAX];
    TRY(shard_map(warm, slice->name, NULL, ret->variable));
    TRY(shard_name(ret->variable, ret->slot, whole));
    const bool is_elsewhere = strcmp(whole, wish->stored) != 0; /* the slot has a map of its own */
    if (slice->shape.rank != 2 || slice->axis != 0 || is_elsewhere || bundle_find(bundle, whole))
        return OK;
    ret->parts = shard_parts_there(bundle, ret->variable, ret->slot);
    return shard_check_parts(bundle, ret, &wish->shape);
}

static err find_source(const struct bundle *bundle, const struct warm_start *warm,
                       const struct slice *slice, const struct wish *wish, struct shard_source *ret)
{
    TRY(find_parts(bundle, warm, slice, wish, ret));
    if (ret->parts) return OK;
    ret->parts = 1;
    return find(bundle, wish, &ret->entry);
}

/* Where the variable's values (slot NULL) or its slot are; no parts: it keeps its values. */
static err find_slice(const struct bundle *bundle, const struct warm_start *warm,
                      const struct slice *slice, const char *slot, struct shard_source *ret)
{
    struct wish wish = {.kind = slot ? "slot" : "variable",
                        .is_of_optimizer = slot != NULL,
                        .is_average = slot && strcmp(slot, AVERAGE_SLOT) == 0,
                        .dtype = BUNDLE_FLOAT,
                        .shape = shard_shape(&slice->shape)};
    const struct row_map *map = shard_row_map(warm, slice->name);
    if (map) wish.shape.dim[0] = map->rows;
    if (map && map->is_square) wish.shape.dim[1] = map->rows;
    *ret = (struct shard_source){.slot = slot};
    TRY(shard_name(slice->name, slot, wish.wanted));
    if (shard_map_skips(warm, wish.wanted)) return OK;
    TRY(shard_map(warm, slice->name, slot, wish.stored));
    const err e = find_source(bundle, warm, slice, &wish, ret);
    return shard_fail_or_skip(e, warm, shard_is_there(bundle, wish.stored));
}

err shard_check_values(const struct bundle *bundle, const struct warm_start *warm,
                       const struct slice *slices, int count)
{
    struct shard_source source;
    for (int i = 0; i < count; i++) TRY(find_slice(bundle, warm, &slices[i], NULL, &source));
    return OK;
}

/* Rows of a slice, and their place in the block */
struct placing {
    const struct slice *slice;
    float *block;
    const struct row_map *map;
};

static err place_rows(void *context, int64_t first, int64_t rows, const void *elements)
{
    const struct placing *p = context;
    const struct slice *s = p->slice;
    const int64_t width = shape_count_from(&s->shape, 1);
    const bool is_part = s->axis == 1; /* of each row */
    const int64_t from = is_part ? s->start : 0, floats = is_part ? s->length : width;
    float *to = p->block + s->offset + (is_part ? first : first - s->start) * floats;
    const float *row = elements;
    for (int64_t i = 0; i < rows; i++, to += floats, row += width)
        memcpy(to, row + from, (size_t)floats * sizeof *to);
    return OK;
}

/* Copies those parts of a row of a square matrix, or of a vector, whose columns the checkpoint has
 */
static err place_runs(void *context, int64_t row, int64_t rows, const void *elements)
{
    const struct placing *p = context;
    const struct slice *s = p->slice;
    const bool is_part = s->axis == 1 || s->shape.rank == 1;
    const int64_t begin = is_part ? s->start : 0, floats = is_part ? s->length : s->shape.dim[1];
    float *to = p->block + s->offset + (is_part ? row : row - s->start) * floats;
    const float *from = elements;
    assert(rows == 1);
    for (int i = 0; i < p->map->run_count; i++) {
        const struct row_run *run = &p->map->runs[i];
        const struct range mine = range_meet((struct range){run->to, run->to + run->count},
                                             (struct range){begin, begin + floats});
        if (!range_is_empty(mine))
            memcpy(to + mine.begin - begin, from + run->from + mine.begin - run->to,
                   (size_t)range_count(mine) * sizeof *to);
    }
    return OK;
}

/* Reads a slice into its place in the block. */
static err read_slice(struct bundle *bundle, const struct warm_start *warm,
                      const struct slice *slice, const char *slot, float *block)
{
    struct shard_source source;
    const struct row_map *map = shard_row_map(warm, slice->name);
    struct placing placing = {slice, block, map};
    const bool has_runs = map && (map->is_square || slice->shape.rank == 1);
    const struct bundle_taker taker = {&placing, has_runs ? place_runs : place_rows};
    TRY(find_slice(bundle, warm, slice, slot, &source));
    if (map) return shard_read_mapped(bundle, &source, slice, map, &taker);
    if (!source.entry) return shard_read_rows(bundle, &source, slice, &taker);
    const struct bundle_box box = shard_box(slice);
    return bundle_read(bundle, source.entry, &box, block + slice->offset,
                       (size_t)slice->count * sizeof(float));
}

/* In the order of the block, which is that of the files if the layout is the same. */
static err read_slices(struct bundle *bundle, const struct warm_start *warm,
                       const struct shard *shard)
{
    const int slot_count = !warm || warm->slots ? shard->slot_count : 0;
    for (int i = 0; i < shard->slice_count; i++) {
        const struct slice *slice = &shard->slices[i];
        if (shard_map_skips(warm, slice->name)) continue;
        TRY(read_slice(bundle, warm, slice, NULL, shard->values));
        const struct slot_names *names = shard_slots(shard, i);
        const int names_count = names->count + (names->is_averaged && !warm);
        for (int s = 0; s < names_count && s < slot_count; s++) {
            TRY(read_slice(bundle, warm, slice, names->at[s], shard->slots[s]));
        }
    }
    return OK;
}

/* An array of a table that is being filled */
struct array_filling {
    struct table *table;
    int array;
};

static err take_rows(void *context, int64_t first, int64_t rows, const void *elements)
{
    const struct array_filling *f = context;
    table_write(f->table, f->array, first, rows, elements);
    return OK;
}

static err read_array(struct bundle *bundle, const struct warm_start *warm,
                      const struct shard_table *table, int array, const char *slot)
{
    struct shard_source source;
    struct array_filling filling = {table->rows, array};
    const struct row_map *map = shard_row_map(warm, table->slice->name);
    const struct bundle_taker taker = {&filling, take_rows};
    TRY(find_slice(bundle, warm, table->slice, slot, &source));
    return map ? shard_read_mapped(bundle, &source, table->slice, map, &taker)
               : shard_read_rows(bundle, &source, table->slice, &taker);
}

static err read_tables(struct bundle *bundle, const struct warm_start *warm,
                       const struct shard *shard)
{
    for (int i = 0; i < shard->table_count; i++) {
        const struct shard_table *table = &shard->tables[i];
        const struct slot_names *names = shard_slots_of(shard, table->optimizer);
        const int slots = !warm || warm->slots ? names->count : 0;
        if (shard_map_skips(warm, table->slice->name)) continue;
        if (table_growing(table->rows)) {
            TRY(shard_read_growing(bundle, warm, table, names, slots, (int64_t)shard->global_step));
            continue;
        }
        for (int k = 0; k <= slots; k++)
            TRY(read_array(bundle, warm, table, k, k ? names->at[k - 1] : NULL));
    }
    return OK;
}

/* Every ps reads them, whoever wrote them: each ps advances its own copy. */
static err read_powers(struct bundle *bundle, const struct warm_start *warm, struct shard *shard)
{
    const int count = !warm || warm->slots ? shard->power_count : 0;
    for (int i = 0; i < count; i++) {
        struct wish wish = {.kind = "value", .is_of_optimizer = true, .dtype = BUNDLE_FLOAT};
        const struct bundle_entry *entry = NULL;
        TRY(shard_name(shard->power_names[i], NULL, wish.wanted));
        if (shard_map_skips(warm, wish.wanted)) continue;
        TRY(shard_map(warm, wish.wanted, NULL, wish.stored));
        TRY(find(bundle, &wish, &entry));
        TRY(bundle_read(bundle, entry, NULL, &shard->powers[i], sizeof shard->powers[i]));
        if (!isfinite(shard->powers[i]))
            return fail(ERR_INPUT, "%s: %s is %g", bundle_prefix(bundle), entry->name,
                        (double)shard->powers[i]);
    }
    return OK;
}

/* int64, or int32 from old programs. */
err shard_read_step(struct bundle *bundle, uint64_t *ret)
{
    struct wish wish = {.kind = "value", .wanted = SHARD_GLOBAL_STEP, .stored = SHARD_GLOBAL_STEP};
    const struct bundle_entry *entry = bundle_find(bundle, wish.stored);
    const bool is_short = entry && entry->dtype == BUNDLE_INT32;
    int64_t step = 0;
    int32_t short_step = 0;
    wish.dtype = is_short ? BUNDLE_INT32 : BUNDLE_INT64;
    TRY(find(bundle, &wish, &entry));
    if (is_short) {
        TRY(bundle_read(bundle, entry, NULL, &short_step, sizeof short_step));
        step = short_step;
    } else {
        TRY(bundle_read(bundle, entry, NULL, &step, sizeof step));
    }
    if (step < 0 || step > SHARD_COUNT_MAX)
        return fail(ERR_INPUT, "%s: a global step of %lld", bundle_prefix(bundle), (long long)step);
    *ret = (uint64_t)step;
    return OK;
}

err shard_find_values(struct bundle *bundle, const struct slice *slice, struct shard_source *ret)
{
    TRY(find_slice(bundle, NULL, slice, NULL, ret));
    return shard_check_source(bundle, ret);
}

err shard_read_tables(struct bundle *bundle, const struct warm_start *warm,
                      const struct shard *shard)
{
    if (warm) TRY(shard_map_check(warm));
    return read_tables(bundle, warm, shard);
}

err shard_read(struct bundle *bundle, const struct warm_start *warm, struct shard *shard)
{
    if (warm) TRY(shard_map_check(warm));
    shard->global_step = 0;
    if (!warm) TRY(shard_read_step(bundle, &shard->global_step)); /* the keys of tables need it */
    TRY(read_slices(bundle, warm, shard));
    TRY(read_tables(bundle, warm, shard));
    TRY(read_powers(bundle, warm, shard));
    if (shard->coverage) memset(shard->coverage, 0, COVERAGE_COLUMNS * sizeof(int64_t));
    if (!warm) TRY(shard_read_coverage(bundle, shard));
    if (!warm) return shard_read_ledger(bundle, shard);
    memset(shard->ledger, 0, (size_t)shard->workers * LEDGER_COLUMNS * sizeof(int64_t));
    return OK;
}
