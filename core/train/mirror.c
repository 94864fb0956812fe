/* mirror.c - see mirror.h.
 *
 * A block crosses whole, gaps between its variables included: one large copy is faster than many
 * small ones, and the gaps are zero on both sides.
 */
#include "core/train/mirror.h"

static size_t block_bytes(const struct mirror *mirror, int ps)
{
    return (size_t)mirror->block_floats[ps] * sizeof(float);
}

/* A ps without variables has an empty block, which takes no memory here either. */
static err allocate(struct mirror *mirror, int ps)
{
    struct device *d = mirror->device;
    const size_t bytes = block_bytes(mirror, ps);
    void *values, *gradients;
    if (bytes == 0) return OK;
    TRY(d->kernels->allocate(d, bytes, &values));
    mirror->values[ps] = values;
    TRY(d->kernels->allocate(d, bytes, &gradients));
    mirror->gradients[ps] = gradients;
    return OK;
}

err mirror_open(struct device *device, int ps_count, const int64_t *block_floats,
                struct arena *arena, struct mirror *ret)
{
    struct mirror mirror = {
        .device = device,
        .ps_count = ps_count,
        .block_floats = block_floats,
        .values = arena_array(arena, (size_t)ps_count, sizeof(float *)),
        .gradients = arena_array(arena, (size_t)ps_count, sizeof(float *)),
    };
    for (int ps = 0; ps < ps_count; ps++) {
        const err e = allocate(&mirror, ps);
        if (!e) continue;
        mirror_close(&mirror);
        return fail_prefix(e, "values and gradients of ps/%d", ps);
    }
    *ret = mirror;
    return OK;
}

void mirror_close(struct mirror *mirror)
{
    struct device *d = mirror->device;
    for (int ps = 0; d && ps < mirror->ps_count; ps++) {
        if (mirror->values[ps]) d->kernels->release(d, mirror->values[ps]);
        if (mirror->gradients[ps]) d->kernels->release(d, mirror->gradients[ps]);
    }
    *mirror = (struct mirror){0};
}

/* Queued: what is computed next sees it. The host may change its block at once. */
void mirror_upload(const struct mirror *mirror, float *const host[])
{
    struct device *d = mirror->device;
    for (int ps = 0; ps < mirror->ps_count; ps++)
        if (mirror->values[ps] && host[ps])
            d->kernels->upload(d, mirror->values[ps], host[ps], block_bytes(mirror, ps));
}

void mirror_download(const struct mirror *mirror, float *const host[])
{
    struct device *d = mirror->device;
    for (int ps = 0; ps < mirror->ps_count; ps++)
        if (mirror->gradients[ps] && host[ps])
            d->kernels->download(d, host[ps], mirror->gradients[ps], block_bytes(mirror, ps));
}
