/* values.c - the initial values of a session that trains, and the names of those that a checkpoint
 * can replace. */
#include <stdlib.h>
#include <string.h>

#include "core/base/random.h"
#include "core/train/checkpoint/shard.h"
#include "core/train/session/session_inside.h"

uint64_t session_key(const struct session *s, const struct param *p)
{
    return random_key((uint64_t)s->options.spec->seed, p->name);
}

static err initial_value(struct session *s, const struct param *p, float *ret_values)
{
    const struct initial all = {
        .shape = &p->shape, .key = session_key(s, p), .count = shape_count(&p->shape)};
    err e = p->initializer->fill(p->initializer_attributes, &all, ret_values);
    return e ? fail_prefix(e, "initial value of %s", p->name) : OK;
}

/* An initializer may need the whole variable, so that is made and a part copied out of it. */
static err initial_parts(struct session *s, int variable, float *whole, int ps, float *block)
{
    float **blocks = arena_array(&s->arena, (size_t)s->options.ps_count, sizeof *blocks);
    blocks[ps] = block;
    TRY(initial_value(s, s->graph->params[variable], whole));
    layout_scatter(s->layout, variable, whole, blocks);
    return OK;
}

/* Uses the session's own buffer for the whole variable if that is memory of the host. */
static err initial_parts_of(struct session *s, int variable, int ps, float *block)
{
    const int64_t count = shape_count(&s->graph->params[variable]->shape);
    if (!s->options.device->is_separate)
        return initial_parts(s, variable, s->replica.whole_values[variable], ps, block);
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
        if (s->layout->variables[i].table) continue; /* a ps makes its rows itself */
        if (!layout_is_whole(s->layout, i, &slice))
            TRY(initial_parts_of(s, i, ps, ret_block));
        else if (slice->ps == ps)
            TRY(initial_value(s, s->graph->params[i], ret_block + slice->offset));
    }
    return OK;
}

/* ---- to and from where they are bound ---- */

/* Whether bound blocks are memory of a device that the host does not see */
static bool binds_device(const struct session *s)
{
    return s->options.device->is_separate && s->options.binds_device_memory;
}

void session_put_gradients(struct session *s, int ps, const float *block)
{
    struct device *d = s->options.device;
    const size_t bytes = (size_t)s->layout->block_floats[ps] * sizeof(float);
    if (binds_device(s))
        d->kernels->upload(d, s->replica.gradients[ps], block, bytes);
    else
        memcpy(s->replica.gradients[ps], block, bytes);
}

void session_get_gradients(struct session *s, int ps, float *ret_block)
{
    struct device *d = s->options.device;
    const size_t bytes = (size_t)s->layout->block_floats[ps] * sizeof(float);
    if (binds_device(s))
        d->kernels->download(d, ret_block, s->replica.gradients[ps], bytes);
    else
        memcpy(ret_block, s->replica.gradients[ps], bytes);
}

/* Initializers run on the host, so a block of a device is filled by way of one there. */
err session_put_initial_values(struct session *s, int ps)
{
    const size_t bytes = (size_t)s->layout->block_floats[ps] * sizeof(float);
    if (!binds_device(s)) return session_initial_values(s, ps, s->replica.gradients[ps]);
    float *block = malloc(bytes);
    if (!block) return fail(ERR_MEMORY, "no memory for %zu bytes of initial values", bytes);
    err e = session_initial_values(s, ps, block);
    if (!e) session_put_gradients(s, ps, block);
    free(block);
    return e;
}

/* ---- from a checkpoint ---- */

/* The names of all tensors that a checkpoint of this run would hold */
static const char *const *names_of(struct session *s, int *ret_count)
{
    const struct graph *g = s->graph;
    const struct optimizers *list = &s->options.spec->optimizers;
    const size_t count = (size_t)g->param_count * (size_t)(1 + list->slot_count);
    const char **names = arena_array(&s->arena, count + ALL_POWERS_MAX, sizeof *names);
    int at = 0;
    for (int i = 0; i < g->param_count; i++) {
        const char *name = g->params[i]->name;
        const int index = optimizers_find(list, name, g->params[i]->moving);
        names[at++] = name;
        if (index == OPTIMIZER_NONE) continue;
        const struct optimizer_spec *by = &list->at[index];
        const struct optimizer *optimizer = optimizer_of(by);
        for (int k = 0; k < optimizer_slots(optimizer, by->optimizer.attributes); k++)
            names[at++] = arena_format(&s->arena, "%s/%s", name, optimizer->slot[k].name);
    }
    for (int i = 0; i < list->power_count; i++) names[at++] = list->power_names[i];
    *ret_count = at;
    return names;
}

err session_check_warm_start(struct session *s)
{
    const struct warm_start_spec *spec = &s->options.spec->train.warm_start;
    const struct warm_start warm = {
        .maps = spec->maps.at,
        .map_count = spec->maps.count,
        .skips = spec->skip.at,
        .skip_count = spec->skip.count,
    };
    int count;
    if (!spec->checkpoint) return OK;
    const char *const *names = names_of(s, &count);
    err e = warm_start_check(&warm, names, count, &s->arena);
    return e ? fail_prefix(e, "train.warm_start") : OK;
}
