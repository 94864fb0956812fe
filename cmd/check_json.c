/* check_json.c - the plan of a run as one JSON object, for scripts. */
#include "cmd/check.h"
#include "cmd/json_print.h"

#include <stdlib.h>

#include "core/train/variables/growing/growing.h"

static json_t *shape_json(const struct shape *shape)
{
    json_t *list = json_array();
    for (int i = 0; i < shape->rank; i++) json_array_append_new(list, json_integer(shape->dim[i]));
    return list;
}

static json_t *nodes_json(const struct graph *graph)
{
    json_t *list = json_array();
    for (int i = 0; i < graph->node_count; i++) {
        const struct node *node = &graph->nodes[i];
        int64_t parameters = 0;
        for (int p = 0; p < node->param_count && !node->sharing.of; p++)
            parameters += shape_count(&node->param[p].shape);
        json_array_append_new(list, json_pack("{ss ss so sI}", "name", node->name, "op",
                                              node->op->object.name, "output",
                                              shape_json(&node->output.shape), "parameters",
                                              (json_int_t)parameters));
    }
    return list;
}

/* For each variable the ps of its slices, in order. */
static json_t *variables_json(const struct layout *layout)
{
    json_t *list = json_array();
    for (int v = 0; v < layout->variable_count; v++) {
        const struct variable *variable = &layout->variables[v];
        json_t *ps = json_array();
        for (int s = 0; s < layout->all_count; s++)
            if (layout->slices[s].variable == v)
                json_array_append_new(ps, json_integer(layout->slices[s].ps));
        json_array_append_new(list, json_pack("{ss so so}", "name", variable->name, "shape",
                                              shape_json(&variable->shape), "ps", ps));
    }
    return list;
}

static json_t *ps_bytes_json(const struct layout *layout)
{
    json_t *list = json_array();
    for (int ps = 0; ps < layout->all_ps; ps++)
        json_array_append_new(list, json_integer(layout->ps_bytes[ps]));
    return list;
}

static json_t *memory_json(const struct ps_memory *memory, int count)
{
    json_t *list = json_array();
    for (int ps = 0; ps < count; ps++)
        json_array_append_new(
            list, json_pack("{sI sI sI sI si sI}", "values", (json_int_t)memory[ps].values, "slots",
                            (json_int_t)memory[ps].slots, "windows", (json_int_t)memory[ps].windows,
                            "windows_of_a_worker", (json_int_t)memory[ps].windows_each,
                            "gradients_at_once", memory[ps].gradients_at_once, "save",
                            (json_int_t)memory[ps].save));
    return list;
}

/* The name of the loss, or those of all heads by their names */
static json_t *loss_json(const struct graph *graph)
{
    json_t *ret = json_object();
    if (!graph->heads[0].name) {
        json_decref(ret);
        return json_string(graph->heads[0].loss.loss->object.name);
    }
    for (int i = 0; i < graph->head_count; i++)
        json_object_set_new(ret, graph->heads[i].name,
                            json_string(graph->heads[i].loss.loss->object.name));
    return ret;
}

/* Bytes per row of growing tables, whose number of rows is unknown */
static json_t *growing_json(const struct graph *graph, const struct optimizers *list)
{
    json_t *ret = json_array();
    for (int i = 0; i < graph->param_count; i++) {
        const struct param *param = graph->params[i];
        if (!param->growth) continue;
        json_array_append_new(ret, json_pack("{ss sI sI}", "name", param->name, "row_bytes",
                                             (json_int_t)check_row_bytes(param, list),
                                             "ps_rows_max", (json_int_t)GROWING_ROWS_MAX));
    }
    return ret;
}

err check_print_json(const struct spec *spec, const struct session *session, int ps_count,
                     int workers)
{
    const int64_t rows = session->data.train->rows;
    struct ps_memory *memory;
    TRY(check_memory(spec, session->layout, &session->rows, workers, &memory));
    json_t *json = json_pack(
        "{ss* ss so so sI so so so so sI si si sI sI sI}", "name", spec->name, "fingerprint",
        spec->fingerprint, "nodes", nodes_json(session->graph), "loss", loss_json(session->graph),
        "parameters", (json_int_t)session->graph->param_floats, "variables",
        variables_json(session->layout), "ps_bytes", ps_bytes_json(session->layout), "ps_memory",
        memory_json(memory, session->layout->all_ps), "growing",
        growing_json(session->graph, &spec->optimizers), "rows", (json_int_t)rows, "ps", ps_count,
        "workers", workers, "batch_size", (json_int_t)spec->data.batch_size, "last_step",
        (json_int_t)spec_last_step(spec, rows, workers), "step_bytes",
        (json_int_t)session_plan(session)->size.block);
    free(memory);
    return json_print(json);
}
