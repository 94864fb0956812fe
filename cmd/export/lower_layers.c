/* lower_layers.c - kernels, biases, activations and other elementwise functions. */
#include <math.h>
#include <string.h>

#include "cmd/export/lower.h"
#include "core/ops/layer.h"

static int times(struct program *p, float factor, int x)
{
    return program_two(p, PRIMITIVE_MULTIPLY, x, program_number(p, factor));
}

static int plus(struct program *p, float term, int x)
{
    return program_two(p, PRIMITIVE_ADD, x, program_number(p, term));
}

static int above(struct program *p, float low, int x)
{
    return program_two(p, PRIMITIVE_MAXIMUM, x, program_number(p, low));
}

static int below(struct program *p, float high, int x)
{
    return program_two(p, PRIMITIVE_MINIMUM, x, program_number(p, high));
}

/* ELU: x above 0, alpha (exp(x) - 1) below */
static int exponential(struct program *p, float alpha, int x)
{
    const int lower = plus(p, -1, program_one(p, PRIMITIVE_EXP, below(p, 0, x)));
    return program_two(p, PRIMITIVE_ADD, above(p, 0, x), times(p, alpha, lower));
}

/* x / 2 (1 + of) */
static int half_of(struct program *p, int x, int of)
{
    return program_two(p, PRIMITIVE_MULTIPLY, times(p, 0.5f, x), plus(p, 1, of));
}

static int gelu_tanh(struct program *p, int x)
{
    const float root = (float)sqrt(2 / 3.14159265358979323846);
    const int square = program_two(p, PRIMITIVE_MULTIPLY, x, x);
    const int inner = plus(p, 1, times(p, 0.044715f, square));
    const int argument = times(p, root, program_two(p, PRIMITIVE_MULTIPLY, x, inner));
    return half_of(p, x, program_one(p, PRIMITIVE_TANH, argument));
}

static int selu(struct program *p, int x)
{
    static const float alpha = 1.6732632423543772f, scale = 1.0507009873554805f;
    return times(p, scale, exponential(p, alpha, x));
}

static int softsign(struct program *p, int x)
{
    return program_two(p, PRIMITIVE_DIVIDE, x, plus(p, 1, program_one(p, PRIMITIVE_ABS, x)));
}

static int lower_activation(struct program *p, enum activation activation, float alpha, int x)
{
    switch (activation) {
    case ACTIVATION_RELU:
        return above(p, 0, x);
    case ACTIVATION_RELU6:
        return below(p, 6, above(p, 0, x));
    case ACTIVATION_ELU:
        return exponential(p, 1, x);
    case ACTIVATION_LEAKY_RELU:
        return program_two(p, PRIMITIVE_ADD, above(p, 0, x), times(p, alpha, below(p, 0, x)));
    case ACTIVATION_SIGMOID:
        return program_one(p, PRIMITIVE_SIGMOID, x);
    case ACTIVATION_TANH:
        return program_one(p, PRIMITIVE_TANH, x);
    case ACTIVATION_SOFTPLUS:
        return program_one(p, PRIMITIVE_SOFTPLUS, x);
    case ACTIVATION_SWISH:
        return program_two(p, PRIMITIVE_MULTIPLY, x, program_one(p, PRIMITIVE_SIGMOID, x));
    case ACTIVATION_GELU:
        return half_of(p, x, program_one(p, PRIMITIVE_ERF, times(p, (float)sqrt(0.5), x)));
    case ACTIVATION_GELU_TANH:
        return gelu_tanh(p, x);
    case ACTIVATION_SELU:
        return selu(p, x);
    case ACTIVATION_SOFTSIGN:
        return softsign(p, x);
    case ACTIVATION_SQUARE:
        return program_two(p, PRIMITIVE_MULTIPLY, x, x);
    case ACTIVATION_SQRT:
        return program_one(p, PRIMITIVE_SQRT, x);
    case ACTIVATION_EXP:
        return program_one(p, PRIMITIVE_EXP, x);
    case ACTIVATION_LOG:
        return program_one(p, PRIMITIVE_LOG, x);
    case ACTIVATION_ABS:
        return program_one(p, PRIMITIVE_ABS, x);
    case ACTIVATION_LINEAR:
    case ACTIVATION_COUNT:
        break;
    }
    return x;
}

static const struct {
    const char *op;
    enum activation activation;
} functions[] = {
    {"relu", ACTIVATION_RELU},         {"relu6", ACTIVATION_RELU6},
    {"elu", ACTIVATION_ELU},           {"leaky_relu", ACTIVATION_LEAKY_RELU},
    {"sigmoid", ACTIVATION_SIGMOID},   {"tanh", ACTIVATION_TANH},
    {"softplus", ACTIVATION_SOFTPLUS}, {"swish", ACTIVATION_SWISH},
    {"gelu", ACTIVATION_GELU},         {"selu", ACTIVATION_SELU},
    {"softsign", ACTIVATION_SOFTSIGN}, {"square", ACTIVATION_SQUARE},
    {"sqrt", ACTIVATION_SQRT},         {"exp", ACTIVATION_EXP},
    {"log", ACTIVATION_LOG},           {"abs", ACTIVATION_ABS},
};

static int lower_function(struct lowering *l, int x)
{
    const struct node *node = l->node;
    const char *op = node->op->object.name;
    size_t i = 0;
    while (strcmp(functions[i].op, op)) i++;
    enum activation activation = functions[i].activation;
    float alpha = 0;
    if (activation == ACTIVATION_LEAKY_RELU) alpha = (float)lower_float(node, "alpha");
    if (activation == ACTIVATION_GELU && lower_bool(node, "approximate"))
        activation = ACTIVATION_GELU_TANH;
    return lower_activation(l->program, activation, alpha, x);
}

/* The bias, if any, is the last variable. */
static err add_bias(struct lowering *l, int *x)
{
    int bias;
    if (!lower_bool(l->node, "use_bias")) return OK;
    TRY(lower_param(l, l->node->param_count - 1, &bias));
    *x = program_two(l->program, PRIMITIVE_ADD, *x, bias);
    return OK;
}

err lower_layer_end(struct lowering *l, int *x)
{
    TRY(add_bias(l, x));
    *x = lower_activation(l->program, (enum activation)lower_enum(l->node, "activation"),
                          (float)LEAKY_RELU_ALPHA, *x);
    return OK;
}

static err lower_product(struct lowering *l, int *ret)
{
    const bool is_cross = strcmp(l->node->op->object.name, "cross_layer") == 0;
    int first, x, kernel;
    TRY(lower_input(l, 0, &first));
    TRY(lower_input(l, l->node->input_count - 1, &x));
    TRY(lower_param(l, 0, &kernel));
    *ret = program_matmul(l->program, x, kernel);
    if (!is_cross) return lower_layer_end(l, ret);
    TRY(add_bias(l, ret));
    *ret = program_two(l->program, PRIMITIVE_MULTIPLY, *ret, first);
    *ret = program_two(l->program, PRIMITIVE_ADD, *ret, x);
    return OK;
}

static err lower_prelu(struct lowering *l, int x, int *ret)
{
    struct program *p = l->program;
    int alpha;
    TRY(lower_param(l, 0, &alpha));
    const int lower = program_two(p, PRIMITIVE_MULTIPLY, below(p, 0, x), alpha);
    *ret = program_two(p, PRIMITIVE_ADD, above(p, 0, x), lower);
    return OK;
}

err lower_layers(struct lowering *l, int *ret)
{
    const char *op = l->node->op->object.name;
    int x;
    if (strcmp(op, "dense") == 0 || strcmp(op, "cross_layer") == 0) return lower_product(l, ret);
    TRY(lower_input(l, 0, &x));
    if (strcmp(op, "prelu") == 0) return lower_prelu(l, x, ret);
    *ret = lower_function(l, x);
    return OK;
}
