/* lower.c - translates the forward pass of each op to primitives: a table from ops to functions,
 * and what these share. Attributes are read by their names in a spec.
 */
#include "cmd/export/lower.h"

#include <inttypes.h>
#include <string.h>

#include "cmd/named_outputs.h"
#include "core/ops/sparse/combine.h"
#include "core/train/checkpoint/newest.h"
#include "core/train/checkpoint/shard.h"

/* ---- attributes ---- */

static void *attribute(const struct node *node, const char *name)
{
    return fields_at(&node->op->object, node->attributes, name);
}

double lower_float(const struct node *node, const char *name)
{
    return *(const double *)attribute(node, name);
}

int64_t lower_int(const struct node *node, const char *name)
{
    return *(const int64_t *)attribute(node, name);
}

int lower_enum(const struct node *node, const char *name)
{
    return *(const int *)attribute(node, name);
}

bool lower_bool(const struct node *node, const char *name)
{
    return *(const bool *)attribute(node, name);
}

const struct ints *lower_ints(const struct node *node, const char *name)
{
    return attribute(node, name);
}

err lower_refuse(const char *why)
{
    return fail(ERR_INPUT, "cannot be exported: %s", why);
}

/* ---- inputs ---- */

/* weights_of: reads the weights of these ids; NULL: reads the tensor itself */
static int read_input(struct lowering *l, const struct tensor *tensor,
                      const struct tensor *weights_of)
{
    int *made = &l->of_input[graph_input_shown(l->graph, graph_input_of(l->graph, tensor))];
    const struct program_value input = {.primitive = PRIMITIVE_INPUT,
                                        .shape = tensor->shape,
                                        .is_ids = tensor->dtype == INT64,
                                        .is_weights = weights_of,
                                        .name = weights_of ? weights_of->name : tensor->name};
    if (*made < 0) *made = program_add(l->program, &input);
    return *made;
}

static err lower_tensor(struct lowering *l, const struct tensor *tensor, int *ret)
{
    int i = 0;
    if (graph_input_of(l->graph, tensor) >= 0) {
        *ret = read_input(l, tensor, NULL);
        return OK;
    }
    while (&l->graph->nodes[i].output != tensor) i++;
    *ret = l->of_node[i];
    return OK;
}

err lower_input(struct lowering *l, int input, int *ret)
{
    return lower_tensor(l, l->node->input[input], ret);
}

err lower_named(struct lowering *l, int named, int *ret)
{
    const struct tensor *tensor = l->node->op->named_inputs ? node_named(l->node, named) : NULL;
    *ret = -1;
    return tensor ? lower_tensor(l, tensor, ret) : OK;
}

err lower_weights(struct lowering *l, int input, int *ret)
{
    const struct tensor *ids = l->node->input[input];
    TRY(lower_named(l, COMBINE_WEIGHTS, ret));
    if (*ret < 0 && ids->weights) *ret = read_input(l, ids->weights, ids);
    return OK;
}

/* ---- variables ---- */

struct rows_reading {
    float *rows;
    struct row_key *keys; /* NULL: ids are row numbers */
    int64_t width, taken;
};

static err take_rows(void *context, const int64_t *ids, int64_t count, const float *rows)
{
    struct rows_reading *r = context;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = r->keys ? r->taken + i : ids[i];
        if (r->keys) r->keys[at] = (struct row_key){ids[i], at};
        memcpy(r->rows + at * r->width, rows + i * r->width, (size_t)r->width * sizeof *rows);
    }
    r->taken += count;
    return OK;
}

/* Leaves the rows in the checkpoint; restoring the session has checked the table's shape. */
static err leave_table(struct lowering *l, const struct param *param,
                       const struct stored_table *table, int *ret)
{
    if (!table->rows) return lower_refuse("its table has no rows yet");
    *ret = program_add(
        l->program,
        &(struct program_value){.primitive = PRIMITIVE_CONSTANT,
                                .shape = {2, {table->rows, table->width}},
                                .name = param->name,
                                .grows = table->grows,
                                .parts = table->parts > 1 && !table->grows ? table->parts : 0});
    return OK;
}

/* Sorts rows by their keys. */
static int add_keyed(struct program *p, const char *name, const struct shape *shape,
                     const struct rows_reading *r)
{
    const size_t width = (size_t)r->width;
    struct program_value table = {
        .primitive = PRIMITIVE_CONSTANT, .shape = *shape, .name = name, .grows = true};
    int64_t *keys = arena_array(p->arena, (size_t)r->taken, sizeof *keys);
    float *rows = arena_array(p->arena, (size_t)r->taken * width, sizeof *rows);
    program_sort_keys(r->keys, r->taken);
    for (int64_t i = 0; i < r->taken; i++) {
        keys[i] = r->keys[i].id;
        memcpy(rows + i * r->width, r->rows + r->keys[i].place * r->width, width * sizeof *rows);
    }
    table.keys = keys;
    table.data = rows;
    return program_add(p, &table);
}

static err read_rows(const struct lowering *l, const struct param *param,
                     const struct stored_table *table, struct rows_reading *ret)
{
    struct arena *arena = l->program->arena;
    if (!table->rows) return lower_refuse("its table has no rows yet");
    if (table->rows > PROGRAM_TABLE_FLOATS_MAX / table->width)
        return fail(ERR_INPUT,
                    "cannot be exported: its table is [%" PRId64 ", %" PRId64 "], of which %" PRId64
                    " numbers can be read into memory",
                    table->rows, table->width, PROGRAM_TABLE_FLOATS_MAX);
    ret->width = table->width;
    ret->rows = arena_array(arena, (size_t)(table->rows * table->width), sizeof *ret->rows);
    if (param->growth) ret->keys = arena_array(arena, (size_t)table->rows, sizeof *ret->keys);
    return stored_table_read(table, &(struct stored_rows_taker){ret, take_rows});
}

static err read_table(struct lowering *l, const struct param *param, int *ret)
{
    struct stored_table table;
    struct rows_reading reading = {0};
    TRY(program_find_table(l->program, param->name, &table));
    if (l->program->leaves_tables) return leave_table(l, param, &table, ret);
    TRY(read_rows(l, param, &table, &reading));
    const struct shape shape = {2, {table.rows, table.width}};
    if (param->growth)
        *ret = add_keyed(l->program, param->name, &shape, &reading);
    else
        *ret = program_constant(l->program, param->name, &shape, reading.rows);
    return OK;
}

/* The name of a variable's moving average, if predictions use that, or its own */
static const char *stored_name(const struct program *p, const char *name)
{
    for (int i = 0; i < p->average_count; i++)
        if (strcmp(p->averages[i].to, name) == 0) return p->averages[i].from;
    return name;
}

static err read_dense(struct lowering *l, const struct param *param, int *ret)
{
    const struct program *p = l->program;
    struct bundle *bundle = p->newest ? newest_dense(p->newest) : p->bundle;
    const struct bundle_entry *entry = bundle_find(bundle, stored_name(p, param->name));
    const size_t count = (size_t)shape_count(&param->shape);
    float *data = arena_array(l->program->arena, count, sizeof *data);
    if (!entry || entry->dtype != BUNDLE_FLOAT || bundle_count(&entry->shape) != (int64_t)count)
        return fail(ERR_INPUT, "the checkpoint has no \"%s\" of this shape", param->name);
    TRY(bundle_read(bundle, entry, NULL, data, count * sizeof *data));
    *ret = program_constant(l->program, param->name, &param->shape, data);
    return OK;
}

/* -1: no such constant */
static int constant_named(const struct program *p, const char *name)
{
    for (int i = 0; i < p->count; i++)
        if (p->values[i].primitive == PRIMITIVE_CONSTANT && strcmp(p->values[i].name, name) == 0)
            return i;
    return -1;
}

int lower_constant(struct lowering *l, const char *name, const struct shape *shape,
                   const float *data)
{
    const int made = constant_named(l->program, name);
    return made < 0 ? program_constant(l->program, name, shape, data) : made;
}

/* Several nodes may read one variable. */
err lower_param(struct lowering *l, int param, int *ret)
{
    const struct node *node = l->node->sharing.of ? l->node->sharing.of : l->node;
    const struct param *p = &node->param[param];
    *ret = constant_named(l->program, p->name);
    if (*ret >= 0) return OK;
    return p->ids ? read_table(l, p, ret) : read_dense(l, p, ret);
}

err lower_turned(struct lowering *l, int param, int *ret)
{
    const struct param *p = &l->node->param[param];
    const char *name = arena_format(l->program->arena, "%s/turned", p->name);
    struct stored_table table;
    struct rows_reading reading = {0};
    TRY(program_find_table(l->program, p->name, &table));
    TRY(read_rows(l, p, &table, &reading));
    float *turned =
        arena_array(l->program->arena, (size_t)(table.rows * table.width), sizeof *turned);
    for (int64_t i = 0; i < table.rows; i++)
        for (int64_t k = 0; k < table.width; k++)
            turned[k * table.rows + i] = reading.rows[i * table.width + k];
    *ret = lower_constant(l, name, &(struct shape){2, {table.width, table.rows}}, turned);
    return OK;
}

int lower_shape(struct lowering *l, int x)
{
    return program_reshape(l->program, x, &l->node->output.shape);
}

/* ---- ops ---- */

/* For ops that only pass their input on, except in training */
static err lower_nothing(struct lowering *l, int *ret)
{
    l->program->dropped++;
    return lower_input(l, 0, ret);
}

/* Its output depends on the other rows of the batch, and only a loss reads it: outputs its inputs
 * instead. */
static err lower_comparison(struct lowering *l, int *ret)
{
    (void)l;
    *ret = -1;
    return OK;
}

static const char COMPARISON[] = "in_batch_logits";

static const struct {
    const char *op;
    lowers *lowers;
} table[] = {
    {"dense", lower_layers},
    {"cross_layer", lower_layers},
    {"relu", lower_layers},
    {"relu6", lower_layers},
    {"elu", lower_layers},
    {"leaky_relu", lower_layers},
    {"sigmoid", lower_layers},
    {"tanh", lower_layers},
    {"softplus", lower_layers},
    {"swish", lower_layers},
    {"gelu", lower_layers},
    {"selu", lower_layers},
    {"softsign", lower_layers},
    {"square", lower_layers},
    {"sqrt", lower_layers},
    {"exp", lower_layers},
    {"log", lower_layers},
    {"abs", lower_layers},
    {"prelu", lower_layers},
    {"conv1d", lower_windows},
    {"conv2d", lower_windows},
    {"conv2d_transpose", lower_windows},
    {"depthwise_conv2d", lower_windows},
    {"separable_conv2d", lower_windows},
    {"max_pool", lower_windows},
    {"avg_pool", lower_windows},
    {"embedding", lower_sparse},
    {"linear", lower_sparse},
    {"mask", lower_sparse},
    {"indicator", lower_sparse},
    {"sampled_logits", lower_sparse},
    {COMPARISON, lower_comparison},
    {"dot_interaction", lower_vectors},
    {"factorization_machine", lower_vectors},
    {"matmul", lower_vectors},
    {"compare", lower_vectors},
    {"add", lower_vectors},
    {"subtract", lower_vectors},
    {"multiply", lower_vectors},
    {"divide", lower_vectors},
    {"maximum", lower_vectors},
    {"minimum", lower_vectors},
    {"flatten", lower_moves},
    {"reshape", lower_moves},
    {"concat", lower_moves},
    {"slice", lower_moves},
    {"split", lower_moves},
    {"stack", lower_moves},
    {"transpose", lower_moves},
    {"tile", lower_moves},
    {"pad", lower_moves},
    {"batch_normalization", lower_normal},
    {"layer_normalization", lower_normal},
    {"standardize", lower_normal},
    {"l2_normalize", lower_normal},
    {"clip_by_norm", lower_normal},
    {"dice", lower_normal},
    {"softmax", lower_masked},
    {"log_softmax", lower_normal},
    {"reduce", lower_masked},
    {"global_avg_pool", lower_masked},
    {"global_max_pool", lower_masked},
    {"attention", lower_attention},
    {"lstm", lower_steps},
    {"gru", lower_steps},
    {"clip", lower_normal},
    {"lrn", lower_normal},
    {"scale", lower_normal},
    {"positional_embedding", lower_normal},
    {"dropout", lower_nothing},
    {"negative_sampling", lower_nothing},
    {"augment", lower_moves},
};

/* NULL: the op cannot be exported */
static lowers *lowers_of(const char *op)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].op, op) == 0) return table[i].lowers;
    return NULL;
}

bool program_compares_rows(const struct node_spec *node)
{
    return strcmp(node->op.kind->object->name, COMPARISON) == 0;
}

void program_leave_blocks(const struct node_spec *nodes, int count)
{
    for (int i = 0; i < count; i++) {
        const struct variant *op = &nodes[i].op;
        if (program_compares_rows(&nodes[i]))
            *(int64_t *)fields_at(op->kind->object, op->attributes, "block") = 0;
    }
}

static err lower_node(struct lowering *l, int node)
{
    l->node = &l->graph->nodes[node];
    const char *op = l->node->op->object.name;
    lowers *of = lowers_of(op);
    const err e = of ? of(l, &l->of_node[node]) : lower_refuse("no format has this op");
    return e ? fail_prefix(e, "node \"%s\" (%s)", l->node->name, op) : OK;
}

/* ---- outputs ---- */

static err add_output(struct program *p, const char *name, int value)
{
    for (int i = 0; i < p->output_count; i++)
        if (strcmp(p->outputs[i].name, name) == 0) {
            if (p->outputs[i].value == value) return OK;
            return fail(ERR_INPUT,
                        "two outputs are called \"%s\": rename the node, or leave one of them out "
                        "(--outputs)",
                        name);
        }
    if (p->output_count == PROGRAM_OUTPUTS_MAX)
        return fail(ERR_INPUT, "more than %d outputs cannot be exported", PROGRAM_OUTPUTS_MAX);
    p->outputs[p->output_count++] = (struct said_value){name, value};
    return OK;
}

/* -1: a column, not the output of a node */
static int node_of(const struct graph *graph, const struct tensor *output)
{
    for (int i = 0; i < graph->node_count; i++)
        if (&graph->nodes[i].output == output) return i;
    return -1;
}

static err add_node(struct lowering *l, int node)
{
    const struct graph *graph = l->graph;
    l->node = &graph->nodes[node];
    if (l->of_node[node] >= 0) return add_output(l->program, l->node->name, l->of_node[node]);
    for (int i = 0; i < 2; i++) {
        int value;
        if (node_of(graph, l->node->input[i]) < 0) continue; /* a column: the client has it */
        TRY(lower_input(l, i, &value));
        TRY(add_output(l->program, l->node->input[i]->name, value));
    }
    return l->program->output_count ? OK : lower_refuse("both of its inputs are columns");
}

/* With the same outputs as `dtrain predict` */
static err add_head(struct lowering *l, const struct head *head)
{
    const enum prediction predicts = head->loss.loss->predicts;
    const int node = node_of(l->graph, head->loss.logits);
    struct program *p = l->program;
    int value = l->of_node[node];
    if (value < 0) return add_node(l, node);
    if (predicts == PREDICTS_LOGIT || head->loss.loss->is_each)
        value = program_one(p, PRIMITIVE_SIGMOID, value);
    else if (predicts == PREDICTS_CLASS)
        value = program_one(p, PRIMITIVE_SOFTMAX, value);
    const char *what = predicts == PREDICTS_NUMBER  ? "values"
                       : predicts == PREDICTS_CLASS ? "probabilities"
                                                    : "probability";
    const char *name = head->name ? arena_format(p->arena, "%s/%s", head->name, what) : what;
    return add_output(p, name, value);
}

/* Marks all nodes that marked ones depend on, in one pass from the end. */
static void mark_inputs(const struct graph *graph, bool *is_read)
{
    for (int i = graph->node_count - 1; i >= 0; i--)
        for (int k = 0; is_read[i] && k < graph->nodes[i].input_count; k++) {
            const int node = node_of(graph, graph->nodes[i].input[k]);
            if (node >= 0) is_read[node] = true;
        }
}

static err lower_said(struct lowering *l, const struct named_output *said, int count)
{
    const struct graph *graph = l->graph;
    bool *is_read = arena_array(l->program->arena, (size_t)graph->node_count, sizeof *is_read);
    for (int i = 0; i < count; i++)
        is_read[said[i].is_head ? node_of(graph, graph->heads[said[i].index].loss.logits)
                                : said[i].index] = true;
    mark_inputs(graph, is_read);
    for (int i = 0; i < graph->node_count; i++)
        if (is_read[i]) TRY(lower_node(l, i));
    for (int i = 0; i < count; i++)
        TRY(said[i].is_head ? add_head(l, &graph->heads[said[i].index])
                            : add_node(l, said[i].index));
    return OK;
}

err program_lower(struct program *p, const struct graph *graph, const struct strings *outputs)
{
    struct lowering l = {.program = p, .graph = graph};
    struct named_output said[PROGRAM_OUTPUTS_MAX];
    int count = 0;
    l.of_node = arena_array(p->arena, (size_t)graph->node_count, sizeof *l.of_node);
    for (int i = 0; i < GRAPH_INPUTS_MAX; i++) l.of_input[i] = -1;
    for (int i = 0; i < outputs->count; i++)
        TRY(named_output_find(graph, outputs->at[i], &said[count++]));
    for (int i = 0; i < graph->head_count && !outputs->count; i++)
        said[count++] = (struct named_output){true, i};
    TRY(lower_said(&l, said, count));
    program_count_uses(p);
    return OK;
}
