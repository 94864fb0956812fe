/* gru: gated recurrent unit as TensorFlow's GRUCell: gates/kernel [inputs + units, 2 units] of
 * reset and update, candidate/kernel [inputs + units, units]. With an attention it is DIEN's AUGRU.
 */
#include "core/ops/recurrent/recurrent.h"

struct attributes {
    struct recurrent recurrent;
    const char *attention;
};

static const struct field fields[] = {
    RECURRENT_FIELDS,
    FIELD_OF("attention", STRING, struct attributes, attention, .fallback = "null",
             .help = "a node of [batch, time] with values from 0 to 1: the update gate of a step "
                     "is multiplied by 1 minus this (AUGRU); null: unchanged"),
    {0},
};

enum { ATTENTION = RECURRENT_MORE };
enum { GATES_KERNEL, CANDIDATE_KERNEL = 2 }; /* params, each followed by its bias */

/* Saved: gates [time, batch, 2 units]; candidates; states from before the first step on, those
 * times the reset gate, two gradients of one step, and the gradient of attentions for each unit; x
 * with time as the first axis, replaced by its gradient. */
enum { GATES, CANDIDATES, STATES, TURNED };

/* Without a bias the second kernel directly follows the first. */
static int candidate_of(const struct node *node)
{
    const struct recurrent *r = node->attributes;
    return r->layer.use_bias ? CANDIDATE_KERNEL : GATES_KERNEL + 1;
}

static err add_part(struct node *node, struct arena *arena, const char *part, int64_t width)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const struct shape kernel = {2, {s.inputs + s.units, width}};
    TRY(layer_infer_kernel(node, arena, arena_format(arena, "%s/kernel", part), &kernel));
    return layer_infer_bias(node, arena, arena_format(arena, "%s/bias", part), width);
}

static err infer(struct node *node, struct arena *arena)
{
    TRY(recurrent_infer(node));
    const struct steps_of_time s = recurrent_sizes(node);
    TRY(recurrent_check(node, ATTENTION, &(struct shape){2, {s.batch, s.time}}));
    TRY(add_part(node, arena, "gates", 2 * s.units));
    TRY(add_part(node, arena, "candidate", s.units));
    node->output.is_shares = false;
    const int64_t attended = node_named(node, ATTENTION) ? s.time : 0;
    node->saved[GATES] = recurrent_saved(s.time, s.batch, 2 * s.units);
    node->saved[CANDIDATES] = recurrent_saved(s.time, s.batch, s.units);
    node->saved[STATES] = recurrent_saved(2 * s.time + 3 + attended, s.batch, s.units);
    node->saved[TURNED] = recurrent_saved(s.time, s.batch, s.inputs);
    return OK;
}

static struct by_example attention_at(const struct node *node, int64_t t)
{
    const struct tensor *attention = node_named(node, ATTENTION);
    if (!attention) return (struct by_example){0};
    return (struct by_example){(const float *)attention->value + t, attention->shape.dim[1]};
}

/* Step t of all examples */
static struct gru_cell cell_of(const struct node *node, int64_t t)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const int64_t n = s.batch * s.units;
    const struct tensor *attention = node_named(node, ATTENTION);
    float *states = node->saved[STATES].value, *resets = states + (s.time + 1) * n;
    float *gradients = resets + s.time * n;
    const bool is_wanted = attention && attention->gradient;
    return (struct gru_cell){.batch = s.batch,
                             .units = s.units,
                             .mask = recurrent_mask(node, t),
                             .attention = attention_at(node, t),
                             .gates = (float *)node->saved[GATES].value + 2 * t * n,
                             .candidate = (float *)node->saved[CANDIDATES].value + t * n,
                             .reset = resets + t * n,
                             .before = states + t * n,
                             .after = states + (t + 1) * n,
                             .dy = recurrent_slope(node, t),
                             .dy_step = s.time * s.units,
                             .dh = gradients,
                             .dreset = gradients + n,
                             .dattention = is_wanted ? gradients + (2 + t) * n : NULL};
}

static void forward(const struct node *node, struct device *d)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const struct gru_cell first = cell_of(node, 0);
    const int candidate = candidate_of(node);
    float *turned = node->saved[TURNED].value;
    recurrent_turn(d, turned, node->input[0]->value, s.batch, s.time, s.inputs, false);
    recurrent_sums(node, d, GATES_KERNEL, turned, first.gates);
    recurrent_sums(node, d, candidate, turned, first.candidate);
    recurrent_begin(node, d, INITIAL_STATE, (float *)first.before);
    for (int64_t t = 0; t < s.time; t++) {
        const struct gru_cell cell = cell_of(node, t);
        recurrent_add_state(node, d, GATES_KERNEL, cell.before, cell.gates);
        d->kernels->gru_gates(d, &cell);
        recurrent_add_state(node, d, candidate, cell.reset, cell.candidate);
        d->kernels->gru_cell(d, &cell);
    }
    recurrent_end(node, d, INITIAL_STATE, cell_of(node, s.time - 1).after);
    recurrent_give(node, d, first.after);
}

/* Attention's gradient: for each step, the sum over the units */
static void to_attention(const struct node *node, struct device *d, const float *slopes)
{
    const struct steps_of_time s = recurrent_sizes(node);
    struct fold f = {FOLD_A, .add = node->add[node->named[ATTENTION]], .scale = 1,
                     .y = node_named(node, ATTENTION)->gradient, .a = slopes};
    fold_axis(&f, s.batch, s.time, s.units, 0, 0);
    fold_axis(&f, s.time, 1, s.batch * s.units, 0, 0);
    fold_axis(&f, s.units, 0, 1, 0, 0);
    d->kernels->fold(d, &f);
}

static void to_inputs(const struct node *node, struct device *d, const struct gru_cell *first)
{
    const struct steps_of_time s = recurrent_sizes(node);
    float *turned = node->saved[TURNED].value, *dx = node->input[0]->gradient;
    if (!dx) return;
    recurrent_to_input(node, d, GATES_KERNEL, first->gates, turned, false);
    recurrent_to_input(node, d, candidate_of(node), first->candidate, turned, true);
    recurrent_turn(d, dx, turned, s.time, s.batch, s.inputs, node->add[0]);
}

static void backward(const struct node *node, struct device *d)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const struct gru_cell first = cell_of(node, 0);
    const int candidate = candidate_of(node);
    const float *turned = node->saved[TURNED].value;
    mask_backward(node, d);
    recurrent_take(node, d, first.dh);
    for (int64_t t = s.time - 1; t >= 0; t--) {
        const struct gru_cell cell = cell_of(node, t);
        d->kernels->gru_cell_back(d, &cell);
        recurrent_to_state(node, d, candidate, cell.candidate, cell.dreset, false);
        d->kernels->gru_gates_back(d, &cell);
        recurrent_to_state(node, d, GATES_KERNEL, cell.gates, cell.dh, true);
    }
    recurrent_begin_back(node, d, INITIAL_STATE, first.dh);
    if (first.dattention) to_attention(node, d, first.dattention);
    recurrent_to_params(node, d, GATES_KERNEL, turned, first.before, first.gates);
    recurrent_to_params(node, d, candidate, turned, first.reset, first.candidate);
    to_inputs(node, d, &first);
}

/* Masked, with an initial state, only the last state, without biases, with an attention */
static const struct op_case cases[] = {
    {"{\"units\": 3}", 1, {{3, {2, 4, 5}}}},
    {"{\"units\": 17, \"mask\": \"input_1\"}", 2, {{3, {4, 3, 2}}, {2, {4, 3}}}},
    {"{\"units\": 3, \"output\": \"last\", \"initial_state\": \"input_1\", \"use_bias\": false}",
     2,
     {{3, {2, 3, 2}}, {2, {2, 3}}}},
    {"{\"units\": 3, \"mask\": \"input_1\", \"attention\": \"input_2\"}",
     3,
     {{3, {4, 3, 2}}, {2, {4, 3}}, {2, {4, 3}}}},
    {"{\"units\": 3, \"state\": \"carried\"}", 1, {{3, {2, 4, 5}}}},
    {0},
};

static const char *const named[] = {"mask", "initial_state", "attention", NULL};

const struct op op_gru = {
    .object = {"gru", "gated recurrent units over the steps of [batch, time, numbers]", fields,
               sizeof(struct attributes)},
    .inputs_min = 1,
    .inputs_max = 1,
    .named_inputs = named,
    .reads_input = true,
    .infer = infer,
    .prepare = recurrent_prepare,
    .prepared_bytes = recurrent_prepared_bytes,
    .release = recurrent_release,
    .advance = recurrent_advance,
    .forward = forward,
    .backward = backward,
    .cases = cases,
};
