/* fresh.c - see fresh.h. */
#include "core/train/session/fresh.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/ascending.h"
#include "core/train/checkpoint/delta.h"
#include "core/train/session/session_inside.h"
#include "core/train/variables/growing/keys.h"

/* Changed rows of one slice */
struct fresh_rows {
    int64_t count, width;
    int64_t *ids;  /* [count] ascending, as the session names rows: keys, where the table grows */
    float *values; /* [count, width] */
};

struct fresh {
    float *values;           /* the block */
    struct fresh_rows *rows; /* [count] */
    int count;
};

void fresh_free(struct fresh *f)
{
    if (!f) return;
    for (int i = 0; f->rows && i < f->count; i++) {
        free(f->rows[i].ids);
        free(f->rows[i].values);
    }
    free(f->rows);
    free(f->values);
    free(f);
}

/* ---- reading ---- */

static err read_dense(const struct session *s, struct bundle *bundle, struct fresh *f)
{
    const struct layout *layout = s->layout;
    const struct warm_start values_only = {.maps = s->restored.averages,
                                           .map_count = s->restored.average_count};
    const size_t bytes = (size_t)layout->block_floats[0] * sizeof(float);
    int64_t no_workers = 0;
    f->values = calloc(1, bytes + 1);
    if (!f->values) return fail(ERR_MEMORY, "no memory for %zu bytes of values", bytes);
    struct shard shard = {.ps_count = 1,
                          .slices = layout->slices,
                          .slice_count = layout->slice_count,
                          .values = f->values,
                          .ledger = &no_workers}; /* [0, LEDGER_COLUMNS] */
    return shard_read(bundle, &values_only, &shard);
}

static void take(struct fresh_rows *to, int64_t id, const float *row)
{
    to->ids[to->count] = id;
    memcpy(to->values + to->count * to->width, row, (size_t)to->width * sizeof *row);
    to->count++;
}

/* Joins the rows of earlier deltas and the newly changed ones, which replace them; of a row that
 * comes twice the last one counts. */
static void merge(const struct fresh_rows *before, const struct changed_row *places,
                  const struct table_changes *changes, struct fresh_rows *to)
{
    int64_t b = 0;
    for (int64_t i = 0; i < changes->count; i++) {
        if (i + 1 < changes->count && places[i + 1].id == places[i].id) continue;
        for (; b < before->count && before->ids[b] < places[i].id; b++)
            take(to, before->ids[b], before->values + b * to->width);
        b += b < before->count && before->ids[b] == places[i].id;
        take(to, places[i].id, changes->rows + places[i].at * to->width);
    }
    for (; b < before->count; b++) take(to, before->ids[b], before->values + b * to->width);
}

static err lay_rows(const struct fresh_rows *before, const struct table_changes *changes,
                    bool grows, struct fresh_rows *ret)
{
    const int64_t most = before->count + changes->count;
    struct changed_row *places = NULL;
    ret->ids = malloc((size_t)most * sizeof *ret->ids + 1);
    ret->values = malloc((size_t)(most * ret->width) * sizeof *ret->values + 1);
    if (!ret->ids || !ret->values)
        return fail(ERR_MEMORY, "no memory for %lld fresh rows", (long long)most);
    TRY(table_changes_in_order(changes, grows, &places));
    merge(before, places, changes, ret);
    free(places);
    return OK;
}

static err read_slice(const struct session *s, struct bundle *bundle, int slice,
                      const struct fresh *before, struct fresh *f)
{
    const struct slice *of = s->rows.links[0].parts[slice].slice;
    const struct table_spec *table = s->layout->variables[of->variable].table;
    const struct fresh_rows none = {0};
    struct table_changes changes;
    f->rows[slice].width = of->shape.dim[1];
    TRY(delta_read_rows(bundle, of, &changes));
    const err e = lay_rows(before ? &before->rows[slice] : &none, &changes, table->growth != NULL,
                           &f->rows[slice]);
    table_changes_free(&changes);
    return e;
}

static err read_all(const struct session *s, struct bundle *bundle, const struct fresh *before,
                    struct fresh *f)
{
    f->count = rows_are_used(&s->rows) ? s->rows.links[0].area.count : 0;
    f->rows = calloc((size_t)f->count + 1, sizeof *f->rows);
    if (!f->rows) return fail(ERR_MEMORY, "no memory for fresh rows");
    TRY(read_dense(s, bundle, f));
    for (int i = 0; i < f->count; i++) TRY(read_slice(s, bundle, i, before, f));
    return OK;
}

err fresh_read(const struct session *s, struct bundle *bundle, const struct fresh *before,
               struct fresh **ret)
{
    struct fresh *f = calloc(1, sizeof *f);
    if (!f) return fail(ERR_MEMORY, "no memory for fresh values");
    const err e = read_all(s, bundle, before, f);
    if (e)
        fresh_free(f);
    else
        *ret = f;
    return e;
}

/* ---- using it ---- */

err session_freshen(struct session *s, const struct fresh *f)
{
    struct device *d = s->options.device;
    s->restored.fresh = f;
    d->kernels->upload(d, s->restored.values, f->values,
                       (size_t)s->layout->block_floats[0] * sizeof(float));
    return d->kernels->synchronize(d);
}

void fresh_lay_over(const struct fresh *f, int slice, const int64_t *ids, int64_t count,
                    float *rows)
{
    const struct fresh_rows *fresh = &f->rows[slice];
    int64_t at = 0;
    for (int64_t i = 0; i < count && at < fresh->count; i++) {
        at += ascending_place(fresh->ids + at, fresh->count - at, ids[i]);
        if (at < fresh->count && fresh->ids[at] == ids[i])
            memcpy(rows + i * fresh->width, fresh->values + at * fresh->width,
                   (size_t)fresh->width * sizeof *rows);
    }
}
