/* setup.c - see setup.h. */
#include "core/cluster/description/setup.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/fields/json.h"
#include "core/base/files/url.h"
#include "core/base/json_foreign.h"
#include "core/base/replicas.h"
#include "core/cluster/role/batch_queue.h"
#include "core/train/variables/growing/keys.h"
#include "core/train/variables/place.h"

/* What the spec's mode makes of this many workers. */
static struct ps_config mode_of(const struct spec *spec, int workers)
{
    const bool is_sync = spec->train.mode == MODE_SYNC;
    const int64_t wanted = spec_replicas(spec, workers);
    return (struct ps_config){
        .is_sync = is_sync,
        .replicas_to_aggregate = (uint32_t)wanted,
        .takes_all = is_sync && wanted >= workers,
        .max_staleness = spec->train.max_staleness,
    };
}

uint32_t setup_gradients_per_push(const struct spec *spec, int workers, int worker)
{
    const struct ps_config mode = mode_of(spec, workers);
    return ps_config_gradients(&mode, workers, worker);
}

bool setup_drops_gradients(const struct spec *spec, int workers)
{
    const struct ps_config mode = mode_of(spec, workers);
    return ps_config_drops(&mode);
}

int setup_slices(const struct layout *layout, int ps, struct arena *arena, const struct slice **ret)
{
    struct slice *slices = arena_array(arena, (size_t)layout->slice_count, sizeof *slices);
    int count = 0;
    for (int i = 0; i < layout->slice_count; i++)
        if (layout->slices[i].ps == layout_home(layout, ps)) slices[count++] = layout->slices[i];
    *ret = slices;
    return count;
}

/* ---- writing ---- */

static json_t *slice_json(const struct slice *s)
{
    json_t *shape = json_array();
    for (int i = 0; i < s->shape.rank; i++)
        json_append(&shape, json_integer((json_int_t)s->shape.dim[i]));
    return json_pack("{ss so si sI sI sI sI sf}", "name", s->name, "shape", shape, "axis", s->axis,
                     "start", (json_int_t)s->start, "length", (json_int_t)s->length, "offset",
                     (json_int_t)s->offset, "count", (json_int_t)s->count, "moving",
                     (double)s->moving);
}

static json_t *slices_json(const struct layout *layout, int ps)
{
    struct arena arena = {0};
    const struct slice *slices;
    json_t *list = json_array();
    int count = setup_slices(layout, ps, &arena, &slices);
    for (int i = 0; i < count; i++) json_append(&list, slice_json(&slices[i]));
    arena_free(&arena);
    return list;
}

static json_t *table_json(const struct layout *layout, const struct slice *slice)
{
    const struct table_spec *table = layout->variables[slice->variable].table;
    json_t *json = slice_json(slice);
    json_t *initializer = fields_write(&table->initializer->object, table->initializer_attributes);
    char key[20];
    snprintf(key, sizeof key, "%016" PRIx64, table->key);
    json_put(&initializer, "type", json_string(table->initializer->object.name));
    json_put(&json, "initializer", initializer);
    json_put(&json, "key", json_string(key));
    json_put(&json, "most", json_integer((json_int_t)table->most));
    json_put(&json, "part", json_integer(slice->part));
    json_put(&json, "mod", json_integer(slice->mod));
    if (table->growth)
        json_put(&json, "growth",
                 json_pack("{sI sI ss}", "admit_after", table->growth->admit_after,
                           "evict_after_steps", table->growth->evict_after_steps, "admit_by",
                           sights_names[table->growth->admit_by]));
    if (!regularizer_is_none(&table->penalty))
        json_put(&json, "penalty",
                 json_pack("{sf sf}", "l1", table->penalty.l1, "l2", table->penalty.l2));
    return json;
}

static json_t *tables_json(const struct layout *layout, int ps)
{
    json_t *list = json_array();
    for (int i = layout->slice_count; i < layout->all_count; i++)
        if (layout->slices[i].ps == layout_home(layout, ps))
            json_append(&list, table_json(layout, &layout->slices[i]));
    return list;
}

static json_t *ledger_json(const struct setup_plan *plan)
{
    json_t *list = json_array();
    for (int w = 0; plan->ledger && w < plan->workers; w++) {
        int64_t numbers[LEDGER_NUMBERS];
        ledger_numbers(&plan->ledger[w], numbers);
        for (int k = 0; k < LEDGER_NUMBERS; k++)
            json_append(&list, json_integer((json_int_t)numbers[k]));
    }
    return list;
}

static json_t *coverage_json(const struct setup_plan *plan, int ps)
{
    json_t *list = json_array();
    int64_t numbers[COVERAGE_NUMBERS];
    coverage_numbers(&plan->coverage, numbers);
    for (int i = 0; ps == 0 && i < COVERAGE_NUMBERS; i++)
        json_append(&list, json_integer((json_int_t)numbers[i]));
    return list;
}

static json_t *queue_json(const struct setup_plan *plan, int ps)
{
    json_t *list = json_array();
    for (int i = 0; ps == 0 && i < plan->queue_numbers; i++)
        json_append(&list, json_integer((json_int_t)plan->queue[i]));
    return list;
}

static json_t *powers_json(const struct setup_plan *plan)
{
    json_t *list = json_array();
    for (int i = 0; plan->powers && i < plan->power_count; i++)
        json_append(&list, json_real((double)plan->powers[i]));
    return list;
}

/* Whichever the spec has, as a list */
static json_t *optimizers_json(const struct spec *spec)
{
    json_t *several = json_object_get(spec->json, "optimizers");
    if (json_array_size(several)) return json_incref(several);
    return json_pack("[O]", json_object_get(spec->json, "optimizer"));
}

/* The powers are written where the variable with the smallest name is, as TensorFlow places them;
 * of a partitioned one, where its first part is. */
static int ps_of_powers(const struct layout *layout)
{
    const struct slice *first = NULL;
    for (int i = 0; i < layout->all_count; i++) {
        const struct slice *s = &layout->slices[i];
        const char *name = layout->variables[s->variable].name;
        if (s->part == 0 && (!first || strcmp(name, layout->variables[first->variable].name) < 0))
            first = s;
    }
    return first ? first->ps : 0;
}

/* Pairs one behind the other: from, to. NULL: none */
static json_t *maps_json(const struct warm_start *warm)
{
    json_t *list = json_array();
    for (int i = 0; warm && i < warm->map_count; i++) {
        json_append(&list, json_string(warm->maps[i].from));
        json_append(&list, json_string(warm->maps[i].to));
    }
    return list;
}

/* A ps reads the rows of tables; of all others the chief does. */
static const struct row_map *table_map(const struct setup_plan *plan, int index)
{
    const struct row_map *map = &plan->warm->rows[index];
    for (int i = 0; i < plan->layout->variable_count; i++) {
        const struct variable *variable = &plan->layout->variables[i];
        if (variable->table && strcmp(variable->name, map->variable) == 0) return map;
    }
    return NULL;
}

static int row_maps(const struct setup_plan *plan)
{
    return plan->warm_from ? plan->warm->row_count : 0;
}

static json_t *row_maps_json(const struct setup_plan *plan)
{
    json_t *list = json_array();
    for (int i = 0; i < row_maps(plan); i++)
        if (table_map(plan, i)) json_append(&list, json_string(plan->warm->rows[i].variable));
    return list;
}

static json_t *row_runs_json(const struct setup_plan *plan)
{
    json_t *list = json_array();
    for (int i = 0; i < row_maps(plan); i++) {
        const struct row_map *map = table_map(plan, i);
        if (!map) continue;
        json_append(&list, json_integer((json_int_t)map->rows));
        json_append(&list, json_integer(map->run_count));
        for (int k = 0; k < map->run_count; k++) {
            json_append(&list, json_integer((json_int_t)map->runs[k].to));
            json_append(&list, json_integer((json_int_t)map->runs[k].from));
            json_append(&list, json_integer((json_int_t)map->runs[k].count));
        }
    }
    return list;
}

static json_t *texts_json(const char *const *texts, int count)
{
    json_t *list = json_array();
    for (int i = 0; i < count; i++) json_append(&list, json_string(texts[i]));
    return list;
}

static json_t *strings_json(const struct strings *strings)
{
    return texts_json(strings->at, strings->count);
}

static json_t *weight_decay_json(const struct spec *spec)
{
    json_t *given = json_object_get(json_object_get(spec->json, "train"), "weight_decay");
    return given ? json_incref(given) : json_null();
}

static json_t *data_json(const struct setup_plan *plan, int ps)
{
    return json_pack("[II]", (json_int_t)(ps ? 0 : plan->data.rows),
                     (json_int_t)(ps ? 0 : plan->data.order));
}

static json_t *hex(uint64_t number)
{
    char digits[20];
    snprintf(digits, sizeof digits, "%016" PRIx64, number);
    return json_string(digits);
}

static json_t *text_json(const char *text)
{
    return text ? json_string(text) : json_null();
}

static bool needs_everybody(const struct setup_plan *plan)
{
    const struct data_share *share = &plan->coverage.share;
    const bool has_end = share->rows && share->rows != DATA_ROWS_ENDLESS;
    return plan->spec->train.epochs > 0 && has_end && !data_share_is_queue(share);
}

char *setup_write(const struct setup_plan *plan, int ps)
{
    const struct warm_start *warm = plan->warm_from ? plan->warm : NULL;
    const struct ps_config mode = mode_of(plan->spec, plan->workers);
    json_t *json = json_object();
#define FACT(name, c_type, type, written, ...) json_put(&json, #name, written);
#include "core/cluster/description/setup.def"
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

/* ---- reading: by the same machinery as a spec ---- */

struct slice_fields {
    struct slice slice; /* but for what follows */
    struct ints shape;
    int64_t axis;
    double moving;
};

struct table_fields {
    struct slice_fields slice; /* first */
    struct variant initializer;
    const char *key;
    int64_t most, part, mod;
    struct growth growth; /* admit_after 0: it does not grow */
    struct regularizer penalty;
};

struct setup_fields {
#define FACT(name, c_type, ...) c_type name;
#include "core/cluster/description/setup.def"
};

#define IN(member) offsetof(struct slice_fields, member)

/* Of at most ROW_RUNS_MAX runs, of at most as many tables */
enum { WARM_NUMBERS_MAX = 5 * ROW_RUNS_MAX };
static const double steps_max = 1e18, floats_max = (double)(INT64_C(1) << 40), keys_max = 0x1p63;

#define SLICE_FIELDS                                                                               \
    {.name = "name", .type = FIELD_STRING, .offset = IN(slice.name)},                              \
        {.name = "shape", .type = FIELD_INTS, .offset = IN(shape), .max = floats_max},             \
        {.name = "axis", .type = FIELD_INT, .offset = IN(axis), .max = RANK_MAX - 1},              \
        {.name = "start", .type = FIELD_INT, .offset = IN(slice.start), .max = keys_max},          \
        {.name = "length", .type = FIELD_INT, .offset = IN(slice.length), .max = keys_max},        \
        {.name = "offset", .type = FIELD_INT, .offset = IN(slice.offset), .max = floats_max},      \
        {.name = "count", .type = FIELD_INT, .offset = IN(slice.count), .max = floats_max},        \
    {                                                                                              \
        .name = "moving", .type = FIELD_FLOAT, .offset = IN(moving), .fallback = "0", .max = 1     \
    }

static const struct field slice_field_table[] = {SLICE_FIELDS, {0}};

static const struct field growth_field_table[] = {
    {.name = "admit_after",
     .type = FIELD_INT,
     .offset = offsetof(struct growth, admit_after),
     .min = 1,
     .max = SIGHTS_MAX},
    {.name = "evict_after_steps",
     .type = FIELD_INT,
     .offset = offsetof(struct growth, evict_after_steps),
     .max = steps_max},
    {.name = "admit_by",
     .type = FIELD_ENUM,
     .offset = offsetof(struct growth, admit_by),
     .choices = sights_names},
    {0},
};

static const struct object growth_object = {
    .name = "growth",
    .fields = growth_field_table,
    .size = sizeof(struct growth),
};

static const struct field table_field_table[] = {
    SLICE_FIELDS,
    {.name = "initializer",
     .type = FIELD_VARIANT,
     .offset = offsetof(struct table_fields, initializer),
     .kinds = &initializer_kinds},
    {.name = "key", .type = FIELD_STRING, .offset = offsetof(struct table_fields, key)},
    {.name = "most",
     .type = FIELD_INT,
     .offset = offsetof(struct table_fields, most),
     .min = 1,
     .max = TABLE_NAMED_MAX},
    {.name = "part",
     .type = FIELD_INT,
     .offset = offsetof(struct table_fields, part),
     .max = SLICES_MAX - 1},
    {.name = "mod",
     .type = FIELD_INT,
     .offset = offsetof(struct table_fields, mod),
     .max = SLICES_MAX},
    {.name = "growth",
     .type = FIELD_OBJECT,
     .offset = offsetof(struct table_fields, growth),
     .fallback = "null",
     .object = &growth_object},
    {.name = "penalty",
     .type = FIELD_OBJECT,
     .offset = offsetof(struct table_fields, penalty),
     .fallback = "{}",
     .object = &regularizer_object},
    {0},
};

static const struct object slice_object = {
    .name = "slice",
    .fields = slice_field_table,
    .size = sizeof(struct slice_fields),
};

static const struct object table_object = {
    .name = "table",
    .fields = table_field_table,
    .size = sizeof(struct table_fields),
};

static const struct field setup_field_table[] = {
#define FACT(fact, c_type, field_type, written, ...)                                               \
    {.name = #fact,                                                                                \
     .type = field_type,                                                                           \
     .offset = offsetof(struct setup_fields, fact) __VA_OPT__(, ) __VA_ARGS__},
#include "core/cluster/description/setup.def"
    {0},
};

static const struct object setup_object = {
    .name = "setup",
    .fields = setup_field_table,
    .size = sizeof(struct setup_fields),
};

/* Slices come from another task: what they say must be within what there is. */
static err read_shape(const struct slice_fields *f, bool grows, struct slice *ret)
{
    if (f->shape.count > RANK_MAX)
        return fail(ERR_PROTOCOL, "%s has rank %d", f->slice.name, f->shape.count);
    *ret = f->slice;
    ret->shape.rank = f->shape.count;
    ret->axis = (int)f->axis;
    ret->moving = (float)f->moving;
    for (int i = 0; i < f->shape.count; i++) ret->shape.dim[i] = f->shape.at[i];
    TRY(shape_check(&ret->shape));
    bool has_axis = f->axis < ret->shape.rank || f->axis == 0; /* a scalar counts as one row */
    int64_t whole = ret->shape.rank && has_axis ? ret->shape.dim[f->axis] : 1;
    int64_t counted = shape_count(&ret->shape);
    if (grows) whole = KEYS;
    const bool fits = has_axis && ret->length > 0 && ret->length <= whole;
    if (!grows && fits) counted = counted / whole * ret->length;
    bool is_inside = fits && ret->start <= whole - ret->length && ret->count == counted;
    return is_inside ? OK : fail(ERR_PROTOCOL, "%s lies outside its variable", ret->name);
}

static err read_slice(const struct slice_fields *f, int64_t floats, struct slice *ret)
{
    TRY(read_shape(f, false, ret));
    if (ret->offset <= floats - ret->count) return OK;
    return fail(ERR_PROTOCOL, "%s lies outside the block", ret->name);
}

/* Where ids go by turns a slice is one of the parts. */
static bool is_a_part(const struct slice *slice)
{
    const int64_t rows = slice->shape.dim[0];
    if (slice->mod == 0) return true;
    return slice->mod <= rows && slice->part < slice->mod &&
           slice->start == partition_start(rows, slice->mod, slice->part) &&
           slice->length == partition_start(rows, slice->mod, slice->part + 1) - slice->start;
}

static err read_table(const struct table_fields *f, const struct setup *setup,
                      struct table_share *ret)
{
    struct slice *slice = &ret->slice;
    const bool grows = f->growth.admit_after > 0;
    TRY(read_shape(&f->slice, grows, slice));
    slice->part = (int)f->part;
    slice->mod = (int)f->mod;
    const bool is_known =
        grows ? slice->shape.dim[0] == 1 && slice->length >= KEYS / PS_MAX && slice->mod == 0
              : f->most <= slice->shape.dim[0] && is_a_part(slice);
    if (slice->shape.rank != 2 || !is_known || slice->axis != 0 || setup->floats == 0)
        return fail(ERR_PROTOCOL, "%s is no table", slice->name);
    ret->optimizer = optimizers_find(&setup->optimizers, slice->name, slice->moving);
    if (ret->optimizer < 0 && !optimizers_freeze(&setup->optimizers, slice->name))
        return fail(ERR_PROTOCOL, "%s has no optimizer", slice->name);
    ret->spec = (struct table_spec){
        .initializer = f->initializer.kind->descriptor,
        .initializer_attributes = f->initializer.attributes,
        .key = strtoull(f->key, NULL, 16),
        .most = f->most,
        .growth = grows ? &f->growth : NULL,
        .penalty = f->penalty,
    };
    return OK;
}

static err read_tables(const struct setup_fields *f, struct arena *arena, struct setup *ret)
{
    const struct table_fields *given = f->tables.at;
    struct table_share *tables = arena_array(arena, (size_t)f->tables.count + 1, sizeof *tables);
    for (int i = 0; i < f->tables.count; i++) TRY(read_table(&given[i], ret, &tables[i]));
    ret->tables = tables;
    ret->table_count = f->tables.count;
    return OK;
}

static err read_slices(const struct setup_fields *f, struct arena *arena, struct setup *ret)
{
    const struct slice_fields *given = f->slices.at;
    struct slice *slices = arena_array(arena, (size_t)f->slices.count, sizeof *slices);
    for (int i = 0; i < f->slices.count; i++) TRY(read_slice(&given[i], f->floats, &slices[i]));
    ret->slices = slices;
    ret->slice_count = f->slices.count;
    TRY(optimizers_of_slices(&ret->optimizers, slices, ret->slice_count, arena,
                             &ret->optimizer_of));
    ret->section_count = sections_make(&ret->optimizers, slices, ret->optimizer_of,
                                       ret->slice_count, f->floats, arena, &ret->sections);
    ret->config.moved_floats = sections_moved(ret->sections, ret->section_count, f->floats);
    return OK;
}

/* What is not within a table is found where it is read. */
static err read_row_map(const struct ints *numbers, int *at, struct arena *arena,
                        struct row_map *ret)
{
    const int left = numbers->count - *at - 2;
    const int64_t runs = left < 0 ? 0 : numbers->at[*at + 1];
    if (left < 0 || runs > left / 3) return fail(ERR_PROTOCOL, "a part of where rows stand");
    struct row_run *to = arena_array(arena, (size_t)runs + 1, sizeof *to);
    const int64_t *from = numbers->at + *at + 2;
    for (int64_t i = 0; i < runs; i++, from += 3)
        to[i] = (struct row_run){from[0], from[1], from[2]};
    ret->rows = numbers->at[*at];
    ret->runs = to;
    ret->run_count = (int)runs;
    *at += 2 + 3 * (int)runs;
    return OK;
}

static err read_row_maps(const struct setup_fields *f, struct arena *arena, struct warm_start *ret)
{
    const int count = f->warm_tables.count;
    struct row_map *maps = arena_array(arena, (size_t)count + 1, sizeof *maps);
    int at = 0;
    for (int i = 0; i < count; i++) {
        maps[i].variable = f->warm_tables.at[i];
        TRY(read_row_map(&f->warm_rows, &at, arena, &maps[i]));
    }
    ret->rows = maps;
    ret->row_count = count;
    return OK;
}

static err read_warm(const struct setup_fields *f, struct arena *arena, struct setup *ret)
{
    const int count = f->warm_maps.count / 2;
    struct name_map *maps = arena_array(arena, (size_t)count + 1, sizeof *maps);
    if (f->warm_maps.count % 2) return fail(ERR_PROTOCOL, "half a map of names");
    for (int i = 0; i < count; i++)
        maps[i] = (struct name_map){f->warm_maps.at[2 * i], f->warm_maps.at[2 * i + 1]};
    ret->warm.from = f->warm_from;
    ret->warm.how = (struct warm_start){
        .maps = maps,
        .map_count = count,
        .skips = f->warm_skips.at,
        .skip_count = f->warm_skips.count,
        .can_skip = true,
        .slots = f->warm_slots,
    };
    return read_row_maps(f, arena, &ret->warm.how);
}

static err read_ledger(const struct setup_fields *f, struct arena *arena, struct setup *ret)
{
    if (!f->ledger.count) return OK;
    if (f->ledger.count != f->workers * LEDGER_NUMBERS)
        return fail(ERR_PROTOCOL, "a ledger of %d numbers", f->ledger.count);
    struct ledger *ledger = arena_array(arena, (size_t)f->workers, sizeof *ledger);
    for (int w = 0; w < f->workers; w++)
        ledger[w] = ledger_of(f->ledger.at + (ptrdiff_t)w * LEDGER_NUMBERS);
    ret->config.ledger = ledger;
    return OK;
}

static err read_coverage(const struct setup_fields *f, struct setup *ret)
{
    if (!f->coverage.count) return OK;
    if (f->coverage.count == COVERAGE_NUMBERS && coverage_of(f->coverage.at, &ret->config.coverage))
        return OK;
    return fail(ERR_PROTOCOL, "%d numbers count no rows", f->coverage.count);
}

static err check_queue(const struct setup_fields *f, bool is_wanted)
{
    struct batch_queue queue;
    if (!f->queue.count) return OK;
    if (!is_wanted) return fail(ERR_PROTOCOL, "batches are open, and rows are shared");
    if (!batch_queue_open(&queue, (int)f->workers, 1))
        return fail(ERR_MEMORY, "no memory for the batches that are handed out");
    const bool is_one = batch_queue_read(&queue, f->queue.at, f->queue.count);
    batch_queue_free(&queue);
    return is_one ? OK : fail(ERR_PROTOCOL, "%d numbers are no open batches", f->queue.count);
}

static err read_queue(const struct setup_fields *f, struct arena *arena, struct setup *ret)
{
    int64_t *numbers = arena_array(arena, (size_t)f->queue.count + 1, sizeof *numbers);
    const struct data_share *share = &ret->config.coverage.share;
    const bool is_wanted = f->ps == 0 && share->rows && data_share_is_queue(share);
    for (int i = 0; i < f->queue.count; i++) numbers[i] = f->queue.at[i];
    ret->config.queue = numbers;
    ret->config.queue_numbers = f->queue.count;
    if (f->data.count == IDENTITY_NUMBERS)
        ret->data = (struct data_identity){f->data.at[0], f->data.at[1]};
    return check_queue(f, is_wanted);
}

static err read_powers(const struct setup_fields *f, struct setup *ret)
{
    if (f->powers.count > ret->optimizers.power_count)
        return fail(ERR_PROTOCOL, "%d powers", f->powers.count);
    for (int i = 0; i < f->powers.count; i++) ret->powers[i] = (float)f->powers.at[i];
    ret->power_count = f->powers.count;
    return OK;
}

static err read_json(json_t *json, struct arena *arena, struct setup *ret)
{
    struct setup_fields f;
    TRY(fields_parse(&setup_object, json, "", arena, &f));
    if (f.floats % LAYOUT_ALIGN)
        return fail(ERR_PROTOCOL, "a block of %lld floats", (long long)f.floats);
    if (f.home >= f.ps_count)
        return fail(ERR_PROTOCOL, "ps %d of %d", (int)f.home, (int)f.ps_count);
    if (f.is_held_twice && !replicas_fit(replicas_all((int)f.ps_count, true)))
        return fail(ERR_PROTOCOL, "%d ps that others follow", (int)f.ps_count);
    *ret = (struct setup){
        .config = {.generation = strtoull(f.generation, NULL, 16),
                   .is_sync = f.sync,
                   .last_step = (uint64_t)f.last_step,
                   .rate_factor = f.rate_factor,
                   .replicas_to_aggregate = (uint32_t)f.replicas_to_aggregate,
                   .takes_all = f.takes_all,
                   .max_staleness = f.max_staleness,
                   .worker_timeout_ms = f.worker_timeout_secs,
                   .min_workers = (int)f.min_workers,
                   .needs_everybody = f.needs_everybody,
                   .stretch = (int)f.stretch,
                   .block_floats = f.floats,
                   .follows = f.home != f.ps,
                   .homes = (int)f.ps_count,
                   .ps_count = replicas_all((int)f.ps_count, f.is_held_twice),
                   .arrays = (int)f.arrays,
                   .step = (uint64_t)f.step},
        .floats = f.floats,
        .wire = (enum number)f.wire,
        .wire_values = (enum number)f.wire_values,
        .optimizers = optimizers_make(f.optimizers.at, f.optimizers.count, arena),
        .ps = (int)f.ps,
        .part = {(int)f.home, (int)f.ps_count, f.is_held_twice},
        .workers = (int)f.workers,
        .owns_powers = f.owns_powers,
        .directory = f.directory,
        .publishes = f.publishes,
        .mark = {strtoull(f.token, NULL, 16), f.resizes},
        .restore = f.restore,
        .from = {strtoull(f.snapshot, NULL, 16), strtoull(f.set_in, NULL, 16), f.resumes},
    };
    ret->optimizers.frozen = f.freeze;
    ret->optimizers.decay = f.weight_decay;
    ret->optimizers.rate_factor = f.rate_factor;
    optimizers_keep_average(&ret->optimizers,
                            &(struct average_spec){f.average_decay, f.average_num_updates});
    TRY(optimizers_count_epochs(&ret->optimizers, f.steps_per_epoch));
    TRY(read_slices(&f, arena, ret));
    TRY(read_tables(&f, arena, ret));
    TRY(read_powers(&f, ret));
    TRY(read_coverage(&f, ret));
    TRY(read_queue(&f, arena, ret));
    TRY(read_warm(&f, arena, ret));
    return read_ledger(&f, arena, ret);
}

/* All but where the run stands, where its folder is, and what it began with */
static err read_layout(const json_t *json, struct arena *arena, const char **ret)
{
    static const char *const others[] = {
        "generation",  "step",      "arrays",     "last_step",  "ledger",      "powers",
        "rate_factor", "token",     "resizes",    "directory",  "restore",     "snapshot",
        "set_in",      "resumes",   "coverage",   "queue",      "data",        "stretch",
        "warm_from",   "warm_maps", "warm_skips", "warm_slots", "warm_tables", "warm_rows"};
    json_t *facts = json_copy((json_t *)json);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) json_object_del(facts, others[i]);
    char *text = facts ? json_dumps(facts, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(facts);
    if (!text) return fail(ERR_MEMORY, "no memory to compare a SETUP");
    *ret = arena_string(arena, text);
    free(text);
    return OK;
}

err setup_read(const char *text, size_t bytes, struct arena *arena, struct setup *ret)
{
    json_t *json;
    if (json_read_foreign(text, bytes, 0, &json))
        return fail_prefix(ERR_PROTOCOL, "SETUP is not JSON");
    err e = read_json(json, arena, ret);
    if (!e) e = read_layout(json, arena, &ret->part.layout);
    json_decref(json);
    return e ? fail_prefix(ERR_PROTOCOL, "SETUP") : OK;
}

/* ---- the folder alone ---- */

char *setup_write_folder(const char *directory, uint64_t token)
{
    json_t *json = json_pack("{ss* so}", "directory", directory, "token", hex(token));
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    return text;
}

err setup_read_folder(const char *text, size_t bytes, struct arena *arena,
                      const char **ret_directory, uint64_t *ret_token)
{
    const char *directory = NULL, *token = "";
    json_t *json;
    if (json_read_foreign(text, bytes, 0, &json)) return fail_prefix(ERR_PROTOCOL, "LEADS");
    const bool failed = json_unpack(json, "{s?s ss}", "directory", &directory, "token", &token) ||
                        (directory && strlen(directory) >= PATH_BYTES_MAX);
    if (!failed) *ret_directory = directory ? arena_string(arena, directory) : NULL;
    if (!failed) *ret_token = strtoull(token, NULL, 16);
    json_decref(json);
    return failed ? fail(ERR_PROTOCOL, "LEADS says no folder") : OK;
}
