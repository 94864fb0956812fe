/* recurrent.c - see recurrent.h. */
#include "core/ops/recurrent/recurrent.h"

const char *const recurrent_outputs[] = {[OUTPUT_ALL] = "all", [OUTPUT_LAST] = "last", NULL};
const char *const recurrent_states[] = {[STATE_ZERO] = "zero", [STATE_CARRIED] = "carried", NULL};

static const struct recurrent *recurrent_of(const struct node *node)
{
    return node->attributes;
}

struct steps_of_time recurrent_sizes(const struct node *node)
{
    const struct shape *x = &node->input[0]->shape;
    return (struct steps_of_time){x->dim[0], x->dim[1], x->dim[2], recurrent_of(node)->units};
}

err recurrent_check(const struct node *node, int k, const struct shape *shape)
{
    const struct tensor *input = node_named(node, k);
    char is[SHAPE_TEXT_MAX], expected[SHAPE_TEXT_MAX];
    if (!input || shape_equal(&input->shape, shape)) return OK;
    return fail(ERR_INPUT, "%s: expected %s, \"%s\" is %s", node->op->named_inputs[k],
                shape_text(shape, expected), input->name, shape_text(&input->shape, is));
}

err recurrent_infer(struct node *node)
{
    const struct shape *x = &node->input[0]->shape;
    char text[SHAPE_TEXT_MAX];
    if (x->rank != 3)
        return fail(ERR_INPUT, "inputs: expected [batch, time, numbers], \"%s\" is %s",
                    node->input[0]->name, shape_text(x, text));
    const struct steps_of_time s = recurrent_sizes(node);
    TRY(mask_check(node, s.time));
    TRY(recurrent_check(node, INITIAL_STATE, &(struct shape){2, {s.batch, s.units}}));
    node->carries = recurrent_of(node)->state == STATE_CARRIED;
    if (node->carries && node->named[INITIAL_STATE])
        return fail(ERR_INPUT, "state: carried, or an initial_state, but not both");
    const bool is_last = recurrent_of(node)->output == OUTPUT_LAST;
    const struct shape all = {3, {s.batch, s.time, s.units}}, last = {2, {s.batch, s.units}};
    node->output.shape = is_last ? last : all;
    return OK;
}

struct tensor recurrent_saved(int64_t n, int64_t batch, int64_t width)
{
    return (struct tensor){.dtype = FLOAT32, .shape = {3, {n, batch, width}}};
}

void recurrent_turn(struct device *d, float *y, const float *x, int64_t n0, int64_t n1,
                    int64_t width, bool add)
{
    struct fold f = {FOLD_A, .add = add, .scale = 1, .y = y, .a = x};
    fold_axis(&f, n0, width, n1 * width, 0, 0);
    fold_axis(&f, n1, n0 * width, width, 0, 0);
    fold_axis(&f, width, 1, 1, 0, 0);
    d->kernels->fold(d, &f);
}

/* ---- what is carried ---- */

/* Parts per carried state (or cell): as the current batch begins and as it ends, so that a batch
 * may pass more than once. */
enum { CARRIED_PARTS = 2 };

static int64_t carried_floats(const struct node *node)
{
    const struct steps_of_time s = recurrent_sizes(node);
    return node->carries ? CARRIED_PARTS * s.batch * s.units : 0;
}

static float *carried_begin(const struct node *node, int k)
{
    const struct steps_of_time s = recurrent_sizes(node);
    return (float *)node->state + (k == INITIAL_STATE ? 0 : s.batch * s.units);
}

size_t recurrent_prepared_bytes(const struct node *node, struct device *d)
{
    return 2 * (size_t)carried_floats(node) * sizeof(float);
}

err recurrent_prepare(struct node *node, struct device *d)
{
    if (!node->carries) return OK;
    TRY(d->kernels->allocate(d, recurrent_prepared_bytes(node, d), &node->state));
    d->kernels->fill(d, node->state, 0.0f, 2 * carried_floats(node));
    return OK;
}

void recurrent_release(struct node *node, struct device *d)
{
    if (node->state) d->kernels->release(d, node->state);
    node->state = NULL;
}

void recurrent_advance(const struct node *node, struct device *d, bool is_fresh)
{
    const int64_t n = carried_floats(node);
    float *begin = node->state;
    if (is_fresh)
        d->kernels->fill(d, begin, 0.0f, n);
    else
        d->kernels->copy(d, begin, begin + n, n);
}

void recurrent_end(const struct node *node, struct device *d, int k, const float *state)
{
    const struct steps_of_time s = recurrent_sizes(node);
    if (node->carries)
        d->kernels->copy(d, carried_begin(node, k) + carried_floats(node), state,
                         s.batch * s.units);
}

void recurrent_begin(const struct node *node, struct device *d, int k, float *state)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const struct tensor *initial = node_named(node, k);
    if (initial)
        d->kernels->copy(d, state, initial->value, s.batch * s.units);
    else if (node->carries)
        d->kernels->copy(d, state, carried_begin(node, k), s.batch * s.units);
    else
        d->kernels->fill(d, state, 0.0f, s.batch * s.units);
}

void recurrent_begin_back(const struct node *node, struct device *d, int k, const float *gradient)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const struct tensor *initial = node_named(node, k);
    if (!initial || !initial->gradient) return;
    const int64_t n = s.batch * s.units;
    if (node->add[node->named[k]])
        d->kernels->add(d, initial->gradient, initial->gradient, gradient, n);
    else
        d->kernels->copy(d, initial->gradient, gradient, n);
}

void recurrent_give(const struct node *node, struct device *d, const float *states)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const int64_t n = s.batch * s.units;
    float *y = node->output.value;
    if (recurrent_of(node)->output == OUTPUT_LAST) {
        d->kernels->copy(d, y, states + (s.time - 1) * n, n);
        return;
    }
    recurrent_turn(d, y, states, s.time, s.batch, s.units, false);
    const struct fold clear = {FOLD_MULTIPLY, .y = y, .a = y};
    if (mask_of(node)) mask_apply(node, d, &clear, &node->output.shape, 1);
}

void recurrent_take(const struct node *node, struct device *d, float *dh)
{
    const struct steps_of_time s = recurrent_sizes(node);
    if (recurrent_of(node)->output == OUTPUT_LAST)
        d->kernels->copy(d, dh, node->output.gradient, s.batch * s.units);
    else
        d->kernels->fill(d, dh, 0.0f, s.batch * s.units);
}

const float *recurrent_slope(const struct node *node, int64_t t)
{
    const bool is_last = recurrent_of(node)->output == OUTPUT_LAST;
    return is_last ? NULL : node->output.gradient + t * recurrent_of(node)->units;
}

struct by_example recurrent_mask(const struct node *node, int64_t t)
{
    const struct tensor *mask = mask_of(node);
    if (!mask) return (struct by_example){0};
    return (struct by_example){(const float *)mask->value + t, mask->shape.dim[1]};
}

/* ---- products ---- */

static int64_t width_of(const struct node *node, int param)
{
    return node->param[param].shape.dim[1];
}

static bool has_bias(const struct node *node)
{
    return recurrent_of(node)->layer.use_bias;
}

/* Offset of the rows of a kernel, or of its gradient, that the state is multiplied with */
static int64_t state_rows(const struct node *node, int param)
{
    return recurrent_sizes(node).inputs * width_of(node, param);
}

void recurrent_sums(const struct node *node, struct device *d, int param, const float *x,
                    float *sums)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const int64_t width = width_of(node, param), rows = s.time * s.batch;
    d->kernels->gemm(d, &(struct gemm){.m = rows,
                                       .n = width,
                                       .k = s.inputs,
                                       .a = x,
                                       .b = node->param[param].value,
                                       .c = sums});
    if (has_bias(node))
        d->kernels->bias_activate(d, sums, node->param[param + 1].value, NULL, ACTIVATION_LINEAR, 0,
                                  rows, width);
}

void recurrent_add_state(const struct node *node, struct device *d, int param, const float *state,
                         float *sums)
{
    const struct steps_of_time s = recurrent_sizes(node);
    d->kernels->gemm(d, &(struct gemm){.add = true,
                                       .m = s.batch,
                                       .n = width_of(node, param),
                                       .k = s.units,
                                       .a = state,
                                       .b = node->param[param].value + state_rows(node, param),
                                       .c = sums});
}

void recurrent_to_state(const struct node *node, struct device *d, int param, const float *dsums,
                        float *to, bool add)
{
    const struct steps_of_time s = recurrent_sizes(node);
    d->kernels->gemm(d, &(struct gemm){.transpose_b = true,
                                       .add = add,
                                       .m = s.batch,
                                       .n = s.units,
                                       .k = width_of(node, param),
                                       .a = dsums,
                                       .b = node->param[param].value + state_rows(node, param),
                                       .c = to});
}

void recurrent_to_params(const struct node *node, struct device *d, int param, const float *x,
                         const float *states, const float *dsums)
{
    const struct steps_of_time s = recurrent_sizes(node);
    const int64_t width = width_of(node, param), rows = s.time * s.batch;
    float *to = node->param[param].gradient;
    struct gemm g = {.transpose_a = true,
                     .add = node->add_params,
                     .m = s.inputs,
                     .n = width,
                     .k = rows,
                     .a = x,
                     .b = dsums,
                     .c = to};
    d->kernels->gemm(d, &g);
    g.m = s.units;
    g.a = states;
    g.c = to + state_rows(node, param);
    d->kernels->gemm(d, &g);
    if (has_bias(node))
        d->kernels->sum_rows(d, node->param[param + 1].gradient, dsums, rows, width,
                             node->add_params);
}

void recurrent_to_input(const struct node *node, struct device *d, int param, const float *dsums,
                        float *dx, bool add)
{
    const struct steps_of_time s = recurrent_sizes(node);
    d->kernels->gemm(d, &(struct gemm){.transpose_b = true,
                                       .add = add,
                                       .m = s.time * s.batch,
                                       .n = s.inputs,
                                       .k = width_of(node, param),
                                       .a = dsums,
                                       .b = node->param[param].value,
                                       .c = dx});
}
