/* row_area.c - see row_area.h. */
#include "core/train/variables/row_area.h"

#include <string.h>

static size_t aligned(size_t bytes)
{
    return (bytes + AREA_ALIGN - 1) / AREA_ALIGN * AREA_ALIGN;
}

/* Bytes of the front before the gradients */
static size_t head_bytes(int count, int64_t rows)
{
    return aligned(((size_t)count * 2 + (size_t)rows) * sizeof(int64_t));
}

void row_area_open(int count, struct arena *arena, struct row_area *ret)
{
    *ret = (struct row_area){.slices = arena_array(arena, (size_t)count + 1, sizeof *ret->slices)};
}

err row_area_add(struct row_area *area, const struct area_slice *slice)
{
    const size_t least = AREA_BYTES_MAX / sizeof(float) / (size_t)slice->width;
    if (slice->most < 0 || (size_t)slice->most > least || area->floats > (int64_t)AREA_BYTES_MAX)
        return fail(ERR_INPUT, "the rows of one batch take more than %zu bytes", AREA_BYTES_MAX);
    area->slices[area->count++] = *slice;
    area->rows += slice->most;
    area->floats += slice->most * slice->width;
    area->counted += slice->counts ? slice->most : 0;
    const size_t floats = aligned((size_t)area->floats * sizeof(float));
    area->front = head_bytes(area->count, area->rows) + floats +
                  aligned((size_t)area->counted * sizeof(int64_t)) +
                  aligned((size_t)area->rows * sizeof(int64_t));
    area->bytes = area->front + floats;
    if (floats <= AREA_BYTES_MAX && (size_t)slice->most * (size_t)slice->width <= AREA_BYTES_MAX)
        return OK;
    return fail(ERR_INPUT, "the rows of one batch take more than %zu bytes", AREA_BYTES_MAX);
}

void area_counts_open(const struct row_area *area, struct arena *arena, struct area_counts *ret)
{
    int64_t *all = arena_array(arena, (size_t)area->count * 2 + 1, sizeof *all);
    *ret = (struct area_counts){.pushed = all, .wanted = all + area->count};
}

void area_counts_sum(const struct row_area *area, struct area_counts *counts)
{
    counts->pushed_rows = counts->wanted_rows = 0;
    counts->pushed_floats = counts->wanted_floats = counts->pushed_counted = 0;
    for (int i = 0; i < area->count; i++) {
        counts->pushed_rows += counts->pushed[i];
        counts->wanted_rows += counts->wanted[i];
        counts->pushed_floats += counts->pushed[i] * area->slices[i].width;
        counts->pushed_counted += area->slices[i].counts ? counts->pushed[i] : 0;
        counts->wanted_floats += counts->wanted[i] * area->slices[i].width;
    }
}

void area_counts_clear(const struct row_area *area, struct area_counts *counts)
{
    const size_t bytes = (size_t)area->count * sizeof(int64_t);
    memset(counts->pushed, 0, bytes);
    memset(counts->wanted, 0, bytes);
    area_counts_sum(area, counts);
}

static size_t gradients_at(const struct row_area *area, const struct area_counts *counts)
{
    return head_bytes(area->count, counts->wanted_rows);
}

static size_t gradients_end(const struct row_area *area, const struct area_counts *counts)
{
    return gradients_at(area, counts) + (size_t)counts->pushed_floats * sizeof(float);
}

/* Bytes of the front that are always sent */
static size_t times_end(const struct row_area *area, const struct area_counts *counts)
{
    const size_t end = gradients_end(area, counts);
    if (!counts->pushed_counted) return end;
    return aligned(end) + (size_t)counts->pushed_counted * sizeof(int64_t);
}

int64_t *area_times(const struct row_area *area, const struct area_counts *counts, void *base)
{
    return (int64_t *)((char *)base + aligned(gradients_end(area, counts)));
}

int64_t *area_pushed_ids(const struct row_area *area, const struct area_counts *counts, void *base)
{
    return (int64_t *)((char *)base + aligned(times_end(area, counts)));
}

int64_t *area_wanted_ids(const struct row_area *area, const struct area_counts *counts, void *base)
{
    return (int64_t *)base + (ptrdiff_t)area->count * 2;
}

float *area_gradients(const struct row_area *area, const struct area_counts *counts, void *base)
{
    return (float *)((char *)base + gradients_at(area, counts));
}

float *area_rows(const struct row_area *area, void *base)
{
    return (float *)((char *)base + area->front);
}

size_t area_front_bytes(const struct row_area *area, const struct area_counts *counts,
                        bool with_ids)
{
    const size_t end = times_end(area, counts);
    return with_ids ? aligned(end) + (size_t)counts->pushed_rows * sizeof(int64_t) : end;
}

void area_write_counts(const struct row_area *area, const struct area_counts *counts, void *base)
{
    const size_t bytes = (size_t)area->count * sizeof(int64_t);
    memcpy(base, counts->pushed, bytes);
    memcpy((char *)base + bytes, counts->wanted, bytes);
}

static err check_counts(const struct row_area *area, const struct area_counts *counts)
{
    for (int i = 0; i < area->count; i++) {
        const int64_t most = area->slices[i].most;
        const bool is_sound = counts->pushed[i] >= 0 && counts->pushed[i] <= most &&
                              counts->wanted[i] >= 0 && counts->wanted[i] <= most;
        if (!is_sound) return fail(ERR_PROTOCOL, "more rows of a table than a batch can name");
    }
    return OK;
}

static err read_counts(const struct row_area *area, const void *base, size_t used, bool with_ids,
                       struct area_counts *ret)
{
    const size_t bytes = (size_t)area->count * sizeof(int64_t);
    if (used < 2 * bytes || used > area->front)
        return fail(ERR_PROTOCOL, "%zu bytes of rows where there are %d tables", used, area->count);
    memcpy(ret->pushed, base, bytes);
    memcpy(ret->wanted, (const char *)base + bytes, bytes);
    TRY(check_counts(area, ret));
    area_counts_sum(area, ret);
    const size_t told = area_front_bytes(area, ret, with_ids);
    if (told == used) return OK;
    return fail(ERR_PROTOCOL, "%zu bytes of rows where %zu were told", used, told);
}

err area_read_counts(const struct row_area *area, const void *base, size_t used, bool with_ids,
                     struct area_counts *ret)
{
    const err e = read_counts(area, base, used, with_ids, ret);
    if (e) area_counts_clear(area, ret);
    return e;
}
