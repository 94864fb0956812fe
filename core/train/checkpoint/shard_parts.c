/* shard_parts.c - tables whose ids are dealt to parts in turn, each part a tensor of its own: see
 * shard.h. A table that is a single tensor is read as one part. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"
#include "core/train/variables/mod.h"
#include "core/train/variables/place.h"

err shard_part_name(const char *variable, int part, const char *slot, char ret[BUNDLE_NAME_MAX])
{
    const int length = snprintf(ret, BUNDLE_NAME_MAX, "%s/part_%d%s%s", variable, part,
                                slot ? "/" : "", slot ? slot : "");
    if (length < BUNDLE_NAME_MAX) return OK;
    return fail(ERR_INPUT, "a name of %d characters: a checkpoint's are shorter than %d", length,
                (int)BUNDLE_NAME_MAX);
}

/* The entry of a part; NULL: no such part. */
static const struct bundle_entry *part_of(const struct bundle *bundle, const char *variable,
                                          int part, const char *slot)
{
    char name[BUNDLE_NAME_MAX];
    return shard_part_name(variable, part, slot, name) ? NULL : bundle_find(bundle, name);
}

static const struct bundle_entry *entry_of(const struct bundle *bundle,
                                           const struct shard_source *source, int part)
{
    return source->entry ? source->entry : part_of(bundle, source->variable, part, source->slot);
}

int shard_parts_there(const struct bundle *bundle, const char *variable, const char *slot)
{
    int parts = 0;
    while (parts < SLICES_MAX && part_of(bundle, variable, parts, slot)) parts++;
    return parts;
}

static int64_t rows_of(int64_t rows, int parts, int part)
{
    return partition_start(rows, parts, part + 1) - partition_start(rows, parts, part);
}

err shard_check_parts(const struct bundle *bundle, const struct shard_source *source,
                      const struct bundle_shape *shape)
{
    for (int k = 0; k < source->parts; k++) {
        const struct bundle_entry *entry = entry_of(bundle, source, k);
        const int64_t rows = rows_of(shape->dim[0], source->parts, k);
        if (entry->dtype == BUNDLE_FLOAT && entry->shape.rank == 2 && rows > 0 &&
            entry->shape.dim[0] == rows && entry->shape.dim[1] == shape->dim[1])
            continue;
        return fail(ERR_INPUT,
                    "%s: %s: of a table of %lld rows, whose ids go by turns to %d parts, part %d "
                    "is %lld x %lld floats",
                    bundle_prefix(bundle), entry->name, (long long)shape->dim[0], source->parts, k,
                    (long long)rows, (long long)shape->dim[1]);
    }
    return OK;
}

err shard_check_source(struct bundle *bundle, const struct shard_source *source)
{
    for (int k = 0; k < source->parts; k++) TRY(bundle_check(bundle, entry_of(bundle, source, k)));
    return OK;
}

/* Reads rows of one part into a slice */
struct sorting {
    const struct slice *slice;
    const struct bundle_taker *taker;
    int64_t parts, part, floats; /* of a row */
};

static err sort_rows(void *context, int64_t first, int64_t rows, const void *elements)
{
    const struct sorting *s = context;
    const struct slice *slice = s->slice;
    const float *from = elements;
    for (int64_t i = first; i < first + rows; i++, from += s->floats) {
        const int64_t id = i * s->parts + s->part;
        const int64_t row = mod_row_of_id(slice->shape.dim[0], slice->mod, id);
        if (row < slice->start || row - slice->start >= slice->length) continue;
        TRY(s->taker->take(s->taker->context, row, 1, from));
    }
    return OK;
}

/* The box of those rows of a part whose ids may belong to the slice. */
static struct bundle_box box_of(const struct sorting *s, const struct bundle_entry *entry)
{
    struct bundle_box box = bundle_whole(&entry->shape);
    if (s->slice->mod) return box;
    const int64_t end = (s->slice->start + s->slice->length - 1) / s->parts + 1;
    box.start[0] = s->slice->start / s->parts;
    box.length[0] = (end < box.length[0] ? end : box.length[0]) - box.start[0];
    if (box.length[0] < 0) box.length[0] = 0;
    return box;
}

static err read_part(struct bundle *bundle, const struct bundle_entry *entry, struct sorting *s)
{
    const struct bundle_box box = box_of(s, entry);
    if (s->parts > 1 && s->parts == s->slice->mod && s->part != s->slice->part) return OK;
    return bundle_read_rows(bundle, entry, &box, &(struct bundle_taker){s, sort_rows});
}

err shard_read_rows(struct bundle *bundle, const struct shard_source *source,
                    const struct slice *slice, const struct bundle_taker *taker)
{
    struct sorting s = {slice, taker, source->parts, 0, slice->shape.dim[1]};
    if (source->entry && !slice->mod) {
        const struct bundle_box box = shard_box(slice);
        return bundle_read_rows(bundle, source->entry, &box, taker);
    }
    for (; s.part < s.parts; s.part++)
        TRY(read_part(bundle, entry_of(bundle, source, (int)s.part), &s));
    return OK;
}

/* ---- single rows ---- */

/* Picked rows of one part, buffered before they are copied to the result. */
struct picked {
    int64_t *rows, *places, count;
    float *values;
};

static err pick_part(struct bundle *bundle, const struct bundle_entry *entry,
                     const struct picked *p, int64_t width, float *ret)
{
    TRY(bundle_pick_rows(bundle, entry, p->rows, p->count, p->values));
    for (int64_t i = 0; i < p->count; i++)
        memcpy(ret + p->places[i] * width, p->values + i * width, (size_t)width * sizeof *ret);
    return OK;
}

static err pick_parts(struct bundle *bundle, const struct shard_source *source, const int64_t *ids,
                      int64_t count, int64_t width, struct picked *p, float *ret)
{
    for (int part = 0; part < source->parts; part++) {
        p->count = 0;
        for (int64_t i = 0; i < count; i++) {
            if (ids[i] % source->parts != part) continue;
            p->rows[p->count] = ids[i] / source->parts;
            p->places[p->count++] = i;
        }
        TRY(pick_part(bundle, entry_of(bundle, source, part), p, width, ret));
    }
    return OK;
}

err shard_pick_rows(struct bundle *bundle, const struct shard_source *source, const int64_t *ids,
                    int64_t count, int64_t width, float *ret)
{
    if (source->entry) return bundle_pick_rows(bundle, source->entry, ids, count, ret);
    struct picked p = {.rows = calloc((size_t)count + 1, sizeof *p.rows),
                       .places = calloc((size_t)count + 1, sizeof *p.places),
                       .values = calloc((size_t)(count * width) + 1, sizeof *p.values)};
    const err e = p.rows && p.places && p.values
                      ? pick_parts(bundle, source, ids, count, width, &p, ret)
                      : fail(ERR_MEMORY, "no memory for %lld rows", (long long)count);
    free(p.values);
    free(p.places);
    free(p.rows);
    return e;
}
