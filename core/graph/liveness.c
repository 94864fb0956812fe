/* liveness.c - lifetimes of values, gradients and saved tensors. */
#include "core/graph/liveness.h"

#include <stdlib.h>

/* What is known of one root while the nodes are visited. */
struct life {
    int value_last;
    int gradient_first; /* time of the first write; only for roots that want a gradient */
    bool wants_gradient;
};

/* The tensor must be a node's output. */
static const struct node *maker_of(const struct tensor *tensor)
{
    return (const struct node *)((const char *)tensor - offsetof(struct node, output));
}

/* Index of the node whose memory the tensor shows, or node_count + index of an input. */
static int root_of(const struct graph *graph, const struct tensor *tensor)
{
    int input;
    while ((input = graph_input_of(graph, tensor)) < 0 && maker_of(tensor)->is_view)
        tensor = maker_of(tensor)->input[0];
    return input < 0 ? maker_of(tensor)->index : graph->node_count + input;
}

static void extend(int *last, int time)
{
    if (time > *last) *last = time;
}

static bool is_trained(const struct node *node)
{
    for (int i = 0; i < node->param_count; i++)
        if (!node->param[i].is_frozen) return true;
    return false;
}

/* A gradient is needed if the node or one before it has a parameter that is trained. */
static bool wants_gradient(const struct graph *graph, const struct node *node,
                           const struct life *life)
{
    if (!graph->training) return false;
    if (is_trained(node)) return true;
    for (int i = 0; i < node->input_count; i++)
        if (life[root_of(graph, node->input[i])].wants_gradient) return true;
    return false;
}

/* For a node that is not a view: its reads in forward, at time `index`; its reads and writes in
 * backward. */
static void visit(const struct graph *graph, const struct node *node, struct life *life)
{
    const int backward = 2 * graph->node_count - node->index;
    struct life *own = &life[node->index];
    own->wants_gradient = wants_gradient(graph, node, life);
    own->value_last = node->index;
    if (own->wants_gradient && node->op->reads_output) extend(&own->value_last, backward);

    const int read_last = own->wants_gradient && node->op->reads_input ? backward : node->index;
    for (int i = 0; i < node->input_count; i++) {
        const struct tensor *weights = node->input[i]->weights;
        struct life *input = &life[root_of(graph, node->input[i])];
        extend(&input->value_last, read_last);
        if (weights) extend(&life[root_of(graph, weights)].value_last, read_last);
        if (own->wants_gradient)
            input->gradient_first = backward; /* nodes are visited in order, and the last reader
                                                 runs first in backward */
    }
}

/* Whether an earlier head has the same logits, or a view of the same memory. */
static bool is_second(const struct graph *graph, int head)
{
    const int root = root_of(graph, graph->heads[head].loss.logits);
    for (int i = 0; i < head; i++)
        if (root_of(graph, graph->heads[i].loss.logits) == root) return true;
    return false;
}

/* Logits are kept to the end of the step: metrics read them after backward. */
static void visit_heads(const struct graph *graph, struct life *life)
{
    for (int i = 0; i < graph->head_count; i++) {
        struct life *logits = &life[root_of(graph, graph->heads[i].loss.logits)];
        extend(&logits->value_last, 2 * graph->node_count);
        logits->gradient_first = graph->node_count;
    }
}

static void visit_kept(const struct graph *graph, struct life *life)
{
    for (int i = 0; i < graph->kept_count; i++) {
        const struct tensor *kept = &graph->nodes[graph->kept[i]].output;
        extend(&life[root_of(graph, kept)].value_last, 2 * graph->node_count);
    }
}

/* Needs no check: liveness_open allocates for the most buffers that a graph can have. */
static void add_buffer(struct liveness *l, struct use use, struct packed_buffer buffer)
{
    l->use[l->count] = use;
    l->buffer[l->count++] = buffer;
}

/* A view has no buffers of its own. Saved tensors are kept for backward, if there is one. */
static void add_node(struct liveness *l, struct node *node, const struct life *life, int end)
{
    const size_t bytes = tensor_bytes(&node->output);
    const int backward = end - node->index;
    if (!node->is_view)
        add_buffer(l, (struct use){ROLE_VALUE, &node->output, 0},
                   (struct packed_buffer){bytes, node->index, life->value_last});
    if (!node->is_view && life->wants_gradient)
        add_buffer(l, (struct use){ROLE_GRADIENT, &node->output, 0},
                   (struct packed_buffer){bytes, life->gradient_first, backward});
    for (int i = 0; i < SAVED_MAX; i++)
        if (node->saved[i].name)
            add_buffer(l, (struct use){ROLE_SAVED, &node->saved[i], 0},
                       (struct packed_buffer){tensor_bytes(&node->saved[i]), node->index,
                                              life->wants_gradient ? backward : node->index});
}

static void add_head(struct liveness *l, struct graph *graph, int head, const struct life *life)
{
    const int time = graph->node_count;
    struct loss_node *loss = &graph->heads[head].loss;
    add_buffer(l, (struct use){.role = ROLE_LOSSES, .head = head},
               (struct packed_buffer){(size_t)graph->batch * sizeof(float), time, 2 * time});
    loss->apart = (struct tensor){.name = loss->logits->name, .shape = loss->logits->shape};
    if (is_second(graph, head) && life[root_of(graph, loss->logits)].wants_gradient)
        add_buffer(l, (struct use){ROLE_GRADIENT, &loss->apart, 0},
                   (struct packed_buffer){tensor_bytes(&loss->apart), time, time});
}

/* The buffers of inputs are filled before node 0 runs and kept until their last reader. Losses are
 * kept until the next step. */
static void add_all(struct liveness *l, struct graph *graph, const struct life *life)
{
    const int end = 2 * graph->node_count;
    for (int i = 0; i < graph->input_count; i++) {
        struct tensor *input = graph->inputs[i].tensor;
        if (graph->inputs[i].of_nodes)
            add_buffer(l, (struct use){ROLE_INPUT, input, 0},
                       (struct packed_buffer){tensor_bytes(input), 0,
                                              life[graph->node_count + i].value_last});
    }
    for (int i = 0; i < graph->node_count; i++) add_node(l, &graph->nodes[i], &life[i], end);
    for (int i = 0; i < graph->head_count; i++) add_head(l, graph, i, life);
}

static err allocate(struct liveness *l, size_t capacity)
{
    l->buffer = calloc(capacity, sizeof *l->buffer);
    l->use = calloc(capacity, sizeof *l->use);
    l->order = calloc(capacity, sizeof(struct packed_buffer *));
    if (l->buffer && l->use && l->order) return OK;
    liveness_close(l);
    return fail(ERR_MEMORY, "no memory to plan a graph");
}

err liveness_open(struct graph *graph, struct liveness *ret)
{
    const size_t nodes = (size_t)graph->node_count, inputs = (size_t)graph->input_count;
    struct life *life = calloc(nodes + inputs, sizeof *life);
    if (!life) return fail(ERR_MEMORY, "no memory to plan a graph");

    /* per node a value, a gradient and saved tensors; per input one; per head losses and a
     * gradient */
    struct liveness l = {0};
    const err e = allocate(&l, nodes * (2 + SAVED_MAX) + inputs + 2 * (size_t)graph->head_count);
    if (e) goto out;
    for (size_t i = 0; i < nodes; i++)
        if (!graph->nodes[i].is_view) visit(graph, &graph->nodes[i], life);
    visit_heads(graph, life);
    visit_kept(graph, life);
    add_all(&l, graph, life);
    *ret = l;
out:
    free(life);
    return e;
}

void liveness_close(struct liveness *l)
{
    free(l->buffer);
    free(l->use);
    free(l->order);
    *l = (struct liveness){0};
}

err liveness_mark_adds(struct graph *graph)
{
    bool *written = calloc((size_t)graph->node_count + (size_t)graph->input_count, sizeof *written);
    if (!written) return fail(ERR_MEMORY, "no memory to plan a graph");

    for (int i = 0; i < graph->head_count; i++)
        written[root_of(graph, graph->heads[i].loss.logits)] = true;
    for (int i = graph->node_count - 1; i >= 0; i--) {
        struct node *node = &graph->nodes[i];
        /* in the order of inputs, as backward writes them: one tensor may occur twice */
        for (int k = 0; k < node->input_count && !node->is_view; k++) {
            const int root = root_of(graph, node->input[k]);
            node->add[k] = written[root];
            written[root] = true;
        }
    }
    free(written);
    return OK;
}
