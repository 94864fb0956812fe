/* find.c - finds the variable of a name on a ps. */
#include <stdlib.h>
#include <string.h>

#include "core/cluster/visit/visit_inside.h"
#include "core/train/variables/table.h"

static const char step_name[] = "global_step";

int visits_slice_count(const struct visits *v)
{
    return v->view.slice_count + v->view.table_count;
}

const struct slice *visits_slice(const struct visits *v, int index)
{
    const int dense = v->view.slice_count;
    return index < dense ? &v->view.slices[index] : v->view.tables[index - dense].slice;
}

bool visits_names_trained(const struct visits *v, const char *name)
{
    for (int i = 0; i < visits_slice_count(v); i++)
        if (strcmp(visits_slice(v, i)->name, name) == 0) return true;
    return false;
}

/* The shape of a table that grows is that of one row, its slices are of keys. */
static bool is_cut(const struct slice *slice, const struct table *table)
{
    if (table && table_growing(table)) return true;
    return slice->shape.rank > 0 && slice->length < slice->shape.dim[slice->axis];
}

/* Of the block, or of a table */
static err add_part(const struct visit_view *view, const struct slice *slice,
                    const struct table *table, struct target *target)
{
    void *more = realloc(target->parts, (size_t)(target->part_count + 1) * sizeof *target->parts);
    if (!more) return fail(ERR_MEMORY, "no memory for the parts of %s", slice->name);
    target->parts = more;
    target->shape = slice->shape;
    const bool is_part = is_cut(slice, table);
    target->axis = is_part ? slice->axis : 0;
    const bool is_scalar = slice->shape.rank == 0;
    target->parts[target->part_count++] = (struct part){
        .start = is_part ? slice->start : 0,
        .length = is_scalar ? 1
                  : is_part ? slice->length
                            : slice->shape.dim[0],
        .floats = table ? NULL : view->values + slice->offset,
        .table = table,
        .mod = slice->mod,
    };
    if (!table || target->row) return OK;
    target->kind = TARGET_TABLE;
    target->row = malloc((size_t)slice->shape.dim[1] * sizeof *target->row);
    return target->row ? OK : fail(ERR_MEMORY, "no memory for a row of %s", slice->name);
}

/* Finds all slices of the name; a variable with more parts than ps has several here. */
static err find_trained(const struct visits *v, const char *name, struct target *ret)
{
    const struct visit_view *view = &v->view;
    struct target target = {.kind = TARGET_TRAINED,
                            .name = name,
                            .version = v->trained_version,
                            .is_held_twice = view->is_held_twice};
    err e = OK;
    for (int i = 0; i < visits_slice_count(v) && !e; i++) {
        const struct slice *slice = visits_slice(v, i);
        const bool is_table = i >= view->slice_count;
        if (strcmp(slice->name, name) == 0)
            e = add_part(view, slice, is_table ? view->tables[i - view->slice_count].rows : NULL,
                         &target);
    }
    if (e)
        target_free(&target);
    else if (target.part_count)
        *ret = target;
    return e;
}

/* One part that is the whole. */
static err find_doubles(struct target target, double *at, struct target *ret)
{
    target.parts = malloc(sizeof *target.parts);
    if (!target.parts) return fail(ERR_MEMORY, "no memory to look at %s", target.name);
    int64_t length = target.shape.rank ? target.shape.dim[0] : 1;
    target.parts[0] = (struct part){.length = length, .doubles = at};
    target.part_count = 1;
    *ret = target;
    return OK;
}

err visits_find(struct visits *v, const char *name, struct target *ret)
{
    *ret = (struct target){.kind = TARGET_NONE, .name = name};
    if (v->options.has_step && strcmp(name, step_name) == 0) {
        v->step_value = (double)v->step;
        const struct target step = {
            .kind = TARGET_STEP, .name = name, .version = v->trained_version};
        return find_doubles(step, &v->step_value, ret);
    }
    TRY(find_trained(v, name, ret));
    if (ret->part_count) return OK;
    const struct shared_variable *variable = shared_find(&v->shared, name);
    if (!variable) return OK;
    const struct target shared = {.kind = TARGET_SHARED,
                                  .name = name,
                                  .shape = variable->value.shape,
                                  .version = variable->version};
    return find_doubles(shared, variable->value.at, ret);
}
