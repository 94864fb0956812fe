/* shard_mapped.c - rows of a matrix that have other numbers in the checkpoint: of words that had
 * another order in a vocabulary, of a layer whose inputs changed. */
#include <stdlib.h>
#include <string.h>

#include "core/train/checkpoint/shard_inside.h"
#include "core/train/checkpoint/stored_table.h"
#include "core/train/variables/mod.h"

enum { MAPPED_AT_ONCE = 1 << 10 };

const struct row_map *shard_row_map(const struct warm_start *warm, const char *variable)
{
    for (int i = 0; warm && i < warm->row_count; i++)
        if (strcmp(warm->rows[i].variable, variable) == 0) return &warm->rows[i];
    return NULL;
}

int64_t shard_rows_there(struct bundle *bundle, const struct warm_start *warm, const char *variable)
{
    char stored[BUNDLE_NAME_MAX];
    struct stored_table table;
    if (shard_map(warm, variable, NULL, stored)) return -1;
    if (stored_table_find(bundle, stored, &table) == OK) return table.grows ? 0 : table.rows;
    return shard_is_there(bundle, stored) ? 0 : -1;
}

/* Rows read but not yet passed on */
struct mapped {
    struct bundle *bundle;
    const struct shard_source *source;
    const struct slice *slice;
    const struct bundle_taker *taker;
    int64_t width;
    struct mapped_row {
        int64_t from, to;
    } rows[MAPPED_AT_ONCE];
    int64_t ids[MAPPED_AT_ONCE];
    int count;
    float *values; /* [MAPPED_AT_ONCE, width] */
};

static int by_from(const void *a, const void *b)
{
    const struct mapped_row *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static err flush(struct mapped *m)
{
    qsort(m->rows, (size_t)m->count, sizeof *m->rows, by_from);
    for (int i = 0; i < m->count; i++) m->ids[i] = m->rows[i].from;
    if (m->count) TRY(shard_pick_rows(m->bundle, m->source, m->ids, m->count, m->width, m->values));
    for (int i = 0; i < m->count; i++)
        TRY(m->taker->take(m->taker->context, m->rows[i].to, 1, m->values + i * m->width));
    m->count = 0;
    return OK;
}

static err take_run(struct mapped *m, const struct row_run *run)
{
    const struct slice *s = m->slice;
    for (int64_t i = 0; i < run->count; i++) {
        const int64_t row = mod_row_of_id(s->shape.dim[0], s->mod, run->to + i);
        if (s->axis == 0 && (row < s->start || row - s->start >= s->length)) continue;
        m->rows[m->count++] = (struct mapped_row){run->from + i, row};
        if (m->count == MAPPED_AT_ONCE) TRY(flush(m));
    }
    return OK;
}

/* Checks that the map is within both matrices. */
static err check_runs(const struct row_map *map, const struct slice *slice)
{
    for (int i = 0; i < map->run_count; i++) {
        const struct row_run *run = &map->runs[i];
        const bool fits = run->count > 0 && run->to >= 0 && run->from >= 0 &&
                          run->count <= slice->shape.dim[0] - run->to &&
                          run->count <= map->rows - run->from;
        if (!fits || slice->shape.rank > 2)
            return fail(ERR_INPUT, "warm start: rows of %.128s that are not there", slice->name);
    }
    return OK;
}

/* A vector is read as one row: it is small enough. */
static err read_vector(struct bundle *bundle, const struct shard_source *source,
                       const struct slice *slice, const struct row_map *map,
                       const struct bundle_taker *taker)
{
    const size_t bytes = (size_t)map->rows * sizeof(float);
    const struct bundle_box box = {.length = {map->rows}};
    if (!source->entry) return OK;
    float *values = malloc(bytes);
    err e = values ? OK : fail(ERR_MEMORY, "no memory for %s", slice->name);
    if (!e) e = bundle_read(bundle, source->entry, &box, values, bytes);
    if (!e) e = taker->take(taker->context, 0, 1, values);
    free(values);
    return e;
}

err shard_read_mapped(struct bundle *bundle, const struct shard_source *source,
                      const struct slice *slice, const struct row_map *map,
                      const struct bundle_taker *taker)
{
    if (!source->parts) return OK;
    TRY(check_runs(map, slice));
    TRY(shard_check_source(bundle, source));
    if (slice->shape.rank == 1) return read_vector(bundle, source, slice, map, taker);
    const int64_t width = map->is_square ? map->rows : slice->shape.dim[1];
    struct mapped *m = malloc(sizeof *m);
    float *values = malloc((size_t)(MAPPED_AT_ONCE * width) * sizeof *values);
    err e = m && values ? OK : fail(ERR_MEMORY, "no memory for rows of %s", slice->name);
    if (!e)
        *m = (struct mapped){.bundle = bundle,
                             .source = source,
                             .slice = slice,
                             .taker = taker,
                             .width = width,
                             .values = values};
    for (int i = 0; !e && i < map->run_count; i++) e = take_run(m, &map->runs[i]);
    if (!e) e = flush(m);
    free(values);
    free(m);
    return e;
}
