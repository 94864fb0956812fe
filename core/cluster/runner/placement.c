/* placement.c - see placement.h. */
#include "core/cluster/runner/placement.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const char *kind_of(const struct variable *v)
{
    if (!v->table) return "dense";
    return v->table->growth ? "growing" : "table";
}

static json_t *shape_json(const struct variable *v)
{
    json_t *dims = json_array();
    for (int i = 0; i < v->shape.rank; i++)
        json_array_append_new(dims, json_integer((json_int_t)v->shape.dim[i]));
    return dims;
}

/* slice: the first of its parts. */
static json_t *bytes_json(const struct variable *v, const struct slice *slice)
{
    json_t *bytes = json_object();
    char ps[16];
    for (int i = 0; i < slice->parts && i < PLACEMENT_PARTS_MAX; i++) {
        snprintf(ps, sizeof ps, "%d", slice[i].ps);
        const json_int_t before = json_integer_value(json_object_get(bytes, ps));
        const bool grows = v->table && v->table->growth;
        const json_int_t own = grows ? 0 : (json_int_t)slice[i].count * (json_int_t)sizeof(float);
        json_object_set_new(bytes, ps, json_integer(before + own));
    }
    return bytes;
}

char *placement_text(const struct layout *layout)
{
    json_t *variables = json_array();
    const struct slice *slices = layout->slices, *tables = slices + layout->slice_count;
    for (int i = 0; i < layout->variable_count && i < PLACEMENT_VARIABLES_MAX; i++) {
        const struct variable *v = &layout->variables[i];
        const struct slice **slice = v->table ? &tables : &slices;
        json_array_append_new(variables,
                              json_pack("{ss so ss si so}", "name", v->name, "shape", shape_json(v),
                                        "kind", kind_of(v), "parts", (*slice)->parts, "bytes",
                                        bytes_json(v, *slice)));
        *slice += (*slice)->parts;
    }
    const int left_out = layout->variable_count - PLACEMENT_VARIABLES_MAX;
    json_t *all =
        json_pack("{so si}", "variables", variables, "left_out", left_out > 0 ? left_out : 0);
    char *text = all ? json_dumps(all, JSON_COMPACT | JSON_PRESERVE_ORDER) : NULL;
    json_decref(all);
    return text;
}
