/* blocks.c - where the parameters of a session lie, and how values and gradients cross.
 *
 * A variable that is one slice is used where the device sees its block: the bound one, or its
 * mirror where that is the host's memory and the device has its own. A partitioned variable has a
 * buffer of its own on the device, gathered before a step and scattered after it.
 */
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/session/session_inside.h"

/* Bound blocks are the host's, and the device does not see them. */
static bool has_mirror(const struct session *s)
{
    return s->mirror.device != NULL;
}

/* The variables of this ps that are used in place. */
static void point_params(struct session *s, int ps, float *values, float *gradients)
{
    for (int i = 0; i < s->graph->param_count; i++) {
        const struct slice *slice;
        if (!layout_is_whole(s->layout, i, &slice) || slice->ps != ps) continue;
        s->graph->params[i]->value = values + slice->offset;
        s->graph->params[i]->gradient = gradients ? gradients + slice->offset : NULL;
    }
}

/* A session that only evaluates makes its own block, and a single process binds memory of the
 * device. */
err session_open_mirror(struct session *s)
{
    const struct session_options *o = &s->options;
    if (!o->device->is_separate || o->only_evaluates || o->binds_device_memory) return OK;
    buckets_open(s->layout, &s->arena, &s->buckets);
    TRY(mirror_open(o->device, o->ps_count, s->layout->block_floats, &s->arena, &s->mirror));
    for (int ps = 0; ps < o->ps_count; ps++)
        if (s->mirror.values[ps])
            point_params(s, ps, s->mirror.values[ps], s->mirror.gradients[ps]);
    return OK;
}

/* With a mirror the graph reads and writes that, whatever is bound. */
void session_bind(struct session *s, int ps, float *values, float *gradients)
{
    s->values[ps] = values;
    s->gradients[ps] = gradients;
    stepper_forget(&s->stepper);
    if (has_mirror(s))
        mirror_bind(&s->mirror, ps, values, gradients);
    else
        point_params(s, ps, values, gradients);
}

void session_unbind(struct session *s, int ps)
{
    s->values[ps] = s->gradients[ps] = NULL;
    stepper_forget(&s->stepper);
    if (has_mirror(s)) mirror_unbind(&s->mirror, ps);
}

/* ---- initial values ---- */

static err initial_value(struct session *s, const struct param *p, float *ret_values)
{
    uint64_t key = random_key((uint64_t)s->options.spec->seed, p->name);
    err e = p->initializer->fill(p->initializer_attributes, &p->shape, key, ret_values);
    return e ? fail_prefix(e, "initial value of %s", p->name) : OK;
}

/* Fans and the orthogonal initializer look at the whole variable, so a part is cut out of it. */
static err initial_parts(struct session *s, int variable, float *whole, int ps, float *block)
{
    float **blocks = arena_array(&s->arena, (size_t)s->options.ps_count, sizeof *blocks);
    blocks[ps] = block;
    TRY(initial_value(s, s->graph->params[variable], whole));
    layout_scatter(s->layout, variable, whole, blocks);
    return OK;
}

/* The session's buffer of the variable, unless that is not the host's memory. */
static err initial_parts_of(struct session *s, int variable, int ps, float *block)
{
    const int64_t count = shape_count(&s->graph->params[variable]->shape);
    if (!s->options.device->is_separate)
        return initial_parts(s, variable, s->whole_values[variable], ps, block);
    float *whole = malloc((size_t)count * sizeof *whole);
    if (!whole) return fail(ERR_MEMORY, "no memory for %lld initial values", (long long)count);
    err e = initial_parts(s, variable, whole, ps, block);
    free(whole);
    return e;
}

err session_initial_values(struct session *s, int ps, float *ret_block)
{
    memset(ret_block, 0, (size_t)s->layout->block_floats[ps] * sizeof(float));
    for (int i = 0; i < s->graph->param_count; i++) {
        const struct slice *slice;
        if (!layout_is_whole(s->layout, i, &slice))
            TRY(initial_parts_of(s, i, ps, ret_block));
        else if (slice->ps == ps)
            TRY(initial_value(s, s->graph->params[i], ret_block + slice->offset));
    }
    return OK;
}

/* ---- what crosses ---- */

/* Whether bound blocks are memory that the host must not touch. */
static bool binds_device(const struct session *s)
{
    return s->options.device->is_separate && s->options.binds_device_memory;
}

void session_put_gradients(struct session *s, int ps, const float *block)
{
    struct device *d = s->options.device;
    const size_t bytes = (size_t)s->layout->block_floats[ps] * sizeof(float);
    if (binds_device(s))
        d->kernels->upload(d, s->gradients[ps], block, bytes);
    else
        memcpy(s->gradients[ps], block, bytes);
}

void session_get_gradients(struct session *s, int ps, float *ret_block)
{
    struct device *d = s->options.device;
    const size_t bytes = (size_t)s->layout->block_floats[ps] * sizeof(float);
    if (binds_device(s))
        d->kernels->download(d, ret_block, s->gradients[ps], bytes);
    else
        memcpy(ret_block, s->gradients[ps], bytes);
}

/* Initializers run on the host, so a block of the device is filled by way of one there. */
err session_put_initial_values(struct session *s, int ps)
{
    const size_t bytes = (size_t)s->layout->block_floats[ps] * sizeof(float);
    if (!binds_device(s)) return session_initial_values(s, ps, s->gradients[ps]);
    float *block = malloc(bytes);
    if (!block) return fail(ERR_MEMORY, "no memory for %zu bytes of initial values", bytes);
    err e = session_initial_values(s, ps, block);
    if (!e) session_put_gradients(s, ps, block);
    free(block);
    return e;
}

/* Partitioned variables come after the blocks that they are gathered from. */
void session_gather_values(struct session *s)
{
    struct device *d = s->options.device;
    float **blocks = has_mirror(s) ? s->mirror.values : s->values;
    if (has_mirror(s)) mirror_upload(&s->mirror);
    for (int i = 0; i < s->graph->param_count; i++) {
        if (!s->whole_values[i]) continue;
        if (d->is_separate)
            layout_gather_on(d, s->layout, i, (const float *const *)blocks, s->whole_values[i]);
        else
            layout_gather(s->layout, i, (const float *const *)blocks, s->whole_values[i]);
    }
}

/* A variable that is one slice has its gradient there already. */
static void scatter_gradient(struct session *s, int variable)
{
    struct device *d = s->options.device;
    float **blocks = has_mirror(s) ? s->mirror.gradients : s->gradients;
    if (!s->whole_values[variable]) return;
    if (d->is_separate)
        layout_scatter_on(d, s->layout, variable, s->whole_gradients[variable], blocks);
    else
        layout_scatter(s->layout, variable, s->whole_gradients[variable], blocks);
}

/* And go before the blocks that they are scattered to. */
void session_scatter_gradients(struct session *s)
{
    for (int i = 0; i < s->graph->param_count; i++) scatter_gradient(s, i);
    if (has_mirror(s)) mirror_download(&s->mirror);
}

/* Params are in the graph's list node by node. */
static int first_variable(const struct graph *g, const struct node *node)
{
    int first = 0;
    for (int i = 0; i < node->index; i++) first += g->nodes[i].param_count;
    return first;
}

void session_send_gradients(void *session, const struct node *node)
{
    struct session *s = session;
    const int first = first_variable(s->graph, node);
    struct bucket bucket;
    for (int i = first; i < first + node->param_count; i++) {
        scatter_gradient(s, i);
        buckets_finish(&s->buckets, i);
    }
    while (buckets_next(&s->buckets, &bucket)) mirror_leave(&s->mirror, &bucket);
}

/* Whole blocks, gaps included: those are zero anyway. What was bound is cleared in any case, also
 * where the device has failed; its own copies show the same to whoever looks at them next. */
void session_clear_gradients(struct session *s)
{
    struct device *d = s->options.device;
    float **blocks = has_mirror(s) ? s->mirror.gradients : s->gradients;
    for (int ps = 0; ps < s->layout->ps_count; ps++) {
        const int64_t floats = s->layout->block_floats[ps];
        if (blocks[ps]) d->kernels->fill(d, blocks[ps], 0.0f, floats);
        if (has_mirror(s) && s->gradients[ps])
            memset(s->gradients[ps], 0, (size_t)floats * sizeof(float));
    }
}
