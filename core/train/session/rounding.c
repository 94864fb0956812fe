/* rounding.c - see rounding.h. */
#include "core/train/session/rounding.h"

static err allocate(struct device *d, int64_t floats, size_t number, void **ret)
{
    return floats ? d->kernels->allocate(d, (size_t)floats * number, ret) : OK;
}

static void release(struct device *d, void *memory)
{
    if (memory) d->kernels->release(d, memory);
}

/* Opens a block of 16-bit numbers, where the block of floats is somebody else's, or the reverse */
static err open_other(struct device *d, enum number as, int64_t floats, bool is_mirrored,
                      float **ret_wide, uint16_t **ret_narrow)
{
    void *block = NULL;
    TRY(allocate(d, floats, is_mirrored ? number_bytes(as) : sizeof(float), &block));
    if (is_mirrored)
        *ret_narrow = block;
    else
        *ret_wide = block;
    return OK;
}

/* ---- gradients ---- */

static err open_block(struct rounding *r, int ps)
{
    const int64_t floats = r->block_floats[ps];
    void *residual = NULL;
    TRY(allocate(r->device, floats, sizeof(float), &residual));
    r->residual[ps] = residual;
    return open_other(r->device, r->as, floats, r->is_mirrored, &r->gradients[ps], &r->to[ps]);
}

err rounding_open(struct device *device, enum number as, const struct layout *layout,
                  float **gradients, struct arena *arena, struct rounding *ret)
{
    const size_t ps_count = (size_t)layout->ps_count;
    struct rounding r = {
        .device = device,
        .as = as,
        .ps_count = layout->ps_count,
        .block_floats = layout->block_floats,
        .gradients = gradients ? gradients : arena_array(arena, ps_count, sizeof *r.gradients),
        .residual = arena_array(arena, ps_count, sizeof *r.residual),
        .to = arena_array(arena, ps_count, sizeof *r.to),
        .is_mirrored = gradients != NULL,
    };
    for (int ps = 0; ps < r.ps_count; ps++) {
        const err e = open_block(&r, ps);
        if (!e) continue;
        rounding_close(&r);
        return fail_prefix(e, "rounded gradients of ps/%d", ps);
    }
    *ret = r;
    return OK;
}

void rounding_close(struct rounding *r)
{
    for (int ps = 0; r->device && ps < r->ps_count; ps++) {
        release(r->device, r->residual[ps]);
        release(r->device, r->is_mirrored ? (void *)r->to[ps] : r->gradients[ps]);
    }
    *r = (struct rounding){0};
}

void rounding_bind(struct rounding *r, int ps, void *to)
{
    if (r->device && !r->is_mirrored) r->to[ps] = to;
}

void rounding_round(const struct rounding *r, int ps, int64_t offset, int64_t floats)
{
    struct device *d = r->device;
    if (!r->to[ps] || !floats) return;
    d->kernels->round_off(d, r->to[ps] + offset, r->residual[ps] + offset,
                          r->gradients[ps] + offset, r->as, floats);
}

void rounding_forget(const struct rounding *r)
{
    struct device *d = r->device;
    for (int ps = 0; d && ps < r->ps_count; ps++)
        if (r->residual[ps]) d->kernels->fill(d, r->residual[ps], 0.0f, r->block_floats[ps]);
}

/* ---- values ---- */

err widening_open(struct device *device, enum number as, const struct layout *layout,
                  float **values, struct arena *arena, struct widening *ret)
{
    const size_t ps_count = (size_t)layout->ps_count;
    struct widening v = {
        .device = device,
        .as = as,
        .ps_count = layout->ps_count,
        .block_floats = layout->block_floats,
        .from = arena_array(arena, ps_count, sizeof *v.from),
        .values = values ? values : arena_array(arena, ps_count, sizeof *v.values),
        .is_mirrored = values != NULL,
    };
    for (int ps = 0; ps < v.ps_count; ps++) {
        const err e =
            open_other(device, as, v.block_floats[ps], v.is_mirrored, &v.values[ps], &v.from[ps]);
        if (!e) continue;
        widening_close(&v);
        return fail_prefix(e, "values of ps/%d", ps);
    }
    *ret = v;
    return OK;
}

void widening_close(struct widening *v)
{
    for (int ps = 0; v->device && ps < v->ps_count; ps++)
        release(v->device, v->is_mirrored ? (void *)v->from[ps] : v->values[ps]);
    *v = (struct widening){0};
}

void widening_bind(struct widening *v, int ps, void *from)
{
    if (v->device && !v->is_mirrored) v->from[ps] = from;
}

/* Widens by a sum that has one term */
void widening_widen(const struct widening *v, int ps, int64_t offset, int64_t floats)
{
    struct device *d = v->device;
    if (!d || !v->from[ps] || !floats) return;
    const uint16_t *const from = v->from[ps] + offset;
    d->kernels->sum_rounded(d, v->values[ps] + offset, &from, 1, v->as, 1.0f, floats);
}
