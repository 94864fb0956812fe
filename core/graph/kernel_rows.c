/* kernel_rows.c - see kernel_rows.h. */
#include "core/graph/kernel_rows.h"

#include <stdio.h>
#include <string.h>

enum { ROOM_FIRST = 16 };

static const char too_long[] = "(...)"; /* ends a description that was cut off for its length */

/* The array `at` of `count` elements of `size` bytes, moved if there is no room for one more */
static void *with_room(struct arena *arena, void *at, int count, int *room, size_t size)
{
    if (count < *room) return at;
    *room = *room ? 2 * *room : ROOM_FIRST;
    void *more = arena_array(arena, (size_t)*room, size);
    if (count) memcpy(more, at, (size_t)count * size);
    return more;
}

struct part_taking {
    const struct graph *graph;
    const struct strings *names;
    struct arena *arena;
    struct kernel_parts *parts;
    int room;
    int axis; /* axis of the layer's input that is multiplied with the kernel's rows: the last one;
                 1: all axes of an example */
};

/* How many rows of the kernel the tensor is multiplied with; one without that axis was stacked
 * along it: 1 */
static int64_t rows_of(const struct part_taking *k, const struct tensor *t)
{
    if (k->axis == 1) return shape_count_from(&t->shape, 1);
    return t->shape.rank > k->axis ? t->shape.dim[k->axis] : 1;
}

static const struct node *maker_of(const struct graph *graph, const struct tensor *t)
{
    for (int i = graph->node_count - 1; i >= 0; i--)
        if (&graph->nodes[i].output == t) return &graph->nodes[i];
    return NULL;
}

static void add(struct part_taking *k, const char *name, int64_t rows)
{
    struct kernel_parts *parts = k->parts;
    parts->at = with_room(k->arena, parts->at, parts->count, &k->room, sizeof *parts->at);
    parts->at[parts->count++] = (struct kernel_part){name, rows};
}

/* The axis along which the node joins its inputs; 0: it does not. */
static int64_t axis_joined(const struct node *node)
{
    const char *op = node->op->object.name;
    if (strcmp(op, "concat") != 0 && strcmp(op, "stack") != 0) return 0;
    const int64_t axis = *(const int64_t *)fields_at(&node->op->object, node->attributes, "axis");
    return axis < 0 ? axis + node->output.shape.rank : axis;
}

/* ---- what parts are called ---- */

/* Whether the name is a default one: the op's name, perhaps with a number. */
static bool has_made_up_name(const struct node *node)
{
    const char *op = node->op->object.name, *within = strrchr(node->name, '/');
    const char *name = within ? within + 1 : node->name;
    const size_t length = strlen(op);
    if (strncmp(name, op, length) != 0) return false;
    const char *suffix = name + length;
    return !*suffix || (*suffix == '_' && suffix[strspn(suffix + 1, "0123456789") + 1] == '\0');
}

/* Such a node's values are found by its name, even a default one. */
static bool has_own_params(const struct node *node)
{
    return node->param_count && !node->sharing.of;
}

/* Whether its name is made from its op and inputs */
static bool is_described(const struct node *node)
{
    return node && !has_own_params(node) && has_made_up_name(node);
}

struct part_text {
    char at[KERNEL_PART_NAME_MAX];
    size_t length;
    bool is_cut;
};

static void say(struct part_text *d, const char *text)
{
    const size_t length = strlen(text);
    d->is_cut |= length >= sizeof d->at - d->length;
    if (d->is_cut) return;
    memcpy(d->at + d->length, text, length + 1);
    d->length += length;
}

/* The recursion ends: each level adds an op's name to a text of limited length. */
static void describe(struct part_text *d, const struct graph *graph, const struct tensor *t)
{
    const struct node *node = maker_of(graph, t);
    const bool is_said = is_described(node);
    say(d, is_said ? node->op->object.name : t->name);
    for (int i = 0; is_said && i < node->input_count && !d->is_cut; i++) {
        say(d, i ? ", " : "(");
        describe(d, graph, node->input[i]);
    }
    if (is_said) say(d, ")");
}

static const char *name_of(const struct part_taking *k, const struct tensor *t)
{
    struct part_text d = {.at = ""};
    describe(&d, k->graph, t);
    if (!d.is_cut) return arena_string(k->arena, d.at);
    const struct node *node = maker_of(k->graph, t);
    if (!is_described(node)) return t->name;
    return arena_format(k->arena, "%s%s", node->op->object.name, too_long);
}

bool kernel_part_is_described(const char *name)
{
    const size_t length = strlen(name);
    return length && name[length - 1] == ')';
}

bool kernel_part_is_unknown(const char *name)
{
    const size_t length = strlen(name), end = sizeof too_long - 1;
    return length >= end && strcmp(name + length - end, too_long) == 0;
}

/* ---- finding the parts ---- */

/* Whether y is x with one more axis of 1 at the end */
static bool adds_axis(const struct shape *x, const struct shape *y)
{
    struct shape less = *y;
    return y->rank == x->rank + 1 && y->dim[--less.rank] == 1 && shape_equal(x, &less);
}

static bool is_among(const char *const *ops, const struct node *node)
{
    while (*ops && strcmp(*ops, node->op->object.name) != 0) ops++;
    return *ops;
}

/* Whether element i of the output depends only on element i of the only input, whatever its
 * width. */
static bool keeps_places(const struct part_taking *k, const struct node *node)
{
    const struct shape *x = &node->input[0]->shape, *y = &node->output.shape;
    static const char *const ops[] = {"dropout",  "relu",     "relu6", "elu",   "leaky_relu",
                                      "sigmoid",  "tanh",     "selu",  "swish", "gelu",
                                      "softplus", "softsign", "scale", "clip",  NULL};
    return (node->is_view || is_among(ops, node)) && node->input_count == 1 &&
           (k->axis == 1 ? shape_count_from(x, 1) == shape_count_from(y, 1)
                         : shape_equal(x, y) ||
                               (node->is_view && y->rank == k->axis + 1 && adds_axis(x, y)));
}

static bool is_as_wide(const struct part_taking *k, const struct tensor *x, const struct tensor *y)
{
    return k->axis == 1 ? shape_count_from(&x->shape, 1) == shape_count_from(&y->shape, 1)
                        : shape_equal(&x->shape, &y->shape);
}

/* The input whose columns are also the columns of the output, for ops that have other inputs or
 * variables too; NULL: none. An input made by a layer is skipped: its columns are not those of what
 * the layer read. */
static const struct tensor *mixed_into(const struct part_taking *k, const struct node *node)
{
    static const char *const ops[] = {"add",    "subtract",    "multiply",
                                      "divide", "maximum",     "minimum",
                                      "dice",   "cross_layer", "batch_normalization",
                                      NULL};
    for (int i = 0; is_among(ops, node) && i < node->input_count; i++) {
        const struct node *before = maker_of(k->graph, node->input[i]);
        if (is_as_wide(k, node->input[i], &node->output) &&
            (!before || !before->param_count || is_among(ops, before)))
            return node->input[i];
    }
    return NULL;
}

static bool are_cells(const struct part_taking *k, const struct tensor *t)
{
    const int64_t rows = rows_of(k, t);
    return graph_input_of(k->graph, t) >= 0 && strcmp(t->name, FEATURES_NAME) == 0 &&
           t->shape.rank == 2 && k->names->count == rows && rows <= KERNEL_PARTS_MAX;
}

static bool is_joined(const struct part_taking *k, const struct tensor *t)
{
    const struct node *node = maker_of(k->graph, t);
    return node ? axis_joined(node) == k->axis : are_cells(k, t);
}

/* Goes back through nodes that keep places. Goes further, through those of mixed_into(), only if
 * that leads to something joined: otherwise their own name is used. */
static const struct tensor *behind(const struct part_taking *k, const struct tensor *t)
{
    const struct node *node = maker_of(k->graph, t);
    while (node && keeps_places(k, node)) {
        t = node->input[0];
        node = maker_of(k->graph, t);
    }
    const struct tensor *from = t;
    while (node) { /* ends: nodes read earlier ones */
        const struct tensor *next = keeps_places(k, node) ? node->input[0] : mixed_into(k, node);
        if (!next) break;
        from = next;
        node = maker_of(k->graph, from);
    }
    return is_joined(k, from) ? from : t;
}

static void add_whole(struct part_taking *k, const struct tensor *t)
{
    const int64_t rows = rows_of(k, t);
    if (!are_cells(k, t)) {
        add(k, name_of(k, t), rows);
        return;
    }
    for (int64_t i = 0; i < rows; i++) add(k, k->names->at[i], 1);
}

/* Tensors still to be split, the next one last: a stack instead of recursion. */
struct stack {
    const struct tensor **at;
    int count, room;
};

static void push(struct stack *s, const struct tensor *t, struct arena *arena)
{
    s->at = with_room(arena, s->at, s->count, &s->room, sizeof *s->at);
    s->at[s->count++] = t;
}

static void take_apart(struct part_taking *k, const struct tensor *whole)
{
    struct stack left = {0};
    push(&left, whole, k->arena);
    while (left.count && k->parts->count <= KERNEL_PARTS_MAX) { /* ends: a graph has no cycles */
        const struct tensor *t = behind(k, left.at[--left.count]);
        const struct node *node = maker_of(k->graph, t);
        if (!node || axis_joined(node) != k->axis) {
            add_whole(k, t);
            continue;
        }
        for (int i = node->input_count - 1; i >= 0; i--) push(&left, node->input[i], k->arena);
    }
}

/* These read the previous step's state as another input. */
static bool is_recurrent(const struct node *node)
{
    const char *op = node->op->object.name;
    return strcmp(op, "lstm") == 0 || strcmp(op, "gru") == 0;
}

int64_t kernel_parts_rows(const struct kernel_parts *parts)
{
    int64_t rows = 0;
    for (int i = 0; i < parts->count; i++) rows += parts->at[i].rows;
    return rows;
}

/* Whether the node's params have an element for each channel of its input: a vector, or a matrix of
 * channels by channels. */
static bool has_channels(const struct node *node)
{
    static const char *const ops[] = {"cross_layer", "batch_normalization", "layer_normalization",
                                      "dice", NULL};
    return is_among(ops, node);
}

bool kernel_has_parts(const struct node *node, const struct param *param,
                      const struct kernel_parts *parts)
{
    return parts->count && !param->ids && (param->shape.rank == 2 || has_channels(node)) &&
           param->shape.dim[0] == kernel_parts_rows(parts);
}

bool kernel_is_square(const struct graph *graph, const struct param *param)
{
    for (int i = 0; i < graph->node_count; i++) {
        const struct node *node = &graph->nodes[i];
        const bool is_its = param >= node->param && param < node->param + node->param_count;
        if (is_its) return param->shape.rank == 2 && has_channels(node);
    }
    return false;
}

struct kernel_parts kernel_parts_of(const struct graph *graph, const struct node *node,
                                    const struct strings *feature_names, struct arena *arena)
{
    struct kernel_parts parts = {0};
    const bool is_layer = strcmp(node->op->object.name, "dense") == 0 || is_recurrent(node);
    if ((!is_layer && !has_channels(node)) || node->sharing.of) return parts;
    const struct tensor *x = node->input[0];
    struct part_taking k = {graph, feature_names, arena, &parts, 0, x->shape.rank - 1};
    take_apart(&k, x);
    if (is_recurrent(node)) add(&k, node->name, node->param[0].shape.dim[0] - rows_of(&k, x));
    if (parts.count > KERNEL_PARTS_MAX) parts.count = 0;
    return parts;
}
