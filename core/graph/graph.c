/* graph.c - makes a graph from the spec's nodes.
 *
 * Names first, so that any node can be found; then the nodes in order, whose inputs' shapes are
 * then known; then heads, parameters and metrics. Every error says which node of the spec it is
 * about, by its index (model[2]) and by its op and name (dense "hidden").
 */
#include "core/graph/graph.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "core/base/random.h"
#include "core/graph/names.h"

enum { INPUTS_ROOM_FIRST = 64 };

/* What the functions that make a graph share. */
struct maker {
    const struct model_spec *spec;
    const struct graph_options *options;
    struct arena *arena;
    struct graph *graph;
    const char **names;   /* [node_count] */
    bool *is_read;        /* [node_count] whether a later node or a head reads its output */
    struct objects heads; /* of struct head_spec */
};

static const struct node_spec *node_spec(const struct maker *m, int index)
{
    return (const struct node_spec *)m->spec->nodes.at + index;
}

/* How ids of an input are looked up. shared: the node whose table several columns name rows of;
 * NULL: only this column names rows of the tables. */
struct ids_of {
    const struct node *shared;
    int table;   /* index in its params */
    bool is_raw; /* not looked up */
};

static bool is_of(const struct graph_input *input, struct ids_of ids)
{
    return !input->maker && input->shared == ids.shared && input->table == ids.table &&
           input->is_raw == ids.is_raw;
}

static void make_room(struct maker *m)
{
    struct graph *graph = m->graph;
    const struct graph_input *before = graph->inputs;
    if (graph->input_count < graph->input_room) return;
    graph->input_room = graph->input_room ? 2 * graph->input_room : INPUTS_ROOM_FIRST;
    graph->inputs = arena_array(m->arena, (size_t)graph->input_room, sizeof *graph->inputs);
    if (before) memcpy(graph->inputs, before, (size_t)graph->input_count * sizeof *graph->inputs);
}

static err add_input(struct maker *m, struct tensor *tensor, int source, bool of_nodes,
                     struct ids_of ids)
{
    struct graph *graph = m->graph;
    const int index = graph->input_count;
    make_room(m);
    if (index == GRAPH_INPUTS_MAX)
        return fail(ERR_INPUT,
                    "inputs: a model reads at most %d columns, those of shared tables "
                    "once more",
                    GRAPH_INPUTS_MAX);
    struct graph_input input = {.tensor = tensor,
                                .column = ids.shared ? graph->column_count++ : source,
                                .source = source,
                                .lookup = index,
                                .of_nodes = of_nodes,
                                .shared = ids.shared,
                                .table = ids.table,
                                .is_raw = ids.is_raw};
    for (int i = index - 1; i >= 0 && ids.shared; i--)
        if (is_of(&graph->inputs[i], ids)) input.lookup = i;
    tensor->name = m->options->columns[source].name;
    graph->inputs[graph->input_count++] = input;
    return OK;
}

/* All ids that a node makes name rows of its own table, and are looked up together. */
static err add_made(struct maker *m, const struct node *node, int k)
{
    struct graph *graph = m->graph;
    struct made_input *made = node->making.inputs[k];
    const int index = graph->input_count;
    make_room(m);
    if (index == GRAPH_INPUTS_MAX)
        return fail(ERR_INPUT, "inputs: a model reads at most %d columns", GRAPH_INPUTS_MAX);
    struct graph_input input = {.tensor = &made->tensor,
                                .column = graph->column_count++,
                                .source = node->making.label_column,
                                .lookup = index,
                                .of_nodes = true,
                                .is_raw = !node->holds_batch_rows,
                                .maker = node,
                                .made = k,
                                .is_whole = made->is_whole};
    for (int i = index - 1; i >= 0 && made->tensor.dtype == INT64; i--)
        if (graph->inputs[i].maker == node && graph->inputs[i].tensor->dtype == INT64)
            input.lookup = i;
    graph->inputs[graph->input_count++] = input;
    return OK;
}

/* Shape of a column's tensor: [batch, shape of a row]. */
static err shape_column(const struct maker *m, const struct column *column, struct shape *ret)
{
    const struct graph_options *options = m->options;
    const struct shape *row = &column->shape;
    struct shape shape = {.rank = row->rank + 1, .dim = {options->batch}};
    if (shape.rank > RANK_MAX)
        return fail(ERR_INPUT, "%s of %d dimensions; with the batch at most %d are possible",
                    column->name, row->rank, RANK_MAX);
    for (int i = 1; i < shape.rank; i++) shape.dim[i] = row->dim[i - 1];
    err e = shape_check(&shape);
    if (e) return fail_prefix(e, "%s with a batch of %" PRId64, column->name, options->batch);
    *ret = shape;
    return OK;
}

static const struct tensor *input_of_column(const struct maker *m, int column, struct ids_of ids)
{
    for (int i = 0; i < m->graph->input_count; i++) {
        const struct graph_input *input = &m->graph->inputs[i];
        if (input->source == column && is_of(input, ids)) return input->tensor;
    }
    return NULL;
}

/* A column becomes an input of the graph when the first node reads it; so do the weights of ids. */
static err read_column(struct maker *m, int index, struct ids_of ids, const struct tensor **ret)
{
    *ret = input_of_column(m, index, ids);
    if (*ret) return OK;
    const struct column *column = &m->options->columns[index];
    struct tensor *tensor = arena_new(m->arena, sizeof *tensor);
    tensor->dtype = column->dtype == INT64 ? INT64 : FLOAT32;
    tensor->buckets = column->buckets;
    TRY(shape_column(m, column, &tensor->shape));
    if (column->is_weighted) TRY(read_column(m, index + 1, (struct ids_of){0}, &tensor->weights));
    TRY(add_input(m, tensor, index, true, ids));
    *ret = tensor;
    return OK;
}

int graph_input_of(const struct graph *graph, const struct tensor *tensor)
{
    for (int i = 0; i < graph->input_count; i++)
        if (graph->inputs[i].tensor == tensor) return i;
    return -1;
}

void graph_make_inputs(const struct graph *graph, const struct batch *batch, uint64_t draw,
                       void *const *at)
{
    for (int i = 0; i < graph->input_count; i++) {
        const struct graph_input *input = &graph->inputs[i];
        if (input->maker && input->made == 0)
            input->maker->op->make(input->maker, batch, draw, at + i);
    }
}

int graph_input_shown(const struct graph *graph, int input)
{
    int i = 0;
    while (i < input && (graph->inputs[i].maker || graph->inputs[input].maker ||
                         graph->inputs[i].source != graph->inputs[input].source))
        i++;
    return i;
}

static struct readable readable_of(const struct maker *m)
{
    return (struct readable){m->names, m->graph->node_count, m->options->columns,
                             m->options->column_count};
}

/* Nodes run in the order of the spec, so a node can read only earlier ones; there are no cycles. */
static err check_order(const struct maker *m, int reader, int node)
{
    if (node == reader) return fail(ERR_INPUT, "it cannot read itself");
    if (node > reader)
        return fail(ERR_INPUT,
                    "\"%s\" is %s, which comes later: a node reads "
                    "earlier ones",
                    m->names[node], node_place(m->spec->nodes.at, node, m->arena));
    return OK;
}

/* Checks numbers against ids here, so that ops need not. */
static err connect(struct node *node, const struct tensor *tensor, bool reads_ids)
{
    const bool is_ids = tensor->dtype == INT64;
    if (is_ids && !reads_ids)
        return fail(ERR_INPUT,
                    "\"%s\" are ids: only some ops read those, to look them up "
                    "in a table of weights or vectors, or to say where there are some (mask)",
                    tensor->name);
    if (!is_ids && reads_ids)
        return fail(ERR_INPUT, "\"%s\" are numbers, %s reads ids", tensor->name,
                    node->op->object.name);
    node->input[node->input_count++] = tensor;
    return OK;
}

static err connect_node(struct maker *m, struct node *node, int source, bool reads_ids)
{
    m->is_read[source] = true;
    if (m->graph->nodes[source].output.answers)
        return fail(ERR_INPUT, "\"%s\" (%s) makes logits that a loss alone can read",
                    m->names[source], m->graph->nodes[source].op->object.name);
    return connect(node, &m->graph->nodes[source].output, reads_ids);
}

static const char *shared_name(const struct node_spec *spec)
{
    const struct op *op = spec->op.kind->descriptor;
    const char *table = op->shared_name ? op->shared_name(spec->op.attributes) : NULL;
    return spec->weights_of ? spec->weights_of : table;
}

/* Index of the node of this name; -1: none. */
static int find_node(const struct maker *m, const char *name)
{
    return text_find(m->names, m->graph->node_count, name);
}

/* Whether the later node uses the params of this one, perhaps through others between them */
static bool shares_of(const struct maker *m, int later, const struct node *node)
{
    for (int i = later; i > node->index;) {
        const char *name = shared_name(node_spec(m, i));
        const int next = name ? find_node(m, name) : i;
        if (next < 0 || next >= i) return false;
        i = next;
        if (i == node->index) return true;
    }
    return false;
}

/* The node whose table several nodes name rows of, this one among them; NULL: none, or the ids are
 * not looked up. */
static const struct node *shared_by(const struct maker *m, const struct node *node)
{
    if (!node->holds_batch_rows) return NULL;
    if (node->sharing.of) return node->sharing.of;
    for (int i = node->index + 1; i < m->graph->node_count; i++)
        if (shares_of(m, i, node)) return node;
    return NULL;
}

static err connect_column(struct maker *m, struct node *node, int column, bool reads_ids,
                          bool as_are)
{
    const bool is_ids = m->options->columns[column].dtype == INT64;
    struct ids_of ids = {0};
    const struct tensor *tensor = NULL;
    if (is_ids && as_are)
        ids.is_raw = node->holds_batch_rows;
    else if (is_ids)
        ids.shared = shared_by(m, node);
    if (ids.shared) ids.table = node->input_count;
    TRY(read_column(m, column, ids, &tensor));
    return connect(node, tensor, reads_ids);
}

static err connect_named(struct maker *m, struct node *node, const char *name, bool reads_ids,
                         bool as_are)
{
    const struct readable readable = readable_of(m);
    int source, column;
    TRY(names_find(name, &readable, &source, &column));
    if (column >= 0) return connect_column(m, node, column, reads_ids, as_are);
    TRY(check_order(m, node->index, source));
    return connect_node(m, node, source, reads_ids);
}

/* Connects the inputs that attributes name. */
static err connect_beside(struct maker *m, struct node *node)
{
    const char *const *keys = node->op->named_inputs;
    for (int k = 0; keys && keys[k]; k++) {
        const char *name = fields_string(&node->op->object, node->attributes, keys[k]);
        if (!name) continue;
        node->named[k] = node->input_count;
        const bool is_ids = k < node->op->named_ids;
        const err e = connect_named(m, node, name, is_ids, is_ids);
        if (e) return fail_prefix(e, "%s", keys[k]);
    }
    return OK;
}

/* Without "inputs" a node reads the node before it; the first one reads the column "features". */
static err connect_to_last(struct maker *m, struct node *node)
{
    const bool reads_ids = node->op->reads_ids;
    if (node->index > 0) return connect_node(m, node, node->index - 1, reads_ids);
    const int column = column_find(m->options->columns, m->options->column_count, FEATURES_NAME);
    const char *first = m->options->column_count > 1 ? m->options->columns[1].name : "";
    if (column < 0)
        return fail(ERR_INPUT, "expected names of columns of the data, as in [\"%s\"]", first);
    return connect_column(m, node, column, reads_ids, node->op->ids_as_are);
}

static err connect_listed(struct maker *m, struct node *node, const struct strings *inputs)
{
    if (inputs->count == 0) return connect_to_last(m, node);
    for (int i = 0; i < inputs->count; i++)
        TRY(connect_named(m, node, inputs->at[i], node->op->reads_ids, node->op->ids_as_are));
    return OK;
}

static err connect_inputs(struct maker *m, struct node *node)
{
    const struct strings *inputs = &node_spec(m, node->index)->inputs;
    const struct op *op = node->op;
    const int count = inputs->count ? inputs->count : 1;
    const size_t room = (size_t)count + NAMED_INPUTS_MAX;
    node->input = arena_array(m->arena, room, sizeof *node->input);
    node->add = arena_array(m->arena, room, sizeof *node->add);
    if (count < op->inputs_min || count > op->inputs_max) {
        const bool is_one = op->inputs_max == 1 && !op->reads_ids;
        const char *hint = is_one ? "; \"concat\" makes one of several" : "";
        if (op->inputs_min == op->inputs_max)
            return fail(ERR_INPUT, "inputs: %s reads %d, got %d%s", op->object.name, op->inputs_min,
                        count, hint);
        return fail(ERR_INPUT, "inputs: %s reads %d to %d nodes, got %d: name them in \"inputs\"",
                    op->object.name, op->inputs_min, op->inputs_max, count);
    }
    const err e = connect_listed(m, node, inputs);
    if (e) return fail_prefix(e, "inputs");
    return connect_beside(m, node);
}

/* Finds the node whose params this one shares: an earlier one, so its params are known. */
static err find_shared(struct maker *m, struct node *node)
{
    const struct node_spec *spec = node_spec(m, node->index);
    const char *name = shared_name(spec), *key = spec->weights_of ? "weights_of" : "table";
    const struct op *op = spec->op.kind->descriptor;
    if (!name) return OK;
    const int at = find_node(m, name);
    if (spec->weights_of && op->shared_name && op->shared_name(spec->op.attributes))
        return fail(ERR_INPUT, "weights_of: \"table\" is there, too: one of the two");
    if (at < 0 || at >= node->index)
        return fail(ERR_INPUT, "%s: no earlier node is called \"%s\"%s", key, name,
                    suggest(name, m->names, node->index).text);
    struct node *owner = &m->graph->nodes[at];
    if (owner->op != node->op)
        return fail(ERR_INPUT, "%s: \"%s\" is %s, whose variables are not those of %s", key, name,
                    owner->op->object.name, node->op->object.name);
    node->sharing.of = owner->sharing.of ? owner->sharing.of : owner;
    node->sharing.of->sharing.last = node;
    node->sharing.of->sharing.count++;
    return OK;
}

/* A node that shares params must use all of them. */
static err check_shared(const struct node *node)
{
    const struct node *owner = node->sharing.of;
    if (!owner || node->param_count == owner->param_count) return OK;
    return fail(ERR_INPUT, "weights_of: \"%s\" has %s, too, and this node does not", owner->name,
                strrchr(owner->param[node->param_count].name, '/') + 1);
}

/* Saved tensors get the name of their node, which marks them as used. */
static void complete_tensors(struct node *node)
{
    node->output.name = node->name;
    for (int i = 0; i < SAVED_MAX; i++)
        if (node->saved[i].shape.rank > 0) node->saved[i].name = node->name;
}

/* The column index of the label of this name; NULL: the only label. */
static err find_label(const struct maker *m, const char *name, int *ret)
{
    const struct column *columns = m->options->columns;
    const char *names[COLUMNS_MAX];
    int count = 0;
    *ret = column_find(columns, m->options->column_count, LABELS_NAME);
    assert(*ret >= 0); /* every source has it */
    for (int i = 0; i < m->options->column_count; i++) {
        if (!columns[i].is_label) continue;
        names[count++] = columns[i].name;
        if (!name || strcmp(columns[i].name, name) == 0) *ret = i;
        if (name && *ret == i) return OK;
    }
    if (name && count == 0)
        return fail(ERR_INPUT, "label: the source lists no \"labels\", so that there is but one");
    if (name)
        return fail(ERR_INPUT, "label: no label is called \"%s\"%s", name,
                    suggest(name, names, count).text);
    if (count > 1)
        return fail(ERR_INPUT, "label: the source has %d: name one, as \"%s\"", count, names[0]);
    return OK;
}

/* Finds the label that op->make reads. */
static err find_label_read(const struct maker *m, struct node *node)
{
    const char *key = node->op->label_name;
    if (!key) return OK;
    TRY(find_label(m, fields_string(&node->op->object, node->attributes, key),
                   &node->making.label_column));
    node->making.label = &m->options->columns[node->making.label_column];
    return OK;
}

/* Appends the inputs that the node makes to its others. */
static err connect_made(struct maker *m, struct node *node)
{
    for (int k = 0; k < node->making.count; k++) {
        node->making.inputs[k]->tensor.name =
            arena_format(m->arena, "%s/%s", node->name, node->making.inputs[k]->tensor.name);
        TRY(add_made(m, node, k));
        node->input[node->input_count++] = &node->making.inputs[k]->tensor;
    }
    return OK;
}

/* The key of a node's random draws depends on seed and name alone: other nodes added to the model
 * do not change it. */
static err make_node(struct maker *m, int index)
{
    const struct node_spec *spec = node_spec(m, index);
    struct node *node = &m->graph->nodes[index];
    *node = (struct node){
        .op = spec->op.kind->descriptor,
        .name = m->names[index],
        .attributes = spec->op.attributes,
        .index = index,
        .training = m->options->training,
        .holds_batch_rows = m->options->holds_batch_rows,
        .key = random_key(m->options->seed, m->names[index]),
        .first_row = m->options->first_row,
    };
    err e = find_shared(m, node);
    if (!e) e = connect_inputs(m, node);
    if (!e) e = find_label_read(m, node);
    if (!e) e = node->op->infer(node, m->arena);
    if (!e) e = connect_made(m, node);
    if (!e) e = check_shared(node);
    if (!e) e = shape_check(&node->output.shape);
    if (e)
        return fail_prefix(e, "%s (%s \"%s\")", node_place(m->spec->nodes.at, index, m->arena),
                           node->op->object.name, node->name);
    complete_tensors(node);
    return OK;
}

/* A node that nothing reads would be computed in vain, and its parameters never trained: probably a
 * mistake. */
static err check_all_read(const struct maker *m)
{
    const struct graph *graph = m->graph;
    for (int i = 0; i < graph->node_count; i++)
        if (!m->is_read[i])
            return fail(ERR_INPUT, "%s (%s \"%s\"): nobody reads its output%s",
                        node_place(m->spec->nodes.at, i, m->arena), graph->nodes[i].op->object.name,
                        graph->nodes[i].name,
                        graph->heads[0].name ? ", and it is no head's"
                                             : ", and it is not the last node");
    return OK;
}

static err make_nodes(struct maker *m)
{
    const int count = m->spec->nodes.count;
    if (count < 1) return fail(ERR_INPUT, "model: expected at least one node");
    if (count > NODES_MAX)
        return fail(ERR_INPUT, "model: %d nodes; at most %d are possible", count, NODES_MAX);

    m->graph->node_count = count;
    m->graph->nodes = arena_array(m->arena, (size_t)count, sizeof(struct node));
    m->names = arena_array(m->arena, (size_t)count, sizeof *m->names);
    m->is_read = arena_array(m->arena, (size_t)count, sizeof *m->is_read);
    const struct readable readable = readable_of(m);
    TRY(names_assign(m->spec->nodes.at, &readable, m->arena, m->names));
    for (int i = 0; i < count; i++) TRY(make_node(m, i));
    return OK;
}

/* In creation order: by node, then as the node declares them. Placement on ps and checkpoints use
 * this order. */
static err list_params(struct maker *m)
{
    struct graph *graph = m->graph;
    size_t count = 0;
    for (int i = 0; i < graph->node_count; i++) count += (size_t)graph->nodes[i].param_count;
    graph->params = arena_array(m->arena, count + 1, sizeof *graph->params);
    for (int i = 0; i < graph->node_count; i++) {
        struct node *node = &graph->nodes[i];
        for (int p = 0; p < node->param_count && !node->sharing.of; p++) {
            graph->params[graph->param_count++] = &node->param[p];
            graph->param_floats += shape_count(&node->param[p].shape);
        }
    }
    if (graph->param_floats > TENSOR_ELEMENTS_MAX)
        return fail(ERR_INPUT, "model: more than 2^40 parameters");
    if (graph->training && graph->param_count == 0)
        return fail(ERR_INPUT, "model: nothing to train: none of its nodes has a parameter");
    return OK;
}

int graph_first_param(const struct graph *graph, const struct node *node)
{
    int first = 0;
    for (int i = 0; i < node->index; i++)
        if (!graph->nodes[i].sharing.of) first += graph->nodes[i].param_count;
    return first;
}

/* ---- heads ---- */

/* Only a loss of probabilities reads "probability"; all others read "logits". */
static err find_output(struct maker *m, const struct head_spec *spec, const struct loss *loss,
                       const struct tensor **ret)
{
    const struct graph *graph = m->graph;
    const bool wants_shares = loss->predicts == PREDICTS_PROBABILITY;
    const char *name = spec->logits ? spec->logits : spec->probability;
    const char *key = spec->logits ? "logits" : "probability";
    const int node = name ? find_node(m, name) : graph->node_count - 1;
    if (name && wants_shares != (spec->probability != NULL))
        return fail(ERR_INPUT, "%s: %s reads %s", key, loss->object.name,
                    wants_shares ? "a \"probability\"" : "\"logits\"");
    if (node < 0)
        return fail(ERR_INPUT, "%s: no node is called \"%s\"%s", key, name,
                    suggest(name, m->names, graph->node_count).text);
    m->is_read[node] = true;
    *ret = &graph->nodes[node].output;
    return OK;
}

static const struct head_spec *head_spec(const struct maker *m, int index)
{
    return (const struct head_spec *)m->heads.at + index;
}

/* Two heads may read one label only in the same dtype and shape. */
static err check_same_label(const struct graph *graph, int index, int column)
{
    const struct tensor *labels = loss_given(&graph->heads[index].loss);
    for (int i = 0; i < index; i++) {
        const struct tensor *other = loss_given(&graph->heads[i].loss);
        const bool is_same = graph->inputs[graph_input_of(graph, other)].source == column;
        if (!is_same ||
            (other->dtype == labels->dtype && shape_equal(&other->shape, &labels->shape)))
            continue;
        return fail(ERR_INPUT,
                    "label: \"%s\" reads the same label in another form: list it twice under two "
                    "names",
                    graph->heads[i].name);
    }
    return OK;
}

/* For logits with `answers`: these are the labels, and the data's label column goes to `given`. */
static err take_answers(struct loss_node *loss, const char *label)
{
    const struct tensor *logits = loss->logits;
    if (!logits->answers) return OK;
    if (loss->loss->labels != LABELS_CLASSES)
        return fail(ERR_INPUT,
                    "\"%s\" has one right class in each row, which softmax_cross_entropy, "
                    "sampled_softmax and nce are about",
                    logits->name);
    loss->given = loss->labels;
    loss->given.name = label;
    if (logits->classes == 0) loss->given.dtype = FLOAT32;
    loss->labels.name = label;
    return OK;
}

static err make_head(struct maker *m, int index)
{
    struct graph *graph = m->graph;
    struct head *head = &graph->heads[index];
    const struct head_spec *spec = head_spec(m, index);
    const struct variant *loss = &spec->loss.loss;
    int column;
    *head = (struct head){.name = spec->name,
                          .loss = {.loss = loss->kind->descriptor,
                                   .attributes = loss->attributes,
                                   .reduction = (enum loss_reduction)spec->loss.reduction,
                                   .factor = (float)spec->weight}};
    TRY(find_output(m, spec, head->loss.loss, &head->loss.logits));
    TRY(find_label(m, spec->label, &column));
    TRY(head->loss.loss->infer(&head->loss, m->arena));
    TRY(shape_check(&head->loss.labels.shape));
    TRY(take_answers(&head->loss, m->options->columns[column].name));
    TRY(check_same_label(graph, index, column));
    return add_input(m, (struct tensor *)loss_given(&head->loss), column, false,
                     (struct ids_of){0});
}

static err find_weights(const struct maker *m, const char *key, const char *name, int *ret)
{
    const struct column *columns = m->options->columns;
    *ret = column_find(columns, m->options->column_count, name);
    if (*ret < 0 || columns[*ret].dtype != FLOAT32 || column_width(&columns[*ret]) != 1)
        return fail(ERR_INPUT,
                    "%s: expected the name of a numeric column of one number, got \"%s\"", key,
                    name);
    return OK;
}

/* Weights of rows, in loss and metrics. Not with class weights, which would apply too, nor with
 * several class labels per row, which all count the same. */
static err add_weights(struct maker *m, const struct head_spec *spec, struct loss_node *loss)
{
    int column;
    const char *name = spec->row_weight ? spec->row_weight : m->options->weight;
    const char *key = spec->row_weight ? "row_weight" : "data.weight";
    if (!name) return OK;
    TRY(find_weights(m, key, name, &column));
    if (loss->labels.dtype == INT32 && shape_count_from(&loss->labels.shape, 1) > 1)
        return fail(ERR_INPUT,
                    "%s: an example has %" PRId64
                    " labels for loss (%s), each of which counts alike; a weight is of examples "
                    "with one label",
                    key, shape_count_from(&loss->labels.shape, 1), loss->loss->object.name);
    if (loss->weighs_classes)
        return fail(ERR_INPUT, "%s: loss (%s) has class_weights: one of the two", key,
                    loss->loss->object.name);
    TRY(shape_column(m, &m->options->columns[column], &loss->weights.shape));
    return add_input(m, &loss->weights, column, false, (struct ids_of){0});
}

/* The label of one head may be the row weight of another, but only as a number. */
static err check_weights(const struct maker *m)
{
    const struct graph *graph = m->graph;
    for (int i = 0; i < graph->input_count; i++)
        for (int k = 0; k < graph->head_count; k++) {
            const struct tensor *weights = graph->inputs[i].tensor;
            const struct tensor *label = loss_given(&graph->heads[k].loss);
            if (strcmp(weights->name, label->name) || weights->dtype == label->dtype) continue;
            return fail(ERR_INPUT,
                        "%s: \"%s\" is a label of classes there and a number elsewhere "
                        "(row_weight): list it twice under two names",
                        head_place(&graph->heads[k], graph, m->arena), label->name);
        }
    return OK;
}

static err make_heads(struct maker *m)
{
    struct graph *graph = m->graph;
    m->heads = heads_listed(m->spec, m->arena);
    graph->head_count = m->heads.count;
    graph->heads = arena_array(m->arena, (size_t)graph->head_count, sizeof *graph->heads);
    for (int i = 0; i < graph->head_count; i++) {
        err e = make_head(m, i);
        if (!e) e = add_weights(m, head_spec(m, i), &graph->heads[i].loss);
        if (e) return fail_prefix(e, "%s", head_place(&graph->heads[i], graph, m->arena));
    }
    TRY(check_weights(m));
    return check_all_read(m);
}

/* ---- metrics ---- */

/* Ids as they are in the data, for the rows of metrics that have groups. */
static err add_groups(struct maker *m, struct metric_node *node)
{
    const struct metric *metric = node->metric;
    const struct column *columns = m->options->columns;
    const int count = m->options->column_count;
    if (!metric->group_name) return OK;
    const char *name = fields_string(&metric->object, node->attributes, metric->group_name);
    const int column = column_find(columns, count, name);
    if (column < 0 || columns[column].dtype != INT64 || column_width(&columns[column]) != 1)
        return fail(ERR_INPUT,
                    "%s: expected the name of a column of ids, one of each row, got \"%s\"",
                    metric->group_name, name);
    node->groups.dtype = INT64;
    TRY(shape_column(m, &columns[column], &node->groups.shape));
    return add_input(m, &node->groups, column, false, (struct ids_of){.is_raw = true});
}

/* Summaries and tables identify metrics by name, which may include an attribute ("in_top_5") and
 * the head ("auc/click"). */
static err add_metric(struct maker *m, const struct head *head, const struct kind *kind,
                      const void *attributes, const char *name)
{
    struct graph *graph = m->graph;
    struct metric_node *node = &graph->metrics[graph->metric_count];
    int first = 0; /* index of the first metric that the head lists */
    while (first < graph->metric_count && graph->metrics[first].loss != &head->loss) first++;
    first += head->name != NULL;
    if (graph->metric_count == GRAPH_METRICS_MAX)
        return fail(ERR_INPUT, "more than %d metrics of all heads", GRAPH_METRICS_MAX);
    *node = (struct metric_node){
        .metric = kind->descriptor,
        .attributes = attributes,
        .name = kind->object->name,
        .loss = &head->loss,
    };
    TRY(node->metric->infer(node, m->arena));
    TRY(add_groups(m, node));
    if (name) node->name = name;
    if (head->name) node->name = arena_format(m->arena, "%s/%s", node->name, head->name);
    for (int i = 0; i < graph->metric_count; i++)
        if (strcmp(graph->metrics[i].name, node->name) == 0)
            return fail(ERR_INPUT, "the same as metrics[%d]", i - first);
    graph->metric_count++;
    return OK;
}

/* A head with a name also reports its own loss. */
static err make_metrics_of(struct maker *m, int index)
{
    const struct head *head = &m->graph->heads[index];
    const struct objects *list = &head_spec(m, index)->metrics;
    if (head->name) TRY(add_metric(m, head, kinds_find(&metric_kinds, "loss"), NULL, "loss"));
    for (int i = 0; i < list->count; i++) {
        const struct variant *spec = (const struct variant *)list->at + i;
        const err e = add_metric(m, head, spec->kind, spec->attributes, NULL);
        if (e) return fail_prefix(e, "metrics[%d] (%s)", i, spec->kind->object->name);
    }
    return OK;
}

static err make_metrics(struct maker *m)
{
    struct graph *graph = m->graph;
    size_t count = 0;
    for (int i = 0; i < graph->head_count; i++) count += 1 + (size_t)head_spec(m, i)->metrics.count;
    graph->metrics = arena_array(m->arena, count, sizeof *graph->metrics);
    for (int i = 0; i < graph->head_count; i++) {
        const struct head *head = &graph->heads[i];
        const err e = make_metrics_of(m, i);
        if (e) return head->name ? fail_prefix(e, "%s", head_place(head, graph, m->arena)) : e;
    }
    return OK;
}

/* Unchanged ids get a column of their own where another input has the same column looked up. */
static void place_raw(struct graph *graph)
{
    for (int i = 0; i < graph->input_count; i++) {
        struct graph_input *input = &graph->inputs[i];
        bool is_beside = false;
        for (int k = 0; k < graph->input_count && input->is_raw; k++)
            is_beside |= !graph->inputs[k].is_raw && graph->inputs[k].column == input->source;
        if (is_beside && !input->maker) input->column = graph->column_count++;
    }
}

err graph_make(const struct model_spec *spec, const struct graph_options *options,
               struct arena *arena, struct graph **ret)
{
    struct graph *graph = arena_new(arena, sizeof *graph);
    graph->batch = options->batch;
    graph->training = options->training;
    graph->column_count = options->column_count;
    struct maker m = {.spec = spec, .options = options, .arena = arena, .graph = graph};
    TRY(make_nodes(&m));
    TRY(make_heads(&m));
    TRY(list_params(&m));
    TRY(make_metrics(&m));
    place_raw(graph);
    *ret = graph;
    return OK;
}

/* A session asks this once, to skip terms that are always 0. */
bool graph_has_regularizers(const struct graph *graph)
{
    for (int i = 0; i < graph->param_count; i++) {
        const struct regularizer *r = &graph->params[i]->regularizer;
        if (r->l1 > 0 || r->l2 > 0) return true;
    }
    return false;
}

enum { REGULARIZED_AT_ONCE = 128 };

/* The sums needed for the param's terms; one that is not needed has 0 floats */
static void regularized(const struct param *param, struct summed *ret_abs,
                        struct summed *ret_squares)
{
    const int64_t count = param_floats(param);
    const struct regularizer *r = &param->regularizer;
    *ret_abs = (struct summed){param->value, r->l1 > 0 ? count : 0, SUM_ABS};
    *ret_squares = (struct summed){param->value, r->l2 > 0 ? count : 0, SUM_SQUARE};
}

static void add_terms(struct param *const *params, int count, struct device *device, double *total)
{
    struct summed of[2 * REGULARIZED_AT_ONCE];
    double sums[2 * REGULARIZED_AT_ONCE];
    for (int i = 0; i < count; i++) regularized(params[i], &of[2 * i], &of[2 * i + 1]);
    device->kernels->sums(device, of, 2 * count, sums);
    for (int i = 0; i < count; i++) {
        const struct regularizer *r = &params[i]->regularizer;
        *total += r->l1 * sums[2 * i] + r->l2 * sums[2 * i + 1];
    }
}

void graph_add_regularization(const struct graph *graph, int first, int count,
                              struct device *device, double *total)
{
    for (const int end = first + count; first < end; first += REGULARIZED_AT_ONCE)
        add_terms(graph->params + first,
                  end - first < REGULARIZED_AT_ONCE ? end - first : REGULARIZED_AT_ONCE, device,
                  total);
}

double graph_regularization(const struct graph *graph, struct device *device)
{
    double total = 0;
    graph_add_regularization(graph, 0, graph->param_count, device, &total);
    return total;
}
