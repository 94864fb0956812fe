/* replica.c - see replica.h. */
#include "core/train/session/replica.h"

#include <string.h>

err device_floats(struct device *d, int64_t floats, float **ret)
{
    void *memory;
    TRY(d->kernels->allocate(d, (size_t)floats * sizeof(float), &memory));
    *ret = memory;
    return OK;
}

/* ---- where parameters lie ---- */

/* Whether bound blocks are the host's memory, which the device does not see */
static bool has_mirror(const struct replica *r)
{
    return r->mirror.device != NULL;
}

static bool rounds(const struct replica *r)
{
    return r->rounding.device != NULL;
}

static bool widens(const struct replica *r)
{
    return r->widening.device != NULL;
}

/* The blocks of floats that the device reads */
static float **value_blocks(const struct replica *r)
{
    if (has_mirror(r)) return r->mirror.values;
    return widens(r) ? r->widening.values : r->values;
}

/* The blocks that the device writes gradients to */
static float **gradient_blocks(const struct replica *r)
{
    if (has_mirror(r)) return r->mirror.gradients;
    return rounds(r) ? r->rounding.gradients : r->gradients;
}

/* Points the parameters that are used in place at the block of this ps. */
static void point_params(struct replica *r, int ps, float *values, float *gradients)
{
    for (int i = 0; i < r->graph->param_count; i++) {
        const struct slice *slice;
        if (!layout_is_whole(r->layout, i, &slice) || slice->ps != ps) continue;
        r->graph->params[i]->value = values + slice->offset;
        r->graph->params[i]->gradient = gradients ? gradients + slice->offset : NULL;
    }
}

static err open_mirror(struct replica *r, struct arena *arena)
{
    const struct layout *layout = r->layout;
    buckets_open(layout, MIRROR_BUCKET_FLOATS, arena, &r->buckets);
    TRY(mirror_open(r->device, layout, arena, &r->mirror));
    TRY(ascent_open(&r->mirror, layout, r->graph, arena, &r->ascent));
    for (int ps = 0; ps < layout->ps_count; ps++)
        if (r->mirror.values[ps])
            point_params(r, ps, r->mirror.values[ps], r->mirror.gradients[ps]);
    return OK;
}

/* Buffers of partitioned variables. */
static err open_buffers(struct replica *r)
{
    for (int i = 0; i < r->graph->param_count; i++) {
        struct param *param = r->graph->params[i];
        const int64_t floats = param_floats(param);
        if (layout_is_whole(r->layout, i, NULL)) continue;
        TRY(device_floats(r->device, floats, &r->whole_values[i]));
        TRY(device_floats(r->device, floats, &r->whole_gradients[i]));
        param->value = r->whole_values[i];
        param->gradient = r->whole_gradients[i];
        param->is_kept = true;
    }
    return OK;
}

static err open_rounding(struct replica *r, enum number as, struct arena *arena)
{
    float **mirrored = has_mirror(r) ? r->mirror.gradients : NULL;
    if (as == NUMBER_FLOAT32) return OK;
    TRY(rounding_open(r->device, as, r->layout, mirrored, arena, &r->rounding));
    if (mirrored) mirror_leave_from(&r->mirror, (void **)r->rounding.to, as);
    return OK;
}

static err open_widening(struct replica *r, enum number as, struct arena *arena)
{
    float **mirrored = has_mirror(r) ? r->mirror.values : NULL;
    if (as == NUMBER_FLOAT32) return OK;
    TRY(widening_open(r->device, as, r->layout, mirrored, arena, &r->widening));
    if (mirrored) mirror_arrive_at(&r->mirror, (void **)r->widening.from, as);
    return OK;
}

err replica_open(const struct replica_options *o, struct arena *arena, struct replica *ret)
{
    const size_t variables = (size_t)o->graph->param_count, ps_count = (size_t)o->layout->ps_count;
    *ret = (struct replica){
        .device = o->device,
        .graph = o->graph,
        .layout = o->layout,
        .exchange = o->exchange,
        .values = arena_array(arena, ps_count, sizeof(float *)),
        .gradients = arena_array(arena, ps_count, sizeof(float *)),
        .whole_values = arena_array(arena, variables, sizeof(float *)),
        .whole_gradients = arena_array(arena, variables, sizeof(float *)),
    };
    if (o->mirrors) TRY(open_mirror(ret, arena));
    TRY(open_rounding(ret, o->number, arena));
    TRY(open_widening(ret, o->value_number, arena));
    if (ret->exchange) buckets_open(o->layout, 1, arena, &ret->buckets);
    for (int i = 0; i < o->graph->param_count; i++)
        o->graph->params[i]->leaves_amid = ret->exchange && o->leaves_within_node;
    return open_buffers(ret);
}

void replica_close(struct replica *r)
{
    stepper_forget(&r->stepper);
    plan_close(r->plan);
    for (int i = 0; r->whole_values && i < r->graph->param_count; i++) {
        if (r->whole_values[i]) r->device->kernels->release(r->device, r->whole_values[i]);
        if (r->whole_gradients[i]) r->device->kernels->release(r->device, r->whole_gradients[i]);
    }
    rounding_close(&r->rounding);
    widening_close(&r->widening);
    ascent_close(&r->ascent);
    mirror_close(&r->mirror);
    *r = (struct replica){0};
}

/* With a mirror the graph reads and writes the mirror, whatever is bound. */
void replica_bind(struct replica *r, int ps, void *values, float *gradients)
{
    r->values[ps] = values;
    r->gradients[ps] = gradients;
    stepper_forget(&r->stepper);
    rounding_bind(&r->rounding, ps, gradients);
    widening_bind(&r->widening, ps, values);
    if (has_mirror(r))
        mirror_bind(&r->mirror, ps, values, gradients);
    else
        point_params(r, ps, value_blocks(r)[ps], gradient_blocks(r)[ps]);
}

void replica_unbind(struct replica *r, int ps)
{
    r->values[ps] = r->gradients[ps] = NULL;
    stepper_forget(&r->stepper);
    rounding_bind(&r->rounding, ps, NULL);
    widening_bind(&r->widening, ps, NULL);
    if (has_mirror(r)) mirror_unbind(&r->mirror, ps);
}

void replica_share(struct replica *r, const struct replica *of)
{
    for (int i = 0; i < r->graph->param_count; i++)
        if (!r->graph->params[i]->held) r->graph->params[i]->value = of->graph->params[i]->value;
}

err replica_hold_tables(struct replica *r, struct arena *arena)
{
    const size_t variables = (size_t)r->graph->param_count;
    r->whole_values = arena_array(arena, variables, sizeof(float *));
    r->whole_gradients = arena_array(arena, variables, sizeof(float *));
    for (int i = 0; i < r->graph->param_count; i++) {
        struct param *param = r->graph->params[i];
        if (param->held) TRY(device_floats(r->device, param_floats(param), &r->whole_values[i]));
        if (param->held) param->value = r->whole_values[i];
    }
    return OK;
}

static bool is_table(const struct replica *r, int variable)
{
    return r->graph->params[variable]->held > 0;
}

/* ---- what crosses ---- */

/* A variable that is one slice is read where it lies. */
static void gather_value(struct replica *r, int variable)
{
    struct device *d = r->device;
    float **blocks = value_blocks(r);
    float *whole = r->whole_values[variable];
    if (!whole || is_table(r, variable)) return;
    if (d->is_separate)
        layout_gather_on(d, r->layout, variable, (const float *const *)blocks, whole);
    else
        layout_gather(r->layout, variable, (const float *const *)blocks, whole);
}

/* Partitioned variables come last: they are gathered from blocks that must have arrived. */
void replica_gather_values(struct replica *r)
{
    if (has_mirror(r)) mirror_upload(&r->mirror);
    for (int ps = 0; ps < r->layout->ps_count; ps++)
        widening_widen(&r->widening, ps, 0, r->layout->block_floats[ps]);
    for (int i = 0; i < r->graph->param_count; i++) gather_value(r, i);
}

void replica_send_values(struct replica *r)
{
    r->follows_values = ascent_begin(&r->ascent, &r->mirror);
    if (!r->follows_values) replica_gather_values(r);
}

/* The gradient of a range of the variable, which is all of it where the device has its own memory.
 * A variable that is a single slice has its gradient in place already. */
static void scatter_gradient(struct replica *r, int variable, struct range part)
{
    struct device *d = r->device;
    float **blocks = gradient_blocks(r);
    if (!r->whole_values[variable] || is_table(r, variable)) return;
    if (d->is_separate)
        layout_scatter_on(d, r->layout, variable, r->whole_gradients[variable], blocks);
    else
        layout_scatter_part(r->layout, variable, r->whole_gradients[variable], blocks, part);
}

/* Partitioned variables go first: their gradients are scattered to blocks that then leave. */
void replica_scatter_gradients(struct replica *r)
{
    for (int i = 0; i < r->graph->param_count; i++)
        scatter_gradient(r, i, (struct range){0, param_floats(r->graph->params[i])});
    if (has_mirror(r) && !rounds(r)) mirror_download(&r->mirror);
}

void replica_round_gradients(struct replica *r)
{
    if (!rounds(r)) return;
    for (int ps = 0; ps < r->layout->ps_count; ps++)
        rounding_round(&r->rounding, ps, 0, r->layout->moved_floats[ps]);
    if (has_mirror(r)) mirror_download(&r->mirror);
}

/* Clears whole blocks; their gaps are zero anyway. Bound memory is cleared even where the device
 * has failed: the device's own copies show the same to whoever reads them next. */
void replica_clear_gradients(struct replica *r)
{
    struct device *d = r->device;
    float **blocks = gradient_blocks(r);
    for (int ps = 0; ps < r->layout->ps_count; ps++) {
        const int64_t floats = r->layout->block_floats[ps];
        if (blocks[ps]) d->kernels->fill(d, blocks[ps], 0.0f, floats);
        if (has_mirror(r) && r->gradients[ps])
            memset(r->gradients[ps], 0, (size_t)floats * sizeof(float));
    }
    for (int i = 0; i < r->graph->param_count; i++)
        if (is_table(r, i))
            d->kernels->fill(d, r->whole_gradients[i], 0.0f, param_floats(r->graph->params[i]));
}

/* ---- a pass ---- */

static void begin_buckets(void *replica)
{
    struct replica *r = replica;
    buckets_begin(&r->buckets);
    mirror_begin_leaving(&r->mirror);
}

/* The slices of a node's variables */
struct node_slices {
    int first, end;
};

static struct node_slices slices_of(const struct replica *r, const struct node *node)
{
    const int first = graph_first_param(r->graph, node);
    return (struct node_slices){layout_first_slice(r->layout, first),
                                layout_first_slice(r->layout, first + node->param_count)};
}

static struct range range_of(const struct slice *slice)
{
    return (struct range){slice->offset, slice->offset + slice->count};
}

/* Brings the node's values to where the node reads them. */
static void take_values(struct replica *r, const struct node *node)
{
    const int first = graph_first_param(r->graph, node);
    const struct node_slices slices = slices_of(r, node);
    for (int i = slices.first; i < slices.end; i++) {
        const struct slice *slice = &r->layout->slices[i];
        widening_widen(&r->widening, slice->ps, slice->offset, slice->count);
    }
    for (int i = first; i < first + node->param_count; i++) gather_value(r, i);
    if (r->wants_penalty) /* values may be replaced by later ones during */
        graph_add_regularization(r->graph, first, node->param_count, r->device, &r->penalty);
}

static bool await_values(void *replica, const struct node *node)
{
    struct replica *r = replica;
    const struct node_slices slices = slices_of(r, node);
    for (int i = slices.first; i < slices.end; i++) {
        const struct slice *slice = &r->layout->slices[i];
        r->is_void |= !r->exchange->await(r->exchange->context, slice->ps, range_of(slice));
    }
    take_values(r, node);
    return true;
}

static bool follow_values(void *replica, const struct node *node)
{
    struct replica *r = replica;
    ascent_follow(&r->ascent, (int)(node - r->graph->nodes));
    take_values(r, node);
    return true;
}

static bool values_are_there(void *replica, const struct node *node)
{
    struct replica *r = replica;
    const struct node_slices slices = slices_of(r, node);
    for (int i = slices.first; i < slices.end; i++) {
        const struct slice *slice = &r->layout->slices[i];
        if (!r->exchange->is_there(r->exchange->context, slice->ps, range_of(slice))) return false;
    }
    take_values(r, node);
    return true;
}

int replica_speculate(struct replica *r)
{
    if (r->stepper.ahead == 0) r->penalty = 0;
    return stepper_run_ahead(&r->stepper, values_are_there, r);
}

static void leave(struct replica *r, int ps, struct range range)
{
    if (rounds(r)) rounding_round(&r->rounding, ps, range.begin, range_count(range));
    if (r->exchange)
        r->exchange->leave(r->exchange->context, ps, range);
    else
        mirror_leave(&r->mirror, ps, range);
}

static void finish_gradient(struct replica *r, int variable, int64_t floats)
{
    const int64_t before = r->buckets.complete[variable];
    if (floats > before) scatter_gradient(r, variable, (struct range){before, floats});
    buckets_finish(&r->buckets, variable, floats);
}

static void send_gradients(void *replica, const struct node *node, int64_t floats)
{
    struct replica *r = replica;
    const int first = graph_first_param(r->graph, node);
    int ps;
    struct range bucket;
    if (r->is_void) return;
    finish_gradient(r, first, floats);
    for (int i = 1; i < node->param_count; i++)
        finish_gradient(r, first + i, param_floats(&node->param[i]));
    while (buckets_next(&r->buckets, &ps, &bucket)) leave(r, ps, bucket);
}

void replica_run(struct replica *r, int64_t rows, bool add, bool leaves)
{
    if (r->awaits_values) {
        if (r->stepper.ahead == 0) r->penalty = 0;
        r->is_void = false;
    }
    const struct pass pass = {
        .rows = rows,
        .add = add,
        .begin = leaves ? begin_buckets : NULL,
        .needed = r->awaits_values    ? await_values
                  : r->follows_values ? follow_values
                                      : NULL,
        .finished = leaves ? send_gradients : NULL,
        .context = r,
    };
    stepper_run(&r->stepper, &pass);
    r->awaits_values = false;
}

void replica_hand_on(const struct replica *r, const struct exchange *to)
{
    struct range range;
    int ps;
    if (!to->takes(to->context)) return;
    for (int i = 0; mirror_has_left(&r->mirror, i, &ps, &range); i++)
        to->leave(to->context, ps, range);
}

/* Values are checked before gradients: a value that is not finite came with an earlier update and
 * spoils every gradient after it. Frozen variables have no gradient, or one that nobody reads. */
const char *replica_not_finite(const struct replica *r, bool *ret_is_gradient)
{
    struct device *d = r->device;
    const struct graph *g = r->graph;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < g->param_count; i++) {
            const struct param *p = g->params[i];
            const float *at = pass == 0 ? p->value : p->gradient;
            if (pass == 1 && p->is_frozen) continue;
            if (d->kernels->all_finite(d, at, param_floats(p))) continue;
            *ret_is_gradient = pass == 1;
            return p->name;
        }
    }
    return NULL;
}
