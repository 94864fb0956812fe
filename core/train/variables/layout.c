/* layout.c - cuts variables into slices and places these in blocks.
 *
 * Every worker computes the same layout from the spec, so it is never sent. The order matters: pins
 * are checked, variables are cut, slices are placed in creation order, and then their offsets in
 * blocks follow.
 */
#include "core/train/variables/layout.h"

#include <assert.h>
#include <fnmatch.h>
#include <string.h>

#include "core/base/replicas.h"
#include "core/train/variables/growing/keys.h"
#include "core/train/variables/place.h"

enum { GLOBAL_STEP_BYTES = 8, GLOBAL_STEP_PS = 0 };

static const char *const strategy_names[] = {
    [PLACE_ROUND_ROBIN] = "round_robin", [PLACE_GREEDY] = "greedy", NULL};

static const char *const partition_strategy_names[] = {
    [PARTITION_DIV] = "div", [PARTITION_MOD] = "mod", NULL};

static const struct field pin_fields[] = {
    FIELD_OF("match", STRING, struct pin, match,
             .help = "a variable's name, or a pattern such as \"conv*/kernel\""),
    FIELD_OF("ps", INT, struct pin, ps, .min = 0, .max = PS_MAX - 1,
             .help = "index of the ps task for the matching variables"),
    {0},
};

static const struct object pin_object = {.name = "pin",
                                         .summary = "pins variables to a ps",
                                         .fields = pin_fields,
                                         .size = sizeof(struct pin)};

static const struct field placement_fields[] = {
    FIELD_OF("strategy", ENUM, struct placement_spec, strategy, .fallback = "\"round_robin\"",
             .choices = strategy_names,
             .help = "round_robin: variables in model order, each to the next ps; greedy: each to "
                     "the ps with the fewest bytes so far"),
    FIELD_OF("pins", OBJECTS, struct placement_spec, pins, .fallback = "[]", .object = &pin_object,
             .help = "variables pinned to a ps; the first matching pin is used"),
    FIELD_OF("partitioner", VARIANT, struct placement_spec, partitioner, .fallback = "null",
             .kinds = &partitioner_kinds,
             .help = "splits variables into parts that are placed separately; null: balanced if "
                     "that lightens the most loaded link between hosts, else none"),
    FIELD_OF("partition_strategy", ENUM, struct placement_spec, partition_strategy,
             .fallback = "\"div\"", .choices = partition_strategy_names,
             .help = "how the rows of a table are divided among its n parts: div: contiguous "
                     "ranges of ids; mod: id i is row i / n of part i mod n"),
    {0},
};

static const struct pin *pin_at(const struct placement_spec *spec, int index)
{
    return (const struct pin *)spec->pins.at + index;
}

static const struct pin *pin_of(const struct placement_spec *spec, const char *name)
{
    for (int i = 0; i < spec->pins.count; i++) {
        if (fnmatch(pin_at(spec, i)->match, name, 0) == 0) return pin_at(spec, i);
    }
    return NULL;
}

/* A pin that matches nothing is probably misspelt: reported now, not when a ps is full. */
static bool matches_any(const struct pin *pin, const struct variable *variables, int count)
{
    for (int i = 0; i < count; i++) {
        if (fnmatch(pin->match, variables[i].name, 0) == 0) return true;
    }
    return false;
}

static err fail_no_match(const struct pin *pin, int index, const struct layout *layout,
                         struct arena *arena)
{
    const char **names =
        arena_array(arena, (size_t)layout->variable_count + 1, sizeof(const char *));
    for (int i = 0; i < layout->variable_count; i++) names[i] = layout->variables[i].name;
    const struct suggestion near = suggest(pin->match, names, layout->variable_count);
    return fail(ERR_INPUT, "placement.pins[%d].match: no variable is called \"%s\"%s", index,
                pin->match, near.text);
}

static err check_pins(const struct placement_spec *spec, const struct layout *layout,
                      struct arena *arena)
{
    for (int i = 0; i < spec->pins.count; i++) {
        const struct pin *pin = pin_at(spec, i);
        if (pin->ps >= layout->ps_count) {
            return fail(ERR_INPUT, "placement.pins[%d].ps: expected a ps from 0 to %d, got %lld", i,
                        layout->ps_count - 1, (long long)pin->ps);
        }
        if (!matches_any(pin, layout->variables, layout->variable_count)) {
            return fail_no_match(pin, i, layout, arena);
        }
    }
    return OK;
}

/* The length along an axis. A scalar has one row, along axis 0. */
static int64_t rows_of(const struct shape *shape, int axis)
{
    return shape->rank == 0 ? 1 : shape->dim[axis];
}

static bool grows(const struct variable *variable)
{
    return variable->table && variable->table->growth;
}

static void cut(struct layout *layout, int variable, struct partition partition, bool by_turns)
{
    const struct shape *shape = &layout->variables[variable].shape;
    const bool is_growing = grows(&layout->variables[variable]);
    const int64_t rows = is_growing ? KEYS : rows_of(shape, partition.axis);
    for (int64_t part = 0; part < partition.parts; part++) {
        const int64_t start = partition_start(rows, partition.parts, part);
        const int64_t length = partition_start(rows, partition.parts, part + 1) - start;
        layout->slices[layout->slice_count++] = (struct slice){
            .name = layout->variables[variable].name,
            .shape = *shape,
            .variable = variable,
            .part = (int)part,
            .parts = (int)partition.parts,
            .mod = by_turns && partition.parts > 1 ? (int)partition.parts : 0,
            .moving = layout->variables[variable].moving,
            .axis = partition.axis,
            .start = start,
            .length = length,
            .count = is_growing ? shape_count(shape) : shape_count(shape) / rows * length,
        };
    }
}

/* A large table is cut over all ps, unless the spec says otherwise. */
static struct partition partition_for(const struct placement_spec *spec,
                                      const struct layout *layout, const struct variable *variable)
{
    const int64_t bytes = shape_count(&variable->shape) * (int64_t)sizeof(float);
    if (grows(variable))
        return (struct partition){0, pin_of(spec, variable->name) ? 1 : layout->ps_count};
    const bool is_free = !spec->partitioner.kind || partitioner_balances(&spec->partitioner);
    if (variable->table && is_free && bytes >= LAYOUT_LARGE_BYTES && !pin_of(spec, variable->name))
        return partition_over(layout->ps_count, &variable->shape);
    const struct partition partition = partition_of(&spec->partitioner, &variable->shape);
    return variable->table && partition.axis ? (struct partition){0, 1} : partition;
}

static bool is_by_turns(const struct placement_spec *spec, const struct variable *variable)
{
    return spec->partition_strategy == PARTITION_MOD && variable->table && !variable->table->growth;
}

/* Gives tables that are named by the same ids the same number of parts, so that their rows are in
 * the same order. */
static void agree(const struct placement_spec *spec, const struct layout *layout,
                  struct partition *partitions, int last)
{
    const struct variable *variables = layout->variables;
    if (!is_by_turns(spec, &variables[last])) return;
    for (int i = 0; i < last; i++) {
        if (!is_by_turns(spec, &variables[i])) continue;
        if (variables[i].table->column != variables[last].table->column) continue;
        if (partitions[i].parts < partitions[last].parts)
            partitions[i] = partitions[last];
        else
            partitions[last] = partitions[i];
    }
}

/* Counts the parts before anything is cut: a limit on what a spec may ask for. */
static err choose_partitions(const struct placement_spec *spec, const struct layout *layout,
                             struct partition *ret)
{
    int64_t total = 0;
    for (int i = 0; i < layout->variable_count; i++) {
        ret[i] = partition_for(spec, layout, &layout->variables[i]);
        agree(spec, layout, ret, i);
    }
    for (int i = 0; i < layout->variable_count; i++) {
        total += ret[i].parts;
        if (total <= SLICES_MAX) continue;
        return fail(ERR_INPUT,
                    "placement.partitioner: %s would be cut into %lld parts; a model may have %d",
                    layout->variables[i].name, (long long)ret[i].parts, SLICES_MAX);
    }
    return OK;
}

static void cut_all(const struct placement_spec *spec, struct layout *layout,
                    const struct partition *partitions, struct arena *arena)
{
    int64_t total = 0;
    for (int i = 0; i < layout->variable_count; i++) total += partitions[i].parts;
    layout->slices = arena_array(arena, (size_t)total + 1, sizeof(struct slice));
    layout->slice_count = 0;
    for (int i = 0; i < layout->variable_count; i++)
        cut(layout, i, partitions[i], is_by_turns(spec, &layout->variables[i]));
}

static int64_t slice_bytes(const struct slice *slice)
{
    return slice->count * (int64_t)sizeof(float);
}

static void count_bytes(struct layout *layout)
{
    memset(layout->ps_bytes, 0, (size_t)layout->ps_count * sizeof *layout->ps_bytes);
    for (int i = 0; i < layout->slice_count; i++)
        layout->ps_bytes[layout->slices[i].ps] += slice_bytes(&layout->slices[i]);
}

/* Pinned bytes count from the start, so that greedy placement makes up for them. */
static void place_all(const struct placement_spec *spec, struct layout *layout, struct arena *arena)
{
    struct placer placer =
        placer_make((enum placement_strategy)spec->strategy, layout->ps_count, arena);
    placer_take(&placer, GLOBAL_STEP_BYTES);

    const struct pin **pins =
        arena_array(arena, (size_t)layout->variable_count + 1, sizeof(const struct pin *));
    for (int i = 0; i < layout->variable_count; i++)
        pins[i] = pin_of(spec, layout->variables[i].name);
    for (int i = 0; i < layout->slice_count; i++) {
        struct slice *slice = &layout->slices[i];
        const struct pin *pin = pins[slice->variable];
        if (!pin) continue;
        slice->ps = (int)pin->ps;
        placer_pin(&placer, slice->ps, slice_bytes(slice));
    }
    for (int i = 0; i < layout->slice_count; i++) {
        struct slice *slice = &layout->slices[i];
        if (!pins[slice->variable]) slice->ps = placer_take(&placer, slice_bytes(slice));
    }
    count_bytes(layout);
}

/* At 1.5 times its share, one ps determines the time of a step. */
int layout_overloaded(const struct layout *layout, double *ret_times_share)
{
    int64_t total = 0;
    int heaviest = 0;
    for (int ps = 0; ps < layout->ps_count; ps++) {
        total += layout->ps_bytes[ps];
        if (layout->ps_bytes[ps] > layout->ps_bytes[heaviest]) heaviest = ps;
    }
    const int64_t most = layout->ps_bytes[heaviest];
    if (most < LAYOUT_LARGE_BYTES) return -1;
    const double times = (double)most * layout->ps_count / (double)total;
    if (times <= 1.5) return -1;
    *ret_times_share = times;
    return heaviest;
}

/* The largest variable on this ps that is large enough to be cut and is not pinned; -1: none. */
static int find_to_cut(const struct placement_spec *spec, const struct layout *layout, int ps)
{
    int64_t most = LAYOUT_LARGE_BYTES - 1;
    int found = -1;
    for (int i = 0; i < layout->slice_count; i++) {
        const struct slice *slice = &layout->slices[i];
        if (slice->ps != ps || slice->parts > 1 || slice_bytes(slice) <= most) continue;
        if (layout->variables[slice->variable].table) continue;
        if (partition_over(layout->ps_count, &slice->shape).parts == 1) continue;
        if (pin_of(spec, slice->name)) continue;
        most = slice_bytes(slice);
        found = slice->variable;
    }
    return found;
}

/* Cuts one variable after the other, no more than needed: each worker has to reassemble cut
 * variables in each step. */
static void balance(const struct placement_spec *spec, struct layout *layout,
                    struct partition *partitions, struct arena *arena)
{
    double share;
    int ps, variable;
    while ((ps = layout_overloaded(layout, &share)) >= 0 &&
           (variable = find_to_cut(spec, layout, ps)) >= 0) {
        const struct partition over =
            partition_over(layout->ps_count, &layout->variables[variable].shape);
        if (layout->slice_count + over.parts > SLICES_MAX) return;
        if (layout->balanced_count++ == 0) {
            layout->balanced_ps = ps;
            layout->balanced_share = share;
        }
        partitions[variable] = over;
        cut_all(spec, layout, partitions, arena);
        place_all(spec, layout, arena);
    }
}

/* Moves slices of tables behind those of dense variables. */
static void part_tables(struct layout *layout, struct arena *arena)
{
    const int count = layout->all_count = layout->slice_count;
    struct slice *parted = arena_array(arena, (size_t)count + 1, sizeof *parted);
    int at = 0;
    for (int tables = 0; tables < 2; tables++) {
        for (int i = 0; i < count; i++)
            if ((layout->variables[layout->slices[i].variable].table != NULL) == tables)
                parted[at++] = layout->slices[i];
        if (!tables) layout->slice_count = at;
    }
    layout->slices = parted;
}

static void lay_out(struct layout *layout, bool are_frozen)
{
    for (int i = layout->slice_count - 1; i >= 0; i--) {
        struct slice *slice = &layout->slices[i];
        int64_t *end = &layout->block_floats[slice->ps];
        if (layout->variables[slice->variable].is_frozen != are_frozen) continue;
        slice->offset = *end;
        *end += (slice->count + LAYOUT_ALIGN - 1) / LAYOUT_ALIGN * LAYOUT_ALIGN;
    }
}

/* Backward completes the variable that was created last first, so slices are in this order, and a
 * complete range of a block can be sent while the rest is computed. Each ps with a slice has a
 * gradient to receive: if it holds only frozen variables or tables, its block begins with unused
 * floats. */
static void lay_out_blocks(struct layout *layout)
{
    lay_out(layout, false);
    for (int i = 0; i < layout->all_count; i++) {
        int64_t *end = &layout->block_floats[layout->slices[i].ps];
        if (*end == 0) *end = LAYOUT_ALIGN;
    }
    for (int ps = 0; ps < layout->ps_count; ps++)
        layout->moved_floats[ps] = layout->block_floats[ps];
    lay_out(layout, true);
}

static err check_replicas(const struct placement_spec *spec, const struct layout *layout)
{
    const int ps = layout->all_ps;
    if (!spec->is_held_twice) return OK;
    if (!replicas_fit(ps))
        return fail(ERR_INPUT,
                    "train.ps_replicas: ps/0, which has no follower, and two for each other part "
                    "are an odd number of ps, from 3 to %d; there %s %d",
                    REPLICAS_PS_MAX, ps == 1 ? "is" : "are", ps);
    return OK;
}

static void add_followers(struct layout *layout)
{
    for (int ps = layout->ps_count; ps < layout->all_ps; ps++) {
        const int home = layout_home(layout, ps);
        layout->block_floats[ps] = layout->block_floats[home];
        layout->moved_floats[ps] = layout->moved_floats[home];
        layout->ps_bytes[ps] = layout->ps_bytes[home];
    }
}

int layout_home(const struct layout *layout, int ps)
{
    return replicas_home(layout->ps_count, ps);
}

err layout_make(const struct placement_spec *spec, const struct variable *variables, int count,
                int ps_count, struct arena *arena, struct layout **ret)
{
    assert(ps_count >= 1 && ps_count <= PS_MAX);
    struct layout *layout = arena_new(arena, sizeof *layout);
    struct partition *partitions = arena_array(arena, (size_t)count + 1, sizeof *partitions);
    *layout = (struct layout){
        .ps_count = ps_count,
        .all_ps = ps_count,
        .variable_count = count,
        .variables = variables,
        .block_floats = arena_array(arena, (size_t)ps_count, sizeof(int64_t)),
        .moved_floats = arena_array(arena, (size_t)ps_count, sizeof(int64_t)),
        .ps_bytes = arena_array(arena, (size_t)ps_count, sizeof(int64_t)),
    };
    TRY(check_replicas(spec, layout));
    layout->ps_count = replicas_homes(ps_count, spec->is_held_twice);
    TRY(check_pins(spec, layout, arena));
    TRY(choose_partitions(spec, layout, partitions));
    cut_all(spec, layout, partitions, arena);
    place_all(spec, layout, arena);
    if (partitioner_balances(&spec->partitioner)) balance(spec, layout, partitions, arena);
    part_tables(layout, arena);
    lay_out_blocks(layout);
    add_followers(layout);
    *ret = layout;
    return OK;
}

int layout_first_slice(const struct layout *layout, int variable)
{
    int low = 0, high = layout->slice_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (layout->slices[middle].variable < variable) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A slice within the whole variable [before, rows, after]: `before` runs of length * after floats,
 * one every rows * after floats. In its block they are contiguous. */
struct runs {
    int64_t count, floats, stride, start;
};

static struct runs runs_of(const struct layout *layout, const struct slice *slice)
{
    const struct shape *shape = &layout->variables[slice->variable].shape;
    const int64_t after = shape_count_from(shape, slice->axis + 1);
    return (struct runs){
        .count = slice->count / (slice->length * after),
        .floats = slice->length * after,
        .stride = rows_of(shape, slice->axis) * after,
        .start = slice->start * after,
    };
}

void layout_gather(const struct layout *layout, int variable, const float *const blocks[],
                   float *whole)
{
    const struct slice *slice = &layout->slices[layout_first_slice(layout, variable)];
    for (int left = slice->parts; left > 0; left--, slice++) {
        const struct runs runs = runs_of(layout, slice);
        const float *from = blocks[slice->ps] + slice->offset;
        float *to = whole + runs.start;
        for (int64_t i = 0; i < runs.count; i++, from += runs.floats, to += runs.stride) {
            memcpy(to, from, (size_t)runs.floats * sizeof(float));
        }
    }
}

void layout_scatter_part(const struct layout *layout, int variable, const float *whole,
                         float *const blocks[], struct range part)
{
    const struct slice *slice = &layout->slices[layout_first_slice(layout, variable)];
    for (int left = slice->parts; left > 0; left--, slice++) {
        if (!blocks[slice->ps]) continue;
        const struct runs runs = runs_of(layout, slice);
        int64_t own = runs.start;
        float *to = blocks[slice->ps] + slice->offset;
        for (int64_t i = 0; i < runs.count; i++, own += runs.stride, to += runs.floats) {
            const struct range copied = range_meet((struct range){own, own + runs.floats}, part);
            if (!range_is_empty(copied))
                memcpy(to + copied.begin - own, whole + copied.begin,
                       (size_t)range_count(copied) * sizeof(float));
        }
    }
}

void layout_scatter(const struct layout *layout, int variable, const float *whole,
                    float *const blocks[])
{
    const struct range all = {0, shape_count(&layout->variables[variable].shape)};
    layout_scatter_part(layout, variable, whole, blocks, all);
}

void layout_gather_on(struct device *device, const struct layout *layout, int variable,
                      const float *const blocks[], float *whole)
{
    const struct slice *slice = &layout->slices[layout_first_slice(layout, variable)];
    for (int left = slice->parts; left > 0; left--, slice++) {
        const struct runs runs = runs_of(layout, slice);
        const struct strided copy = {
            .rows = runs.count,
            .columns = runs.floats,
            .dst_stride = runs.stride,
            .src_stride = runs.floats,
            .dst = whole + runs.start,
            .src = blocks[slice->ps] + slice->offset,
        };
        device->kernels->copy_strided(device, &copy);
    }
}

void layout_scatter_on(struct device *device, const struct layout *layout, int variable,
                       const float *whole, float *const blocks[])
{
    const struct slice *slice = &layout->slices[layout_first_slice(layout, variable)];
    for (int left = slice->parts; left > 0; left--, slice++) {
        if (!blocks[slice->ps]) continue;
        const struct runs runs = runs_of(layout, slice);
        const struct strided copy = {
            .rows = runs.count,
            .columns = runs.floats,
            .dst_stride = runs.floats,
            .src_stride = runs.stride,
            .dst = blocks[slice->ps] + slice->offset,
            .src = whole + runs.start,
        };
        device->kernels->copy_strided(device, &copy);
    }
}

bool layout_is_whole(const struct layout *layout, int variable, const struct slice **ret_slice)
{
    const struct slice *slice = &layout->slices[layout_first_slice(layout, variable)];
    if (layout->variables[variable].table || slice->parts > 1) return false;
    if (ret_slice) *ret_slice = slice;
    return true;
}

const struct object placement_spec_object = {.name = "placement",
                                             .summary =
                                                 "placement: which ps task holds which variable",
                                             .fields = placement_fields,
                                             .size = sizeof(struct placement_spec)};
