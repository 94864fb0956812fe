/* mirror.c - see mirror.h.
 *
 * A block crosses whole, gaps between its variables included: one large copy is faster than many
 * small ones, and the gaps are zero on both sides.
 */
#include "core/train/session/mirror.h"

#include <assert.h>
#include <stdio.h>

#include "core/train/session/pinned.h"

static size_t block_bytes(const struct mirror *mirror, int ps)
{
    return (size_t)mirror->block_floats[ps] * sizeof(float);
}

static size_t arriving_bytes(const struct mirror *mirror, int ps)
{
    return (size_t)mirror->block_floats[ps] * number_bytes(mirror->arrives_as);
}

static size_t leaving_bytes(const struct mirror *mirror, int64_t numbers)
{
    return (size_t)numbers * number_bytes(mirror->leaves_as);
}

/* A ps without variables has an empty block, which takes no memory here either. */
static err allocate(struct mirror *mirror, int ps)
{
    struct device *d = mirror->device;
    const size_t bytes = block_bytes(mirror, ps);
    void *values, *gradients;
    if (bytes == 0) return OK;
    TRY(d->kernels->allocate(d, bytes, &values));
    mirror->values[ps] = mirror->arriving[ps] = values;
    TRY(d->kernels->allocate(d, bytes, &gradients));
    mirror->gradients[ps] = mirror->leaving[ps] = gradients;
    return OK;
}

/* A place for each bucket that a pass may have */
static err open_marks(struct mirror *mirror, struct arena *arena)
{
    struct device *d = mirror->device;
    if (!d->kernels->async) return OK;
    for (int ps = 0; ps < mirror->ps_count; ps++)
        mirror->left_max += (int)(mirror->moved_floats[ps] / MIRROR_BUCKET_FLOATS) + 1;
    mirror->left = arena_array(arena, (size_t)mirror->left_max, sizeof *mirror->left);
    for (int i = 0; i < mirror->left_max; i++)
        TRY(d->kernels->async->mark_open(d, &mirror->left[i].there));
    return OK;
}

err mirror_open(struct device *device, const struct layout *layout, struct arena *arena,
                struct mirror *ret)
{
    const int ps_count = layout->ps_count;
    struct mirror mirror = {
        .device = device,
        .ps_count = ps_count,
        .block_floats = layout->block_floats,
        .moved_floats = layout->moved_floats,
        .values = arena_array(arena, (size_t)ps_count, sizeof(float *)),
        .gradients = arena_array(arena, (size_t)ps_count, sizeof(float *)),
        .arriving = arena_array(arena, (size_t)ps_count, sizeof(void *)),
        .leaving = arena_array(arena, (size_t)ps_count, sizeof(void *)),
        .host_values = arena_array(arena, (size_t)ps_count, sizeof(void *)),
        .host_gradients = arena_array(arena, (size_t)ps_count, sizeof(float *)),
        .pins_values = arena_array(arena, (size_t)ps_count, sizeof(bool)),
        .pins_gradients = arena_array(arena, (size_t)ps_count, sizeof(bool)),
    };
    for (int ps = 0; ps < ps_count; ps++) {
        const err e = allocate(&mirror, ps);
        if (!e) continue;
        mirror_close(&mirror);
        return fail_prefix(e, "values and gradients of ps/%d", ps);
    }
    const err e = open_marks(&mirror, arena);
    if (e)
        mirror_close(&mirror);
    else
        *ret = mirror;
    return e;
}

void mirror_close(struct mirror *mirror)
{
    struct device *d = mirror->device;
    for (int ps = 0; d && ps < mirror->ps_count; ps++) {
        mirror_unbind(mirror, ps);
        if (mirror->values[ps]) d->kernels->release(d, mirror->values[ps]);
        if (mirror->gradients[ps]) d->kernels->release(d, mirror->gradients[ps]);
    }
    for (int i = 0; d && i < mirror->left_max; i++)
        d->kernels->async->mark_close(d, mirror->left[i].there);
    *mirror = (struct mirror){0};
}

void mirror_leave_from(struct mirror *mirror, void **blocks, enum number number)
{
    mirror->leaving = blocks;
    mirror->leaves_as = number;
}

void mirror_arrive_at(struct mirror *mirror, void **blocks, enum number number)
{
    mirror->arriving = blocks;
    mirror->arrives_as = number;
}

static bool pin(const struct mirror *mirror, int ps, void *host, size_t bytes, bool is_written)
{
    char what[PINNED_WHAT_MAX];
    snprintf(what, sizeof what, "%s ps/%d", is_written ? "gradients for" : "values of", ps);
    return pinned_open(mirror->device, host, bytes, is_written, what);
}

void mirror_bind(struct mirror *mirror, int ps, void *values, float *gradients)
{
    mirror_unbind(mirror, ps);
    mirror->host_values[ps] = values;
    mirror->host_gradients[ps] = gradients;
    mirror->pins_values[ps] = pin(mirror, ps, values, arriving_bytes(mirror, ps), false);
    mirror->pins_gradients[ps] = pin(mirror, ps, gradients, block_bytes(mirror, ps), true);
}

void mirror_unbind(struct mirror *mirror, int ps)
{
    struct device *d = mirror->device;
    pinned_close(d, mirror->host_values[ps], mirror->pins_values[ps]);
    pinned_close(d, mirror->host_gradients[ps], mirror->pins_gradients[ps]);
    mirror->pins_values[ps] = mirror->pins_gradients[ps] = false;
    mirror->host_values[ps] = mirror->host_gradients[ps] = NULL;
}

/* The copies are queued: what is computed next sees them. */
void mirror_upload(const struct mirror *mirror)
{
    struct device *d = mirror->device;
    for (int ps = 0; ps < mirror->ps_count; ps++) {
        void *const to = mirror->arriving[ps];
        const void *host = mirror->host_values[ps];
        const size_t bytes = arriving_bytes(mirror, ps);
        if (!to || !host) continue;
        pinned_upload(d, mirror->pins_values[ps], to, host, bytes);
    }
}

void mirror_download(const struct mirror *mirror)
{
    struct device *d = mirror->device;
    for (int ps = 0; ps < mirror->ps_count; ps++)
        if (mirror->leaving[ps] && mirror->host_gradients[ps])
            d->kernels->download(d, mirror->host_gradients[ps], mirror->leaving[ps],
                                 leaving_bytes(mirror, mirror->moved_floats[ps]));
}

bool mirror_lets_leave(const struct mirror *mirror)
{
    if (!mirror->device || !mirror->device->kernels->async) return false;
    for (int ps = 0; ps < mirror->ps_count; ps++)
        if (mirror->gradients[ps] && !mirror->pins_gradients[ps]) return false;
    return true;
}

bool mirror_lets_rise(const struct mirror *mirror)
{
    if (!mirror->device || !mirror->device->kernels->async) return false;
    for (int ps = 0; ps < mirror->ps_count; ps++)
        if (mirror->values[ps] && !mirror->pins_values[ps]) return false;
    return true;
}

void mirror_rise(const struct mirror *mirror, int ps, struct range range)
{
    struct device *d = mirror->device;
    const size_t number = number_bytes(mirror->arrives_as), offset = number * (size_t)range.begin;
    d->kernels->async->upload_beside(d, (char *)mirror->arriving[ps] + offset,
                                     (const char *)mirror->host_values[ps] + offset,
                                     number * (size_t)range_count(range));
}

void mirror_begin_leaving(struct mirror *mirror)
{
    mirror->left_count = 0;
}

void mirror_leave(struct mirror *mirror, int ps, struct range range)
{
    struct device *d = mirror->device;
    struct descending *to = &mirror->left[mirror->left_count++];
    const size_t offset = leaving_bytes(mirror, range.begin);
    assert(mirror->left_count <= mirror->left_max);
    *to = (struct descending){ps, range, to->there};
    d->kernels->async->download_pinned(d, (char *)mirror->host_gradients[ps] + offset,
                                       (char *)mirror->leaving[ps] + offset,
                                       leaving_bytes(mirror, range_count(range)));
    d->kernels->async->mark_set(d, to->there, MARK_DOWNLOADS);
}

bool mirror_has_left(const struct mirror *mirror, int i, int *ret_ps, struct range *ret)
{
    struct device *d = mirror->device;
    if (i >= mirror->left_count) return false;
    *ret_ps = mirror->left[i].ps;
    *ret = mirror->left[i].range;
    return d->kernels->async->mark_await(d, mirror->left[i].there);
}
