/* restore.c - the values of a session that only evaluates, from a checkpoint: dense ones in a block
 * of its own, as in a warm start of a ps that holds every variable and no slots; of tables the rows
 * that a batch names, when it names them.
 */
#include <assert.h>
#include <stdlib.h>

#include "core/train/checkpoint/grown.h"
#include "core/train/checkpoint/shard.h"
#include "core/train/session/fresh.h"
#include "core/train/session/session_inside.h"

/* Which variables have averages: those are computed with instead of the values */
static void name_averages(struct session *s)
{
    const struct optimizers *list = &s->options.spec->optimizers;
    const struct graph *g = s->graph;
    struct name_map *maps = arena_array(&s->arena, (size_t)g->param_count + 1, sizeof *maps);
    int count = 0;
    for (int i = 0; i < g->param_count; i++) {
        const struct param *p = g->params[i];
        if (p->held || optimizers_find(list, p->name, p->moving) == OPTIMIZER_NONE) continue;
        maps[count++] =
            (struct name_map){arena_format(&s->arena, "%s/%s", p->name, AVERAGE_SLOT), p->name};
    }
    s->restored.averages = maps;
    s->restored.average_count = count;
}

static err check_averages(const struct session *s, const struct bundle *bundle)
{
    const struct restored *r = &s->restored;
    if (!r->average_count || bundle_find(bundle, r->averages[0].from)) return OK;
    return fail(ERR_INPUT,
                "%s: no \"%s\": it was saved without train.average_decay; "
                "--set train.average_decay=0 takes the values themselves",
                bundle_prefix(bundle), r->averages[0].from);
}

static err restore_dense(struct session *s, struct bundle *bundle)
{
    const struct layout *layout = s->layout;
    const bool is_averaged = s->options.spec->train.average.decay > 0;
    if (is_averaged && !s->restored.averages) name_averages(s);
    TRY(check_averages(s, bundle));
    const struct warm_start values_only = {.maps = s->restored.averages,
                                           .map_count = s->restored.average_count};
    int64_t no_workers = 0;
    if (!s->restored.values) {
        TRY(device_floats(s->options.device, layout->block_floats[0], &s->restored.values));
        session_bind(s, 0, s->restored.values, NULL);
    }
    struct shard shard = {
        .ps_count = 1,
        .slices = layout->slices,
        .slice_count = layout->slice_count,
        .values = s->restored.values,
        .ledger = &no_workers, /* [0, LEDGER_COLUMNS] */
    };
    return shard_read_on(s->options.device, layout->block_floats[0], bundle, &values_only, &shard);
}

/* ---- tables ---- */

/* Answers a request for rows as a ps does: there is one ps, and it wants all rows that the front of
 * the window names. */
static err bring_rows(void *session, const size_t bytes[], bool trains)
{
    struct session *s = session;
    const struct rows_link *link = &s->rows.links[0];
    const int64_t *ids = area_wanted_ids(&link->area, &link->counts, link->window);
    float *to = area_rows(&link->area, link->window);
    (void)bytes, (void)trains;
    for (int i = 0; i < link->area.count; i++) {
        const int64_t count = link->counts.wanted[i];
        if (s->restored.grown[i])
            TRY(grown_read(s->restored.grown[i], ids, count, to));
        else
            TRY(shard_pick_rows(s->restored.bundle, &s->restored.tables[i], ids, count,
                                link->area.slices[i].width, to));
        if (s->restored.fresh) fresh_lay_over(s->restored.fresh, i, ids, count, to);
        ids += count;
        to += count * link->area.slices[i].width;
    }
    return OK;
}

static err open_window(struct session *s)
{
    const size_t bytes = rows_window_bytes(&s->rows, 0);
    struct restored *r = &s->restored;
    r->window = aligned_alloc(AREA_ALIGN, (bytes + AREA_ALIGN - 1) / AREA_ALIGN * AREA_ALIGN);
    if (!r->window) return fail(ERR_MEMORY, "no memory for the rows of a batch: %zu bytes", bytes);
    const size_t count = (size_t)s->rows.links[0].area.count;
    r->tables = arena_array(&s->arena, count, sizeof *r->tables);
    r->grown = arena_array(&s->arena, count, sizeof *r->grown);
    r->source = (struct row_source){bring_rows, s};
    s->rows.from = &r->source;
    session_bind_rows(s, 0, r->window, false);
    return OK;
}

void session_close_restored(struct session *s)
{
    struct restored *r = &s->restored;
    for (int i = 0; r->grown && i < s->rows.links[0].area.count; i++) grown_close(r->grown[i]);
    free(r->window);
}

/* Checksums cover whole slices, so rows that are read singly later are not checked then: all are,
 * once, here. */
static err restore_table(struct session *s, struct bundle *bundle, const struct slice *slice, int i)
{
    struct restored *r = &s->restored;
    const struct table_spec *table = s->layout->variables[slice->variable].table;
    grown_close(r->grown[i]);
    r->grown[i] = NULL;
    if (table->growth) return grown_open(bundle, slice, table, &r->grown[i]);
    return shard_find_values(bundle, slice, &r->tables[i]);
}

static err restore_tables(struct session *s, struct bundle *bundle)
{
    if (!rows_are_used(&s->rows)) return OK;
    if (!s->restored.window) TRY(open_window(s));
    const struct rows_link *link = &s->rows.links[0];
    for (int i = 0; i < link->area.count; i++)
        TRY(restore_table(s, bundle, link->parts[i].slice, i));
    s->restored.bundle = bundle;
    return OK;
}

err session_restore(struct session *s, struct bundle *bundle)
{
    assert(s->options.only_evaluates);
    s->restored.fresh = NULL;
    TRY(restore_dense(s, bundle));
    return restore_tables(s, bundle);
}
