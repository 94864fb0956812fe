/* graph_def_train.c - the nodes of a step beyond the loss: gradients and clipping on the worker,
 * updates where the variables are.
 */
#include <string.h>

#include "core/train/summary/graph_def_inside.h"

/* What the functions of this file share. */
struct training {
    struct graph_maker *m;
    struct arena *arena;
    const struct optimizer_spec *spec;
    const struct optimizer *optimizer;
    const char *scope; /* "train" */
    const char *type;  /* "train/adam" */
    const char *global_step, *learning_rate;
    const char *powers[POWERS_MAX];
    int slot_count;
    const char **gradients; /* [layout->variable_count] as they are pushed */
    const char **updates;   /* [layout->slice_count] with ^ before the name */
};

static const char *add(struct training *t, const struct graph_node *node)
{
    return graph_nodes_add(&t->m->nodes, node);
}

/* A number that a ps holds. */
static const char *add_state(struct training *t, const char *name, int ps, enum graph_dtype dtype)
{
    return add(t, &(struct graph_node){.name = name,
                                       .op = "VariableV2",
                                       .device = ps_device(t->arena, ps),
                                       .dtype = dtype});
}

/* A rate that never changes reads nothing. */
static void add_learning_rate(struct training *t)
{
    const struct schedule_spec *rate = optimizer_learning_rate(t->spec);
    const struct kind *kind = rate->schedule.kind;
    const bool changes = strcmp(kind->object->name, "constant") != 0 || rate->warmup_steps > 0;
    t->learning_rate =
        add(t, &(struct graph_node){.name = arena_format(t->arena, "%s/learning_rate", t->scope),
                                    .op = changes ? tensorflow_name(t->arena, kind->object->name)
                                                  : "Const",
                                    .device = WORKER_DEVICE,
                                    .inputs = &t->global_step,
                                    .input_count = changes ? 1 : 0,
                                    .dtype = GRAPH_FLOAT,
                                    .object = kind->object,
                                    .attributes = rate->schedule.attributes});
}

/* TensorFlow has them beside the variable whose name comes first. */
static void add_powers(struct training *t)
{
    const struct layout *layout = t->m->layout;
    int owner = 0;
    for (int i = 1; i < layout->slice_count; i++)
        if (strcmp(layout->variables[layout->slices[i].variable].name,
                   layout->variables[layout->slices[owner].variable].name) < 0)
            owner = i;
    for (int i = 0; i < t->optimizer->power_count; i++)
        t->powers[i] =
            add_state(t, arena_format(t->arena, "%s/%s", t->scope, t->optimizer->power[i].name),
                      layout->slices[owner].ps, GRAPH_FLOAT);
}

/* On the worker, one per variable, as wide as the variable. */
static const char *add_gradient(struct training *t, int variable, const char *box, const char *op,
                                const char *const inputs[2])
{
    const struct variable *v = &t->m->layout->variables[variable];
    return add(
        t, &(struct graph_node){.name = arena_format(t->arena, "%s/%s/%s", t->scope, box, v->name),
                                .op = op,
                                .device = WORKER_DEVICE,
                                .inputs = inputs,
                                .input_count = inputs[1] ? 2 : 1,
                                .shape = v->shape,
                                .dtype = GRAPH_FLOAT});
}

/* Backward as a whole is one op per variable: what it reads on its way is the forward pass, drawn
 * already. */
static void add_gradients(struct training *t)
{
    for (int i = 0; i < t->m->layout->variable_count; i++)
        t->gradients[i] =
            add_gradient(t, i, "gradients", "SymbolicGradient", (const char *[]){t->m->loss, NULL});
}

/* The norm of all is one number that every gradient waits for. */
static void add_clipping(struct training *t)
{
    static const char *const ops[] = {[CLIP_VALUE] = "ClipByValue",
                                      [CLIP_NORM] = "ClipByNorm",
                                      [CLIP_GLOBAL_NORM] = "ClipByGlobalNorm"};
    const enum clip_type type = optimizer_clip(t->spec).type;
    if (type == CLIP_NONE) return;

    const int count = t->m->layout->variable_count;
    const char *norm = NULL;
    if (type == CLIP_GLOBAL_NORM)
        norm = add(
            t, &(struct graph_node){.name = arena_format(t->arena, "%s/clip/global_norm", t->scope),
                                    .op = "GlobalNorm",
                                    .device = WORKER_DEVICE,
                                    .inputs = t->gradients,
                                    .input_count = count,
                                    .dtype = GRAPH_FLOAT});
    for (int i = 0; i < count; i++)
        t->gradients[i] =
            add_gradient(t, i, "clip", ops[type], (const char *[]){t->gradients[i], norm});
}

/* A slot lies where its slice lies, and is called after it. */
static const char *add_slot(struct training *t, const struct graph_node *slice, int slot)
{
    struct graph_node node = *slice;
    node.name = arena_format(t->arena, "%s/%s", slice->name, t->optimizer->slot[slot].name);
    return add(t, &node);
}

/* The update of one slice: it reads the slice, its slots, the powers, the rate and the gradient. */
static void add_update(struct training *t, int index)
{
    struct graph_nodes *nodes = &t->m->nodes;
    const struct slice *slice = &t->m->layout->slices[index];
    struct graph_node held = nodes->at[index]; /* slice i is node i */
    const char *inputs[SLOTS_MAX + POWERS_MAX + 3] = {held.name};
    int count = 1;
    for (int i = 0; i < t->slot_count; i++) inputs[count++] = add_slot(t, &held, i);
    for (int i = 0; i < t->optimizer->power_count; i++) inputs[count++] = t->powers[i];
    inputs[count++] = t->learning_rate;
    inputs[count++] = t->gradients[slice->variable];

    held.name = arena_format(t->arena, "%s/%s", t->type, held.name);
    held.op =
        arena_format(t->arena, "Apply%s", tensorflow_name(t->arena, t->optimizer->object.name));
    held.inputs = inputs;
    held.input_count = count;
    t->updates[index] = arena_format(t->arena, "^%s", add(t, &held));
}

/* The step counts when everything is updated. */
static void add_count(struct training *t)
{
    const int updates = t->m->layout->slice_count;
    const char **inputs = arena_array(t->arena, (size_t)updates + 1, sizeof *inputs);
    inputs[0] = t->global_step;
    memcpy(inputs + 1, t->updates, (size_t)updates * sizeof *inputs);
    add(t, &(struct graph_node){.name = t->type,
                                .op = "AssignAdd",
                                .device = ps_device(t->arena, 0),
                                .inputs = inputs,
                                .input_count = updates + 1,
                                .dtype = GRAPH_INT64,
                                .object = &t->optimizer->object,
                                .attributes = t->spec->optimizer.attributes});
}

/* Order matters only in that a node is made before those that read it. */
void graph_def_add_training(struct graph_maker *m, const struct optimizer_spec *spec)
{
    struct arena *arena = m->nodes.arena;
    const struct optimizer *optimizer = spec->optimizer.kind->descriptor;
    const char *scope = graph_scope(m, "train");
    struct training t = {
        .m = m,
        .arena = arena,
        .spec = spec,
        .optimizer = optimizer,
        .scope = scope,
        .type = arena_format(arena, "%s/%s", scope, optimizer->object.name),
        .slot_count = optimizer_slots(optimizer, spec->optimizer.attributes),
        .gradients = arena_array(arena, (size_t)m->layout->variable_count, sizeof *t.gradients),
        .updates = arena_array(arena, (size_t)m->layout->slice_count, sizeof *t.updates),
    };
    t.global_step = add_state(&t, graph_scope(m, "global_step"), 0, GRAPH_INT64);
    add_learning_rate(&t);
    add_powers(&t);
    add_gradients(&t);
    add_clipping(&t);
    for (int i = 0; i < m->layout->slice_count; i++) add_update(&t, i);
    add_count(&t);
}
