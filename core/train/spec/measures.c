/* measures.c - a spec without what only losses and metrics read: see spec_leave_measures(). */
#include <string.h>

#include "core/data/columns/column.h"
#include "core/train/spec/spec_inside.h"

static bool node_names(const struct node_spec *node, const char *name)
{
    const struct op *op = node->op.kind->descriptor;
    const char *const *keys = op->named_inputs;
    for (int k = 0; keys && keys[k]; k++) {
        const char *named = fields_string(&op->object, node->op.attributes, keys[k]);
        if (named && strcmp(named, name) == 0) return true;
    }
    return strings_have(&node->inputs, name);
}

/* Of a cross */
static const struct strings *keys_of(const struct column_spec *column)
{
    static const struct strings none;
    const struct variant *v = &column->column;
    const struct strings *keys = fields_find(v->kind->object, v->attributes, "keys", FIELD_STRINGS);
    return keys ? keys : &none;
}

static bool is_read(const struct spec *spec, const struct column_spec *column)
{
    const struct column_spec *columns = spec->data.columns.at;
    const struct node_spec *nodes = spec->model.nodes.at;
    for (int i = 0; i < spec->model.nodes.count; i++)
        if (node_names(&nodes[i], column->name)) return true;
    for (int i = 0; i < spec->data.columns.count; i++)
        if (strings_have(keys_of(&columns[i]), column->name)) return true;
    return false;
}

/* The keys of a cross precede it, so that one pass from the end finds all that is needed. */
static void leave_columns(struct spec *spec)
{
    struct objects *columns = &spec->data.columns;
    struct column_spec *at = columns->at;
    for (int i = columns->count - 1; i >= 0; i--) {
        if (is_read(spec, &at[i])) continue;
        columns->count--;
        memmove(&at[i], &at[i + 1], (size_t)(columns->count - i) * sizeof *at);
        for (int k = i; k < columns->count; k++) at[k].left_out++;
    }
}

void spec_leave_measures(struct spec *spec)
{
    struct head_spec *heads = spec->model.heads.at;
    spec->data.weight = NULL;
    spec->model.metrics.count = 0;
    for (int i = 0; i < spec->model.heads.count; i++) {
        heads[i].row_weight = NULL;
        heads[i].metrics.count = 0;
    }
    leave_columns(spec);
}
