/* graph_def_make.c - the nodes of a model: its forward pass, and where its variables are. */
#include <assert.h>
#include <string.h>

#include "core/ops/layer.h"
#include "core/train/summary/graph_def_inside.h"

/* In TensorFlow's numbers. */
static enum graph_dtype dtype_of(enum dtype dtype)
{
    static const enum graph_dtype numbers[] = {[FLOAT32] = GRAPH_FLOAT,
                                               [INT32] = GRAPH_INT32,
                                               [UINT8] = GRAPH_UINT8,
                                               [INT64] = GRAPH_INT64};
    return numbers[dtype];
}

/* Is it the scope itself, or a node within it? */
static bool is_in_scope(const char *name, const char *scope)
{
    const size_t length = strlen(scope);
    return strncmp(name, scope, length) == 0 && (name[length] == '/' || name[length] == '\0');
}

/* Ends: each try but the last finds another node of the model. */
const char *graph_scope(struct graph_maker *m, const char *name)
{
    const char *scope = name;
    for (int i = 0, suffix = 0; i < m->graph->node_count; i++) {
        if (!is_in_scope(m->graph->nodes[i].name, scope)) continue;
        scope = arena_format(m->nodes.arena, "%s_%d", name, ++suffix);
        i = -1;
    }
    return scope;
}

/* A column of the data. */
static const char *add_batch(struct graph_maker *m, const struct tensor *tensor)
{
    return graph_nodes_add(&m->nodes, &(struct graph_node){.name = graph_scope(m, tensor->name),
                                                           .op = "Placeholder",
                                                           .device = WORKER_DEVICE,
                                                           .shape = tensor->shape,
                                                           .dtype = dtype_of(tensor->dtype)});
}

/* The shape of one part. */
static struct shape slice_shape(const struct graph_maker *m, const struct slice *slice)
{
    struct shape shape = m->layout->variables[slice->variable].shape;
    if (slice->parts > 1) shape.dim[slice->axis] = slice->length;
    return shape;
}

/* The slice of a variable that one ps holds; it is called part only if there are several. */
static const char *add_slice(struct graph_maker *m, const struct slice *slice)
{
    struct arena *arena = m->nodes.arena;
    const char *name = m->layout->variables[slice->variable].name;
    if (slice->parts > 1) name = arena_format(arena, "%s/part_%d", name, slice->part);
    return graph_nodes_add(&m->nodes, &(struct graph_node){.name = name,
                                                           .op = "VariableV2",
                                                           .device = ps_device(arena, slice->ps),
                                                           .shape = slice_shape(m, slice),
                                                           .dtype = GRAPH_FLOAT});
}

/* A worker joins the slices of a partitioned variable, under the variable's name. */
static const char *add_whole(struct graph_maker *m, const struct slice *slice,
                             const char *const *parts)
{
    const struct variable *variable = &m->layout->variables[slice->variable];
    return graph_nodes_add(&m->nodes, &(struct graph_node){.name = variable->name,
                                                           .op = "ConcatV2",
                                                           .device = WORKER_DEVICE,
                                                           .inputs = parts,
                                                           .input_count = slice->parts,
                                                           .shape = variable->shape,
                                                           .dtype = GRAPH_FLOAT});
}

/* Slice i is node i: they come before all others. */
static void add_variables(struct graph_maker *m)
{
    const struct slice *slices = m->layout->slices;
    const int count = m->layout->all_count;
    for (int i = 0; i < count; i++) m->slices[i] = add_slice(m, &slices[i]);
    for (int i = 0; i < count; i += slices[i].parts) {
        const bool is_whole = slices[i].parts == 1;
        m->wholes[slices[i].variable] =
            is_whole ? m->slices[i] : add_whole(m, &slices[i], &m->slices[i]);
    }
}

/* The node that makes what a node reads: an earlier node, mostly the one before, or a column. */
static const char *source_of(const struct graph_maker *m, const struct node *node, int input)
{
    for (int i = node->index - 1; i >= 0; i--)
        if (node->input[input] == &m->graph->nodes[i].output) return m->outputs[i];
    return m->inputs[graph_input_of(m->graph, node->input[input])];
}

/* Attributes that begin with a struct layer have its fields. */
static bool is_layer(const struct op *op)
{
    return object_field(&op->object, "use_bias");
}

/* The inputs of a node of the model: outputs of others first, then variables, its own or shared. */
struct reads {
    const char *names[INPUTS_MAX + PARAMS_MAX];
    int count;
};

static struct reads reads_of(const struct graph_maker *m, const struct node *node)
{
    const struct node *owner = node->sharing.of ? node->sharing.of : node;
    const int first = graph_first_param(m->graph, owner);
    struct reads reads = {.count = node->input_count};
    for (int i = 0; i < node->input_count; i++) reads.names[i] = source_of(m, node, i);
    for (int i = 0; i < owner->param_count; i++) reads.names[reads.count++] = m->wholes[first + i];
    return reads;
}

/* Something that a worker computes for the node's output, by any op. */
static struct graph_node worker_node(const struct node *node)
{
    return (struct graph_node){.name = node->name,
                               .device = WORKER_DEVICE,
                               .shape = node->output.shape,
                               .dtype = dtype_of(node->output.dtype)};
}

/* The first op of a node. If the node has variables it stands beside them, in the node's box. */
static const char *add_op(struct graph_maker *m, const struct node *node, const struct reads *reads)
{
    struct graph_node op = worker_node(node);
    op.op = tensorflow_name(m->nodes.arena, node->op->object.name);
    if (node->param_count > 0) op.name = arena_format(m->nodes.arena, "%s/%s", node->name, op.op);
    op.inputs = reads->names;
    op.input_count = reads->count;
    op.object = &node->op->object;
    op.attributes = node->attributes;
    return graph_nodes_add(&m->nodes, &op);
}

/* A further op of the node, on the output of the one before. */
static const char *add_stage(struct graph_maker *m, const struct node *node, const char *op,
                             const struct reads *reads)
{
    struct graph_node stage = worker_node(node);
    stage.op = op;
    stage.name = arena_format(m->nodes.arena, "%s/%s", node->name, op);
    stage.inputs = reads->names;
    stage.input_count = reads->count;
    return graph_nodes_add(&m->nodes, &stage);
}

/* MatMul, BiasAdd, Relu: three ops in TensorFlow, one here. */
static const char *add_layer(struct graph_maker *m, const struct node *node,
                             const struct reads *all)
{
    const bool has_bias = node->param_count > 1;
    struct reads reads = *all;
    if (has_bias) reads.count--;
    const char *output = add_op(m, node, &reads);
    if (has_bias)
        output =
            add_stage(m, node, "BiasAdd", &(struct reads){{output, all->names[reads.count]}, 2});
    const enum activation activation = layer_activation(node);
    if (activation != ACTIVATION_LINEAR)
        output = add_stage(m, node, tensorflow_name(m->nodes.arena, activation_names[activation]),
                           &(struct reads){{output}, 1});
    return output;
}

/* Variables of the layout are the nodes' parameters in order. */
static void add_model(struct graph_maker *m)
{
    for (int i = 0; i < m->graph->node_count; i++) {
        const struct node *node = &m->graph->nodes[i];
        const struct reads reads = reads_of(m, node);
        m->outputs[i] = is_layer(node->op) ? add_layer(m, node, &reads) : add_op(m, node, &reads);
    }
}

/* The inputs of a loss: logits and labels */
struct judged {
    const char *names[2];
};

static struct judged judged_by(const struct graph_maker *m, const struct loss_node *loss)
{
    struct judged ret = {{NULL, m->inputs[graph_input_of(m->graph, loss_given(loss))]}};
    for (int i = 0; i < m->graph->node_count; i++)
        if (&m->graph->nodes[i].output == loss->logits) ret.names[0] = m->outputs[i];
    return ret;
}

/* Losses of the rows, which are averaged. */
static const char *add_rows_loss(struct graph_maker *m, const struct loss_node *loss,
                                 const char *scope)
{
    struct arena *arena = m->nodes.arena;
    const char *op = tensorflow_name(arena, loss->loss->object.name);
    const struct judged judged = judged_by(m, loss);
    return graph_nodes_add(&m->nodes,
                           &(struct graph_node){.name = arena_format(arena, "%s/%s", scope, op),
                                                .op = op,
                                                .device = WORKER_DEVICE,
                                                .inputs = judged.names,
                                                .input_count = 2,
                                                .shape = {1, {m->graph->batch}},
                                                .dtype = GRAPH_FLOAT,
                                                .object = &loss->loss->object,
                                                .attributes = loss->attributes});
}

/* A number that a worker computes under the scope. */
static const char *add_scalar(struct graph_maker *m, const char *name, const char *op,
                              const char *const *inputs, int input_count)
{
    return graph_nodes_add(&m->nodes, &(struct graph_node){.name = name,
                                                           .op = op,
                                                           .device = WORKER_DEVICE,
                                                           .inputs = inputs,
                                                           .input_count = input_count,
                                                           .dtype = GRAPH_FLOAT});
}

/* One op for all penalties, which reads the variables that have one. */
static const char *add_penalties(struct graph_maker *m, const char *scope)
{
    const struct graph *graph = m->graph;
    struct arena *arena = m->nodes.arena;
    const char **inputs = arena_array(arena, (size_t)graph->param_count, sizeof *inputs);
    int count = 0;
    for (int i = 0; i < graph->param_count; i++) {
        const struct regularizer *r = &graph->params[i]->regularizer;
        if (r->l1 > 0 || r->l2 > 0) inputs[count++] = m->wholes[i];
    }
    return add_scalar(m, arena_format(arena, "%s/regularization", scope), "Regularizer", inputs,
                      count);
}

/* The mean of the batch: of one head under a scope of its own */
static const char *add_mean(struct graph_maker *m, const struct head *head, const char *scope)
{
    struct arena *arena = m->nodes.arena;
    if (head->name) scope = arena_format(arena, "%s/%s", scope, head->name);
    const char *rows = add_rows_loss(m, &head->loss, scope);
    return add_scalar(m, arena_format(arena, "%s/Mean", scope), "Mean", &rows, 1);
}

/* What is minimized: the heads' losses, and the penalties if there are any. */
static void add_loss(struct graph_maker *m)
{
    struct arena *arena = m->nodes.arena;
    const struct graph *graph = m->graph;
    const char *scope = graph_scope(m, "loss");
    const char *means[HEADS_MAX];
    for (int i = 0; i < graph->head_count; i++) means[i] = add_mean(m, &graph->heads[i], scope);
    m->loss = means[0];
    if (graph->heads[0].name)
        m->loss =
            add_scalar(m, arena_format(arena, "%s/sum", scope), "AddN", means, graph->head_count);
    if (!graph_has_regularizers(graph)) return;
    const char *const terms[] = {m->loss, add_penalties(m, scope)};
    m->loss = add_scalar(m, arena_format(arena, "%s/total", scope), "AddV2", terms, 2);
}

/* Metrics: nothing reads them. */
static void add_metrics(struct graph_maker *m)
{
    struct arena *arena = m->nodes.arena;
    const char *scope = graph_scope(m, "metrics");
    for (int i = 0; i < m->graph->metric_count; i++) {
        const struct metric_node *metric = &m->graph->metrics[i];
        const struct object *object = &metric->metric->object;
        const struct judged judged = judged_by(m, metric->loss);
        graph_nodes_add(&m->nodes, &(struct graph_node){
                                       .name = arena_format(arena, "%s/%s", scope, metric->name),
                                       .op = tensorflow_name(arena, object->name),
                                       .device = WORKER_DEVICE,
                                       .inputs = judged.names,
                                       .input_count = 2,
                                       .dtype = GRAPH_FLOAT,
                                       .object = object,
                                       .attributes = metric->attributes});
    }
}

/* Variables come first, so that they keep their names. */
void graph_def_make(const struct graph *graph, const struct layout *layout,
                    const struct optimizers *optimizers, struct arena *arena, struct graph_def *ret)
{
    assert(layout->variable_count == graph->param_count && layout->all_count > 0);
    struct graph_maker m = {
        .graph = graph,
        .layout = layout,
        .nodes = {.arena = arena},
        .outputs = arena_array(arena, (size_t)graph->node_count, sizeof *m.outputs),
        .inputs = arena_array(arena, (size_t)graph->input_count, sizeof *m.inputs),
        .wholes = arena_array(arena, (size_t)layout->variable_count, sizeof *m.wholes),
        .slices = arena_array(arena, (size_t)layout->all_count, sizeof *m.slices),
    };
    add_variables(&m);
    for (int i = 0; i < graph->input_count; i++)
        m.inputs[i] = graph_input_shown(graph, i) < i ? m.inputs[graph_input_shown(graph, i)]
                                                      : add_batch(&m, graph->inputs[i].tensor);
    add_model(&m);
    add_loss(&m);
    add_metrics(&m);
    graph_def_add_training(&m, optimizers);
    *ret = (struct graph_def){m.nodes.at, m.nodes.count};
}
