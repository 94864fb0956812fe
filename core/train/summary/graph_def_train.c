/* graph_def_train.c - the nodes of a step beyond the loss: gradients and clipping on the worker,
 * updates where the variables are.
 */
#include <string.h>

#include "core/train/summary/graph_def_inside.h"

/* What one optimizer has in the graph. */
struct drawn_optimizer {
    const struct optimizer_spec *spec;
    const struct optimizer *optimizer;
    const char *type; /* "train/adam", of the second optimizer "train/adam_1" */
    const char *learning_rate;
    const char *powers[POWERS_MAX];
    int slot_count;
};

/* Shared by the functions of this file. */
struct training {
    struct graph_maker *m;
    struct arena *arena;
    const struct optimizers *optimizers;
    struct drawn_optimizer drawn[OPTIMIZERS_MAX];
    const char *scope; /* "train" */
    const char *global_step;
    const char **gradients; /* [layout->variable_count] gradients as they are pushed */
    const char **updates;   /* [layout->all_count] with ^ before the name */
};

/* The names of the first optimizer are plain, those of others are numbered. */
static const char *numbered(const struct training *t, const char *name, int optimizer)
{
    return optimizer ? arena_format(t->arena, "%s/%s_%d", t->scope, name, optimizer)
                     : arena_format(t->arena, "%s/%s", t->scope, name);
}

/* NULL: no optimizer has it. */
static struct drawn_optimizer *drawn_of(struct training *t, int variable)
{
    const struct variable *v = &t->m->layout->variables[variable];
    const int found = optimizers_find(t->optimizers, v->name, v->moving);
    return found == OPTIMIZER_NONE ? NULL : &t->drawn[found];
}

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
static void add_learning_rate(struct training *t, int i)
{
    const struct schedule_spec *rate = optimizer_learning_rate(t->drawn[i].spec);
    const struct kind *kind = rate->schedule.kind;
    const bool changes = strcmp(kind->object->name, "constant") != 0 || rate->warmup_steps > 0 ||
                         rate->warmup_epochs > 0;
    t->drawn[i].learning_rate =
        add(t, &(struct graph_node){.name = numbered(t, "learning_rate", i),
                                    .op = changes ? tensorflow_name(t->arena, kind->object->name)
                                                  : "Const",
                                    .device = WORKER_DEVICE,
                                    .inputs = &t->global_step,
                                    .input_count = changes ? 1 : 0,
                                    .dtype = GRAPH_FLOAT,
                                    .object = kind->object,
                                    .attributes = rate->schedule.attributes});
}

/* TensorFlow puts them beside the variable whose name comes first. */
static void add_powers(struct training *t)
{
    const struct layout *layout = t->m->layout;
    int owner = 0, power = 0;
    for (int i = 1; i < layout->all_count; i++)
        if (strcmp(layout->variables[layout->slices[i].variable].name,
                   layout->variables[layout->slices[owner].variable].name) < 0)
            owner = i;
    for (int i = 0; i < t->optimizers->count; i++)
        for (int k = 0; k < t->drawn[i].optimizer->power_count; k++)
            t->drawn[i].powers[k] =
                add_state(t, numbered(t, t->optimizers->power_names[power++], 0),
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

/* Backward is one op per variable: it would read the forward pass, which is drawn already. */
static void add_gradients(struct training *t)
{
    for (int i = 0; i < t->m->layout->variable_count; i++)
        t->gradients[i] =
            add_gradient(t, i, "gradients", "SymbolicGradient", (const char *[]){t->m->loss, NULL});
}

/* The norm of all gradients of an optimizer is one number, which each of them waits for. */
static const char *add_norm(struct training *t, int optimizer)
{
    const int count = t->m->layout->variable_count;
    const char **inputs = arena_array(t->arena, (size_t)count, sizeof *inputs);
    int used = 0;
    for (int i = 0; i < count; i++)
        if (drawn_of(t, i) == &t->drawn[optimizer]) inputs[used++] = t->gradients[i];
    return add(t, &(struct graph_node){.name = numbered(t, "clip/global_norm", optimizer),
                                       .op = "GlobalNorm",
                                       .device = WORKER_DEVICE,
                                       .inputs = inputs,
                                       .input_count = used,
                                       .dtype = GRAPH_FLOAT});
}

static void add_clipping(struct training *t, int optimizer)
{
    static const char *const ops[] = {[CLIP_VALUE] = "ClipByValue",
                                      [CLIP_NORM] = "ClipByNorm",
                                      [CLIP_GLOBAL_NORM] = "ClipByGlobalNorm"};
    const enum clip_type type = optimizer_clip(t->drawn[optimizer].spec).type;
    if (type == CLIP_NONE) return;
    const char *norm = type == CLIP_GLOBAL_NORM ? add_norm(t, optimizer) : NULL;
    for (int i = 0; i < t->m->layout->variable_count; i++)
        if (drawn_of(t, i) == &t->drawn[optimizer])
            t->gradients[i] =
                add_gradient(t, i, "clip", ops[type], (const char *[]){t->gradients[i], norm});
}

/* A slot is on the ps of its slice, and named after it. */
static const char *add_slot(struct training *t, const struct graph_node *slice, const char *name)
{
    struct graph_node node = *slice;
    node.name = arena_format(t->arena, "%s/%s", slice->name, name);
    return add(t, &node);
}

/* Moving averages (of batch normalization) read what a batch measured. */
static void add_move(struct training *t, int index)
{
    const struct slice *slice = &t->m->layout->slices[index];
    struct graph_node held = t->m->nodes.at[index];
    const char *inputs[] = {held.name, t->gradients[slice->variable]};
    held.name = arena_format(t->arena, "%s/AssignMovingAvg", held.name);
    held.op = "AssignMovingAvg";
    held.inputs = inputs;
    held.input_count = 2;
    t->updates[index] = arena_format(t->arena, "^%s", add(t, &held));
}

/* The update of one slice: it reads the slice, its slots, the powers, the rate and the gradient. */
static void add_update(struct training *t, int index)
{
    struct graph_nodes *nodes = &t->m->nodes;
    const struct slice *slice = &t->m->layout->slices[index];
    const struct drawn_optimizer *by = drawn_of(t, slice->variable);
    if (!by) {
        add_move(t, index);
        return;
    }
    struct graph_node held = nodes->at[index]; /* slice i is node i */
    const char *inputs[SLOTS_MAX + POWERS_MAX + 3] = {held.name};
    int count = 1;
    for (int i = 0; i < by->slot_count; i++)
        inputs[count++] = add_slot(t, &held, by->optimizer->slot[i].name);
    for (int i = 0; i < by->optimizer->power_count; i++) inputs[count++] = by->powers[i];
    inputs[count++] = by->learning_rate;
    inputs[count++] = t->gradients[slice->variable];

    held.name = arena_format(t->arena, "%s/%s", by->type, held.name);
    held.op =
        arena_format(t->arena, "Apply%s", tensorflow_name(t->arena, by->optimizer->object.name));
    held.inputs = inputs;
    held.input_count = count;
    t->updates[index] = arena_format(t->arena, "^%s", add(t, &held));
}

/* The global step counts when everything is updated. It shows the first optimizer's settings. */
static void add_count(struct training *t)
{
    const int updates = t->m->layout->all_count;
    const struct drawn_optimizer *first = &t->drawn[0];
    const char **inputs = arena_array(t->arena, (size_t)updates + 1, sizeof *inputs);
    inputs[0] = t->global_step;
    memcpy(inputs + 1, t->updates, (size_t)updates * sizeof *inputs);
    add(t, &(struct graph_node){.name = first->type,
                                .op = "AssignAdd",
                                .device = ps_device(t->arena, 0),
                                .inputs = inputs,
                                .input_count = updates + 1,
                                .dtype = GRAPH_INT64,
                                .object = &first->optimizer->object,
                                .attributes = first->spec->optimizer.attributes});
}

static void draw_optimizer(struct training *t, int i)
{
    const struct optimizer_spec *spec = &t->optimizers->at[i];
    const struct optimizer *optimizer = optimizer_of(spec);
    t->drawn[i] = (struct drawn_optimizer){
        .spec = spec,
        .optimizer = optimizer,
        .type = numbered(t, optimizer->object.name, i),
        .slot_count = optimizer_slots(optimizer, spec->optimizer.attributes),
    };
    add_learning_rate(t, i);
}

/* The order matters only in that a node is made before those that read it. */
void graph_def_add_training(struct graph_maker *m, const struct optimizers *optimizers)
{
    struct arena *arena = m->nodes.arena;
    struct training t = {
        .m = m,
        .arena = arena,
        .optimizers = optimizers,
        .scope = graph_scope(m, "train"),
        .gradients = arena_array(arena, (size_t)m->layout->variable_count, sizeof *t.gradients),
        .updates = arena_array(arena, (size_t)m->layout->all_count, sizeof *t.updates),
    };
    t.global_step = add_state(&t, graph_scope(m, "global_step"), 0, GRAPH_INT64);
    for (int i = 0; i < optimizers->count; i++) draw_optimizer(&t, i);
    add_powers(&t);
    add_gradients(&t);
    for (int i = 0; i < optimizers->count; i++) add_clipping(&t, i);
    for (int i = 0; i < m->layout->all_count; i++) add_update(&t, i);
    add_count(&t);
}
