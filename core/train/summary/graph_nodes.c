/* graph_nodes.c - a list of nodes with unique names. */
#include "core/train/summary/graph_def_inside.h"

#include <ctype.h>
#include <string.h>

enum { CAPACITY_FIRST = 64 };

const char WORKER_DEVICE[] = "/job:worker";

/* The name's place in the table, which is at most half full. */
static struct word *place(const struct graph_nodes *nodes, const char *name)
{
    return word_place(nodes->taken, (size_t)nodes->taken_size, sizeof *nodes->taken,
                      (struct word){name, strlen(name)});
}

static void take(struct graph_nodes *nodes, const char *name)
{
    *place(nodes, name) = (struct word){name, strlen(name)};
}

/* The arena keeps the old list until it is freed: at most twice the memory. */
static void grow(struct graph_nodes *nodes)
{
    const struct graph_node *old = nodes->at;
    nodes->capacity = nodes->capacity ? 2 * nodes->capacity : CAPACITY_FIRST;
    nodes->at = arena_array(nodes->arena, (size_t)nodes->capacity, sizeof *nodes->at);
    if (old) memcpy(nodes->at, old, (size_t)nodes->count * sizeof *old);

    nodes->taken_size = 2 * nodes->capacity;
    nodes->taken = arena_array(nodes->arena, (size_t)nodes->taken_size, sizeof *nodes->taken);
    for (int i = 0; i < nodes->count; i++) take(nodes, nodes->at[i].name);
}

/* Ends: at most as many tries as there are nodes. */
static const char *unique_name(struct graph_nodes *nodes, const char *name)
{
    const char *unique = name;
    for (int suffix = 1; place(nodes, unique)->text; suffix++)
        unique = arena_format(nodes->arena, "%s_%d", name, suffix);
    return unique;
}

const char *graph_nodes_add(struct graph_nodes *nodes, const struct graph_node *given)
{
    if (nodes->count == nodes->capacity) grow(nodes);
    struct graph_node node = *given;
    node.name = unique_name(nodes, given->name);
    const char **inputs = arena_array(nodes->arena, (size_t)node.input_count, sizeof *inputs);
    for (int i = 0; i < node.input_count; i++) inputs[i] = given->inputs[i];
    node.inputs = inputs;

    nodes->at[nodes->count++] = node;
    take(nodes, node.name);
    return node.name;
}

const char *ps_device(struct arena *arena, int ps)
{
    return arena_format(arena, "/job:ps/task:%d", ps);
}

/* The names that differ from ours in more than spelling. */
static const char *const renamed[][2] = {
    {"adagrad_da", "AdagradDA"},
    {"add", "AddN"},
    {"concat", "ConcatV2"},
    {"conv2d", "Conv2D"},
    {"dense", "MatMul"},
    {"divide", "RealDiv"},
    {"flatten", "Reshape"},
    {"in_top_k", "InTopKV2"},
    {"mean_squared_error", "SquaredDifference"},
    {"matmul", "BatchMatMulV2"},
    {"multiply", "Mul"},
    {"rmsprop", "RMSProp"},
    {"stack", "Pack"},
    {"subtract", "Sub"},
    {"softmax_cross_entropy", "SparseSoftmaxCrossEntropyWithLogits"},
};

const char *tensorflow_name(struct arena *arena, const char *ours)
{
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(ours, renamed[i][0]) == 0) return renamed[i][1];
    char *spelled = arena_string(arena, ours), *end = spelled; /* max_pool: MaxPool */
    bool begins = true;
    for (const char *c = ours; *c; c++) {
        if (*c != '_') *end++ = begins ? (char)toupper((unsigned char)*c) : *c;
        begins = *c == '_';
    }
    *end = '\0';
    return spelled;
}
