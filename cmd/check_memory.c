/* check_memory.c - estimates the memory that each ps needs. */
#include "cmd/check.h"

#include <stdlib.h>

#include "core/cluster/role/ps_role.h"
#include "core/train/variables/growing/key_index.h"
#include "core/train/variables/optimizer_list.h"

static int slots_of(const struct optimizers *list, const char *variable, float moving)
{
    const int found = optimizers_find(list, variable, moving);
    if (found == OPTIMIZER_NONE) return 0;
    const struct optimizer_spec *by = &list->at[found];
    return optimizer_slots(optimizer_of(by), by->optimizer.attributes);
}

/* Slots of the variable, and its moving average if it has one. */
static int arrays_beside(const struct optimizers *list, const struct variable *v)
{
    const bool is_averaged = !v->table && list->average.decay > 0 &&
                             optimizers_find(list, v->name, v->moving) != OPTIMIZER_NONE;
    return slots_of(list, v->name, v->moving) + is_averaged;
}

/* A table that grows has no rows yet. */
static void count_slices(const struct spec *spec, const struct layout *l, struct ps_memory *ret)
{
    for (int i = 0; i < l->all_count; i++) {
        const struct slice *s = &l->slices[i];
        const struct variable *v = &l->variables[s->variable];
        const bool is_dense = i < l->slice_count;
        const int64_t bytes = s->count * (int64_t)sizeof(float);
        const int64_t slots = bytes * arrays_beside(&spec->optimizers, v);
        if (v->table && v->table->growth) continue;
        ret[s->ps].values += bytes;
        ret[s->ps].slots += slots;
        if (is_dense) ret[s->ps].save += bytes + slots;
    }
}

int64_t check_row_bytes(const struct param *param, const struct optimizers *list)
{
    return (1 + slots_of(list, param->name, param->moving)) * param->shape.dim[1] *
               (int64_t)sizeof(float) +
           INDEX_ROW_BYTES;
}

err check_memory(const struct spec *spec, const struct layout *l, const struct rows *rows,
                 int workers, struct ps_memory **ret)
{
    const bool in_place =
        spec->train.mode == MODE_SYNC && spec_replicas(spec, workers) >= (int64_t)workers;
    *ret = calloc((size_t)l->all_ps, sizeof **ret);
    if (!*ret) return fail(ERR_MEMORY, "no memory for %d ps", l->all_ps);
    count_slices(spec, l, *ret);
    for (int ps = 0; ps < l->ps_count; ps++) {
        const int64_t gradients = l->block_floats[ps] * (int64_t)sizeof(float);
        const int64_t copy =
            l->block_floats[ps] * (int64_t)number_bytes((enum number)spec->train.wire_values);
        const int64_t named = (int64_t)rows_window_bytes(rows, ps);
        const int64_t moving = gradients + (in_place ? 0 : copy);
        const int pool = ps_config_windows((uint64_t)gradients, workers);
        const int64_t sum = pool && spec->train.mode == MODE_SYNC ? gradients : 0;
        (*ret)[ps].windows_each = moving + named;
        (*ret)[ps].gradients_at_once = pool ? pool : workers;
        (*ret)[ps].windows = (*ret)[ps].gradients_at_once * moving + workers * named + sum;
    }
    for (int ps = l->ps_count; ps < l->all_ps; ps++) (*ret)[ps] = (*ret)[layout_home(l, ps)];
    return OK;
}
