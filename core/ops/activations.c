/* activations.c - elementwise functions, each an op of its own: y = f(x).
 *
 * The same functions can be fused into dense and conv2d by their attribute "activation", which
 * saves a pass over memory; as nodes they follow ops that cannot fuse them. To add one: its value
 * in enum activation (kernels), a constant at the end of this file, its row in activation_of, its
 * word in meson.build and in layer.c.
 */
#include "core/graph/op.h"

#include <assert.h>

/* The two that have attributes. */
struct leaky_relu {
    double alpha; /* slope below zero */
};

struct gelu {
    bool approximate;
};

static const struct field leaky_relu_fields[] = {
    FIELD_OF("alpha", FLOAT, struct leaky_relu, alpha, .fallback = "0.2", .max = 1,
             .help = "slope below zero"),
    {0},
};

static const struct field gelu_fields[] = {
    FIELD_OF("approximate", BOOL, struct gelu, approximate, .fallback = "false",
             .help = "use the tanh approximation instead of the error function"),
    {0},
};

extern const struct op op_relu, op_relu6, op_elu, op_leaky_relu, op_sigmoid, op_tanh, op_softplus,
    op_swish, op_gelu, op_selu, op_softsign, op_square, op_sqrt, op_exp, op_log, op_abs;

/* Identified by the op's address, so that no attribute can disagree. */
static enum activation activation_of(const struct node *node)
{
    static const struct {
        const struct op *op;
        enum activation activation;
    } map[] = {
        {&op_relu, ACTIVATION_RELU},         {&op_relu6, ACTIVATION_RELU6},
        {&op_elu, ACTIVATION_ELU},           {&op_leaky_relu, ACTIVATION_LEAKY_RELU},
        {&op_sigmoid, ACTIVATION_SIGMOID},   {&op_tanh, ACTIVATION_TANH},
        {&op_softplus, ACTIVATION_SOFTPLUS}, {&op_swish, ACTIVATION_SWISH},
        {&op_gelu, ACTIVATION_GELU},         {&op_selu, ACTIVATION_SELU},
        {&op_softsign, ACTIVATION_SOFTSIGN}, {&op_square, ACTIVATION_SQUARE},
        {&op_sqrt, ACTIVATION_SQRT},         {&op_exp, ACTIVATION_EXP},
        {&op_log, ACTIVATION_LOG},           {&op_abs, ACTIVATION_ABS},
    };
    size_t i = 0;
    while (map[i].op != node->op) {
        i++;
        assert(i < sizeof map / sizeof *map); /* an op of this file without a row */
    }
    if (node->op == &op_gelu && ((const struct gelu *)node->attributes)->approximate)
        return ACTIVATION_GELU_TANH;
    return map[i].activation;
}

/* The slope below zero; other functions have none. */
static float alpha_of(const struct node *node)
{
    if (node->op != &op_leaky_relu) return 0.0f;
    return (float)((const struct leaky_relu *)node->attributes)->alpha;
}

static err infer(struct node *node, struct arena *arena)
{
    node->output.shape = node->input[0]->shape;
    node->output.is_shares = node->op == &op_sigmoid;
    return OK;
}

static void forward(const struct node *node, struct device *d)
{
    d->kernels->activate(d, node->output.value, node->input[0]->value, activation_of(node),
                         alpha_of(node), shape_count(&node->output.shape));
}

/* Kernels read x only if y does not determine the slope; those ops have reads_input. */
static void backward(const struct node *node, struct device *d)
{
    const struct tensor *x = node->input[0], *y = &node->output;
    if (!x->gradient) return;
    d->kernels->activate_back(d, x->gradient, y->gradient, y->value, x->value, activation_of(node),
                              alpha_of(node), shape_count(&y->shape), node->add[0]);
}

/* 70 elements: full vector registers and a remainder. */
static const struct op_case cases[] = {
    {"{}", 1, {{2, {3, 6}}}},
    {"{}", 1, {{3, {2, 5, 7}}}},
    {0},
};

static const struct op_case positive_cases[] = {
    {"{}", 1, {{2, {3, 6}}}, .is_positive = true},
    {"{}", 1, {{3, {2, 5, 7}}}, .is_positive = true},
    {0},
};

static const struct op_case leaky_relu_cases[] = {
    {"{}", 1, {{2, {3, 6}}}},
    {"{\"alpha\": 0.01}", 1, {{2, {3, 6}}}},
    {0},
};

static const struct op_case gelu_cases[] = {
    {"{}", 1, {{2, {3, 6}}}},
    {"{\"approximate\": true}", 1, {{2, {3, 6}}}},
    {0},
};

/* Members common to these ops */
#define OF_ONE_INPUT                                                                               \
    .inputs_min = 1, .inputs_max = 1, .infer = infer, .forward = forward, .backward = backward

const struct op op_relu = {
    .object = {"relu", "max(x, 0)"},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_relu6 = {
    .object = {"relu6", "min(max(x, 0), 6)"},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_elu = {
    .object = {"elu", "x above zero, exp(x) - 1 below"},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_leaky_relu = {
    .object = {"leaky_relu", "x above zero, alpha x below", leaky_relu_fields,
               sizeof(struct leaky_relu)},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = leaky_relu_cases,
};

const struct op op_sigmoid = {
    .object = {"sigmoid", "1 / (1 + exp(-x))"},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_tanh = {
    .object = {"tanh", "tanh(x)"},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_softplus = {
    .object = {"softplus", "log(1 + exp(x))"},
    .reads_input = true,
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_swish = {
    .object = {"swish", "x sigmoid(x)"},
    .reads_input = true,
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_gelu = {
    .object = {"gelu", "x times the cumulative normal distribution at x", gelu_fields,
               sizeof(struct gelu)},
    .reads_input = true,
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = gelu_cases,
};

const struct op op_selu = {
    .object = {"selu",
               "x above zero, e^x - 1 below, scaled so that layers keep their mean and variance"},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_softsign = {
    .object = {"softsign", "x / (1 + |x|)"},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_square = {
    .object = {"square", "x^2"},
    .reads_input = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_sqrt = {
    .object = {"sqrt", "the square root of x"},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = positive_cases,
};

const struct op op_exp = {
    .object = {"exp", "e^x"},
    .reads_output = true,
    OF_ONE_INPUT,
    .cases = cases,
};

const struct op op_log = {
    .object = {"log", "the natural logarithm of x"},
    .reads_input = true,
    OF_ONE_INPUT,
    .cases = positive_cases,
};

const struct op op_abs = {
    .object = {"abs", "|x|"},
    .reads_input = true,
    OF_ONE_INPUT,
    .cases = cases,
};
