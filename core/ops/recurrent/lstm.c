/* lstm: long short-term memory as TensorFlow's BasicLSTMCell: kernel [inputs + units, 4 units], of
 * the gates i, j, f, o. */
#include "core/ops/recurrent/recurrent.h"

struct attributes {
    struct recurrent recurrent;
    double forget_bias;
    const char *initial_cell;
};

static const struct field fields[] = {
    RECURRENT_FIELDS,
    FIELD_OF("forget_bias", FLOAT, struct attributes, forget_bias, .fallback = "1", .min = -100,
             .max = 100, .help = "added to the forget gate before its sigmoid"),
    FIELD_OF("initial_cell", STRING, struct attributes, initial_cell, .fallback = "null",
             .help = "a node of [batch, units] with the initial cell state; null: zeros"),
    {0},
};

enum { INITIAL_CELL = RECURRENT_MORE };
enum { KERNEL };

/* Saved: the gates [time, batch, 4 units]; states and cells from before the first step on, and two
 * gradients of one step; x with time as the first axis, replaced by its gradient. */
enum { GATES, STATES, TURNED };

static err infer(struct node *node, struct arena *arena)
{
    TRY(recurrent_infer(node));
    const struct steps_of_time s = recurrent_sizes(node);
    const struct shape kernel = {2, {s.inputs + s.units, 4 * s.units}};
    if (node->carries && node->named[INITIAL_CELL])
        return fail(ERR_INPUT, "state: carried, or an initial_cell, but not both");
    TRY(recurrent_check(node, INITIAL_CELL, &(struct shape){2, {s.batch, s.units}}));
    TRY(layer_infer(node, arena, &kernel));
    node->output.is_shares = false;
    node->saved[GATES] = recurrent_saved(s.time, s.batch, 4 * s.units);
    node->saved[STATES] = recurrent_saved(2 * s.time + 4, s.batch, s.units);
    node->saved[TURNED] = recurrent_saved(s.time, s.batch, s.inputs);
    return OK;
}

/* Step t of all examples */
static struct lstm_cell cell_of(const struct node *node, int64_t t)
{
    const struct attributes *a = node->attributes;
    const struct steps_of_time s = recurrent_sizes(node);
    const int64_t n = s.batch * s.units;
    float *h = (float *)node->saved[STATES].value + t * n, *c = h + (s.time + 1) * n;
    float *gradients = (float *)node->saved[STATES].value + 2 * (s.time + 1) * n;
    return (struct lstm_cell){.batch = s.batch,
                              .units = s.units,
                              .forget_bias = (float)a->forget_bias,
                              .mask = recurrent_mask(node, t),
                              .gates = (float *)node->saved[GATES].value + 4 * t * n,
                              .c_before = c,
                              .h_before = h,
                              .c = c + n,
                              .h = h + n,
                              .dy = recurrent_slope(node, t),
                              .dy_step = s.time * s.units,
                              .dh = gradients,
                              .dc = gradients + n};
}

static void forward(const struct node *node, struct device *d)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const struct lstm_cell first = cell_of(node, 0);
    recurrent_turn(d, node->saved[TURNED].value, node->input[0]->value, s.batch, s.time, s.inputs,
                   false);
    recurrent_sums(node, d, KERNEL, node->saved[TURNED].value, first.gates);
    recurrent_begin(node, d, INITIAL_STATE, (float *)first.h_before);
    recurrent_begin(node, d, INITIAL_CELL, (float *)first.c_before);
    for (int64_t t = 0; t < s.time; t++) {
        const struct lstm_cell cell = cell_of(node, t);
        recurrent_add_state(node, d, KERNEL, cell.h_before, cell.gates);
        d->kernels->lstm_cell(d, &cell);
    }
    const struct lstm_cell last = cell_of(node, s.time - 1);
    recurrent_end(node, d, INITIAL_STATE, last.h);
    recurrent_end(node, d, INITIAL_CELL, last.c);
    recurrent_give(node, d, first.h);
}

static void backward(const struct node *node, struct device *d)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const struct lstm_cell first = cell_of(node, 0);
    float *turned = node->saved[TURNED].value, *dx = node->input[0]->gradient;
    mask_backward(node, d);
    recurrent_take(node, d, first.dh);
    d->kernels->fill(d, first.dc, 0.0f, s.batch * s.units);
    for (int64_t t = s.time - 1; t >= 0; t--) {
        const struct lstm_cell cell = cell_of(node, t);
        d->kernels->lstm_cell_back(d, &cell);
        recurrent_to_state(node, d, KERNEL, cell.gates, cell.dh, true);
    }
    recurrent_begin_back(node, d, INITIAL_STATE, first.dh);
    recurrent_begin_back(node, d, INITIAL_CELL, first.dc);
    recurrent_to_params(node, d, KERNEL, turned, first.h_before, first.gates);
    if (!dx) return;
    recurrent_to_input(node, d, KERNEL, first.gates, turned, false);
    recurrent_turn(d, dx, turned, s.time, s.batch, s.inputs, node->add[0]);
}

/* Masked, with initial states, only the last state, without a bias */
static const struct op_case cases[] = {
    {"{\"units\": 3}", 1, {{3, {2, 4, 5}}}},
    {"{\"units\": 17, \"forget_bias\": 0, \"mask\": \"input_1\"}",
     2,
     {{3, {4, 3, 2}}, {2, {4, 3}}}},
    {"{\"units\": 3, \"output\": \"last\", \"mask\": \"input_1\", \"use_bias\": false}",
     2,
     {{3, {4, 3, 2}}, {2, {4, 3}}}},
    {"{\"units\": 3, \"initial_state\": \"input_1\", \"initial_cell\": \"input_2\"}",
     3,
     {{3, {2, 3, 2}}, {2, {2, 3}}, {2, {2, 3}}}},
    {"{\"units\": 3, \"state\": \"carried\"}", 1, {{3, {2, 4, 5}}}},
    {0},
};

static const char *const named[] = {"mask", "initial_state", "initial_cell", NULL};

const struct op op_lstm = {
    .object = {"lstm", "long short-term memory over the steps of [batch, time, numbers]", fields,
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
