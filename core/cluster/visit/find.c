/* find.c - what on a ps has a name. */
#include <stdlib.h>
#include <string.h>

#include "core/cluster/visit/visit_inside.h"

static const char step_name[] = "global_step";

bool visits_names_trained(const struct visits *v, const char *name)
{
    for (int i = 0; i < v->view.slice_count; i++)
        if (strcmp(v->view.slices[i].name, name) == 0) return true;
    return false;
}

static bool is_cut(const struct slice *slice)
{
    return slice->shape.rank > 0 && slice->length < slice->shape.dim[slice->axis];
}

/* All slices of the name; a variable of more parts than ps has several here. */
static err find_trained(const struct visits *v, const char *name, struct target *ret)
{
    const struct visit_view *view = &v->view;
    struct target target = {.kind = TARGET_TRAINED, .name = name, .version = v->trained_version};
    for (int i = 0; i < view->slice_count; i++) {
        const struct slice *slice = &view->slices[i];
        if (strcmp(slice->name, name) != 0) continue;
        void *more = realloc(target.parts, (size_t)(target.part_count + 1) * sizeof *target.parts);
        if (!more) {
            target_free(&target);
            return fail(ERR_MEMORY, "no memory for the parts of %s", name);
        }
        target.parts = more;
        target.shape = slice->shape;
        target.axis = is_cut(slice) ? slice->axis : 0;
        bool is_scalar = slice->shape.rank == 0;
        target.parts[target.part_count++] = (struct part){
            .start = is_cut(slice) ? slice->start : 0,
            .length = is_scalar       ? 1
                      : is_cut(slice) ? slice->length
                                      : slice->shape.dim[0],
            .floats = view->values + slice->offset,
        };
    }
    if (target.part_count) *ret = target;
    return OK;
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
