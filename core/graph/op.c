/* op.c - the fields that every op has in a spec, and functions by which ops declare parameters. */
#include "core/graph/op.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

static const struct field node_spec_fields[] = {
    FIELD_OF("name", STRING, struct node_spec, name, .fallback = "null",
             .help = "name used by other nodes and in checkpoints; default: the op's name, with "
                     "_1, _2 ... if that is taken"),
    FIELD_OF("inputs", STRINGS, struct node_spec, inputs, .fallback = "[]", .count_max = INPUTS_MAX,
             .help = "nodes and columns it reads (\"features\": data without columns); default: "
                     "the previous node"),
    FIELD_OF("weights_of", STRING, struct node_spec, weights_of, .fallback = "null",
             .help = "an earlier node of the same op and shapes, or another use of the same block, "
                     "whose variables this one shares (reuse=True): gradients are summed, "
                     "initializers and regularizers are the earlier node's, and moving averages "
                     "use the mean of both batches. null: variables of its own"),
    {0},
};

const struct object node_spec_object = {
    .name = "node",
    .summary = "one node of the model",
    .fields = node_spec_fields,
    .size = sizeof(struct node_spec),
};

const char *node_place(const struct node_spec *nodes, int index, struct arena *arena)
{
    return nodes[index].place ? nodes[index].place : arena_format(arena, "model[%d]", index);
}

static const struct field regularizer_fields[] = {
    FIELD_OF("l1", FLOAT, struct regularizer, l1, .fallback = "0", .max = 1e9,
             .help = "adds l1 * sum |w| to the loss"),
    FIELD_OF("l2", FLOAT, struct regularizer, l2, .fallback = "0", .max = 1e9,
             .help = "adds l2 * sum w^2 to the loss"),
    {0},
};

const struct object regularizer_object = {
    .name = "regularizer",
    .summary = "a penalty on the size of a parameter's values",
    .fields = regularizer_fields,
    .size = sizeof(struct regularizer),
};

void node_tell_finished(const struct node *node, int64_t floats)
{
    if (node->finished.call && node->param[0].leaves_amid)
        node->finished.call(node->finished.context, node, floats);
}

/* Whether shape and name match. Names of tables contain their column, which may differ here. */
static bool is_alike(const struct param *own, const struct param *param, const struct node *owner)
{
    return shape_equal(&own->shape, &param->shape) &&
           (param->ids || strcmp(own->name + strlen(owner->name) + 1, param->name) == 0);
}

/* For a node that shares params: takes the owner's next one. */
static err take_param(struct node *node, const struct param *param)
{
    const struct node *owner = node->sharing.of;
    const struct param *own = &owner->param[node->param_count];
    char has[SHAPE_TEXT_MAX], wants[SHAPE_TEXT_MAX];
    if (node->param_count == owner->param_count)
        return fail(ERR_INPUT, "weights_of: \"%s\" has no %s", owner->name, param->name);
    if (!is_alike(own, param, owner))
        return fail(ERR_INPUT, "weights_of: \"%s\" has %s %s where this node wants %s %s",
                    owner->name, own->name + strlen(owner->name) + 1, shape_text(&own->shape, has),
                    param->name, shape_text(&param->shape, wants));
    if (!regularizer_is_within(&param->regularizer, &own->regularizer))
        return fail(ERR_INPUT, "weights_of: the penalty on %s is that of \"%s\": say it there",
                    param->name, owner->name);
    node->param = owner->param;
    node->param_count++;
    return OK;
}

enum { PARAMS_ROOM_FIRST = 4 };

/* May move the params: nobody else has pointers to them until infer() is done. */
static void make_room(struct node *node, struct arena *arena)
{
    if (node->param_count < node->param_room) return;
    const struct param *before = node->param;
    node->param_room = node->param_room ? 2 * node->param_room : PARAMS_ROOM_FIRST;
    node->param = arena_array(arena, (size_t)node->param_room, sizeof *node->param);
    if (before) memcpy(node->param, before, (size_t)node->param_count * sizeof *before);
}

/* The shape is checked here for all ops, so that the message names the parameter. */
err node_add_param(struct node *node, struct arena *arena, const struct param *param)
{
    err e = shape_check(&param->shape);
    if (e) return fail_prefix(e, "%s", param->name);
    if (node->sharing.of) return take_param(node, param);

    make_room(node, arena);
    struct param *added = &node->param[node->param_count++];
    *added = *param;
    added->name = arena_format(arena, "%s/%s", node->name, param->name);
    return OK;
}

err node_add_initialized(struct node *node, struct arena *arena, const struct param *param,
                         const struct variant *initializer)
{
    struct param complete = *param;
    complete.initializer = initializer->kind->descriptor;
    complete.initializer_attributes = initializer->attributes;
    return node_add_param(node, arena, &complete);
}

struct variant initializer_named(const char *name)
{
    return (struct variant){.kind = kinds_find(&initializer_kinds, name)};
}

int node_param_users(const struct node *node)
{
    return 1 + (node->sharing.of ? node->sharing.of : node)->sharing.count;
}

int64_t param_floats(const struct param *param)
{
    const int64_t all = shape_count(&param->shape);
    return param->held ? all / param->shape.dim[0] * param->held : all;
}

int64_t metric_state_count(const struct metric_node *node, int64_t rows)
{
    return node->metric->state_count ? node->metric->state_count(node, rows) : 2;
}

double metric_result(const struct metric_node *node, double *state)
{
    if (node->metric->result) return node->metric->result(node, state);
    return state[1] > 0 ? state[0] / state[1] : 0;
}

const char *const sights_names[] = {
    [SIGHTS_STEPS] = "steps", [SIGHTS_OCCURRENCES] = "occurrences", NULL};

/* A quiet NaN with a mark that arithmetic does not produce; the lowest 16 bits are enum
 * undefined. */
static const uint64_t undefined_bits = UINT64_C(0x7ff8756e64660000), undefined_mask = 0xffff;

double metric_undefined(enum undefined why)
{
    const uint64_t bits = undefined_bits | why;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

const char *metric_undefined_text(double value)
{
    static const char *const texts[] = {
        [ALL_LABELS_ARE_0] = "all labels are 0",
        [ALL_LABELS_ARE_1] = "all labels are 1",
        [ALL_WEIGHTS_ARE_0] = "all weights are 0",
        [NO_GROUP_HAS_BOTH] = "no group has labels of both kinds",
    };
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    const uint64_t why = bits & undefined_mask;
    const bool is_marked = (bits & ~undefined_mask) == undefined_bits;
    return is_marked && why < sizeof texts / sizeof *texts ? texts[why] : NULL;
}

bool better_is(enum better better, double value, double than)
{
    if (better == BETTER_NEAR_ONE) return fabs(value - 1) < fabs(than - 1);
    return better == BETTER_LESS ? value < than : value > than;
}

err node_add_made(struct node *node, struct arena *arena, const char *name, enum dtype dtype,
                  const struct shape *shape, bool is_whole)
{
    if (node->making.count == MADE_MAX || node->input_count + MADE_MAX > INPUTS_MAX)
        return fail(ERR_INPUT, "a node reads at most %d", INPUTS_MAX);
    struct made_input *made = arena_new(arena, sizeof *made);
    *made = (struct made_input){{.name = name, .dtype = dtype, .shape = *shape}, is_whole};
    node->making.inputs[node->making.count++] = made;
    return OK;
}
