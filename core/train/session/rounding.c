/* rounding.c - see rounding.h. */
#include "core/train/session/rounding.h"

static err allocate(struct device *d, int64_t floats, size_t number, void **ret)
{
    return floats ? d->kernels->allocate(d, (size_t)floats * number, ret) : OK;
}

static err open_block(struct rounding *r, int ps)
{
    const int64_t floats = r->block_floats[ps];
    void *owed = NULL, *block = NULL;
    TRY(allocate(r->device, floats, sizeof(float), &owed));
    r->owed[ps] = owed;
    TRY(allocate(r->device, floats, r->is_mirrored ? number_bytes(r->as) : sizeof(float), &block));
    if (r->is_mirrored)
        r->to[ps] = block;
    else
        r->gradients[ps] = block;
    return OK;
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
        .owed = arena_array(arena, ps_count, sizeof *r.owed),
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

static void release(struct device *d, void *memory)
{
    if (memory) d->kernels->release(d, memory);
}

void rounding_close(struct rounding *r)
{
    for (int ps = 0; r->device && ps < r->ps_count; ps++) {
        release(r->device, r->owed[ps]);
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
    d->kernels->round_off(d, r->to[ps] + offset, r->owed[ps] + offset, r->gradients[ps] + offset,
                          r->as, floats);
}

void rounding_forget(const struct rounding *r)
{
    struct device *d = r->device;
    for (int ps = 0; d && ps < r->ps_count; ps++)
        if (r->owed[ps]) d->kernels->fill(d, r->owed[ps], 0.0f, r->block_floats[ps]);
}
