/* restore.c - values of a session that only evaluates: one block, filled from a checkpoint.
 *
 * It is a warm start of a ps that holds every variable and no slots: names, shapes and cuts are
 * compared there.
 */
#include <assert.h>
#include <stdlib.h>

#include "core/train/checkpoint/shard.h"
#include "core/train/session/session_inside.h"

/* Nothing is partitioned in such a session: a slice is a variable. */
static struct shard_slice slice_of(const struct layout *layout, const struct slice *slice)
{
    const struct variable *variable = &layout->variables[slice->variable];
    return (struct shard_slice){
        .name = variable->name,
        .shape = variable->shape,
        .axis = slice->axis,
        .start = slice->start,
        .length = slice->length,
        .offset = slice->offset,
        .count = slice->count,
    };
}

err session_restore(struct session *s, struct bundle *bundle)
{
    const struct layout *layout = s->layout;
    const struct warm_start values_only = {0};
    int64_t no_workers = 0;
    assert(s->options.only_evaluates);
    if (!s->own_values) {
        TRY(session_allocate(s, layout->block_floats[0], &s->own_values));
        session_bind(s, 0, s->own_values, NULL);
    }
    struct shard_slice *slices = calloc((size_t)layout->slice_count + 1, sizeof *slices);
    if (!slices) return fail(ERR_MEMORY, "no memory for %d slices", layout->slice_count);
    for (int i = 0; i < layout->slice_count; i++) slices[i] = slice_of(layout, &layout->slices[i]);
    struct shard shard = {
        .ps_count = 1,
        .slices = slices,
        .slice_count = layout->slice_count,
        .values = s->own_values,
        .ledger = &no_workers, /* [0, LEDGER_COLUMNS] */
    };
    err e = shard_read_on(s->options.device, layout->block_floats[0], bundle, &values_only, &shard);
    free(slices);
    return e;
}
